//! System calls, made directly: no errno, no cancellation points, no lazy binding, so that signal context may make
//! them. Each returns the kernel's answer or its error number.

use core::ffi::c_int;
use core::mem::{MaybeUninit, size_of};
use core::sync::atomic::AtomicU32;
use syscalls::{Errno, Sysno, syscall};

mod signals;

pub use signals::*;

pub use syscalls::Errno as Error;
pub type Result<T> = core::result::Result<T, Errno>;

/// `MADV_GUARD_INSTALL` and `MADV_GUARD_REMOVE`, Linux 6.13 (file mappings: 6.15); newer than the headers in use.
const GUARD_INSTALL: usize = 102;
const GUARD_REMOVE: usize = 103;

/// `MADV_POPULATE_READ`, Linux 5.14.
const POPULATE_READ: usize = 22;

/// A descriptor that is closed when it goes out of scope.
pub struct Descriptor(pub c_int);

impl Drop for Descriptor {
    fn drop(&mut self) {
        if cfg!(feature = "sabotage-descriptors-kept") {
            return;
        }
        // SAFETY: the number came from a call that made a descriptor for this owner alone. The result does not matter:
        // Linux releases the number in any case (close(2)).
        let _ = unsafe { syscall!(Sysno::close, self.0) };
    }
}

/// # Safety
/// The range must be a registered mapping's, held against unmapping (`registry::Held`).
pub unsafe fn mprotect(address: usize, length: usize, protection: c_int) -> Result<()> {
    // SAFETY: the caller's promise; protection changes alter no content (mprotect(2)).
    unsafe { syscall!(Sysno::mprotect, address, length, protection) }.map(drop)
}

/// # Safety
/// As [`mprotect`], and the mapping must be shared: on a private one, pages written to would lose their content.
pub unsafe fn guard_install(address: usize, length: usize) -> Result<()> {
    // SAFETY: the caller's promise; on a shared file mapping only page table entries go.
    unsafe { syscall!(Sysno::madvise, address, length, GUARD_INSTALL) }.map(drop)
}

/// # Safety
/// As [`mprotect`].
pub unsafe fn guard_remove(address: usize, length: usize) -> Result<()> {
    // SAFETY: removes guard markers, and nothing else (madvise(2)).
    unsafe { syscall!(Sysno::madvise, address, length, GUARD_REMOVE) }.map(drop)
}

/// # Safety
/// As [`mprotect`], and the pages must be clean ones of a file.
pub unsafe fn unmap_pages(address: usize, length: usize) -> Result<()> {
    // SAFETY: the caller's promise; the next access brings in the same bytes (madvise(2), MADV_DONTNEED).
    unsafe { syscall!(Sysno::madvise, address, length, libc::MADV_DONTNEED) }.map(drop)
}

/// Maps the pages of a file there as reading them would, without reading them; waits for those that are not in the page
/// cache, as reading would. Fails at a protected page, when all before it are mapped (madvise(2), MADV_POPULATE_READ).
///
/// # Safety
/// The range must be held against unmapping (`registry::Held`).
pub unsafe fn populate(address: usize, length: usize) -> Result<()> {
    // SAFETY: the caller's promise; page tables are filled in, and no content changes. A page that cannot be read makes
    // the call fail, without a signal.
    unsafe { syscall!(Sysno::madvise, address, length, POPULATE_READ) }.map(drop)
}

/// Maps `descriptor` shared and writable, in place of what is there.
///
/// # Safety
/// The range must be whole pages of memory of ours, in which threads access nothing but atomics.
pub unsafe fn map_over(address: usize, length: usize, descriptor: c_int) -> Result<usize> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
    // SAFETY: the caller's promise; the old mapping goes and the new one comes in one step (mmap(2), MAP_FIXED).
    unsafe { syscall!(Sysno::mmap, address, length, protection, flags, descriptor, 0) }
}

/// From now on a forked child finds these pages zeroed (`MADV_WIPEONFORK`, Linux 4.14).
///
/// # Safety
/// The range must be whole pages of private memory of ours that is in no file.
pub unsafe fn wipe_on_fork(address: usize, length: usize) -> Result<()> {
    // SAFETY: the caller's promise; nothing changes in this process (madvise(2)).
    unsafe { syscall!(Sysno::madvise, address, length, libc::MADV_WIPEONFORK) }.map(drop)
}

