//! What a checkpoint costs: the time of the access that hits it, beside the least that it could be.
//!
//! The least is a fault whose handler opens the same bytes by the same call, and does nothing else, or wakes another process,
//! too. All are measured in turn, checkpoint by checkpoint, in one process, on the same file; which kind of trip an access was,
//! the counters that the library shares with the optimizer say, and the kernel says which pages were closed again.

use std::fs::{self, File};
use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use precache_contract::segment::Segment;
use precache_contract::sleeper::Sleeper as Word;
use serde_json::json;
use syscalls::{Errno, Sysno, syscall};

use crate::sleeper::Sleeper;

const PAGE: usize = 4096;
/// One access in each step: what a fault maps around itself.
const STEP: usize = 64 << 10;
const ROUNDS: usize = 20;
/// One round in so many is slow: it takes fifty times as long.
const SLOW: usize = 4;
/// Until the reader's order is known and told, trips are of another kind.
const LEARNING: usize = 8 << 20;
/// A page is not closed again before so many others have tripped.
const RECENT: usize = 4;

/// Bytes from one checkpoint to the next (`--distance`).
const DISTANCE: usize = 1 << 20;

/// Bytes from one fault that wakes another process to the next: about as many as windows have.
const WAKE: usize = 32 << 20;
/// Time that a reader takes for what lies between two checkpoints.
const PACE: Duration = Duration::from_millis(1);

/// As the kernel takes it (rt_sigaction(2)).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Action {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

/// Prints a line for the slow rounds, and one for the others: medians in nanoseconds, and how many trips there were of each kind.
/// What a trip takes more than a bare fault is that of pairs, both in the same half of a page table: opening 1 MiB takes some
/// microseconds more where the kernel has the table already, and of two kinds of faults a median would be that of one or of the
/// other.
///
/// Each trip counts once, and not each round: where the optimizer finds the file in memory early, a round has ten trips and not
/// two hundred, all of them while it does so.
pub fn run(path: &Path) -> anyhow::Result<()> {
    let sleeper = Sleeper::begin()?;
    let file = File::open(path)?;
    let length = file.metadata()?.len() as usize / DISTANCE * DISTANCE;
    let half = length / DISTANCE / 2 * DISTANCE;
    ensure!(half.is_multiple_of(2 * DISTANCE), "half of the file is no whole number of page tables");
    // The library's handler is in place from its first mapping on.
    drop(Mapping::of_program(&file, length)?);
    let [mut slow, mut quick] = <[Times; 2]>::default();
    for round in 0..ROUNDS {
        // A reader that takes its time lets who is woken fall asleep again.
        let (pace, times) = if round % SLOW == 0 { (PACE, &mut slow) } else { (Duration::ZERO, &mut quick) };
        let mut bare = Bare::begin(&file, length, &sleeper)?;
        let mapping = Mapping::of_program(&file, length)?;
        ensure!(
            (bare.mapping.address ^ mapping.address) % (2 * DISTANCE) == 0,
            "the two lie differently in page tables"
        );
        let segment = segment().context("there is no segment: run this under precache-run")?;
        let mut tripped = Vec::new();
        for checkpoint in (0..length).step_by(DISTANCE) {
            // Both a moment apart, and each right after its action is set: whatever else happens meets both. Half the file
            // apart, so that neither finds the processor's caches filled by the other.
            rest(pace);
            let least = bare.fault((checkpoint + half) % length, !pace.is_zero(), times)?;
            rest(pace);
            action(Some(&bare.others))?;
            for at in (checkpoint..checkpoint + DISTANCE).step_by(STEP) {
                let before = (segment.counters.trips.load(Relaxed), segment.counters.wakes.load(Relaxed));
                let time = mapping.touch(at);
                let after = (segment.counters.trips.load(Relaxed), segment.counters.wakes.load(Relaxed));
                if after.0 == before.0 {
                    continue;
                }
                ensure!(after.0 == before.0 + 1, "one access was {} trips", after.0 - before.0);
                tripped.push(at);
                // The only page that may be closed again is the one that has just ceased to be recent.
                let fallen = tripped.len().checked_sub(RECENT + 1).map(|index| tripped[index]);
                let is_rearmed = fallen.is_some_and(|fallen| mapping.is_closed(fallen));
                if at < LEARNING || at != checkpoint {
                    continue;
                }
                let kind = match (is_rearmed, after.1 > before.1) {
                    (false, false) => &mut times.quiet,
                    (false, true) => &mut times.woken,
                    (true, false) => &mut times.rearmed,
                    (true, true) => continue,
                };
                kind.extend(least.map(|least| time - least));
                if after.1 > before.1 {
                    times.woken_time.push(time);
                }
            }
        }
    }
    slow.print(true);
    quick.print(false);
    Ok(())
}

