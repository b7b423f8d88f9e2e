//! The connection to the optimizer.

use super::{Descriptor, Result, effective_user};
use core::ffi::c_int;
use core::mem::size_of;
use syscalls::{Errno, Sysno, syscall};

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
