//! The optimizer stands still, and so many wait to be heard by it that the kernel lets no more ask: forked children that
//! come then read on, unserved and counted, and are served as soon as they can be.

use crate::optimizer::{Served, expected};

/// Maps the file; then `stop` makes the optimizer stand still with a full queue, and `resume` waits until it has taken all of
/// that.
const PREPARED: &str = r#"
import mmap, os, signal, socket, struct, sys, time, zlib
file = os.open(sys.argv[1], os.O_RDONLY)
data = mmap.mmap(file, 0, prot=mmap.PROT_READ)
size = len(data)

def connection():
    told = dict(line.split('=', 1) for line in os.environ['PRECACHE_READER'].split('\x1e') if line)
    one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    one.setblocking(False)
    one.connect('\0' + told['socket'])
    return one

def stop():
    with connection() as one:
        optimizer, _, _ = struct.unpack('3i', one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    os.kill(optimizer, signal.SIGSTOP)
    while open(f'/proc/{optimizer}/stat').read().rpartition(')')[2].split()[0] != 'T':
        pass
    try:
        while True:
            connection().close()
    except BlockingIOError:
        return optimizer

def resume(optimizer):
    os.kill(optimizer, signal.SIGCONT)
    while True:
        try:
            one = connection()
            break
        except BlockingIOError:
            pass
    # It comes last, and is hung up on.
    one.send(b'rubbish')
    one.settimeout(20)
    assert one.recv(1) == b''

def is_right(start, end):
    return zlib.crc32(data[start:end]) == zlib.crc32(os.pread(file, end - start, start))

print('half', flush=True)
sys.stdin.readline()
"#;

#[test]
fn children_that_are_not_heard_of_are_counted() {
    let code = r#"
optimizer = stop()
for part in range(3):
    if os.fork() == 0:
        good = is_right(size * part // 4, size * (part + 1) // 4)
        # Forked from one that is not known itself.
        if part == 2 and os.fork() == 0:
            os._exit(not is_right(size * 3 // 4, size))
        os._exit(not good or part == 2 and os.wait()[1] != 0)
assert [os.wait()[1] for part in range(3)] == [0] * 3
resume(optimizer)
print(zlib.crc32(data), flush=True)
"#;
    let Some(mut served) = Served::start_with(&[PREPARED, code].concat()) else { return };
    assert_eq!(served.go_on(), expected());
    assert!(served.supervisor.wait().unwrap().success());
    let report = served.report.read();
    assert_eq!((report.sum("unserved"), report.sum("processes")), (4, 1), "{:#}", report.0);
    assert!(report.text().contains("4 forked processes were not served"), "{:#}", report.0);
}

/// A child that lives on tries again.
#[test]
fn children_that_were_not_heard_of_are_served_later() {
    let code = r#"
optimizer = stop()
(from_child, to_parent), (from_parent, to_child) = os.pipe(), os.pipe()
if os.fork() == 0:
    good = is_right(0, size // 4)
    os.write(to_parent, b'.')
    os.read(from_parent, 1)
    for part in range(8, 32):
        # It asks again after 20 ms at the earliest; the queue may be full for longer on a busy machine.
        time.sleep(0.1)
        good = is_right(size // 32 * part, size // 32 * (part + 1)) and good
    os._exit(not good)
os.read(from_child, 1)
resume(optimizer)
os.write(to_child, b'.')
assert os.wait()[1] == 0
print(zlib.crc32(os.pread(file, size, 0)), flush=True)
"#;
    let Some(mut served) = Served::start_with(&[PREPARED, code].concat()) else { return };
    assert_eq!(served.go_on(), expected());
    assert!(served.supervisor.wait().unwrap().success());
    let report = served.report.read();
    assert_eq!(report.sum("unserved"), 0, "{:#}", report.0);
    let child = report.readers().find(|reader| reader["forked"] == true).expect("the child is known");
    assert!(child["trips"].as_u64() > Some(0), "{:#}", report.0);
    // Its parent has not touched the file.
    assert!(report.of_file("requested") > 0, "{:#}", report.0);
}
