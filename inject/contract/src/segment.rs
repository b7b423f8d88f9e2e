//! The memory that a reader shares with the optimizer.
//!
//! The reader creates it (`memfd_create`), fills in its side and sends the descriptor; it is private to the user and
//! goes away with the two processes. All fields are atomics: either side may look at any time.

use crate::PAGE;
use crate::presence::Presence;
use crate::ring::Ring;
use crate::sleeper::Sleeper;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

/// Mappings that one process can have armed at a time; what comes after is read without us.
pub const MAPPINGS: usize = 64;

/// Streams of one mapping for which the optimizer tells thresholds.
pub const WATCHES: usize = 8;

/// A gain from which on pages are mapped ahead of the reader.
pub const PROFIT: u32 = 1030;

/// Checkpoints told for each of these.
pub const WATCHED: usize = 3;

/// Why nothing was armed, or why arming ended. Each is counted and reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Refusal {
    /// All slots of the table are taken.
    TableFull = 0,
    /// The optimizer did not find in /proc/PID/maps what the reader registered, or ended this file.
    Vetoed = 1,
    /// The optimizer is gone.
    OptimizerGone = 2,
    /// The optimizer has not taken trips for a whole ring: it is stopped or far too slow.
    OptimizerStalled = 3,
    /// Access follows no order that can be fetched ahead.
    Random = 4,
    /// The program changed the mapping's protection or place itself.
    Changed = 5,
    /// `mprotect` failed (out of mappings, or not allowed).
    ProtectFailed = 6,
    /// SIGSEGV is handled by someone who installed the handler past us.
    HandlerLost = 7,
    /// The file is an ELF object.
    Elf = 8,
    /// The mapping is shared and writable.
    SharedWritable = 9,
    /// The descriptor bypasses the page cache (O_DIRECT).
    Direct = 10,
    /// No segment could be made or handed over.
    NotEnrolled = 11,
    /// A fault of the program's own takes its default action.
    Dying = 12,
    /// A SIGSEGV was sent to a thread that blocks it.
    Blocked = 13,
    /// The program starts another one, or a process, that is not to have our handler: SIGSEGV is ignored, blocked or reset
    /// meanwhile.
    Executing = 14,
    /// The program is likely to make system calls on mapped memory past libc, or past our functions in front of it.
    RawCalls = 15,
    /// A device that reads and pins the process's memory by itself is open.
    PinningDevice = 16,
    /// The program gave the mapping to calls that go on with it after they have returned, or to its handlers as their stack.
    Lent = 17,
    /// The program forbids itself system calls (seccomp).
    Filtered = 18,
    /// The program put the file where a call of its own may have been at work.
    InUse = 19,
    /// The program does not go on after a fault as it would on a processor.
    Translated = 20,
    /// The program gave a thread an alternate signal stack that our handler could overflow.
    SmallStack = 21,
}

/// How many refusals there are.
pub const REFUSALS: usize = 22;

impl Refusal {
    /// All, in the order of their numbers.
    pub const ALL: [Self; REFUSALS] = [
        Self::TableFull,
        Self::Vetoed,
        Self::OptimizerGone,
        Self::OptimizerStalled,
        Self::Random,
        Self::Changed,
        Self::ProtectFailed,
        Self::HandlerLost,
        Self::Elf,
        Self::SharedWritable,
        Self::Direct,
        Self::NotEnrolled,
        Self::Dying,
        Self::Blocked,
        Self::Executing,
        Self::RawCalls,
        Self::PinningDevice,
        Self::Lent,
        Self::Filtered,
        Self::InUse,
        Self::Translated,
        Self::SmallStack,
    ];

    /// What a report says.
    pub fn explain(self) -> &'static str {
        match self {
            Self::TableFull => "the process maps more files at once than can be followed",
            Self::Vetoed => {
                "the optimizer ended it (file gone, failing or unknown, memory too short, or the mapping is not what was registered)"
            }
            Self::OptimizerGone => "the optimizer ended",
            Self::OptimizerStalled => "the optimizer did not keep up",
            Self::Random => "access follows no order that can be fetched ahead",
            Self::Changed => "the program changed the mapping itself",
            Self::ProtectFailed => {
                "the kernel refused to protect pages (vm.max_map_count, RLIMIT_DATA, huge pages, or a security policy)"
            }
            Self::HandlerLost => "another SIGSEGV handler was installed past us",
            Self::Elf => "the file is a program or library",
            Self::SharedWritable => "the mapping is shared and writable",
            Self::Direct => "the descriptor bypasses the page cache (O_DIRECT)",
            Self::NotEnrolled => "the process could not be made known to the optimizer",
            Self::Dying => "a fault of the program's own took its default action",
            Self::Blocked => "a SIGSEGV was sent to the program while it blocks it",
            Self::Executing => {
                "the program starts another one while it ignores or blocks SIGSEGV, without its handlers, or by arguments that \
                 lie in the mapping"
            }
            Self::RawCalls => {
                "the program makes system calls past libc (Go, io_uring) or binds libraries past us (RTLD_DEEPBIND, \
                 dlmopen), which nobody sees"
            }
            Self::PinningDevice => "a device that pins memory is open (CUDA, ROCm, InfiniBand)",
            Self::Lent => {
                "the program gave the mapping to asynchronous calls (aio, getaddrinfo_a), or to its handlers as a stack"
            }
            Self::Filtered => "the program forbids itself system calls (seccomp)",
            Self::InUse => "the program put it in the place of memory that one of its calls may have been using",
            Self::Translated => {
                "the program runs under valgrind, where it would go on after a fault with other registers"
            }
            Self::SmallStack => "an alternate signal stack has no room for our handler",
        }
    }
}

