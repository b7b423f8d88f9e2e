//! What the words of a call are, by its number.

use super::super::buffers::ours_of;
use crate::buffers::{Buffers, Words};
use core::ffi::{c_int, c_long, c_uint, c_void};

/// io_pgetevents(2), which libc has no name for (asm/unistd_64.h).
const IO_PGETEVENTS: c_long = 333;

/// What a call takes of the program's memory.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Takes {
    /// Each of its words may be an address, but for a sixth, which is what lies on the stack.
    AnyWord,
    /// No address, and its registers may hold any; or it comes back elsewhere, or not at all: it is left as it is.
    Nothing,
    /// The same, but for arguments that its first word points to, as many bytes as its second tells (clone3(2)).
    Arguments,
    /// A buffer second, its length third, and no other address: the most frequent ones.
    Buffer,
    /// The same, and words that may be addresses.
    BufferAndWords,
    /// A buffer first, and its length second.
    BufferFirst,
    /// A message of System V second, and the length of its text third.
    TypedMessage,
    /// A list of buffers second, and their count third.
    List,
    /// Such lists: one of ours second and third, one of another process's, which the first one tells, fourth and fifth.
    Lists,
    /// A message second.
    Message,
    /// Messages second, and their count third: of more the kernel sends so many (sendmmsg(2)).
    MessagesToSend,
    /// Messages to be filled second, their count third, and a fifth word that is an address (recvmmsg(2)).
    Messages,
    /// What it is interposed for is more than what its words point to.
    More,
}

use Takes::*;

/// Behind the last number that is known here.
const END: usize = libc::SYS_mseal as usize + 1;

/// By number, two in a byte.
static TABLE: [u8; END.div_ceil(2)] = {
    let (mut table, mut number) = ([0; END.div_ceil(2)], 0);
    while number < END {
        table[number / 2] |= (Takes::told(number as c_long) as u8) << (number % 2 * 4);
        number += 1;
    }
    assert!(More as u8 <= 0xf, "it takes more bits");
    while number < 2 * END {
        assert!(matches!(Takes::told(number as c_long), AnyWord), "the table is too short");
        number += 1;
    }
    table
};

impl Takes {
    /// What the call of this number takes; the kernel looks at 32 bits of it (`do_syscall_64`).
    #[inline(always)]
    pub fn by_call(number: c_long) -> Self {
        let number = number as c_int as usize;
        let Some(two) = TABLE.get(number / 2) else { return AnyWord };
        // SAFETY: four bits that `TABLE` was filled with, which were one of these, or are those of the first, 0, behind the last number.
        unsafe { core::mem::transmute::<u8, Self>(two >> (number % 2 * 4) & 0xf) }
    }

    /// What [`TABLE`] is filled with.
    const fn told(number: c_long) -> Self {
        match number {
            libc::SYS_read | libc::SYS_pread64 | libc::SYS_write | libc::SYS_pwrite64 => Buffer,
            libc::SYS_sendto | libc::SYS_recvfrom | libc::SYS_mq_timedsend | libc::SYS_mq_timedreceive => {
                BufferAndWords
            }
            libc::SYS_getrandom => BufferFirst,
            libc::SYS_msgsnd | libc::SYS_msgrcv => TypedMessage,
            libc::SYS_readv
            | libc::SYS_preadv
            | libc::SYS_preadv2
            | libc::SYS_writev
            | libc::SYS_pwritev
            | libc::SYS_pwritev2
            | libc::SYS_vmsplice => List,
            libc::SYS_process_vm_readv | libc::SYS_process_vm_writev => Lists,
            libc::SYS_sendmsg | libc::SYS_recvmsg => Message,
            libc::SYS_sendmmsg => MessagesToSend,
            libc::SYS_recvmmsg => Messages,
            libc::SYS_clone3 => Arguments,
            libc::SYS_clone
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
            | libc::SYS_setpriority => Nothing,
            libc::SYS_mmap
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
            | libc::SYS_rt_sigprocmask
            | libc::SYS_rt_sigaction
            | libc::SYS_rt_sigsuspend
            | libc::SYS_ppoll
            | libc::SYS_pselect6
            | libc::SYS_epoll_pwait
            | libc::SYS_epoll_pwait2
            // A sixth word that is an address.
            | IO_PGETEVENTS => More,
            _ => AnyWord,
        }
    }

    /// What the kernel reads or fills for such a call, but for what its words point to; `None`: it is none of those with buffers.
    #[inline(always)]
    pub fn buffers(self, [a, b, c, d, e, _]: Words) -> Option<Buffers> {
        let one = |address: usize, length: usize| Buffers::one(address as *const c_void, length);
        Some(match self {
            Buffer | BufferAndWords => one(b, c),
            BufferFirst => one(a, b),
            // Its type is a word before its text, whose length is told.
            TypedMessage => one(b, c.saturating_add(size_of::<c_long>())),
            List => Buffers::list(b as *const libc::iovec, c),
            Lists => {
                let (own, other) = ((b as *const libc::iovec, c), (d as *const libc::iovec, e));
                Buffers::lists(own, (other.0, ours_of(a as c_int, own, other)))
            }
            // What is alone is looked at as one of several: their headers come first (sendmmsg(2)).
            Message => Buffers::messages(b as *const libc::mmsghdr, 1),
            MessagesToSend => Buffers::sent_messages(b as *const libc::mmsghdr, c as c_uint),
            Messages => Buffers::messages(b as *const libc::mmsghdr, c as c_uint),
            AnyWord | Nothing | Arguments | More => return None,
        })
    }

    /// The words that are looked at: few calls take an address as their sixth, and of all others it is what lies on the stack.
    #[inline(always)]
    pub fn words(number: c_long, [a, b, c, d, e, f]: Words) -> Words {
        match number {
            libc::SYS_recvfrom | libc::SYS_pselect6 | IO_PGETEVENTS => [a, b, c, d, e, f],
            _ => [a, b, c, d, e, 0],
        }
    }
}
