//! Programs that are likely to hand mapped memory to the kernel where no interposer sees it. Nobody in the process
//! notices such an access: at a closed page it fails with EFAULT, without a signal. So nothing is armed in them.
//!
//! What is asked for is cheap and true: a ring that was made, a device that is open, a runtime that makes its system
//! calls itself. That a library is loaded which could open the device says little: MPI and PyTorch load all of them.

mod go;

use crate::doing::Doing;
use crate::handler::disposition;
use crate::interpose::memory::preserving_errno;
use crate::{arming, fork_gate, handover, owner, registry, settings, sys, valgrind};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use precache_contract::segment::Refusal;

/// The reasons seen so far, a bit for each: a forked child may be rid of one and not of another. Above them, how many calls that
/// forbid system calls have been made, or are being made: one of several that fails says nothing of the others.
static SEEN: AtomicU64 = AtomicU64::new(0);
const ONE_FILTER: u64 = 1 << 32;

const fn bit(why: Refusal) -> u64 {
    1 << why as u64
}

/// Descriptors that are looked through for an open device.
const DESCRIPTORS: c_int = 256;

/// Devices whose drivers read and pin the process's memory by themselves: CUDA, ROCm, RDMA, virtual machines, and what these,
/// or a driver in the program, hand on to devices.
const DEVICES: [&[u8]; 6] =
    [b"/dev/nvidia-uvm", b"/dev/kfd", b"/dev/infiniband/uverbs", b"/dev/kvm", b"/dev/vfio/", b"/dev/vhost-"];

/// Libraries that come before an open device, and the one that makes rings by inline system calls.
const DRIVERS: [&[u8]; 3] = [b"libcuda", b"libhsa-runtime64", b"libibverbs"];
const RINGS: &[u8] = b"liburing";

/// Why this process is not armed, as far as its calls have told.
pub fn seen() -> Option<Refusal> {
    let seen = SEEN.load(SeqCst);
    let filtered = if seen < ONE_FILTER { 0 } else { bit(Refusal::Filtered) };
    Refusal::ALL.get((seen | filtered).trailing_zeros() as usize).copied()
}

/// Why this process is not armed, if it makes such calls, or does not go on after faults. Not for signal context.
pub fn reason() -> Option<Refusal> {
    if let Some(seen) = seen() {
        return Some(seen);
    }
    if valgrind::is_running() {
        return Some(Refusal::Translated);
    }
    let objects = Objects::of_process();
    if objects.makes_calls && !cfg!(feature = "sabotage-raw-calls-unnoticed") {
        return Some(Refusal::RawCalls);
    }
    (objects.has_driver && device_is_open()).then_some(Refusal::PinningDevice)
}

/// Objects that the loader had loaded so far, when they were looked at last (`dlpi_adds`).
static LOADED: AtomicU64 = AtomicU64::new(0);

/// Looks at what has been loaded since, if anything is armed. Not for signal context, nor in a forked child, whether it has
/// adopted what it inherited or not (`of_process`).
pub fn look_again() {
    if registry::is_empty() || IS_CHILD.load(Acquire) || !owner::is_settled() {
        return;
    }
    let mut loaded = 0u64;
    let shut = fork_gate::Shut::begin();
    // SAFETY: `count` takes `loaded` for what it is, and keeps no pointer.
    unsafe { libc::dl_iterate_phdr(Some(count), (&raw mut loaded).cast()) };
    drop(shut);
    if LOADED.load(Acquire) != loaded {
        if let Some(why) = reason() {
            note(why);
        }
        LOADED.store(loaded, Release);
    }
    // What has been loaded may have installed a handler of its own.
    let _ = disposition::keep();
}

/// # Safety
/// For dl_iterate_phdr(3), with a `u64` as `data`.
unsafe extern "C" fn count(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: the caller's promise. It is the same for each object: the first one is enough.
    unsafe { *data.cast::<u64>() = (*info).dlpi_adds };
    1
}

