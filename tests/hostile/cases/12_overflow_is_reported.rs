// Expected: a stack overflow of a Rust program ends it by the signal and with the words that it has natively, on its main
// thread and on another, after data was read through checkpoints.
// @not-killed it overflows in processes of their own, and there is no half-way
// @counter active_readers 2
use std::io::{Write, stdout};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, exit};

unsafe extern "C" {
    fn mmap(address: *mut u8, length: usize, protection: i32, flags: i32, file: i32, offset: i64) -> *mut u8;
}

/// The sum of a byte of each page of the first half of the file.
fn read_mapped(path: &str) -> u64 {
    let file = std::fs::File::open(path).unwrap();
    let length = file.metadata().unwrap().len() as usize;
    // PROT_READ, MAP_SHARED. SAFETY: a new mapping, which nobody knows.
    let map = unsafe { mmap(std::ptr::null_mut(), length, 1, 1, file.as_raw_fd(), 0) };
    // SAFETY: inside the mapping, which is as long as the file.
    (0..length / 2).step_by(4096).map(|at| u64::from(unsafe { map.add(at).read() })).sum()
}

fn recurse(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 128]);
    recurse(depth + 1) + frame[(depth % 128) as usize]
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let [_, _, how] = &words[..] {
        let sum = read_mapped(&words[1]);
        writeln!(stdout(), "{sum}").unwrap();
        let overflow = || exit(recurse(0) as i32);
        match how.as_str() {
            "thread" => std::thread::Builder::new().name("deep".into()).spawn(overflow).unwrap().join().unwrap(),
            _ => overflow(),
        }
    }
    for how in ["main", "thread"] {
        let left = Command::new(&words[0]).args([&words[1], how]).output().unwrap();
        // Without the numbers of threads.
        let told: String = String::from_utf8_lossy(&left.stderr).chars().filter(|c| !c.is_ascii_digit()).collect();
        println!("{how}: signal {:?}\n{}{told}", left.status.signal(), String::from_utf8_lossy(&left.stdout));
    }
}
