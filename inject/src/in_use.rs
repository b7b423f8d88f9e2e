//! Memory that a file is mapped over (MAP_FIXED) while a call of another thread may be at work on it.
//!
//! What a call is given is looked at before it is made, and not again (`interpose::buffers`): on memory that is armed
//! under it, it would fail. It can have nothing of what no thread may access, and what it has of an armed mapping is pinned.

use crate::{registry, sys};
use core::ops::ControlFlow;
use precache_contract::PAGE;

/// Whether calls of other threads may be at work on memory of this range that is not armed.
pub fn may_be_in_use(start: usize, end: usize) -> bool {
    if cfg!(feature = "sabotage-used-memory-armed") || sys::is_alone() {
        return false;
    }
    // The first thread may have ended, and its list of mappings with it.
    // SAFETY: a C string.
    let opened = unsafe { sys::open_to_look(libc::AT_FDCWD, c"/proc/thread-self/maps".as_ptr()) };
    let Ok(file) = opened else { return true };
    let (mut lines, mut buffer, mut offset) = (Lines::default(), [0; PAGE as usize], 0);
    loop {
        let read = sys::read_at(file.0, &mut buffer, offset).ok().and_then(|length| buffer.get(..length));
        let Some(read) = read.filter(|read| !read.is_empty()) else {
            // The list of every process that lives has lines.
            return offset == 0;
        };
        offset += read.len() as u64;
        let found = read.iter().try_for_each(|&byte| match lines.take(byte) {
            Some(line) if line.start >= end => ControlFlow::Break(false),
            Some(line)
                if line.is_accessible
                    && start < line.end
                    && !registry::is_within_one(line.start.max(start), line.end.min(end)) =>
            {
                ControlFlow::Break(true)
            }
            _ => ControlFlow::Continue(()),
        });
        if let ControlFlow::Break(found) = found {
            return found;
        }
    }
}

/// A mapping, as a line of `/proc/PID/maps` tells (proc_pid_maps(5)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Line {
    start: usize,
    end: usize,
    is_accessible: bool,
}

/// Reads such lines byte by byte: `START-END rwxp ...`.
#[derive(Debug, Default)]
struct Lines {
    line: Line,
    /// Separators met in this line: the address that a digit belongs to, then what may be done, then all else.
    field: usize,
}

impl Lines {
    /// The line that this byte ends.
    fn take(&mut self, byte: u8) -> Option<Line> {
        match (byte, self.field) {
            (b'\n', _) => {
                let line = self.line;
                *self = Self::default();
                return Some(line);
            }
            (b'-', 0) | (b' ', _) => self.field += 1,
            (_, 0) => self.line.start = self.line.start << 4 | digit(byte),
            (_, 1) => self.line.end = self.line.end << 4 | digit(byte),
            (b'r' | b'w' | b'x', 2) => self.line.is_accessible = true,
            _ => {}
        }
        None
    }
}

fn digit(byte: u8) -> usize {
    (byte as char).to_digit(16).unwrap_or(0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_tell_where_mappings_are_and_whether_they_can_be_accessed() {
        let mut lines = Lines::default();
        let text = "55d0c8a00000-55d0c8a02000 ---p 00000000 fe:00 1835 /a file-with r\n\
                    7ffc1000-ffffffffff600000 r--s 00000000 00:00 0\n\
                    1000-2000 -w-p 00000000 00:00 0 [stack]\n7000-";
        let read: Vec<_> = text.bytes().filter_map(|byte| lines.take(byte)).collect();
        let line = |start, end, is_accessible| Line { start, end, is_accessible };
        assert_eq!(
            read,
            [
                line(0x55d0c8a00000, 0x55d0c8a02000, false),
                line(0x7ffc1000, 0xffffffffff600000, true),
                line(0x1000, 0x2000, true),
            ]
        );
    }

    #[test]
    #[cfg_attr(miri, ignore = "makes system calls")]
    fn memory_of_others_is_in_use_and_what_nobody_may_access_is_not() {
        let place = |protection| {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            // SAFETY: a new mapping, at the kernel's choice.
            unsafe { libc::mmap(core::ptr::null_mut(), 4 * PAGE as usize, protection, flags, -1, 0) as usize }
        };
        let end = |start: usize| start + 4 * PAGE as usize;
        let (reserved, used) = (place(libc::PROT_NONE), place(libc::PROT_WRITE));
        // Another thread there is in any case: the harness runs each test in one of its own.
        assert!(!may_be_in_use(reserved, end(reserved)));
        assert!(may_be_in_use(used, end(used)));
        assert!(may_be_in_use(used - PAGE as usize, used + 1));
        assert!(may_be_in_use(end(used) - 1, end(used)));
    }
}
