//! syscall(2): libc's door to calls that it has no function for, or that a program wants to make by number. Those that
//! have an interposer get here what they get there, and so do those that are given armed memory; all others pass through as if
//! nothing were in between.

use super::advice::{advise_file, read_ahead};
use super::buffers::{ours_of, with_both};
use super::limits::{before_limit, forbids_calls};
use super::memory::{Change, advise, advise_process, attach, change, change_all, map, remap};
use super::programs::execute_target;
use super::signals::numbers::{self, is_about_signals};
use super::signals::stacks::look_at_stack;
use crate::buffers::{Buffers, Words};
use crate::doing::Doing;
use crate::executable::Target;
use crate::in_use::are_calls_watched;
use crate::preload::{Execute, List};
use crate::{handler, past_libc, registry, sys};
use core::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void};
use precache_contract::segment::Refusal;

type Syscall = unsafe extern "C" fn(c_long, c_long, c_long, c_long, c_long, c_long, c_long) -> c_long;

/// io_pgetevents(2), which libc has no name for (asm/unistd_64.h).
const IO_PGETEVENTS: c_long = 333;

#[cfg_attr(feature = "preload", unsafe(link_section = "precache_next"))]
#[used]
static NEXT: crate::next::Next = crate::next::Next::new(c"syscall");

/// syscall(2). A call that has nothing to do with us is made by a jump, on an untouched stack: it may come back twice
/// (vfork), or on another stack (clone).
///
/// # Safety
/// As for the function of this name.
#[cfg(target_arch = "x86_64")]
#[cfg_attr(feature = "preload", unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C" fn syscall() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "endbr64",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        // The sixth word of the call, from above the return address.
        "push qword ptr [rsp + 56]",
        ".cfi_adjust_cfa_offset 56",
        "call {pass}",
        "add rsp, 8",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        ".cfi_adjust_cfa_offset -56",
        "test rax, rax",
        "je 2f",
        "jmp rax",
        "2:",
        // The seventh word lies on the stack, where the other function looks for it.
        "jmp {concerned}",
        ".cfi_endproc",
        pass = sym pass,
        concerned = sym concerned,
    )
}