/// The program has begun to do such things: what is armed is let go of, and nothing is armed any more.
pub fn note(why: Refusal) {
    if cfg!(feature = "sabotage-raw-calls-unnoticed") {
        return;
    }
    // What a forked child has seen itself is not taken for its parent's.
    arming::settle_inheritance();
    if SEEN.fetch_or(bit(why), SeqCst) == 0 {
        // Nothing stays registered: what such calls unmap nobody notices.
        drop(arming::let_go(0, usize::MAX, Some(why)));
    }
}

/// Makes `call`, by which the program forbids itself system calls, ours among them: before it, everything leaves the
/// table, and after it nothing of ours makes any.
#[inline(never)] // One copy is enough for all who call this.
pub fn filtered(call: Doing<(), isize>) -> isize {
    if cfg!(feature = "sabotage-filters-unnoticed") {
        return call.with(());
    }
    arming::settle_inheritance();
    if !is_filtered() && settings::get().is_some() && handover::segment().is_none() {
        // Afterwards there is only memory to say by why nothing is armed.
        let _ = handover::connect(&fork_gate::Shut::begin());
    }
    let is_first = SEEN.fetch_add(ONE_FILTER, SeqCst) < ONE_FILTER;
    drop(arming::let_go(0, usize::MAX, Some(Refusal::Filtered)));
    // Nor would our handler get far with a fault of the program's. Under another filter it could not even be withdrawn.
    let withdrawn = is_first.then(disposition::Withdrawn::begin).flatten();
    let result = call.with(());
    if result == -1 && SEEN.load(SeqCst) < 2 * ONE_FILTER {
        // Nothing is armed before our handler is back.
        preserving_errno(|| drop(withdrawn));
        SEEN.fetch_sub(ONE_FILTER, SeqCst);
    } else if result == -1 && !is_first {
        SEEN.fetch_sub(ONE_FILTER, SeqCst);
    } else {
        core::mem::forget(withdrawn);
    }
    result
}

/// Whether system calls may be forbidden.
pub fn is_filtered() -> bool {
    SEEN.load(Acquire) >= ONE_FILTER
}

/// In a forked child: a ring stays usable, but the device's memory and state do not come along.
pub fn reset_after_fork() {
    IS_CHILD.store(true, Release);
    SEEN.fetch_and(!bit(Refusal::PinningDevice), AcqRel);
}

/// Where devices are.
const FOLDER: [u8; 5] = *b"/dev/";

/// Whether a path that begins that many bytes after the start of this word of memory (little-endian, as all of Linux that we run on)
/// is no device's, as far as the word goes.
#[inline(always)]
pub fn begins_otherwise(word: usize, place: usize) -> bool {
    const BEGINNING: usize = u64::from_le_bytes([b'/', b'd', b'e', b'v', b'/', 0, 0, 0]) as usize;
    const KNOWN: usize = usize::MAX >> (8 * (size_of::<usize>() - FOLDER.len()));
    let beyond = 8 * place as u32;
    (word >> beyond ^ BEGINNING) & KNOWN & usize::MAX >> beyond != 0
}

/// Whether the path may be that of a device: of others two bytes are read.
///
/// # Safety
/// A C string.
#[inline(always)]
pub unsafe fn begins_as_device(path: *const c_char) -> bool {
    // SAFETY: the caller's promise; behind a byte that is not its last one there is another.
    FOLDER.iter().enumerate().all(|(at, &byte)| unsafe { *path.add(at) } as u8 == byte)
}

/// Whether the path is that of a device that pins.
pub fn is_pinning_device(path: &CStr) -> bool {
    let path = path.to_bytes();
    // Beside nvidia-uvm lies nvidia-uvm-tools, which is for profilers.
    path.starts_with(&FOLDER) && !path.ends_with(b"-tools") && DEVICES.iter().any(|device| path.starts_with(device))
}

fn device_is_open() -> bool {
    (0..DESCRIPTORS).any(|number| {
        let mut buffer = [0u8; 64];
        let length = sys::path_of(number, &mut buffer).unwrap_or(0).min(63);
        buffer.get(..=length).and_then(|path| CStr::from_bytes_until_nul(path).ok()).is_some_and(is_pinning_device)
    })
}

/// What was found last: a bit that something was, then one for each field of [`Objects`].
static FOUND: AtomicU32 = AtomicU32::new(0);
static IS_CHILD: AtomicBool = AtomicBool::new(false);

