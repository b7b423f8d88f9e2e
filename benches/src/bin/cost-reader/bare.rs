//! The least that a fault takes: its handler opens the same bytes by the same call, and does nothing else, or wakes another
//! process, too.

use std::io;
use std::mem::size_of;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use anyhow::ensure;
use precache_contract::PAGE;
use precache_contract::sleeper::Sleeper as Word;
use syscalls::{Sysno, syscall};

use crate::mapping::{Mapping, error};
use crate::sleeper::Sleeper;
use crate::trips::{DISTANCE, STEP};

/// Bytes from one fault that wakes another process to the next: about as many as windows have.
const WAKE: usize = 32 << 20;

/// As the kernel takes it (rt_sigaction(2)).
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Action {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

/// Faults whose handler opens what the library would open, and does nothing else; and those whose handler wakes the
/// sleeper, too.
pub struct Bare<'a> {
    pub mapping: Mapping,
    sleeper: &'a Sleeper,
    ours: Action,
    /// The library's.
    pub others: Action,
}

impl<'a> Bare<'a> {
    /// In a mapping that is closed.
    pub fn begin(mapping: Mapping, sleeper: &'a Sleeper) -> anyhow::Result<Self> {
        let others = action(None)?;
        // The flag for the restorer is the C library's; before it has set any action there is none to be had.
        ensure!(others.restorer != 0, "nobody has set an action for SIGSEGV yet");
        let ours = Action { handler: open_next as *const () as usize, ..others };
        Ok(Self { mapping, sleeper, ours, others })
    }

    /// Reads what lies from this checkpoint to the next. Leaves our action in place.
    pub fn fault(&mut self, checkpoint: usize, may_wake: bool) -> io::Result<Fault> {
        action(Some(&self.ours))?;
        let wakes = WAKES.load(Relaxed);
        if checkpoint.is_multiple_of(WAKE) && may_wake {
            SLEEPER.store(std::ptr::from_ref(self.sleeper.word).cast_mut(), Relaxed);
        }
        let time = self.mapping.touch(checkpoint);
        let meant_to_wake = !SLEEPER.swap(null_mut(), Relaxed).is_null();
        let has_woken = WAKES.load(Relaxed) != wakes;
        for at in (checkpoint..checkpoint + DISTANCE).step_by(STEP).skip(1) {
            self.mapping.touch(at);
        }
        Ok(match (meant_to_wake, has_woken) {
            (false, _) => Fault::Bare(time),
            (true, true) => match WAKE_TIME.swap(0, Relaxed) {
                0 => Fault::Waking(time),
                wake => Fault::TimedWake(wake as f64),
            },
            (true, false) => Fault::InVain,
        })
    }
}

/// What a fault was, and its time in nanoseconds.
pub enum Fault {
    /// Its handler has opened, and done nothing else.
    Bare(f64),
    /// Its handler has woken the sleeper, too.
    Waking(f64),
    /// It has, and looked at the clock, which is not a part of it: of the call that wakes alone.
    TimedWake(f64),
    /// It was to, and the sleeper was awake.
    InVain,
}

static WAKES: AtomicUsize = AtomicUsize::new(0);
/// Nanoseconds that the last one took, of every other one.
static WAKE_TIME: AtomicU64 = AtomicU64::new(0);
/// Whom the handler is to wake.
static SLEEPER: AtomicPtr<Word> = AtomicPtr::new(null_mut());

extern "C" fn open_next(_signal: i32, info: *const libc::siginfo_t, _context: *const u8) {
    // SAFETY: null, or a word that stays mapped.
    if let Some(sleeper) = unsafe { SLEEPER.load(Relaxed).as_ref() }
        && sleeper.take_wake()
    {
        let begun = WAKES.load(Relaxed).is_multiple_of(2).then(Instant::now);
        // SAFETY: as above; nothing else is accessed (futex(2)).
        if unsafe { syscall!(Sysno::futex, sleeper.0.as_ptr(), libc::FUTEX_WAKE, 1) } == Ok(1) {
            WAKE_TIME.store(begun.map_or(0, |begun| begun.elapsed().as_nanos() as u64), Relaxed);
            WAKES.fetch_add(1, Relaxed);
        }
    }
    // SAFETY: the kernel passes a siginfo_t with SA_SIGINFO (sigaction(2)); the range is that of the mapping which is
    // measured, a multiple of the distance long, at whose multiples it is touched first.
    unsafe {
        let address = (*info).si_addr() as usize & !(PAGE as usize - 1);
        let _ = syscall!(Sysno::mprotect, address, DISTANCE, libc::PROT_READ);
    }
}

/// Asks for the true action of SIGSEGV, or sets it, past every library.
pub fn action(wanted: Option<&Action>) -> io::Result<Action> {
    let mut before = Action::default();
    let wanted = wanted.map_or(0, |wanted| std::ptr::from_ref(wanted) as usize);
    // SAFETY: structures as the kernel wants them; the handler is one for SA_SIGINFO, which the library's flags have.
    unsafe { syscall!(Sysno::rt_sigaction, libc::SIGSEGV, wanted, &raw mut before, size_of::<u64>()) }
        .map_err(error)?;
    Ok(before)
}