/// What was measured, in nanoseconds.
#[derive(Default)]
struct Times {
    /// Faults whose handler does nothing but open, and those whose handler wakes another process, too.
    bare: Vec<f64>,
    waking: Vec<f64>,
    /// What trips took more than the bare faults beside them: those that do nothing but open, those that wake the optimizer, and
    /// those that close a page again.
    quiet: Vec<f64>,
    woken: Vec<f64>,
    rearmed: Vec<f64>,
    /// Those that wake, from the access to its end.
    woken_time: Vec<f64>,
}

impl Times {
    fn print(self, is_slow: bool) {
        let counts = json!({ "quiet": self.quiet.len(), "woken": self.woken.len(), "rearmed": self.rearmed.len() });
        println!(
            "{}",
            json!({ "is_slow": is_slow, "bare": median(self.bare), "waking": median(self.waking), "quiet": median(self.quiet),
                "woken": median(self.woken), "rearmed": median(self.rearmed), "woken_time": median(self.woken_time),
                "counts": counts })
        );
    }
}

/// The middle; none of none.
fn median(mut times: Vec<f64>) -> Option<f64> {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

struct Mapping {
    address: usize,
    length: usize,
    is_ours: bool,
}

impl Mapping {
    /// As programs map files.
    fn of_program(file: &File, length: usize) -> io::Result<Self> {
        // SAFETY: a new mapping; the file belongs to the measurement, which does not change it.
        let address = unsafe { libc::mmap(null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { address: address as usize, length, is_ours: false })
    }

    /// Past everybody, closed.
    fn closed(file: &File, length: usize) -> io::Result<Self> {
        // SAFETY: as above.
        let address =
            unsafe { syscall!(Sysno::mmap, 0, length, libc::PROT_NONE, libc::MAP_SHARED, file.as_raw_fd(), 0) }
                .map_err(error)?;
        Ok(Self { address, length, is_ours: true })
    }

    /// Reads a byte; the answer is the time that it took, in nanoseconds.
    fn touch(&self, at: usize) -> f64 {
        let start = Instant::now();
        // SAFETY: inside the mapping; whoever closed it opens it.
        unsafe { ((self.address + at) as *const u8).read_volatile() };
        start.elapsed().as_nanos() as f64
    }

    /// Whether the kernel could not read there.
    fn is_closed(&self, at: usize) -> bool {
        // SAFETY: the kernel reads a set from there, and then refuses what to do with it (rt_sigprocmask(2)).
        let read = unsafe { syscall!(Sysno::rt_sigprocmask, usize::MAX, self.address + at, 0, size_of::<u64>()) };
        read == Err(Errno::EFAULT)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: a mapping of ours, which nothing uses any more; unmapped by whoever knows of it.
        unsafe {
            if self.is_ours {
                let _ = syscall!(Sysno::munmap, self.address, self.length);
            } else {
                libc::munmap(self.address as *mut _, self.length);
            }
        }
    }
}

/// Lets so much time go by.
fn rest(pace: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < pace {
        std::hint::spin_loop();
    }
}

/// Faults whose handler opens what the library would open, and does nothing else; and those whose handler wakes the
/// sleeper, too.
struct Bare<'a> {
    mapping: Mapping,
    sleeper: &'a Sleeper,
    ours: Action,
    /// The library's.
    others: Action,
}

impl<'a> Bare<'a> {
    fn begin(file: &File, length: usize, sleeper: &'a Sleeper) -> anyhow::Result<Self> {
        let others = action(None)?;
        // The flag for the restorer is the C library's; before it has set any action there is none to be had.
        ensure!(others.restorer != 0, "nobody has set an action for SIGSEGV yet");
        let ours = Action { handler: open_next as *const () as usize, ..others };
        let mapping = Mapping::closed(file, length)?;
        Ok(Self { mapping, sleeper, ours, others })
    }

    /// Reads what lies from this checkpoint to the next; the answer is the time of the fault, in nanoseconds, if its handler
    /// has done nothing else. Leaves our action in place.
    fn fault(&mut self, checkpoint: usize, may_wake: bool, times: &mut Times) -> io::Result<Option<f64>> {
        action(Some(&self.ours))?;
        let wakes = WAKES.load(Relaxed);
        if checkpoint.is_multiple_of(WAKE) && may_wake {
            SLEEPER.store(std::ptr::from_ref(self.sleeper.word).cast_mut(), Relaxed);
        }
        let time = self.mapping.touch(checkpoint);
        let meant_to_wake = !SLEEPER.swap(null_mut(), Relaxed).is_null();
        let has_woken = WAKES.load(Relaxed) != wakes;
        match (meant_to_wake, has_woken) {
            (false, _) => times.bare.push(time),
            (true, true) => times.waking.push(time),
            (true, false) => {}
        }
        for at in (checkpoint..checkpoint + DISTANCE).step_by(STEP).skip(1) {
            self.mapping.touch(at);
        }
        Ok((!meant_to_wake).then_some(time))
    }
}

static WAKES: AtomicUsize = AtomicUsize::new(0);
/// Whom the handler is to wake.
static SLEEPER: AtomicPtr<Word> = AtomicPtr::new(null_mut());

extern "C" fn open_next(_signal: i32, info: *const libc::siginfo_t, _context: *const u8) {
    // SAFETY: null, or a word that stays mapped.
    if let Some(sleeper) = unsafe { SLEEPER.load(Relaxed).as_ref() }
        && sleeper.take_wake()
        // SAFETY: as above; nothing else is accessed (futex(2)).
        && unsafe { syscall!(Sysno::futex, sleeper.0.as_ptr(), libc::FUTEX_WAKE, 1) } == Ok(1)
    {
        WAKES.fetch_add(1, Relaxed);
    }
    // SAFETY: the kernel passes a siginfo_t with SA_SIGINFO (sigaction(2)); the range is that of the mapping which is
    // measured, a multiple of the distance long, at whose multiples it is touched first.
    unsafe {
        let address = (*info).si_addr() as usize & !(PAGE - 1);
        let _ = syscall!(Sysno::mprotect, address, DISTANCE, libc::PROT_READ);
    }
}

/// Asks for the true action of SIGSEGV, or sets it, past every library.
fn action(wanted: Option<&Action>) -> io::Result<Action> {
    let mut before = Action::default();
    let wanted = wanted.map_or(0, |wanted| std::ptr::from_ref(wanted) as usize);
    // SAFETY: structures as the kernel wants them; the handler is one for SA_SIGINFO, which the library's flags have.
    unsafe { syscall!(Sysno::rt_sigaction, libc::SIGSEGV, wanted, &raw mut before, size_of::<u64>()) }
        .map_err(error)?;
    Ok(before)
}

fn error(errno: Errno) -> io::Error {
    io::Error::from_raw_os_error(errno.into_raw())
}

/// The memory that the library shares with the optimizer.
fn segment() -> Option<&'static Segment> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.contains("/memfd:precache"))?;
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
    // SAFETY: never unmapped while the process lives, as long as a segment, and made of atomics.
    (end - start == Segment::LENGTH).then(|| unsafe { &*(start as *const Segment) })
}
