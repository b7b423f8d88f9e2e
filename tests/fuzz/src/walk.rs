//! The walk of a whole database, as the commands do it: in a child process, which liblmdb may crash and nothing else may.

use std::ffi::c_int;
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::{env, panic, process, ptr};

use clap::Parser;
use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::{ForkResult, alarm, dup2_stderr, dup2_stdout, fork};

use crate::coverage;
use precache_fuzz::lmdb;

/// What the child ends with.
const FINE: c_int = 0;
const CRASH: c_int = 70;
const PANIC: c_int = 71;
const HANG: c_int = 72;

/// Seconds that all walks of some 64 KiB may take together.
const PATIENCE: u32 = 20;
/// KiB that it may take beyond what the fuzzer has.
const MEMORY: i64 = 256 << 10;

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: precache_lmdb_tools::Command,
}

/// What is the same for all walks.
struct Stage {
    file: File,
    silence: File,
    /// All that walks. Each child runs its own copy.
    commands: Vec<precache_lmdb_tools::Command>,
}

static STAGE: Mutex<Option<Stage>> = Mutex::new(None);

/// Tells the commands that whoever is forked by this process is the child that walks.
pub fn prepare() {
    coverage::share();
    // SAFETY: no other thread runs yet.
    unsafe { env::set_var("PRECACHE_LMDB_PARENT", process::id().to_string()) };
    let (file, path) = lmdb::file_of(&[]);
    let path = path.to_str().unwrap();
    let command =
        |arguments: &[&str]| Cli::parse_from(["fuzz", "lmdb"].iter().chain(arguments).copied().chain([path])).command;
    let commands =
        [&["info"][..], &["map", "--binary"], &["map", "--json"], &["ranges", "-n", "3"]].map(command).into();
    let silence = File::options().write(true).open("/dev/null").unwrap();
    *STAGE.lock().unwrap() = Some(Stage { file, silence, commands });
}

pub fn walk(bytes: &[u8]) {
    let mut stage = STAGE.lock().unwrap();
    let Stage { file, silence, commands } = stage.as_mut().unwrap();
    file.set_len(0).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    // SAFETY: libFuzzer runs one thread, and the child goes on as that one.
    let child = match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            // Errors are told there, and what would be printed.
            dup2_stdout(&*silence).unwrap();
            dup2_stderr(&*silence).unwrap();
            catch();
            for command in commands.drain(..) {
                let _ = precache_lmdb_tools::run(command);
            }
            end(FINE)
        }
        ForkResult::Parent { child } => child,
    };
    let (mut status, mut usage) = (0, MaybeUninit::<libc::rusage>::zeroed());
    // libFuzzer's clock interrupts the wait.
    // SAFETY: wait4(2) writes a status and a usage to where they are.
    while unsafe { libc::wait4(child.as_raw(), &mut status, 0, usage.as_mut_ptr()) } != child.as_raw() {
        assert_eq!(Errno::last(), Errno::EINTR);
    }
    // SAFETY: written above.
    let usage = unsafe { usage.assume_init() };
    if libc::WIFSIGNALED(status) {
        // The commands' own end to a walk in circles.
        assert_eq!(libc::WTERMSIG(status), libc::SIGVTALRM, "the child was ended by another signal");
        return;
    }
    coverage::take();
    match libc::WEXITSTATUS(status) {
        FINE | CRASH => {}
        PANIC => panic!("the child panicked"),
        HANG => panic!("the child went on for {PATIENCE} seconds"),
        code => panic!("the child ended with {code}"),
    }
    assert!(usage.ru_maxrss < own_memory() + MEMORY, "the child took {} KiB", usage.ru_maxrss);
}

/// Makes whatever ends the child leave its counters, and say what it was.
fn catch() {
    panic::set_hook(Box::new(|_| end(PANIC)));
    // SAFETY: a stack for the handlers, which nobody else uses.
    unsafe {
        let stack = Box::leak(vec![0_u8; 1 << 16].into_boxed_slice());
        let stack = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: stack.len() };
        libc::sigaltstack(&stack, ptr::null_mut());
    }
    let handle = |signal, handler| {
        let action = SigAction::new(SigHandler::Handler(handler), SaFlags::SA_ONSTACK, SigSet::empty());
        // SAFETY: both handlers copy memory and call _exit(2).
        unsafe { sigaction(signal, &action) }.unwrap();
    };
    // liblmdb's abort() is a crash; ours is a panic, which ends in its hook.
    for signal in [Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGABRT, Signal::SIGFPE, Signal::SIGILL] {
        handle(signal, crashed);
    }
    handle(Signal::SIGALRM, hangs);
    alarm::set(PATIENCE);
}

extern "C" fn crashed(_signal: c_int) {
    end(CRASH);
}

extern "C" fn hangs(_signal: c_int) {
    end(HANG);
}

fn end(code: c_int) -> ! {
    coverage::leave();
    // SAFETY: _exit(2) is async-signal-safe and runs none of what libFuzzer would do at its end.
    unsafe { libc::_exit(code) }
}

/// KiB that this process had at most, which a forked child begins with.
fn own_memory() -> i64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: getrusage(2) writes a usage, for which zeroes are valid.
    unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init().ru_maxrss
    }
}
