//! Mappings of the file that is measured: one that the library follows, and one that it does not know of.

use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::time::Instant;

use syscalls::{Errno, Sysno, syscall};

/// A file in memory.
pub struct Mapping {
    pub address: usize,
    length: usize,
    is_ours: bool,
}

impl Mapping {
    /// As programs map files.
    pub fn of_program(file: &File, length: usize) -> io::Result<Self> {
        // SAFETY: a new mapping; the file belongs to the measurement, which does not change it.
        let address = unsafe { libc::mmap(null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { address: address as usize, length, is_ours: false })
    }

    /// Past everybody, closed.
    pub fn closed(file: &File, length: usize) -> io::Result<Self> {
        // SAFETY: as above.
        let address =
            unsafe { syscall!(Sysno::mmap, 0, length, libc::PROT_NONE, libc::MAP_SHARED, file.as_raw_fd(), 0) }
                .map_err(error)?;
        Ok(Self { address, length, is_ours: true })
    }

    /// Reads a byte; the answer is the time that it took, in nanoseconds.
    pub fn touch(&self, at: usize) -> f64 {
        let start = Instant::now();
        // SAFETY: inside the mapping; whoever closed it opens it.
        unsafe { ((self.address + at) as *const u8).read_volatile() };
        start.elapsed().as_nanos() as f64
    }

    /// Whether the kernel could not read there.
    pub fn is_closed(&self, at: usize) -> bool {
        // SAFETY: the kernel reads a set from there, and then refuses what to do with it (rt_sigprocmask(2)).
        let read = unsafe { syscall!(Sysno::rt_sigprocmask, usize::MAX, self.address + at, 0, size_of::<u64>()) };
        read == Err(Errno::EFAULT)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: a mapping of ours, which nothing uses any more; unmapped by whoever knows of it.
        unsafe {
            if self.is_ours {
                let _ = syscall!(Sysno::munmap, self.address, self.length);
            } else {
                libc::munmap(self.address as *mut _, self.length);
            }
        }
    }
}

pub fn error(errno: Errno) -> io::Error {
    io::Error::from_raw_os_error(errno.into_raw())
}