/// How checkpoints of a mapping are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Method {
    /// `mprotect(PROT_NONE)`, for the curtain and for checkpoints in what is open.
    Mprotect = 1,
    /// The same curtain, with guard regions (`MADV_GUARD_INSTALL`) as checkpoints in what is open.
    Guard = 2,
}

impl Method {
    /// The method with this number in a segment.
    pub fn from_number(number: u32) -> Option<Self> {
        [Self::Mprotect, Self::Guard].into_iter().find(|method| *method as u32 == number)
    }
}

/// What happened in the reader, counted by it.
#[repr(C)]
#[derive(Debug)]
pub struct Counters {
    /// Faults that were ours.
    pub trips: AtomicU64,
    /// Threads in the handler: what is left when the process has ended was there then.
    pub in_handler: AtomicU64,
    /// Trips that woke the optimizer from its sleep.
    pub wakes: AtomicU64,
    /// Trips that found another thread at work on the same mapping and only let themselves through.
    pub contended: AtomicU64,
    /// Trips, and advice of the program, that the full ring did not take, or the optimizer before it knew the mapping.
    pub lost: AtomicU64,
    /// Blocks of trips that showed no order: their mapping was opened for a while, but for a few sentinels.
    pub disorders: AtomicU64,
    /// Faults that went to the program's handler or the default action.
    pub forwarded: AtomicU64,
    /// Calls of the kernel that would have met a checkpoint, and for which it was lifted.
    pub lifted_for_calls: AtomicU64,
    /// Such calls during which no page of the process was closed again, for want of a place to note what they are at work on.
    pub all_pinned: AtomicU64,
    /// Forked processes, and those forked from them, that the optimizer has not heard of: counted by these.
    pub unserved: AtomicU64,
    /// By [`Refusal`].
    pub refusals: [AtomicU64; REFUSALS],
}

impl Counters {
    pub fn refuse(&self, why: Refusal) {
        if let Some(counter) = self.refusals.get(why as usize) {
            counter.fetch_add(1, Relaxed);
        }
    }
}

/// What the optimizer tells the handler about one stream, in file offsets. All zero: nothing; those from
/// [`Mapping::watched`] on are not looked at.
#[repr(C)]
#[derive(Debug)]
pub struct Watch {
    /// Where the order of reading is known, from here ...
    pub low: AtomicU64,
    /// ... up to here: there the reader goes on from checkpoint to checkpoint, elsewhere in small steps.
    pub high: AtomicU64,
    /// From here ...
    pub quiet_low: AtomicU64,
    /// ... up to here checkpoints are non-triggering.
    pub quiet_high: AtomicU64,
    /// 1 for a reader that trips exactly at checkpoints for as long as it goes on as it did: what it does elsewhere is not
    /// quiet, and what it leaps over stays closed.
    pub is_exact: AtomicU64,
    /// 1 for a reader that goes toward lower offsets.
    pub is_backward: AtomicU64,
    /// For a reader that leaves something out, pages that it will read: this one, and each so many bytes further. Where it has been
    /// before, it would leap over most of the grid. 0 bytes: it leaves nothing out.
    pub stop: AtomicU64,
    pub stops_apart: AtomicU64,
    /// Bytes before each and after it to which it comes on its way from the record before only if that, or the one that holds the
    /// stop, is not quite where it is expected.
    pub before_stop: AtomicU64,
    pub after_stop: AtomicU64,
    /// The page with which its next pass begins, also of one that goes backward.
    pub first_stop: AtomicU64,
    /// Checkpoints beside those of the grid: the pre-cache threshold of the current window and that of the window after
    /// it, known beforehand so that it is there even when the optimizer has not yet spoken; and a place within a record
    /// that tells whether the record reaches so far.
    pub checkpoints: [AtomicU64; WATCHED],
}

impl Watch {
    /// Whether a trip here says nothing new, where checkpoints of the grid are placed by `is_on_grid`.
    fn is_quiet(&self, offset: u64, is_on_grid: impl FnOnce() -> bool) -> bool {
        let is_told = || self.checkpoints.iter().any(|told| told.load(Relaxed) / PAGE == offset / PAGE);
        (self.quiet_low.load(Relaxed)..self.quiet_high.load(Relaxed)).contains(&offset)
            && (self.is_exact.load(Relaxed) == 0 || is_told() || is_on_grid())
    }

