//! Calls while files are mapped: most of them with buffers elsewhere.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::time::Instant;

use anyhow::{Context, ensure};

const PAGE: usize = 4096;
/// Read of each mapping, so that checkpoints lie in it.
const READ: usize = 8 << 20;
/// The best of so many batches of so many calls counts: what the call costs when nothing else happens. They are made in so
/// many rounds through all calls, so that what slows the processor down for a while meets all of them.
const ROUNDS: usize = 50;
const BATCHES: usize = 20;
const CALLS: u32 = 200;
/// Below the stack there is as much room at least (`mmap_base`, mm/util.c), and less is the stack's own.
const BELOW_STACK: usize = 32 << 20;

/// Nanoseconds by call and place of the buffer.
type Costs = BTreeMap<(&'static str, &'static str), f64>;

/// A long text is one such, and its stream's buffer some.
#[derive(Clone, Copy)]
#[repr(align(4096))]
struct Page([u8; PAGE]);
const PAGES: usize = 16;

/// Of no clock, so that nothing is written.
const NO_CLOCK: libc::clockid_t = 99;

/// No process's number, and no flag of mlock2(2).
const NOBODY: libc::pid_t = i32::MAX;
const NO_FLAG: c_uint = 1 << 31;

/// What the calls write.
const TEXT: &[u8; 8] = b"a text.\0";

unsafe extern "C" {
    fn fwrite_unlocked(buffer: *const c_void, size: usize, count: usize, stream: *mut libc::FILE) -> usize;
    fn fputs_unlocked(text: *const c_char, stream: *mut libc::FILE) -> c_int;
    /// stdout(3), which puts(3) writes to.
    static mut stdout: *mut libc::FILE;
}

/// Prints a line for each call and place of its buffer: name, a tab, nanoseconds.
pub fn run(path: &Path) -> anyhow::Result<()> {
    let file = File::open(path)?;
    let length = file.metadata()?.len() as usize;
    let mappings = (0..4).map(|_| map_and_read(&file, length)).collect::<io::Result<Vec<_>>>()?;
    // Between armed mappings, where the lowest and the highest address of all do not tell.
    // SAFETY: a mapping of ours that nothing uses any more.
    unsafe { libc::munmap(mappings[1] as *mut c_void, length) };
    let hole = anonymous(mappings[1] + length / 2)?;
    let (lowest, highest) = (mappings.iter().min(), mappings.iter().max());
    ensure!(lowest < Some(&hole) && Some(&hole) < highest, "the hole is not between the mappings");
    let (mut on_stack, mut on_heap) = (*TEXT, TEXT.to_vec());
    let below_stack = on_stack.as_ptr().addr() - BELOW_STACK;
    let elsewhere = anonymous(below_stack)? as *mut u8;
    let mut best = Costs::new();
    for round in 1..=ROUNDS {
        // What the kernel takes to find a mapping depends on where the nodes of its tree of them end, by 10 to 40 ns: in each
        // round there is one mapping more beside those that differ with precache, so that all runs meet all of it.
        anonymous(below_stack - round * 2 * PAGE)?;
        anonymous(hole - round * 2 * PAGE)?;
        measure_all(&mut best, "stack", on_stack.as_mut_ptr())?;
        measure_all(&mut best, "heap", on_heap.as_mut_ptr())?;
        measure_all(&mut best, "mmap", elsewhere)?;
        measure_all(&mut best, "between mappings", hole as *mut u8)?;
        measure_apart(&mut best, on_stack.as_mut_ptr(), on_heap.as_mut_ptr())?;
        measure_by_number(&mut best, "by number", on_stack.as_mut_ptr())?;
        measure_by_number(&mut best, "by number between mappings", hole as *mut u8)?;
        measure_from_mapping(&mut best, "armed mapping", mappings[0])?;
    }
    best.iter().for_each(|((call, place), time)| println!("{call}, {place}\t{time:.2}"));
    Ok(())
}

