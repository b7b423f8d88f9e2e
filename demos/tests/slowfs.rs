//! slowfs, mounted for real. Times are only checked from below: a busy machine is no failure.

mod mounted;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::thread;
use std::time::{Duration, Instant};

use mounted::Mounted;
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Mounts with these arguments, or ends the test with a printed reason.
macro_rules! mount_or_skip {
    ($($argument:expr),*) => {
        match Mounted::new(&[$($argument),*]) {
            Some(mounted) => mounted,
            None => return,
        }
    };
}

#[test]
fn files_arrive_unchanged_and_are_counted() {
    let mounted = mount_or_skip!();
    let content = mounted.make_file("data.bin", 3 * MIB + 123);
    assert_eq!(fs::read(mounted.path("data.bin")).unwrap(), content);
    assert_eq!(mounted.count("data.bin", "bytes"), content.len() as u64);
    assert!(mounted.count("data.bin", "requests") >= 24);

    mounted.reset_counters();
    assert_eq!(mounted.count("data.bin", "requests"), 0);
}

#[test]
fn the_source_is_protected_unless_the_mount_is_writable() {
    let mounted = mount_or_skip!();
    mounted.make_file("data.bin", KIB);
    let refused = |result: io::Result<()>| result.unwrap_err().raw_os_error();
    assert_eq!(refused(File::create(mounted.path("new")).map(drop)), Some(libc::EROFS));
    assert_eq!(refused(OpenOptions::new().append(true).open(mounted.path("data.bin")).map(drop)), Some(libc::EROFS));
    assert_eq!(refused(fs::remove_file(mounted.path("data.bin"))), Some(libc::EROFS));
}

#[test]
fn a_writable_mount_passes_changes_through() {
    let mounted = mount_or_skip!("--writable");
    fs::create_dir(mounted.path("dir")).unwrap();
    let mut file = File::create(mounted.path("dir/a")).unwrap();
    file.write_all(b"abc").unwrap();
    drop(file);
    fs::rename(mounted.path("dir/a"), mounted.path("b")).unwrap();
    assert_eq!(fs::read(mounted.source("b")).unwrap(), b"abc");
    fs::remove_file(mounted.path("b")).unwrap();
    fs::remove_dir(mounted.path("dir")).unwrap();
    assert_eq!(fs::read_dir(mounted.source("")).unwrap().count(), 0);
}

#[test]
fn reads_that_depend_on_each_other_pay_the_latency_each() {
    let mounted = mount_or_skip!("--latency", "5ms");
    mounted.make_file("data.bin", 16 * MIB);
    let file = File::open(mounted.path("data.bin")).unwrap();
    let start = Instant::now();
    for record in 0..16 {
        file.read_exact_at(&mut [0; 4096], record * MIB).unwrap();
    }
    assert!(start.elapsed() >= 16 * Duration::from_millis(5), "{:?}", start.elapsed());
}

/// On average half of it: 64 draws are far from less than a fifth.
#[test]
fn a_jitter_makes_requests_take_longer() {
    let mounted = mount_or_skip!("--jitter", "10ms");
    mounted.make_file("data.bin", 64 * MIB);
    let file = File::open(mounted.path("data.bin")).unwrap();
    let start = Instant::now();
    for record in 0..64 {
        file.read_exact_at(&mut [0; 4096], record * MIB).unwrap();
    }
    assert!(start.elapsed() >= 64 * Duration::from_millis(2), "{:?}", start.elapsed());
}

#[test]
fn requests_beyond_the_concurrency_wait_for_their_turn() {
    let mounted = mount_or_skip!("--latency", "20ms", "--concurrency", "1");
    mounted.make_file("data.bin", 8 * MIB);
    let file = &File::open(mounted.path("data.bin")).unwrap();
    let start = Instant::now();
    thread::scope(|scope| {
        for record in 0..8 {
            scope.spawn(move || file.read_exact_at(&mut [0; 4096], record * MIB).unwrap());
        }
    });
    assert!(start.elapsed() >= 8 * Duration::from_millis(20), "{:?}", start.elapsed());
}

