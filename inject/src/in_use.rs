//! Files that are mapped over memory (MAP_FIXED), on which a call of the program's may be at work meanwhile.
//!
//! What a call is given is looked at before it is made, and what it returns is not (`interpose::buffers`). On memory that is
//! armed under it, it would fail. So from the first such mapping on, calls are looked at when they return, too; and that
//! mapping is not armed where one may be at work that began before.

use crate::fork_gate::Shut;
use crate::{registry, sys};
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, Ordering::*, fence};
use precache_contract::PAGE;

/// Calls are looked at when they return.
static WATCHED: AtomicBool = AtomicBool::new(false);

/// Asked after what the call is given was found not to be armed: who finds it gone from the table, because a file is being
/// mapped over it, finds this set.
#[inline(always)]
pub fn are_calls_watched() -> bool {
    // Pairs with what takes a mapping out of the table.
    fence(Acquire);
    WATCHED.load(Relaxed)
}

/// Before a file is mapped over the range: whether it must not be armed there, for a call may be at work on it that nobody
/// looks at when it returns.
pub fn watch_calls(start: usize, end: usize) -> bool {
    !cfg!(feature = "sabotage-calls-unwatched") && !WATCHED.swap(true, SeqCst) && is_accessible(start, end)
}

/// Whether anything of the range can be accessed that is not armed: what is armed is pinned by the calls that are given it.
#[inline(never)] // Its buffer must not weigh on the stacks of others.
fn is_accessible(start: usize, end: usize) -> bool {
    // A forked child would inherit the descriptor.
    let _shut = Shut::begin();
    // The first thread may have ended, and its list of mappings with it. SAFETY: a C string.
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
    fn what_is_reserved_is_not_accessible() {
        let place = |protection| {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            // SAFETY: a new mapping, at the kernel's choice.
            unsafe { libc::mmap(core::ptr::null_mut(), 4 * PAGE as usize, protection, flags, -1, 0) as usize }
        };
        let end = |start: usize| start + 4 * PAGE as usize;
        let (reserved, used) = (place(libc::PROT_NONE), place(libc::PROT_WRITE));
        assert!(!is_accessible(reserved, end(reserved)));
        assert!(is_accessible(used, end(used)));
        assert!(is_accessible(used - PAGE as usize, used + 1));
        assert!(is_accessible(end(used) - 1, end(used)));
    }
}