/// The address of the next `syscall`, if the call has nothing to do with us; else null.
extern "C" fn pass(number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> *mut c_void {
    if number == libc::SYS_clone3 && !registry::is_empty() {
        before_clone(a);
    }
    let is_armed = || registry::overlaps(b, b.saturating_add(c));
    let words = words_of(number, [a, b, c, d, e, f]);
    let is_concerned = match number {
        // The most frequent ones: a buffer of any length, and no other address.
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_write | libc::SYS_pwrite64 => are_calls_watched() || is_armed(),
        libc::SYS_sendto | libc::SYS_recvfrom | libc::SYS_mq_timedsend | libc::SYS_mq_timedreceive if is_armed() => {
            true
        }
        _ if takes_no_address(number) => false,
        _ if is_ours(number) || is_about_signals(number) => true,
        // SAFETY: they are there.
        _ => are_calls_watched() || unsafe { Buffers::words(&words) }.may_be_armed(),
    };
    if is_concerned {
        core::ptr::null_mut()
    } else {
        NEXT.address().map_or(core::ptr::null_mut(), core::ptr::NonNull::as_ptr)
    }
}

/// Whether this call is left as it is: it is given no address, and its registers may hold any; or it comes back elsewhere, or not
/// at all.
fn takes_no_address(number: c_long) -> bool {
    matches!(
        number,
        libc::SYS_clone
            | libc::SYS_clone3
            | libc::SYS_fork
            | libc::SYS_vfork
            | libc::SYS_rt_sigreturn
            | libc::SYS_exit
            | libc::SYS_exit_group
            | libc::SYS_gettid
            | libc::SYS_getpid
            | libc::SYS_getppid
            | libc::SYS_getuid
            | libc::SYS_geteuid
            | libc::SYS_getgid
            | libc::SYS_getegid
            | libc::SYS_sched_yield
            | libc::SYS_membarrier
            | libc::SYS_tgkill
            | libc::SYS_tkill
            | libc::SYS_kill
            | libc::SYS_pause
            | libc::SYS_close
            | libc::SYS_close_range
            | libc::SYS_dup
            | libc::SYS_dup2
            | libc::SYS_dup3
            | libc::SYS_fsync
            | libc::SYS_fdatasync
            | libc::SYS_sync_file_range
            | libc::SYS_fallocate
            | libc::SYS_ftruncate
            | libc::SYS_lseek
            | libc::SYS_eventfd2
            | libc::SYS_epoll_create1
            | libc::SYS_inotify_init1
            | libc::SYS_pidfd_open
            | libc::SYS_pidfd_getfd
            | libc::SYS_ioprio_get
            | libc::SYS_ioprio_set
            | libc::SYS_setpriority
    )
}

/// What of these is looked at: few calls take an address as their sixth word, and of all others it is what lies on the stack.
#[inline(always)]
fn words_of(number: c_long, [a, b, c, d, e, f]: Words) -> Words {
    match number {
        libc::SYS_recvfrom | libc::SYS_pselect6 | IO_PGETEVENTS => [a, b, c, d, e, f],
        _ => [a, b, c, d, e, 0],
    }
}

/// Whether this call is one of those that are interposed for more than what their words point to.
fn is_ours(number: c_long) -> bool {
    matches!(
        number,
        libc::SYS_readv
            | libc::SYS_preadv
            | libc::SYS_preadv2
            | libc::SYS_writev
            | libc::SYS_pwritev
            | libc::SYS_pwritev2
            | libc::SYS_vmsplice
            | libc::SYS_sendmsg
            | libc::SYS_recvmsg
            | libc::SYS_sendmmsg
            | libc::SYS_recvmmsg
            | libc::SYS_process_vm_readv
            | libc::SYS_process_vm_writev
            | libc::SYS_getrandom
            | libc::SYS_msgsnd
            | libc::SYS_msgrcv
            | libc::SYS_mmap
            | libc::SYS_munmap
            | libc::SYS_mremap
            | libc::SYS_mprotect
            | libc::SYS_pkey_mprotect
            | libc::SYS_madvise
            | libc::SYS_process_madvise
            | libc::SYS_mseal
            | libc::SYS_shmat
            | libc::SYS_fadvise64
            | libc::SYS_readahead
            | libc::SYS_mlock
            | libc::SYS_mlock2
            | libc::SYS_mlockall
            | libc::SYS_remap_file_pages
            | libc::SYS_io_uring_setup
            | libc::SYS_io_setup
            | libc::SYS_seccomp
            | libc::SYS_prctl
            | libc::SYS_setrlimit
            | libc::SYS_prlimit64
            | libc::SYS_sigaltstack
            | libc::SYS_execve
            | libc::SYS_execveat
    )
}

/// A child without our handler, as without any of its parent's, is to meet no checkpoint.
#[cold]
#[inline(never)]
fn before_clone(arguments: usize) {
    const CLONE_CLEAR_SIGHAND: u64 = 1 << 32;
    // Flags come first (clone3(2)). SAFETY: it can be read.
    let flags = || unsafe { (arguments as *const u64).read_unaligned() };
    if sys::can_access(arguments, false) && flags() & CLONE_CLEAR_SIGHAND != 0 {
        handler::open_everything(Refusal::Executing);
    }
}

/// Whether this operation of seccomp(2) forbids anything.
fn sets_filter(operation: c_long) -> bool {
    [libc::SECCOMP_SET_MODE_STRICT, libc::SECCOMP_SET_MODE_FILTER].contains(&(operation as c_uint))
}

/// What the kernel reads or fills for the call, if it is one with buffers.
#[inline(always)]
fn buffers_of(number: c_long, [a, b, c, d, e]: [c_long; 5]) -> Option<Buffers> {
    let one = |address: c_long, length: c_long| Buffers::one(address as *const c_void, length as usize);
    Some(match number {
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_write | libc::SYS_pwrite64 => one(b, c),
        libc::SYS_sendto | libc::SYS_recvfrom | libc::SYS_mq_timedsend | libc::SYS_mq_timedreceive => one(b, c),
        libc::SYS_getrandom => one(a, b),
        // Its type is a word before its text, whose length is told.
        libc::SYS_msgsnd | libc::SYS_msgrcv => one(b, c.saturating_add(size_of::<c_long>() as c_long)),
        libc::SYS_readv
        | libc::SYS_preadv
        | libc::SYS_preadv2
        | libc::SYS_writev
        | libc::SYS_pwritev
        | libc::SYS_pwritev2
        | libc::SYS_vmsplice => Buffers::list(b as *const libc::iovec, c as usize),
        libc::SYS_sendmsg | libc::SYS_recvmsg => Buffers::message(b as *const libc::msghdr),
        libc::SYS_sendmmsg => Buffers::sent_messages(b as *const libc::mmsghdr, c as c_uint),
        libc::SYS_recvmmsg => Buffers::messages(b as *const libc::mmsghdr, c as c_uint),
        libc::SYS_process_vm_readv | libc::SYS_process_vm_writev => {
            let (own, other) = ((b as *const libc::iovec, c as usize), (d as *const libc::iovec, e as usize));
            Buffers::lists(own, (other.0, ours_of(a as c_int, own, other)))
        }
        _ => return None,
    })
}

/// One of the calls that [`pass`] keeps back, or any where there is no next `syscall`.
unsafe extern "C" fn concerned(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    let Some(next) = NEXT.address() else { return -1 };
    // SAFETY: syscall(2) has this type, with as many words as any call takes.
    let next = unsafe { core::mem::transmute::<core::ptr::NonNull<c_void>, Syscall>(next) };
    // SAFETY: the program's own call.
    let call = |()| unsafe { next(number, a, b, c, d, e, f) } as isize;
    let call = Doing::by(&call);
    let (address, length) = (a as *const c_void, b as usize);
    let all = [a, b, c, d, e, f].map(|word| word as usize);
    let words = words_of(number, all);
    if let Some(buffers) = buffers_of(number, [a, b, c, d, e]) {
        return with_both(&words, buffers, call) as c_long;
    }
    // SAFETY: the program's own call, with all of its words.
    unsafe {
        (match number {
            libc::SYS_mmap => {
                let call = |without: c_int| next(number, a, b, c, d & !c_long::from(without), e, f) as *mut c_void;
                map(Doing::by(&call), address, length, c as c_int, d as c_int, e as c_int, f) as isize
            }
            libc::SYS_munmap => change(Change::Unmap, address, length, call),
            libc::SYS_mremap => remap(a as usize, [b, c, d, e].map(|word| word as usize), call),
            libc::SYS_mprotect
            | libc::SYS_pkey_mprotect
            | libc::SYS_mlock
            | libc::SYS_mlock2
            | libc::SYS_mseal
            | libc::SYS_remap_file_pages => change(Change::Other, address, length, call),
            libc::SYS_mlockall => change_all(call),
            libc::SYS_madvise => {
                advise(address, length, c as c_int, Doing::by(&move |()| call.with(()) as c_int)) as isize
            }
            libc::SYS_process_madvise => advise_process(b as usize, d as c_int, call),
            libc::SYS_shmat => attach(b as *const c_void, c as c_int, call),
            libc::SYS_fadvise64 => advise_file(a as c_int, b, c, d as c_int, || call.with(()) as c_int) as isize,
            libc::SYS_readahead => read_ahead(a as c_int, b, c as usize, || call.with(())),
            libc::SYS_io_uring_setup | libc::SYS_io_setup => {
                let result = call.with(());
                if result != -1 {
                    past_libc::note(Refusal::RawCalls);
                }
                result
            }
            libc::SYS_seccomp if sets_filter(a) => past_libc::filtered(call),
            libc::SYS_prctl if forbids_calls(a as c_int, b as c_ulong) => past_libc::filtered(call),
            libc::SYS_execve => {
                let call = |environment: List| next(number, a, b, environment as c_long, d, e, f) as c_int;
                execute_target(Target::At(libc::AT_FDCWD, a as *const c_char), b as List, c as List, Execute::by(&call))
                    as isize
            }
            libc::SYS_execveat => {
                let call = |environment: List| next(number, a, b, c, environment as c_long, e, f) as c_int;
                let target = Target::at(a as c_int, b as *const c_char, e as c_int);
                execute_target(target, c as List, d as List, Execute::by(&call)) as isize
            }
            libc::SYS_setrlimit | libc::SYS_prlimit64 | libc::SYS_sigaltstack => {
                match number {
                    libc::SYS_setrlimit => before_limit(a as c_uint, b as *const c_void),
                    libc::SYS_prlimit64 => before_limit(b as c_uint, c as *const c_void),
                    _ => look_at_stack(a as usize),
                }
                with_both(&words, Buffers::NONE, call)
            }
            _ => numbers::make(
                number,
                all,
                Doing::by(&|all: Words| {
                    let [a, b, c, d, e, f] = all.map(|word| word as c_long);
                    let call = |()| next(number, a, b, c, d, e, f) as isize;
                    with_both(&words, Buffers::NONE, Doing::by(&call))
                }),
            ),
        }) as c_long
    }
}