/// Wakes who sleeps on `word`, in whatever process; `false` when nobody did.
pub fn futex_wake(word: &AtomicU32) -> bool {
    // SAFETY: FUTEX_WAKE does not access the word's content (futex(2)). Without FUTEX_PRIVATE_FLAG it reaches other
    // processes. It can only fail on a bad address.
    let woken = unsafe { syscall!(Sysno::futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
    woken == Ok(1)
}

/// A clock in milliseconds, from 1; it moves in steps of a few.
pub fn milliseconds() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills in the structure, whose layout on 64-bit Linux is libc's.
    let _ = unsafe { syscall!(Sysno::clock_gettime, libc::CLOCK_MONOTONIC_COARSE, &raw mut now) };
    1 + now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

/// A clock in nanoseconds.
pub fn nanoseconds() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills in the structure, whose layout on 64-bit Linux is libc's.
    let _ = unsafe { syscall!(Sysno::clock_gettime, libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

pub fn yield_now() {
    // SAFETY: no arguments, no effect on memory.
    let _ = unsafe { syscall!(Sysno::sched_yield) };
}

/// Has every processor that runs another thread of this process interrupt it, twice, and waits for each
/// (`membarrier_private_expedited` in kernel/sched/membarrier.c): what the kernel was about there for less than a microsecond, as
/// when it has found that a page is closed, is nearly always over by then. Where the kernel or a filter refuses, nothing happens.
pub fn interrupt_other_threads() {
    for _ in 0..2 {
        // SAFETY: membarrier(2) takes numbers only.
        let interrupt = || unsafe { syscall!(Sysno::membarrier, libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0) };
        if interrupt() == Err(Error::EPERM) {
            // SAFETY: as above. A process asks for it before it uses it.
            let _ = unsafe { syscall!(Sysno::membarrier, libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0) };
            let _ = interrupt();
        }
    }
}

/// For some ten microseconds, and what the kernel adds. By a call that every program with threads makes, if under a filter.
pub fn sleep_briefly() {
    static NOBODY_WAKES: AtomicU32 = AtomicU32::new(0);
    let time = libc::timespec { tv_sec: 0, tv_nsec: 10_000 };
    let how = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: a word of ours, and a time that is only read (futex(2)).
    let _ = unsafe { syscall!(Sysno::futex, NOBODY_WAKES.as_ptr(), how, 0, &raw const time) };
}

/// The pauses of one who waits for another thread.
#[derive(Default)]
pub struct Pauses(u32);

/// How often one yields before it sleeps.
const YIELDS: u32 = 100;

impl Pauses {
    /// One of them. They soon become sleep: those who wait are many, or of a higher priority (SCHED_FIFO), and must not keep the
    /// processors from the one they wait for. Not for signal context.
    #[inline(never)] // One copy is enough for all who wait.
    pub fn next(&mut self) {
        if self.0 < YIELDS {
            self.0 += 1;
            yield_now();
        } else {
            sleep_briefly();
        }
    }
}

/// The user that the process acts as.
pub fn effective_user() -> u32 {
    // SAFETY: cannot fail (geteuid(2)).
    unsafe { syscall!(Sysno::geteuid) }.unwrap_or(usize::MAX) as u32
}

/// The process's number.
pub fn process() -> i32 {
    // SAFETY: cannot fail (getpid(2)).
    unsafe { syscall!(Sysno::getpid) }.unwrap_or(0) as i32
}

pub fn parent() -> i32 {
    // SAFETY: cannot fail (getppid(2)).
    unsafe { syscall!(Sysno::getppid) }.unwrap_or(0) as i32
}

/// Whether the program may read or write this byte now: asked of the kernel, which answers for its own access, without a
/// signal and without an effect.
pub fn can_access(address: usize, write: bool) -> bool {
    const NOWHERE: usize = usize::MAX;
    let set = address & !(size_of::<SignalSet>() - 1);
    // SAFETY: the kernel reads a set from there and then refuses what to do with it (rt_sigprocmask(2)).
    let read = unsafe { syscall!(Sysno::rt_sigprocmask, NOWHERE, set, 0, size_of::<SignalSet>()) };
    if read != Err(Errno::EINVAL) || !write {
        return read == Err(Errno::EINVAL);
    }
    let word = address & !(size_of::<u32>() - 1);
    let (own, nobody) = (core::sync::atomic::AtomicU32::new(0), 0);
    // FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0): adds nothing, atomically (futex(2)).
    let add_nothing = 1usize << 28;
    // SAFETY: `own` is ours; the other word keeps its value. Nobody waits on either, and at most none is woken.
    let written =
        unsafe { syscall!(Sysno::futex, own.as_ptr(), libc::FUTEX_WAKE_OP, nobody, nobody, word, add_nothing) };
    written.is_ok()
}

pub fn memory_file() -> Result<Descriptor> {
    // SAFETY: the name is a C string.
    let made =
        unsafe { syscall!(Sysno::memfd_create, c"precache".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    made.map(|fd| Descriptor(fd as c_int))
}

/// A file in memory for the program's own use.
pub fn plain_memory_file(close_on_exec: bool) -> Result<c_int> {
    let flags = if close_on_exec { libc::MFD_CLOEXEC } else { 0 };
    // SAFETY: the name is a C string.
    unsafe { syscall!(Sysno::memfd_create, c"lock.mdb".as_ptr(), flags) }.map(|number| number as c_int)
}

/// Sets the file's length for good: the optimizer does not map memory that could be cut short under it.
pub fn seal_at_length(descriptor: &Descriptor, length: usize) -> Result<()> {
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: a structure that the kernel fills in on success, whose layout on 64-bit Linux is libc's.
    let longest = unsafe {
        syscall!(Sysno::prlimit64, 0, libc::RLIMIT_FSIZE, 0, limit.as_mut_ptr())?;
        limit.assume_init().rlim_cur
    };
    // To try would be answered by SIGXFSZ, which ends programs.
    if length as u64 > longest {
        return Err(Error::EFBIG);
    }
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: concerns our own descriptor alone.
    unsafe {
        syscall!(Sysno::ftruncate, descriptor.0, length)?;
        syscall!(Sysno::fcntl, descriptor.0, libc::F_ADD_SEALS, seals).map(drop)
    }
}

/// Opens a file to look at it.
///
/// # Safety
/// `path` must be a C string, or no address at all.
pub unsafe fn open_to_look(folder: c_int, path: *const core::ffi::c_char) -> Result<Descriptor> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    // SAFETY: the caller's promise; the kernel refuses what is no address.
    unsafe { syscall!(Sysno::openat, folder, path, flags) }.map(|number| Descriptor(number as c_int))
}

pub fn random_word() -> Result<u64> {
    let mut word = 0u64;
    // SAFETY: fills the eight bytes of `word`.
    unsafe { syscall!(Sysno::getrandom, &raw mut word, size_of::<u64>(), libc::GRND_NONBLOCK) }?;
    Ok(word)
}

pub fn file_status(descriptor: c_int) -> Result<libc::stat> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: on success the kernel has filled in the whole structure, whose layout on 64-bit Linux is libc's.
    unsafe {
        syscall!(Sysno::fstat, descriptor, status.as_mut_ptr())?;
        Ok(status.assume_init())
    }
}

/// The same of the file at a path, relative to `folder` as in openat(2).
pub fn status_at(folder: c_int, path: &core::ffi::CStr) -> Result<libc::stat> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: a C string, and a structure that the kernel fills in on success.
    unsafe {
        syscall!(Sysno::newfstatat, folder, path.as_ptr(), status.as_mut_ptr(), 0)?;
        Ok(status.assume_init())
    }
}

/// The real ones of this process (credentials(7)).
pub fn real_user_and_group() -> (u32, u32) {
    // SAFETY: these take nothing and cannot fail (getuid(2), getgid(2)).
    unsafe { (syscall!(Sysno::getuid).unwrap_or(0) as u32, syscall!(Sysno::getgid).unwrap_or(0) as u32) }
}

/// Whether the file gives capabilities to who executes it (capabilities(7)).
pub fn has_capabilities(descriptor: c_int) -> bool {
    // SAFETY: a C string; of length 0, no value is written (fgetxattr(2)).
    unsafe { syscall!(Sysno::fgetxattr, descriptor, c"security.capability".as_ptr(), 0, 0) }
        .is_ok_and(|length| length > 0)
}

/// Whether executing a program gives this process no rights (PR_SET_NO_NEW_PRIVS).
pub fn is_kept_from_rights() -> bool {
    // SAFETY: takes numbers only (prctl(2)).
    let answer = unsafe { syscall!(Sysno::prctl, libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) };
    answer == Ok(1)
}

/// The calling thread's number.
pub fn thread() -> i32 {
    // SAFETY: cannot fail (gettid(2)).
    unsafe { syscall!(Sysno::gettid) }.unwrap_or(0) as i32
}

/// Whether the process has no other thread; `false` where nobody tells.
pub fn is_alone() -> bool {
    // One link for each thread, beside the usual two of a folder (proc(5)).
    status_at(libc::AT_FDCWD, c"/proc/self/task").is_ok_and(|status| status.st_nlink == 3)
}

/// Flags of the open file (`O_DIRECT` and others).
pub fn open_flags(descriptor: c_int) -> Result<c_int> {
    // SAFETY: F_GETFL takes no argument.
    unsafe { syscall!(Sysno::fcntl, descriptor, libc::F_GETFL) }.map(|flags| flags as c_int)
}

/// Whether the file is memory, with no storage behind it: only such files can have seals (fcntl(2), F_GET_SEALS).
pub fn is_memory(descriptor: c_int) -> bool {
    // SAFETY: asks for a number.
    unsafe { syscall!(Sysno::fcntl, descriptor, libc::F_GET_SEALS) }.is_ok()
}

/// Fills `buffer` from the file's byte `offset` on; returns how much there was.
pub fn read_at(descriptor: c_int, buffer: &mut [u8], offset: u64) -> Result<usize> {
    // SAFETY: writes at most the buffer's length into it.
    unsafe { syscall!(Sysno::pread64, descriptor, buffer.as_mut_ptr(), buffer.len(), offset) }
}

/// The path behind a descriptor (`/proc/self/fd/N`); returns its length. A longer one is cut.
pub fn path_of(descriptor: c_int, buffer: &mut [u8]) -> Result<usize> {
    let mut link = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
    let mut digits = [0u8; 10];
    let mut rest = descriptor.unsigned_abs();
    let mut count = 0;
    for digit in digits.iter_mut() {
        *digit = b'0' + (rest % 10) as u8;
        (rest, count) = (rest / 10, count + 1);
        if rest == 0 {
            break;
        }
    }
    for (to, from) in link[14..].iter_mut().zip(digits[..count].iter().rev()) {
        *to = *from;
    }
    // SAFETY: `link` ends in a zero byte (14 characters, at most 10 digits, 26 bytes); at most the buffer's length is
    // written.
    unsafe { syscall!(Sysno::readlinkat, libc::AT_FDCWD, link.as_ptr(), buffer.as_mut_ptr(), buffer.len()) }
}

/// Connects to an abstract socket that a process of this very user listens on; also returns that process. Never waits: a
/// full backlog is an error.
pub fn connect(name: &[u8]) -> Result<(Descriptor, i32)> {
    let mut address = libc::sockaddr_un { sun_family: libc::AF_UNIX as u16, sun_path: [0; 108] };
    let Some(path) = address.sun_path.get_mut(1..=name.len()) else { return Err(Errno::ENAMETOOLONG) };
    for (to, from) in path.iter_mut().zip(name) {
        *to = *from as core::ffi::c_char;
    }
    let length = size_of::<libc::sa_family_t>() + 1 + name.len();
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: 0 };
    let mut peer_length = size_of::<libc::ucred>() as u32;
    // SAFETY: address, peer and peer_length live through the calls, with the lengths given.
    let socket = unsafe {
        let socket = Descriptor(syscall!(Sysno::socket, libc::AF_UNIX, kind, 0)? as c_int);
        syscall!(Sysno::connect, socket.0, &raw const address, length)?;
        syscall!(
            Sysno::getsockopt,
            socket.0,
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            &raw mut peer,
            &raw mut peer_length
        )?;
        socket
    };
    if peer.uid == effective_user() { Ok((socket, peer.pid)) } else { Err(Errno::EPERM) }
}

/// Sends one datagram, with a descriptor if there is one. Neither waits nor raises SIGPIPE.
pub fn send(socket: &Descriptor, bytes: &[u8], descriptor: Option<c_int>) -> Result<()> {
    /// `CMSG_SPACE(sizeof(int))` on 64-bit Linux (cmsg(3)): header, descriptor, padding to 8.
    #[repr(C)]
    struct Control {
        header: libc::cmsghdr,
        descriptor: c_int,
        padding: c_int,
    }
    let mut control = Control {
        header: libc::cmsghdr {
            cmsg_len: size_of::<libc::cmsghdr>() + size_of::<c_int>(),
            cmsg_level: libc::SOL_SOCKET,
            cmsg_type: libc::SCM_RIGHTS,
        },
        descriptor: descriptor.unwrap_or(-1),
        padding: 0,
    };
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: msghdr is plain data, for which zero is a value.
    let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    if descriptor.is_some() {
        message.msg_control = (&raw mut control).cast();
        message.msg_controllen = size_of::<Control>();
    }
    // SAFETY: everything that the message points to lives through the call; the kernel only reads it.
    unsafe { syscall!(Sysno::sendmsg, socket.0, &raw const message, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) }.map(drop)
}