#[test]
fn the_kernel_sends_no_more_background_requests_than_allowed() {
    let mounted = mount_or_skip!("--latency", "20ms", "--max-background", "2");
    let content = mounted.make_file("data.bin", 4 * MIB);
    let file = File::open(mounted.path("data.bin")).unwrap();
    posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_SEQUENTIAL).unwrap();
    for chunk in 0..32 {
        posix_fadvise(&file, chunk << 17, 1 << 17, PosixFadviseAdvice::POSIX_FADV_WILLNEED).unwrap();
    }
    assert_eq!(fs::read(mounted.path("data.bin")).unwrap(), content);
    let most = mounted.count("data.bin", "max_in_flight");
    assert!((1..=2).contains(&most), "{most} in flight");
}

/// Read a page at a time, a file is read ahead in requests of this length, after a few shorter ones.
#[test]
fn the_read_ahead_is_as_long_as_asked_for() {
    for (readahead, expected) in [("32K", 64..=80), ("128K", 16..=24), ("1M", 2..=12)] {
        if readahead == "1M" && !nix::unistd::geteuid().is_root() {
            return eprintln!("skipped: only root can raise the read-ahead of a mount");
        }
        let mounted = mount_or_skip!("--readahead", readahead);
        mounted.make_file("data.bin", 2 * MIB);
        let file = File::open(mounted.path("data.bin")).unwrap();
        (0..512).for_each(|page| file.read_exact_at(&mut [0; 4096], page * 4 * KIB).unwrap());
        let requests = mounted.count("data.bin", "requests");
        assert!(expected.contains(&requests), "{requests} requests with {readahead}");
    }
}

#[test]
fn the_bandwidth_bounds_a_stream() {
    let mounted = mount_or_skip!("--bandwidth", "80M");
    let content = mounted.make_file("data.bin", 8 * MIB);
    let start = Instant::now();
    assert_eq!(fs::read(mounted.path("data.bin")).unwrap(), content);
    assert!(start.elapsed().as_secs_f64() >= content.len() as f64 / 80e6, "{:?}", start.elapsed());
}

#[test]
fn an_injected_error_reaches_who_reads_there_and_nobody_else() {
    let mounted = mount_or_skip!("--fault", "eio@1M,file=*.bin");
    let content = mounted.make_file("data.bin", 2 * MIB);
    mounted.make_file("data.mdb", 2 * MIB);
    let file = File::open(mounted.path("data.bin")).unwrap();
    assert_eq!(file.read_at(&mut [0; 4096], MIB).unwrap_err().raw_os_error(), Some(libc::EIO));
    let mut page = [0; 4096];
    file.read_exact_at(&mut page, 0).unwrap();
    assert_eq!(page, content[..4096]);
    assert!(mounted.count("data.bin", "errors") >= 1);
    fs::read(mounted.path("data.mdb")).unwrap();
}

#[test]
fn a_short_read_delivers_fewer_bytes_but_no_wrong_ones() {
    let mounted = mount_or_skip!("--fault", "short@0");
    let content = mounted.make_file("data.bin", MIB);
    let mut buffer = vec![0; 128 * KIB as usize];
    let count = File::open(mounted.path("data.bin")).unwrap().read_at(&mut buffer, 0).unwrap();
    assert!(count > 0 && count < buffer.len(), "{count}");
    assert_eq!(buffer[..count], content[..count]);
}

#[test]
fn a_stall_keeps_who_reads_there_waiting() {
    let mounted = mount_or_skip!("--fault", "stall:1s@1M");
    let content = mounted.make_file("data.bin", 2 * MIB);
    let start = Instant::now();
    assert_eq!(fs::read(mounted.path("data.bin")).unwrap(), content);
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
}

/// Requests that come in the same order, one at a time: past the page cache.
#[test]
fn the_same_seed_strikes_the_same_requests() {
    let struck = |seed: &str| -> Option<Vec<bool>> {
        let mounted = Mounted::new(&["--fault", "eio@p=0.5", "--seed", seed])?;
        mounted.make_file("data.bin", MIB);
        let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(mounted.path("data.bin")).unwrap();
        Some((0..256).map(|page| file.read_at(&mut Page([0; 4096]).0, page * 4 * KIB).is_err()).collect())
    };
    let Some(first) = struck("7") else { return };
    assert_eq!(Some(&first), struck("7").as_ref());
    assert_ne!(Some(&first), struck("8").as_ref());
}

