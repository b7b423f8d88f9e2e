//! syscall(2): libc's door to calls that it has no function for, or that a program wants to make by number. Those that
//! have an interposer get here what they get there, and so do those that are given armed memory; all others pass through as if
//! nothing were in between.

mod takes;

use self::takes::Takes;
use super::advice::{advise_file, read_ahead};
use super::buffers::with_both;
use super::limits::{before_limit, forbids_calls};
use super::memory::{Change, advise, advise_process, attach, change, change_all, map, remap};
use super::messages::{may_message_be_armed, may_messages_be_armed};
use super::programs::execute_target;
use super::signals::numbers;
use super::signals::stacks::look_at_stack;
use crate::buffers::{Buffers, LONGEST, Words};
use crate::doing::Doing;
use crate::executable::Target;
use crate::in_use::are_calls_watched;
use crate::preload::{Execute, List};
use crate::{handler, past_libc, peek, registry};
use core::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void};
use precache_contract::PAGE;
use precache_contract::segment::Refusal;

type Syscall = unsafe extern "C" fn(c_long, c_long, c_long, c_long, c_long, c_long, c_long) -> c_long;

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
        // The sixth word of the call, from above the return address, and what is in registers below it.
        "push qword ptr [rsp + 8]",
        "push r9",
        "push r8",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        ".cfi_adjust_cfa_offset 56",
        "mov rdi, rsp",
        "call {pass}",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop r8",
        "pop r9",
        "add rsp, 8",
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

/// A call as [`syscall`] has it on the stack.
#[repr(C)]
struct Made {
    number: c_long,
    words: Words,
}

/// The address of the next `syscall`, if the call has nothing to do with us; else null.
extern "C" fn pass(&Made { number, ref words }: &Made) -> *mut c_void {
    let is_concerned = match Takes::by_call(number) {
        Takes::Nothing => false,
        Takes::Arguments => {
            if !registry::is_empty() {
                before_clone(words[0], words[1]);
            }
            false
        }
        Takes::More => true,
        takes => may_be_armed(takes, words) || are_calls_watched(),
    };
    if is_concerned {
        core::ptr::null_mut()
    } else {
        NEXT.address().map_or(core::ptr::null_mut(), core::ptr::NonNull::as_ptr)
    }
}

/// Whether what such a call takes may be armed. It may say so of a sixth word that is none: [`concerned`] knows which calls have one.
#[inline(always)]
fn may_be_armed(takes: Takes, words: &Words) -> bool {
    let &[a, b, c, d, e, _] = words;
    let (address, length) = match takes {
        Takes::Buffer => (b, c),
        Takes::BufferFirst => (a, b),
        Takes::TypedMessage => (b, c.saturating_add(size_of::<c_long>())),
        Takes::List => return Buffers::list(b as *const libc::iovec, c).may_be_armed(),
        Takes::Message => return may_message_be_armed(b),
        Takes::MessagesToSend => return may_messages_be_armed(b, (c as c_uint as usize).min(LONGEST)),
        Takes::AnyWord => return registry::could_any_lie_in([a, b, c, d, e]) && may_words_be_armed(words),
        Takes::BufferAndWords | Takes::Lists | Takes::Messages => return may_more_be_armed(takes, words),
        // Not asked about.
        Takes::Nothing | Takes::Arguments | Takes::More => return true,
    };
    registry::overlaps(address, address.saturating_add(length))
}

/// The same of calls with words that may be addresses, beside what else they take.
#[inline(never)] // It must not weigh on the others.
fn may_more_be_armed(takes: Takes, words: &Words) -> bool {
    let &[_, b, c, d, e, f] = words;
    let (may_be, [one, two, three]) = match takes {
        Takes::BufferAndWords => (registry::overlaps(b, b.saturating_add(c)), [d, e, f]),
        Takes::Lists => {
            let (own, other) = ((b as *const libc::iovec, c), (d as *const libc::iovec, e));
            (Buffers::lists(own, other).may_be_armed(), [b, d, d])
        }
        _ => (may_messages_be_armed(b, c as c_uint as usize), [e, e, e]),
    };
    may_be || registry::could_any_lie_in([one, two, three, one, two]) && may_words_be_armed(words)
}

fn may_words_be_armed(words: &Words) -> bool {
    // SAFETY: they are there until this returns.
    unsafe { Buffers::words(words) }.may_be_armed()
}

/// A child without our handler, as without any of its parent's, is to meet no checkpoint. Nor is the kernel, in what it is given
/// (clone3(2)): a look at its first and its last word opens that, if the kernel takes so many bytes.
#[cold]
#[inline(never)]
fn before_clone(arguments: usize, length: usize) {
    const CLONE_CLEAR_SIGHAND: usize = 1 << 32;
    const CLONE_ARGS_SIZE_VER0: usize = 64;
    if !(CLONE_ARGS_SIZE_VER0..=PAGE as usize).contains(&length) {
        return;
    }
    let _ = peek::word(arguments.wrapping_add(length).wrapping_sub(size_of::<usize>()));
    // Flags come first.
    if peek::word(arguments).is_some_and(|flags| flags & CLONE_CLEAR_SIGHAND != 0) {
        handler::open_everything(Refusal::Executing);
    }
}

/// Whether this operation of seccomp(2) forbids anything.
fn sets_filter(operation: c_long) -> bool {
    [libc::SECCOMP_SET_MODE_STRICT, libc::SECCOMP_SET_MODE_FILTER].contains(&(operation as c_uint))
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
    // The kernel looks at so many bits of it (`do_syscall_64`).
    let known = c_long::from(number as c_int);
    let words = Takes::words(known, all);
    if let Some(buffers) = Takes::by_call(known).buffers(all) {
        return with_both(&words, buffers, call) as c_long;
    }
    // SAFETY: the program's own call, with all of its words.
    unsafe {
        (match known {
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
                match known {
                    libc::SYS_setrlimit => before_limit(a as c_uint, b as *const c_void),
                    libc::SYS_prlimit64 => before_limit(b as c_uint, c as *const c_void),
                    _ => look_at_stack(a as usize),
                }
                with_both(&words, Buffers::NONE, call)
            }
            _ => numbers::make(
                known,
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
