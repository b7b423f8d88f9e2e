//! The calls that concern signals: masks and actions as the kernel has them.

use super::Result;
use core::ffi::{c_int, c_void};
use core::mem::size_of;
use syscalls::{Sysno, syscall};

/// A `sigset_t` as the kernel has it: bit n-1 is signal n.
pub type SignalSet = u64;

pub const fn bit(signal: c_int) -> SignalSet {
    1 << (signal - 1)
}

/// `SIGCANCEL` and `SIGSETXID`: glibc's own, which it lets no program block.
pub const LIBC_INTERNAL: SignalSet = bit(32) | bit(33);

/// Signals that the kernel lets nobody block (signal(7)).
pub const UNBLOCKABLE: SignalSet = bit(libc::SIGKILL) | bit(libc::SIGSTOP);

/// `struct sigaction` as rt_sigaction(2) has it on x86-64 and arm64.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Action {
    /// `SIG_DFL`, `SIG_IGN` or a function.
    pub handler: usize,
    pub flags: u64,
    pub restorer: usize,
    pub mask: SignalSet,
}

/// What the kernel does on `signal`, past every library.
#[inline(never)] // One copy is enough for all who ask.
pub fn action(signal: c_int) -> Result<Action> {
    let mut now = Action::default();
    // SAFETY: the action is written into a structure of the kernel's layout; none is installed.
    unsafe { syscall!(Sysno::rt_sigaction, signal, 0, &raw mut now, size_of::<SignalSet>()) }?;
    Ok(now)
}

/// Changes that; the answer is the action before.
///
/// # Safety
/// The handler must be `SIG_DFL`, `SIG_IGN`, or a function that may be called on that signal, and the restorer one that
/// makes rt_sigreturn(2).
pub unsafe fn set_action(signal: c_int, action: &Action) -> Result<Action> {
    let mut old = Action::default();
    // SAFETY: the caller's promise; both structures have the kernel's layout.
    unsafe {
        syscall!(Sysno::rt_sigaction, signal, core::ptr::from_ref(action), &raw mut old, size_of::<SignalSet>())
    }?;
    Ok(old)
}

/// `SIG_BLOCK`, `SIG_UNBLOCK` or `SIG_SETMASK` for the calling thread; the answer is the mask before.
#[inline(never)] // One copy is enough for all who call this.
pub fn change_mask(how: c_int, set: SignalSet) -> SignalSet {
    let mut old: SignalSet = 0;
    // SAFETY: both point to eight bytes, which is the kernel's size of a signal set on 64-bit Linux.
    let _ = unsafe { syscall!(Sysno::rt_sigprocmask, how, &raw const set, &raw mut old, size_of::<SignalSet>()) };
    old
}

/// Sets the calling thread's mask and returns the one before.
pub fn set_mask(mask: SignalSet) -> SignalSet {
    change_mask(libc::SIG_SETMASK, mask)
}

/// The calling thread's mask.
pub fn mask() -> SignalSet {
    change_mask(libc::SIG_BLOCK, 0)
}

/// All signals blocked for the calling thread while this exists: no handler of the program's runs on top of what holds
/// an entry of the registry, where it could wait for that entry.
pub struct Quiet(SignalSet);

impl Quiet {
    #[inline(never)] // As above.
    pub fn begin() -> Self {
        Self(set_mask(SignalSet::MAX))
    }
}

impl Drop for Quiet {
    #[inline(never)] // As above.
    fn drop(&mut self) {
        set_mask(self.0);
    }
}

/// Whom a signal is sent to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Addressee {
    Thread,
    Process,
}

/// Sends the calling thread or process the very signal that `info` describes; it stays pending while blocked.
///
/// Only the first thread of a process may send it what another process sent by kill(2) (rt_sigqueueinfo(2): EPERM); from
/// another thread it is sent by kill(2), and names this process as its sender.
///
/// # Safety
/// `info` must point to a `siginfo_t`.
pub unsafe fn raise_again(to: Addressee, signal: c_int, info: *const c_void) -> Result<()> {
    // SAFETY: a process may send itself any siginfo (rt_sigqueueinfo(2)).
    unsafe {
        let process = syscall!(Sysno::getpid)?;
        match to {
            Addressee::Process => syscall!(Sysno::rt_sigqueueinfo, process, signal, info)
                .or_else(|_| syscall!(Sysno::kill, process, signal)),
            Addressee::Thread => syscall!(Sysno::rt_tgsigqueueinfo, process, syscall!(Sysno::gettid)?, signal, info),
        }
    }
    .map(drop)
}