    /// Of a cleared one: the reader goes from checkpoint to checkpoint everywhere, and nothing of that is urgent. For nobody
    /// fetches.
    pub fn expect_nothing(&self) {
        self.high.store(u64::MAX, Release);
        self.quiet_high.store(u64::MAX, Release);
    }

    /// Unused from now on.
    pub fn clear(&self) {
        let flags = [&self.is_exact, &self.is_backward];
        for field in [&self.quiet_high, &self.quiet_low, &self.high, &self.low].into_iter().chain(flags) {
            field.store(0, Release);
        }
        let stops = [&self.stops_apart, &self.stop, &self.before_stop, &self.after_stop, &self.first_stop];
        for checkpoint in self.checkpoints.iter().chain(stops) {
            checkpoint.store(0, Release);
        }
    }
}

/// What the optimizer asks to be let go of: pages of the page cache can't be dropped while someone has them mapped
/// (posix_fadvise(2)).
#[repr(C)]
#[derive(Debug)]
pub struct LettingGo {
    /// The part of the file, in bytes.
    pub start: AtomicU64,
    pub end: AtomicU64,
    /// Counts the optimizer's requests.
    pub asked: AtomicU32,
    /// The last request that was met.
    pub met: AtomicU32,
}

impl LettingGo {
    /// The optimizer's side: asks for this part. Only when all requests before have been met.
    pub fn ask(&self, start: u64, end: u64) {
        self.start.store(start, Relaxed);
        self.end.store(end, Relaxed);
        self.asked.fetch_add(1, Release);
    }

    pub fn is_met(&self) -> bool {
        self.asked.load(Relaxed) == self.met.load(Acquire)
    }
}

/// One armed mapping.
#[repr(C)]
#[derive(Debug)]
pub struct Mapping {
    /// Odd while the slot is in use; each use has a number of its own.
    pub generation: AtomicU32,
    /// Set by the optimizer: let go of this mapping (holds the generation meant).
    pub veto: AtomicU32,
    pub method: AtomicU32,
    /// Speed with pages mapped ahead of the reader by that without, in thousandths; 0: not known.
    pub gain: AtomicU32,
    /// The generation that the counters below belong to: they stand until the slot is used again.
    pub counted: AtomicU32,
    /// Watches in use: the first so many.
    pub watched: AtomicU32,
    /// Where the protected part begins in the reader, in bytes.
    pub address: AtomicU64,
    /// Length of the protected part, in bytes.
    pub length: AtomicU64,
    /// File offset of `address`.
    pub offset: AtomicU64,
    /// Trips of this mapping.
    pub trips: AtomicU64,
    /// Advice of the program that was passed on.
    pub advice: AtomicU64,
    /// Bytes mapped ahead of the reader.
    pub populated: AtomicU64,
    pub letting_go: LettingGo,
    /// Spacing of checkpoints that the optimizer wants, in bytes; 0: as the mapping was armed.
    pub distance: AtomicU64,
    pub watches: [Watch; WATCHES],
    /// What may be mapped ahead of the reader without waiting for storage.
    pub presence: Presence,
}

impl Mapping {
    /// Whether a trip at this offset of the file can be heard of late: a reader that goes on as it did trips here, and nothing
    /// is to be requested. Such a trip goes into the ring and wakes nobody.
    pub fn is_quiet(&self, offset: u64) -> bool {
        let is_on_grid = || {
            let along = offset.wrapping_sub(self.offset.load(Relaxed));
            let distance = self.distance.load(Relaxed) / PAGE * PAGE;
            // A division takes as long as twenty other instructions.
            if distance.is_power_of_two() {
                along & (distance - 1) == 0
            } else {
                along.checked_rem(distance) == Some(0)
            }
        };
        self.watched().iter().any(|watch| watch.is_quiet(offset, is_on_grid))
    }

    /// The watches in use.
    pub fn watched(&self) -> &[Watch] {
        self.watches.get(..self.watched.load(Acquire) as usize).unwrap_or(&self.watches)
    }
}

/// The whole. What most trips need lies in two pages, for a slow reader's trips look up anew each that they touch: in one the
/// end of the ring, the counters and the first mapping.
#[repr(C)]
pub struct Segment {
    pub version: AtomicU32,
    pub news: Ring,
    /// The futex by which a triggering trip wakes the optimizer.
    pub sleeper: Sleeper,
    pub token: AtomicU64,
    pub counters: Counters,
    pub mappings: [Mapping; MAPPINGS],
}

impl Segment {
    /// Length in bytes, a whole number of pages.
    pub const LENGTH: usize = size_of::<Self>().next_multiple_of(crate::PAGE as usize);
}

#[cfg(test)]
mod tests;
