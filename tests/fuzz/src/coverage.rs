//! Coverage of liblmdb, and of code that runs in a forked child: libFuzzer looks at counters of its own process only.

use std::ptr;
use std::sync::OnceLock;

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous};

/// One counter for each place in liblmdb, by a hash of its address.
const PLACES: usize = 1 << 16;

/// libFuzzer takes what is in this section for counters, too (FuzzerExtraCounters.cpp).
#[unsafe(link_section = "__libfuzzer_extra_counters")]
static mut LIBLMDB: [u8; PLACES] = [0; PLACES];

/// Called at each branch of C code that is compiled with `-fsanitize-coverage=trace-pc`; hands on where that was.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn __sanitizer_cov_trace_pc() {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!("mov rdi, [rsp]", "jmp {}", sym count);
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!("mov x0, x30", "b {}", sym count);
}

extern "C" fn count(place: usize) {
    let place = place.wrapping_sub(count as *const () as usize).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48;
    // SAFETY: the index has 16 bits. Counters are only ever touched as whole bytes; a count lost between threads is no harm.
    unsafe {
        let counter = (&raw mut LIBLMDB).cast::<u8>().add(place);
        counter.write(counter.read().saturating_add(1));
    }
}

/// Where the counters of the Rust code are: address and length.
static RUST: OnceLock<(usize, usize)> = OnceLock::new();

unsafe extern "C" {
    /// libFuzzer's own.
    fn libfuzzer_8bit_counters_init(start: *mut u8, stop: *mut u8);
}

/// Called before `main` with the counters that the compiler made (-sanitizer-coverage-inline-8bit-counters).
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, stop: *mut u8) {
    RUST.get_or_init(|| (start.expose_provenance(), stop.addr() - start.addr()));
    // SAFETY: handed on as it came.
    unsafe { libfuzzer_8bit_counters_init(start, stop) }
}

/// All counters of this process, address and length.
fn counters() -> [(*mut u8, usize); 2] {
    let &(address, length) = RUST.get().expect("set before main");
    [(ptr::with_exposed_provenance_mut(address), length), ((&raw mut LIBLMDB).cast(), PLACES)]
}

/// Memory that this process shares with its forked children, as large as all counters.
fn shared() -> *mut u8 {
    static SHARED: OnceLock<usize> = OnceLock::new();
    let address = *SHARED.get_or_init(|| {
        let length = counters().iter().map(|(_, length)| length).sum::<usize>().try_into().unwrap();
        let (protection, flags) = (ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED);
        // SAFETY: new memory, which nobody else refers to.
        unsafe { mmap_anonymous(None, length, protection, flags) }.unwrap().as_ptr().expose_provenance()
    });
    ptr::with_exposed_provenance_mut(address)
}

/// To be called before the first fork.
pub fn share() {
    let _ = shared();
}

/// In the child, at its end, also in a signal handler: leaves its counters to the parent.
pub fn leave() {
    copy(|own, shared| (own, shared));
}

/// In the parent: takes over what the child left.
pub fn take() {
    copy(|own, shared| (shared, own));
}

fn copy(direction: impl Fn(*mut u8, *mut u8) -> (*mut u8, *mut u8)) {
    let mut place = shared();
    for (counter, length) in counters() {
        let (from, to) = direction(counter, place);
        // SAFETY: counters and their places in the shared memory are `length` bytes each and do not overlap; the child
        // ends after `leave`, and `take` runs after its end.
        unsafe {
            ptr::copy_nonoverlapping(from, to, length);
            place = place.add(length);
        }
    }
}
