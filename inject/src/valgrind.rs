//! Whether the program runs under valgrind. There, a program that goes on after a fault does so with registers from before the
//! instruction's block, unless `--vex-iropt-register-updates=allregs-at-mem-access` is given: it would read other data.

use core::arch::asm;

/// The request RUNNING_ON_VALGRIND of valgrind's manual, "The Client Request mechanism": 0 to a processor.
const RUNNING: u64 = 0x1001;

/// Asks by instructions that do nothing, and to which valgrind answers.
#[cfg(target_arch = "x86_64")]
pub fn is_running() -> bool {
    let request = [RUNNING, 0, 0, 0, 0, 0];
    let mut answer = 0u64;
    // SAFETY: by 128 bits in all, the rotations leave rdi as it was, and the exchange leaves rbx: valgrind.h defines the same
    // sequence for amd64, with the request in rax, and the answer in rdx.
    unsafe {
        asm!("rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            in("rax") &raw const request, inout("rdx") answer, options(nostack));
    }
    answer != 0
}

/// The same.
#[cfg(target_arch = "aarch64")]
pub fn is_running() -> bool {
    let request = [RUNNING, 0, 0, 0, 0, 0];
    let mut answer = 0u64;
    // SAFETY: by 128 bits in all, the rotations leave x12 as it was, and x10 is combined with itself: valgrind.h defines the
    // same sequence for arm64, with the request in x4, and the answer in x3.
    unsafe {
        asm!("ror x12, x12, 3", "ror x12, x12, 13", "ror x12, x12, 51", "ror x12, x12, 61", "orr x10, x10, x10",
            in("x4") &raw const request, inout("x3") answer, options(nostack));
    }
    answer != 0
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg_attr(miri, ignore = "asks the processor")]
    fn a_processor_says_nothing() {
        assert!(!super::is_running());
    }
}