/// What O_DIRECT reads into is aligned.
#[repr(align(4096))]
struct Page([u8; 4096]);

#[test]
fn the_page_cache_survives_opening_again_only_if_asked() {
    for (arguments, passes) in [(&[][..], 2), (&["--keep-cache"][..], 1)] {
        let Some(mounted) = Mounted::new(arguments) else { return };
        mounted.make_file("data.bin", MIB);
        fs::read(mounted.path("data.bin")).unwrap();
        fs::read(mounted.path("data.bin")).unwrap();
        assert_eq!(mounted.count("data.bin", "bytes"), passes * MIB, "{arguments:?}");
    }
}

#[test]
fn read_ahead_calls_bring_in_a_chunk_unless_they_are_turned_off() {
    // Requests after the call and one read elsewhere; bytes that reading the advised chunk then costs.
    for (arguments, expected) in [(&[][..], (2, 0)), (&["--no-willneed"][..], (1, 128 * KIB))] {
        let Some(mounted) = Mounted::new(arguments) else { return };
        let content = mounted.make_file("data.bin", 2 * MIB);
        let file = File::open(mounted.path("data.bin")).unwrap();
        posix_fadvise(&file, MIB as i64, 128 * KIB as i64, PosixFadviseAdvice::POSIX_FADV_WILLNEED).unwrap();
        // A request that comes after the call, so that what the call has caused is counted too.
        file.read_exact_at(&mut [0; 4096], 0).unwrap();
        // The call's request is served by another thread than the read's.
        let deadline = Instant::now() + Duration::from_secs(10);
        while mounted.count("data.bin", "requests") < expected.0 && Instant::now() < deadline {
            std::thread::yield_now();
        }
        let after_the_call = mounted.count("data.bin", "requests");
        mounted.reset_counters();
        file.read_exact_at(&mut vec![0; 128 * KIB as usize], MIB).unwrap();
        assert_eq!((after_the_call, mounted.count("data.bin", "bytes")), expected, "{arguments:?}");
        assert_eq!(fs::read(mounted.path("data.bin")).unwrap(), content, "{arguments:?}");
    }
}

#[test]
fn without_read_ahead_calls_a_pass_still_reads_every_byte_once() {
    let mounted = mount_or_skip!("--no-willneed");
    let content = mounted.make_file("data.bin", 3 * MIB + 123);
    assert_eq!(fs::read(mounted.path("data.bin")).unwrap(), content);
    assert_eq!(mounted.count("data.bin", "bytes"), content.len() as u64);
    assert_eq!(mounted.count("data.bin", "requests"), 25);
}

#[test]
fn locks_can_be_refused() {
    let mounted = mount_or_skip!("--writable", "--no-locks");
    let file = File::create(mounted.path("lock.mdb")).unwrap();
    assert_eq!(file.lock().unwrap_err().raw_os_error(), Some(libc::ENOLCK));
}

#[test]
fn links_and_extended_attributes_pass_through() {
    let mounted = mount_or_skip!();
    mounted.make_file("data.bin", KIB);
    std::os::unix::fs::symlink("data.bin", mounted.source("link")).unwrap();
    assert_eq!(fs::read_link(mounted.path("link")).unwrap().to_str(), Some("data.bin"));
    let set = rustix::fs::setxattr(mounted.source("data.bin"), "user.x", b"yes", rustix::fs::XattrFlags::empty());
    if let Err(error) = set {
        return eprintln!("skipped: the temporary directory has no extended attributes ({error})");
    }
    let mut value = [0; 8];
    assert_eq!(rustix::fs::getxattr(mounted.path("data.bin"), "user.x", &mut value), Ok(3));
    assert_eq!(value[..3], *b"yes");
}

#[test]
fn a_killed_slowfs_leaves_no_mount() {
    let mut mounted = mount_or_skip!();
    let _held = File::open(mounted.path("")).unwrap();
    mounted.kill();
    mounted.wait_until_unmounted();
}

#[test]
fn the_end_of_standard_input_unmounts() {
    let mut mounted = mount_or_skip!();
    mounted.close_stdin();
    mounted.wait_until_unmounted();
}