const FOUND_ANYTHING: u32 = 1;
const FOUND_CALLS: u32 = 2;
const FOUND_DRIVER: u32 = 4;

/// What is known of the objects in the process.
#[derive(Default)]
struct Objects {
    makes_calls: bool,
    has_driver: bool,
}

impl Objects {
    /// A forked child goes by what its parent found: the loader lists its objects under a lock, which is held for ever there
    /// if another thread of the program was in the list by itself (as one that throws an exception is).
    fn of_process() -> Self {
        let found = FOUND.load(Acquire);
        if found != 0 && IS_CHILD.load(Acquire) {
            return Self { makes_calls: found & FOUND_CALLS != 0, has_driver: found & FOUND_DRIVER != 0 };
        }
        let mut objects = Self::default();
        let shut = fork_gate::Shut::begin();
        // SAFETY: `look` takes `objects` for what it is, and keeps no pointer.
        unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut objects).cast()) };
        drop(shut);
        let calls = if objects.makes_calls { FOUND_CALLS } else { 0 };
        let driver = if objects.has_driver { FOUND_DRIVER } else { 0 };
        FOUND.store(FOUND_ANYTHING | calls | driver, Release);
        objects
    }
}

/// # Safety
/// For dl_iterate_phdr(3), with an [`Objects`] as `data`.
unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: the caller's promise; the loader's data is valid during the call.
    let (info, objects) = unsafe { (&*info, &mut *data.cast::<Objects>()) };
    if !info.dlpi_name.is_null() {
        // SAFETY: the loader's names are C strings.
        let name = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
        let file = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        objects.makes_calls |= is_of_library(file, RINGS);
        objects.has_driver |= DRIVERS.iter().any(|driver| is_of_library(file, driver));
    }
    // SAFETY: the loader describes a loaded object.
    objects.makes_calls |= unsafe { go::has_runtime(info) };
    0
}

/// Whether this is a file's name of the library: also of a variant (`liburing-ffi.so.2`), and in a Python wheel, where a hash
/// stands in the name (`liburing-5f2b1a7c.so.2`).
fn is_of_library(file: &[u8], library: &[u8]) -> bool {
    file.strip_prefix(library).is_some_and(|rest| rest.starts_with(b".so") || rest.starts_with(b"-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_told_by_their_paths() {
        let machines = [c"/dev/kvm", c"/dev/vfio/vfio", c"/dev/vfio/12", c"/dev/vhost-net", c"/dev/vhost-vdpa-0"];
        for pinning in [c"/dev/nvidia-uvm", c"/dev/kfd", c"/dev/infiniband/uverbs0"].into_iter().chain(machines) {
            assert!(is_pinning_device(pinning), "{pinning:?}");
        }
        for other in [c"/dev/nvidia0", c"/dev/nvidia-uvm-tools", c"/dev/null", c"/home/dev/kfd", c""] {
            assert!(!is_pinning_device(other), "{other:?}");
        }
    }

    #[test]
    fn a_word_tells_that_a_path_is_no_devices() {
        let begins_otherwise = |path: &[u8], place: usize| {
            let mut word = [b'x'; 8];
            let known = path.len().min(8 - place);
            word[place..place + known].copy_from_slice(&path[..known]);
            begins_otherwise(usize::from_le_bytes(word), place)
        };
        for place in 0..8 {
            assert!(!begins_otherwise(b"/dev/kvm", place), "{place}");
            assert!(begins_otherwise(b"dev/kvm", place), "{place}");
            assert_eq!(begins_otherwise(b"/data/dev", place), place < 6, "the third byte differs, {place}");
            assert_eq!(begins_otherwise(b"/dev\0", place), place < 4, "its end is seen, {place}");
        }
    }

    #[test]
    fn libraries_are_told_by_their_files_names() {
        for ring in ["liburing.so.2", "liburing.so", "liburing-ffi.so.2", "liburing-5f2b1a7c.so.2"] {
            assert!(is_of_library(ring.as_bytes(), RINGS), "{ring}");
        }
        for other in ["liburing2.so", "libur.so", "notliburing.so.2", ""] {
            assert!(!is_of_library(other.as_bytes(), RINGS), "{other}");
        }
    }
}
