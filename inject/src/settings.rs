//! What the supervisor wants of this process: read once by the constructor, before the program can change its
//! environment.

use crate::glance::GLANCE;
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicU8, Ordering::*};
use precache_contract::settings::{CAPACITY, SEPARATOR, entries, number, range};

/// Longest path that globs are held against.
pub const PATH: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protect {
    Auto,
    Guard,
    Mprotect,
}

/// Whether pages are mapped ahead of the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Populate {
    Off,
    On,
    /// Where that is faster, by trial.
    Auto,
}

/// The settings that are neither lists nor looked at by calls ([`GLANCE`]).
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub session: u64,
    pub supervisor: i32,
    pub distance: u64,
    pub min_file: u64,
    pub protect: Protect,
    pub populate: Populate,
    /// The optimizer fetches what the program wants to have read in; else it only watches.
    pub fetches: bool,
}

/// The constructor is not through; or it is, and the process is served, or left alone.
const UNREAD: u8 = 0;
const SERVED: u8 = 1;
const LEFT_ALONE: u8 = 2;

struct Store {
    state: AtomicU8,
    settings: UnsafeCell<Settings>,
}

// SAFETY: the cells are written by `read`, which runs once, in the constructor, and are read after the state says so.
unsafe impl Sync for Store {}

/// The value, behind its length: of most, which are short, a start touches a page or two.
#[repr(C)]
struct Text {
    length: usize,
    value: [u8; CAPACITY],
}

struct Kept(UnsafeCell<Text>);

// SAFETY: as `Store`.
unsafe impl Sync for Kept {}

static TEXT: Kept = Kept(UnsafeCell::new(Text { length: 0, value: [0; CAPACITY] }));

#[cfg_attr(not(test), unsafe(link_section = ".bss.trip"))]
static STORE: Store = Store {
    state: AtomicU8::new(UNREAD),
    settings: UnsafeCell::new(Settings {
        session: 0,
        supervisor: 0,
        distance: 0,
        min_file: 0,
        protect: Protect::Auto,
        populate: Populate::Off,
        fetches: false,
    }),
};

/// Takes the value of the variable. Without it or its essentials, or with too long a value, the process is left alone.
///
/// # Safety
/// Call once, before any other function of this module but [`get`] and [`is_left_alone`].
pub unsafe fn read(value: Option<&CStr>) {
    // SAFETY: the caller's promise.
    let are_locks_private = value.and_then(|value| unsafe { take(value.to_bytes()) });
    // Once, and last: libraries of the program may have begun threads, which ask.
    STORE.state.store(if are_locks_private.is_some() { SERVED } else { LEFT_ALONE }, Release);
    GLANCE.are_locks_private.store(are_locks_private == Some(true), Release);
}

/// Keeps the value, and what it says, but for whether LMDB readers get lock files of their own: that is returned. `None`: something
/// essential is missing.
///
/// # Safety
/// As [`read`].
unsafe fn take(value: &[u8]) -> Option<bool> {
    if value.len() >= CAPACITY {
        return None;
    }
    // SAFETY: the caller's promise: nobody else reads or writes the cells now.
    let (text, settings) = unsafe { (&mut *TEXT.0.get(), &mut *STORE.settings.get()) };
    for (to, from) in text.value.iter_mut().zip(value) {
        *to = if *from == SEPARATOR { 0 } else { *from };
    }
    text.length = value.len();
    (settings.distance, settings.min_file) = (8 << 20, 32 << 20);
    let mut complete = (false, false);
    let mut are_locks_private = false;
    for (key, value) in entries(value) {
        match (key, number(value)) {
            (b"session", Some(session)) => (settings.session, complete.0) = (session, true),
            (b"supervisor", Some(process)) => settings.supervisor = process as i32,
            (b"distance", Some(bytes)) => {
                settings.distance = bytes.next_multiple_of(precache_contract::PAGE).max(precache_contract::PAGE);
            }
            (b"private_lock", Some(wish)) => are_locks_private = wish != 0,
            (b"fetches", Some(wish)) => settings.fetches = wish != 0,
            (b"min_file", Some(bytes)) => settings.min_file = bytes,
            (b"socket", _) => complete.1 = !value.is_empty(),
            (b"protect", _) => {
                settings.protect = match value {
                    b"guard" => Protect::Guard,
                    b"mprotect" => Protect::Mprotect,
                    _ => Protect::Auto,
                }
            }
            (b"populate", _) => {
                settings.populate = match value {
                    b"on" => Populate::On,
                    b"auto" => Populate::Auto,
                    _ => Populate::Off,
                }
            }
            _ => {}
        }
    }
    (complete == (true, true)).then_some(are_locks_private)
}

/// The settings; `None`: this process is left alone, or our constructor is not through yet.
pub fn get() -> Option<&'static Settings> {
    // SAFETY: written before the state was set to this, not after.
    (STORE.state.load(Acquire) == SERVED).then(|| unsafe { &*STORE.settings.get() })
}

/// Whether this process is left alone; `None` before our constructor.
pub fn is_left_alone() -> Option<bool> {
    match STORE.state.load(Acquire) {
        UNREAD => None,
        state => Some(state == LEFT_ALONE),
    }
}

/// Whether it is certain that nobody fetches: the optimizer only watches.
pub fn nobody_fetches() -> bool {
    get().is_some_and(|settings| !settings.fetches)
}

fn values(key: &'static [u8]) -> impl Iterator<Item = &'static [u8]> {
    // SAFETY: written before the state says so, not after; callers have asked `get` first, and unset it is empty.
    let text = unsafe { &*TEXT.0.get() };
    entries(text.value.get(..text.length).unwrap_or_default()).filter(move |(k, _)| *k == key).map(|(_, value)| value)
}

/// Name of the optimizer's socket in the abstract namespace.
pub fn socket() -> &'static [u8] {
    values(b"socket").next().unwrap_or_default()
}

/// The path by which this library is preloaded.
pub fn library() -> &'static [u8] {
    values(b"library").next().unwrap_or_default()
}

/// Whether the user's globs let this file be accelerated: any of `--data` (all files without one), none of
/// `--exclude`.
pub fn wants(path: &CStr) -> bool {
    let included = values(b"data").next().is_none() || values(b"data").any(|glob| matches(glob, path));
    included && !values(b"exclude").any(|glob| matches(glob, path))
}

/// The process data ranges given for this file as one range from the first start to the last end; everything when
/// there is none.
pub fn data_range(path: &[u8]) -> (u64, u64) {
    values(b"range")
        .filter_map(range)
        .filter(|(file, ..)| *file == path)
        .fold(None, |all: Option<(u64, u64)>, (_, start, end)| {
            Some(all.map_or((start, end), |(low, high)| (low.min(start), high.max(end))))
        })
        .unwrap_or((0, u64::MAX))
}

/// A glob with a slash is held against the whole path, one without against the file's name (fnmatch(3); `*` matches
/// slashes too).
///
/// `glob` is the end of a line of [`TEXT`].
fn matches(glob: &'static [u8], path: &CStr) -> bool {
    let name = path.to_bytes().iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let subject = if glob.contains(&b'/') { 0 } else { name };
    // SAFETY: a zero byte ends the lines of the value, and the path, of which the subject is the end.
    unsafe { fnmatch(glob.as_ptr().cast(), path.as_ptr().add(subject), 0) == 0 }
}

unsafe extern "C" {
    /// fnmatch(3).
    fn fnmatch(pattern: *const c_char, text: *const c_char, flags: i32) -> i32;
}
