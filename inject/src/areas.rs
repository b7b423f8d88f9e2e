//! The process's mappings, as the kernel lists them: `START-END rwxp OFFSET DEVICE INODE PATH` (proc_pid_maps(5)).

use crate::fork_gate::Shut;
use crate::sys;
use precache_contract::PAGE;

/// One of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Area {
    pub start: usize,
    pub end: usize,
    /// The letters of what may be done with it.
    access: usize,
    /// Offset in its file.
    offset: usize,
    device: usize,
    /// 0: no file.
    inode: usize,
}

/// Calls `visit` for each in the order of their addresses, as long as it answers `true`. The answer is whether there were any: every
/// process that lives has some.
#[inline(never)] // Its buffer must not weigh on the stacks of others.
pub fn each(_: &Shut, visit: &mut dyn FnMut(&Area) -> bool) -> bool {
    // The first thread may have ended, and its list of mappings with it. SAFETY: a C string.
    let opened = unsafe { sys::open_to_look(libc::AT_FDCWD, c"/proc/thread-self/maps".as_ptr()) };
    let Ok(file) = opened else { return false };
    let (mut line, mut buffer, mut offset) = (Line::default(), [0; PAGE as usize], 0);
    loop {
        let length = sys::read_at(file.0, &mut buffer, offset).unwrap_or(0);
        if length == 0 {
            return offset != 0;
        }
        offset += length as u64;
        for &byte in buffer.iter().take(length) {
            if line.take(byte) {
                if !visit(&line.area) {
                    return true;
                }
                line = Line::default();
            }
        }
    }
}

impl Area {
    pub fn is_accessible(&self) -> bool {
        self.access >> 8 != usize::from_be_bytes(*b"\0\0\0\0\0---")
    }

    /// Whether what follows at its end is more of the same private mapping of a file.
    pub fn goes_on_in(&self, next: &Self) -> bool {
        let is_private_data = self.access & 0xff == usize::from(b'p') && self.inode != 0;
        let goes_on = self.end == next.start && self.offset.wrapping_add(self.end - self.start) == next.offset;
        is_private_data && goes_on && (self.access, self.device, self.inode) == (next.access, next.device, next.inode)
    }
}

/// A line, byte by byte.
#[derive(Default)]
struct Line {
    area: Area,
    /// Separators met in it.
    field: usize,
}

impl Line {
    /// Whether this byte ends it.
    fn take(&mut self, byte: u8) -> bool {
        let area = &mut self.area;
        let digit = digit(byte);
        match (byte, self.field) {
            (b'\n', _) => return true,
            (b'-', 0) | (b' ', _) => self.field += 1,
            (_, 0) => area.start = area.start << 4 | digit,
            (_, 1) => area.end = area.end << 4 | digit,
            (_, 2) => area.access = area.access << 8 | usize::from(byte),
            (_, 3) => area.offset = area.offset << 4 | digit,
            (_, 4) => area.device = area.device << 4 | digit,
            (_, 5) => area.inode = area.inode.wrapping_mul(10).wrapping_add(digit),
            _ => {}
        }
        false
    }
}

fn digit(byte: u8) -> usize {
    (byte as char).to_digit(16).unwrap_or(0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn areas(text: &str) -> Vec<Area> {
        let (mut areas, mut line) = (Vec::new(), Line::default());
        for byte in text.bytes() {
            if line.take(byte) {
                areas.push(core::mem::take(&mut line).area);
            }
        }
        areas
    }

    #[test]
    fn lines_tell_where_mappings_are_and_whether_they_can_be_accessed() {
        let read = areas(
            "55d0c8a00000-55d0c8a02000 ---p 0001f000 fe:00 1835 /a file-with r\n\
             7ffc1000-ffffffffff600000 r--s 00000000 00:00 0\n\
             1000-2000 -w-p 00000000 00:00 0                    [stack]\n7000-",
        );
        let told = |area: &Area| (area.start, area.end, area.is_accessible(), area.offset, area.inode);
        assert_eq!(
            read.iter().map(told).collect::<Vec<_>>(),
            [
                (0x55d0c8a00000, 0x55d0c8a02000, false, 0x1f000, 1835),
                (0x7ffc1000, 0xffffffffff600000, true, 0, 0),
                (0x1000, 0x2000, true, 0, 0),
            ]
        );
    }

    #[test]
    fn only_more_of_the_same_file_goes_on() {
        let first = "10000-12000 rw-p 00004000 fe:01 18 /a\n";
        let goes_on = |next: &str| {
            let areas = areas(&format!("{first}{next}\n"));
            areas[0].goes_on_in(&areas[1])
        };
        assert!(goes_on("12000-13000 rw-p 00006000 fe:01 18 /a"));
        for other in [
            "13000-14000 rw-p 00006000 fe:01 18 /a",
            "12000-13000 r--p 00006000 fe:01 18 /a",
            "12000-13000 rw-p 00007000 fe:01 18 /a",
            "12000-13000 rw-p 00006000 fe:02 18 /b",
            "12000-13000 rw-p 00006000 fe:01 19 /b",
        ] {
            assert!(!goes_on(other), "{other}");
        }
        let anonymous = areas("10000-12000 rw-p 00000000 00:00 0\n12000-13000 rw-p 00002000 00:00 0\n");
        let shared = areas("10000-12000 rw-s 00000000 fe:01 18\n12000-13000 rw-s 00002000 fe:01 18\n");
        assert!(!anonymous[0].goes_on_in(&anonymous[1]) && !shared[0].goes_on_in(&shared[1]));
    }
}