fn map_and_read(file: &File, length: usize) -> io::Result<usize> {
    // SAFETY: a new mapping; the file belongs to the measurement, which does not change it.
    let address = unsafe { libc::mmap(null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    for at in (0..READ.min(length)).step_by(PAGE) {
        // SAFETY: inside the mapping.
        unsafe { address.cast::<u8>().add(at).read_volatile() };
    }
    Ok(address as usize)
}

/// A page at this place, or anywhere, with the text in it.
fn anonymous(place: usize) -> io::Result<usize> {
    let at_place = if place == 0 { 0 } else { libc::MAP_FIXED_NOREPLACE };
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | at_place);
    // SAFETY: replaces no mapping (mmap(2), MAP_FIXED_NOREPLACE).
    let address = unsafe { libc::mmap((place & !(PAGE - 1)) as *mut c_void, PAGE, protection, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a page of ours.
    unsafe { address.cast::<[u8; 8]>().write(*TEXT) };
    Ok(address as usize)
}

/// Calls that fail at once, or write to a stream whose buffer is large: what is measured is the way there.
fn measure_all(best: &mut Costs, place: &'static str, text: *mut u8) -> anyhow::Result<()> {
    let name = CString::new("/dev/null")?;
    // SAFETY: C strings.
    let stream = unsafe { libc::fopen(name.as_ptr(), c"w".as_ptr()) };
    ensure!(!stream.is_null(), "cannot open /dev/null");
    let closed = closed_descriptor()?;
    let buffer = text.cast::<c_void>();
    let mut part = libc::iovec { iov_base: buffer, iov_len: 8 };
    let mut message = message_of(&mut part, null_mut());
    let mut parts = [part; 2];
    let mut double = message;
    (double.msg_iov, double.msg_iovlen) = (parts.as_mut_ptr(), 2);
    let mut several = [libc::mmsghdr { msg_hdr: message, msg_len: 0 }; 4];
    let mut several_named = [libc::mmsghdr { msg_hdr: message_of(&mut part, text), msg_len: 0 }; 4];
    // SAFETY: aiocb is plain data, for which zero is a value.
    let mut request: libc::aiocb = unsafe { std::mem::zeroed() };
    // A priority that there is not: the request is refused.
    (request.aio_buf, request.aio_nbytes, request.aio_reqprio) = (buffer, 8, -1);
    let (part, message, double) = (&raw const part, &raw mut message, &raw mut double);
    let page = (text.addr() & !(PAGE - 1)) as *mut c_void;
    // SAFETY: in each call: a buffer of eight bytes that is a C string, a list of one part, a stream that stays open; the
    // descriptor is none, so nothing is transferred. The advice is that which every mapping begins with.
    unsafe {
        measure(best, "write", place, || libc::write(closed, buffer, 8));
        measure(best, "read", place, || libc::read(closed, buffer, 8));
        measure(best, "send", place, || libc::send(closed, buffer, 8, 0));
        measure(best, "recv", place, || libc::recv(closed, buffer, 8, 0));
        measure(best, "sendto", place, || libc::sendto(closed, buffer, 8, 0, null(), 0));
        measure(best, "recvfrom", place, || libc::recvfrom(closed, buffer, 8, 0, null_mut(), null_mut()));
        measure(best, "writev", place, || libc::writev(closed, part, 1));
        measure(best, "sendmsg", place, || libc::sendmsg(closed, message, 0));
        measure(best, "sendmsg of two parts", place, || libc::sendmsg(closed, double, 0));
        measure(best, "sendmmsg of four", place, || libc::sendmmsg(closed, several.as_mut_ptr(), 4, 0));
        measure(best, "sendmmsg of four with names", place, || {
            libc::sendmmsg(closed, several_named.as_mut_ptr(), 4, 0)
        });
        measure(best, "pwrite", place, || libc::pwrite(closed, buffer, 8, 0));
        measure(best, "pwritev", place, || libc::pwritev(closed, part, 1, 0));
        measure(best, "vmsplice", place, || libc::vmsplice(closed, part, 1, 0));
        measure(best, "process_vm_readv", place, || libc::process_vm_readv(NOBODY, part, 1, part, 1, 0));
        measure(best, "aio_write", place, || libc::aio_write(&raw mut request));
        measure(best, "mlock2", place, || libc::mlock2(page, PAGE, NO_FLAG));
        measure(best, "fstat", place, || libc::fstat(closed, buffer.cast()));
        measure(best, "ioctl", place, || libc::ioctl(closed, 0, buffer));
        measure(best, "poll of none", place, || libc::poll(buffer.cast(), 0, 0));
        measure(best, "epoll_wait", place, || libc::epoll_wait(closed, buffer.cast(), 1, 0));
        measure(best, "clock_gettime", place, || libc::clock_gettime(NO_CLOCK, buffer.cast()));
        measure(best, "access", place, || libc::access(text.cast(), 0));
        measure(best, "open", place, || libc::open(text.cast(), libc::O_RDONLY));
        measure(best, "fwrite_unlocked", place, || fwrite_unlocked(buffer, 1, 8, stream));
        measure(best, "fputs_unlocked", place, || fputs_unlocked(text.cast(), stream));
        measure(best, "fwrite", place, || libc::fwrite(buffer, 1, 8, stream));
        measure(best, "fputs", place, || libc::fputs(text.cast(), stream));
        let theirs = stdout;
        stdout = stream;
        measure(best, "puts", place, || libc::puts(text.cast()));
        stdout = theirs;
        measure(best, "fprintf", place, || libc::fprintf(stream, c"%s".as_ptr(), text.cast::<c_char>()));
        measure(best, "madvise", place, || libc::madvise(page, PAGE, libc::MADV_NORMAL));
        if place == "heap" {
            measure_long_text(best, place)?;
        }
        if place == "stack" {
            measure(best, "syscall(SYS_getppid)", "none", || libc::syscall(libc::SYS_getppid));
        }
        ensure!(CStr::from_ptr(text.cast()).to_bytes() == &TEXT[..7], "somebody wrote to the buffer");
        libc::fclose(stream);
    }
    Ok(())
}

/// A message of one part, and with a name if that is not null.
fn message_of(part: &mut libc::iovec, name: *mut u8) -> libc::msghdr {
    // SAFETY: msghdr is plain data, for which zero is a value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (part, 1);
    (message.msg_name, message.msg_namelen) = (name.cast(), if name.is_null() { 0 } else { 8 });
    message
}

/// Messages that name one place, and have their buffer in another.
fn measure_apart(best: &mut Costs, text: *mut u8, name: *mut u8) -> anyhow::Result<()> {
    let closed = closed_descriptor()?;
    let mut part = libc::iovec { iov_base: text.cast(), iov_len: 8 };
    let message = message_of(&mut part, name);
    let mut several = [libc::mmsghdr { msg_hdr: message, msg_len: 0 }; 4];
    // SAFETY: the descriptor is none, so nothing is transferred.
    unsafe {
        measure(best, "sendmsg", "apart", || libc::sendmsg(closed, &raw const message, 0));
        measure(best, "sendmmsg of four", "apart", || libc::sendmmsg(closed, several.as_mut_ptr(), 4, 0));
    }
    Ok(())
}

/// Calls with the bytes of what is mapped, eight at a time.
fn measure_from_mapping(best: &mut Costs, place: &'static str, mapping: usize) -> anyhow::Result<()> {
    let closed = closed_descriptor()?;
    let mut at = (0..READ).step_by(8).cycle().map(|at| (mapping + at) as *const c_void);
    let mut next = || at.next().unwrap_or(null());
    // SAFETY: inside the mapping; the descriptor is none, and the stream's C strings are.
    unsafe {
        let stream = libc::fopen(c"/dev/null".as_ptr(), c"w".as_ptr());
        ensure!(!stream.is_null(), "cannot open /dev/null");
        measure(best, "write", place, || libc::write(closed, next(), 8));
        measure(best, "send", place, || libc::send(closed, next(), 8, 0));
        measure(best, "fwrite", place, || libc::fwrite(next(), 1, 8, stream));
        libc::fclose(stream);
    }
    Ok(())
}

/// Calls by number (syscall(2)).
fn measure_by_number(best: &mut Costs, place: &'static str, text: *mut u8) -> anyhow::Result<()> {
    let closed = closed_descriptor()?;
    let mut part = libc::iovec { iov_base: text.cast(), iov_len: 8 };
    let message = message_of(&mut part, null_mut());
    let mut several = [libc::mmsghdr { msg_hdr: message, msg_len: 0 }; 4];
    let (part, message, several) = (&raw const part, &raw const message, several.as_mut_ptr());
    let nowhere = null::<c_void>();
    // SAFETY: in each call: as many words as it takes; the descriptor is none, so nothing is transferred.
    unsafe {
        measure(best, "write", place, || libc::syscall(libc::SYS_write, closed, text, 8usize));
        measure(best, "writev", place, || libc::syscall(libc::SYS_writev, closed, part, 1usize));
        measure(best, "sendto", place, || libc::syscall(libc::SYS_sendto, closed, text, 8usize, 0, nowhere, 0));
        measure(best, "sendmsg", place, || libc::syscall(libc::SYS_sendmsg, closed, message, 0));
        measure(best, "sendmmsg of four", place, || libc::syscall(libc::SYS_sendmmsg, closed, several, 4, 0));
        measure(best, "fstat", place, || libc::syscall(libc::SYS_fstat, closed, text));
    }
    Ok(())
}

/// What a copy takes depends on where text and buffer begin in their pages, and the heap begins elsewhere with a library more: so
/// both begin with a page.
fn measure_long_text(best: &mut Costs, place: &'static str) -> anyhow::Result<()> {
    let (mut text, mut room) = (Box::new(Page([b'x'; PAGE])), Box::new([Page([0; PAGE]); PAGES]));
    text.0[PAGE - 1] = 0;
    // SAFETY: C strings; the stream's buffer outlives it.
    unsafe {
        let stream = libc::fopen(c"/dev/null".as_ptr(), c"w".as_ptr());
        ensure!(!stream.is_null(), "cannot open /dev/null");
        let given = libc::setvbuf(stream, room.as_mut_ptr().cast(), libc::_IOFBF, PAGES * PAGE);
        measure(best, "fputs_unlocked of 4 KiB", place, || fputs_unlocked(text.0.as_ptr().cast(), stream));
        libc::fclose(stream);
        ensure!(given == 0, "cannot give a stream its buffer");
    }
    Ok(())
}

/// A number that is no descriptor.
fn closed_descriptor() -> anyhow::Result<c_int> {
    // SAFETY: takes a number, and makes a descriptor that nobody else has.
    let number = unsafe { libc::dup(0) };
    // SAFETY: as above; closed at once.
    drop((number >= 0).then(|| unsafe { OwnedFd::from_raw_fd(number) }).context("cannot duplicate standard input")?);
    Ok(number)
}

fn measure<T>(best: &mut Costs, call: &'static str, place: &'static str, mut make: impl FnMut() -> T) {
    let batch = || {
        let start = Instant::now();
        for _ in 0..CALLS {
            std::hint::black_box(make());
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    };
    let cost = best.entry((call, place)).or_insert(f64::INFINITY);
    *cost = std::iter::repeat_with(batch).take(BATCHES).fold(*cost, f64::min);
}
