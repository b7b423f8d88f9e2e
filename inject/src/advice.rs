//! What the program says about how it will read: passed on to the optimizer. The program's own call is made as well, and
//! its answer stands.

use crate::arming::settle_inheritance;
use crate::registry::{self, Held};
use crate::{handover, past_libc, settings, sys};
use core::ffi::c_int;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering::*};
use precache_contract::ring::{Advice, News, What};

/// Files that are advised about before they are mapped, and the order of reading that was said of each last: both in a word, so
/// that threads do not mix them up. 0: unused. Each file has its place; of two that share one, the earlier is forgotten.
static REMEMBERED: [AtomicU64; 1 << FILES] = [const { AtomicU64::new(0) }; 1 << FILES];
const FILES: u32 = 4;

/// The bits of a word that hold the advice.
const ADVICE: u64 = 7;

/// Orders of reading hold for a file as a whole, and from then on.
const ORDERS: [Advice; 3] = [Advice::Normal, Advice::Sequential, Advice::Random];

/// madvise(2): what this number means for reading.
pub fn of_memory(number: c_int) -> Option<Advice> {
    match number {
        libc::MADV_NORMAL => Some(Advice::Normal),
        libc::MADV_SEQUENTIAL => Some(Advice::Sequential),
        libc::MADV_RANDOM => Some(Advice::Random),
        libc::MADV_WILLNEED => Some(Advice::WillNeed),
        _ => None,
    }
}

/// posix_fadvise(2): the same.
pub fn of_file(number: c_int) -> Option<Advice> {
    match number {
        libc::POSIX_FADV_NORMAL => Some(Advice::Normal),
        libc::POSIX_FADV_SEQUENTIAL => Some(Advice::Sequential),
        libc::POSIX_FADV_RANDOM => Some(Advice::Random),
        libc::POSIX_FADV_WILLNEED => Some(Advice::WillNeed),
        libc::POSIX_FADV_DONTNEED => Some(Advice::DontNeed),
        _ => None,
    }
}

/// The program has said this of `start..end` of its memory.
#[inline]
pub fn about_memory(advice: Advice, start: usize, end: usize) {
    if registry::overlaps(start, end) {
        about_armed(advice, start, end);
    }
}

#[cold]
#[inline(never)] // One copy is enough for all who call this.
fn about_armed(advice: Advice, start: usize, end: usize) {
    settle_inheritance();
    let _quiet = sys::Quiet::begin();
    registry::each_overlapping(start, end, |held| {
        let inside = |address: usize| held.offset() + address.saturating_sub(held.start()).min(held.length()) as u64;
        tell(&held, advice, inside(start)..inside(end));
    });
}

/// The program has said this of a part of the file behind the descriptor; 0 bytes: up to its end (posix_fadvise(2)).
#[inline(never)] // As above.
pub fn about_file(advice: Advice, descriptor: c_int, offset: i64, length: i64) {
    let is_order = ORDERS.contains(&advice);
    // Of files that are not mapped, only what is remembered counts.
    let is_idle = registry::is_empty() && !is_order;
    if is_idle || settings::get().is_none() || past_libc::is_filtered() {
        return;
    }
    let Ok(status) = sys::file_status(descriptor) else { return };
    let file = (status.st_dev, status.st_ino);
    if is_order {
        remember(file, advice);
    }
    if registry::is_empty() {
        return;
    }
    // An order of reading is one of the whole file, whatever part is given (mm/fadvise.c).
    let start = if is_order { 0 } else { offset.max(0) as u64 };
    let end = if is_order || length <= 0 { u64::MAX } else { start.saturating_add(length as u64) };
    settle_inheritance();
    let _quiet = sys::Quiet::begin();
    registry::each(|held| {
        let own = part_of(&held);
        let part = start.max(own.start)..end.min(own.end);
        if held.file() == file && part.start < part.end {
            tell(&held, advice, part);
        }
    });
}

/// A mapping has just been armed: passes on what was said of its file before.
pub fn recall(held: &Held) {
    let (place, key) = place_of(held.file());
    let word = place.map_or(0, |place| place.load(Relaxed));
    for order in [Advice::Sequential, Advice::Random] {
        if word == key | order as u64 {
            tell(held, order, part_of(held));
        }
    }
}

fn remember(file: (u64, u64), advice: Advice) {
    let (place, key) = place_of(file);
    place.into_iter().for_each(|place| place.store(key | advice as u64, Relaxed));
}

/// Where a file is remembered, and its device and inode numbers in as many bits as a word has left for them. Two of one
/// process's few files hardly share these; if they do, one is read as was said of the other.
fn place_of(file: (u64, u64)) -> (Option<&'static AtomicU64>, u64) {
    let key = key_of(file);
    (REMEMBERED.get((key >> (u64::BITS - FILES)) as usize), key)
}

/// A file's device and inode numbers in a word.
pub fn key_of((device, inode): (u64, u64)) -> u64 {
    (device.rotate_left(32) ^ inode).wrapping_mul(0x9E37_79B9_7F4A_7C15) & !ADVICE
}

/// The part of the file that a mapping's armed pages hold.
pub fn part_of(held: &Held) -> Range<u64> {
    held.offset()..held.offset() + held.length() as u64
}

/// Tells the optimizer; what does not fit into the ring is counted as lost.
#[inline(never)]
pub fn tell(held: &Held, advice: Advice, part: Range<u64>) {
    held.said().note(advice, &part);
    pass_on(held, advice, part);
}

/// Tells an optimizer that has just heard of the mapping what was said of it before. May run in signal context.
pub fn repeat(held: &Held) {
    held.said().all().for_each(|(advice, part)| pass_on(held, advice, part));
}

fn pass_on(held: &Held, advice: Advice, part: Range<u64>) {
    let Some(segment) = handover::segment() else { return };
    let Some(shared) = segment.mappings.get(held.slot()) else { return };
    let what = What::Advice(advice, part.end.saturating_sub(part.start));
    let news = News { slot: held.slot() as u16, generation: held.generation(), offset: part.start, what };
    if !segment.news.push(news) {
        segment.counters.lost.fetch_add(1, Relaxed);
        return;
    }
    shared.advice.fetch_add(1, Relaxed);
    if segment.sleeper.take_wake() {
        sys::futex_wake(&segment.sleeper.0);
    }
}
