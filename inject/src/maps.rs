//! The kernel's mappings of this process, as `/proc/PID/maps` lists them (proc_pid_maps(5)).

use crate::fork_gate::Shut;
use crate::sys;
use core::marker::PhantomData;
use precache_contract::PAGE;

/// A mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    pub start: usize,
    pub end: usize,
    pub is_accessible: bool,
    pub is_private: bool,
    pub is_of_file: bool,
    /// Where it begins in the file.
    pub offset: usize,
    /// Depends on what may be done, on the file and on its name.
    pub digest: usize,
}

/// All of them, from the lowest on. A child that is forked meanwhile would inherit the descriptor.
pub struct Maps<'a> {
    /// `None`: there is no list.
    file: Option<sys::Descriptor>,
    lines: Lines,
    buffer: [u8; PAGE as usize],
    /// How much of the buffer has been looked at, and how much there is.
    at: usize,
    length: usize,
    /// How much of the list has been read.
    offset: u64,
    shut: PhantomData<&'a Shut>,
}

impl<'a> Maps<'a> {
    #[inline(never)] // One copy is enough for all who look.
    pub fn of_process(_shut: &'a Shut) -> Self {
        // The first thread may have ended, and its list of mappings with it. SAFETY: a C string.
        let file = unsafe { sys::open_to_look(libc::AT_FDCWD, c"/proc/thread-self/maps".as_ptr(), 0) }.ok();
        let (lines, buffer) = (Lines::default(), [0; PAGE as usize]);
        Self { file, lines, buffer, at: 0, length: 0, offset: 0, shut: PhantomData }
    }

    /// From the lowest on, as they are by then.
    pub fn begin_again(&mut self) {
        (self.lines, self.at, self.length, self.offset) = (Lines::default(), 0, 0, 0);
    }

    /// Whether there were any: every process that lives has some.
    pub fn were_told(&self) -> bool {
        self.offset != 0
    }

    #[inline(never)] // As above.
    pub fn next(&mut self) -> Option<Line> {
        loop {
            if self.at == self.length {
                let read = sys::read_at(self.file.as_ref()?.0, &mut self.buffer, self.offset).unwrap_or(0);
                if read == 0 {
                    return None;
                }
                (self.at, self.length, self.offset) = (0, read, self.offset + read as u64);
            }
            let byte = *self.buffer.get(self.at)?;
            self.at += 1;
            if let Some(line) = self.lines.take(byte) {
                return Some(line);
            }
        }
    }
}

/// Reads lines byte by byte: `START-END rwxp OFFSET DEVICE INODE NAME`.
#[derive(Debug, Default)]
struct Lines {
    line: Line,
    /// Separators met in this line: the number that a digit belongs to.
    field: usize,
}

impl Lines {
    /// The line that this byte ends.
    fn take(&mut self, byte: u8) -> Option<Line> {
        let line = &mut self.line;
        let number = match self.field {
            0 => Some(&mut line.start),
            1 => Some(&mut line.end),
            3 => Some(&mut line.offset),
            _ => None,
        };
        match (byte, number) {
            (b'\n', _) => {
                let line = self.line;
                *self = Self::default();
                return Some(line);
            }
            (b' ', _) => self.field += 1,
            (b'-', Some(_)) => self.field += 1,
            (_, Some(number)) => *number = *number << 4 | digit(byte),
            (_, None) => {
                // Without the spaces that stand before a name up to a certain column.
                // Knuth's multiplier (The Art of Computer Programming, vol. 3, 6.4).
                line.digest = (line.digest ^ usize::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                match (byte, self.field) {
                    (b'r' | b'w' | b'x', 2) => line.is_accessible = true,
                    (b'p', 2) => line.is_private = true,
                    (b'1'..=b'9', 5) => line.is_of_file = true,
                    _ => {}
                }
            }
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

    fn lines(text: &str) -> Vec<Line> {
        let mut lines = Lines::default();
        text.bytes().filter_map(|byte| lines.take(byte)).map(|line| Line { digest: 0, ..line }).collect()
    }

    #[test]
    fn lines_tell_where_mappings_are_and_what_they_are_of() {
        let text = "55d0c8a00000-55d0c8a02000 ---p 00001000 fe:00 1835 /a file-with r\n\
                    7ffc1000-ffffffffff600000 r--s 00000000 00:00 0\n\
                    1000-2000 -w-p 00000000 00:00 0 [stack]\n7000-";
        let none = Line::default();
        assert_eq!(
            lines(text),
            [
                Line {
                    start: 0x55d0c8a00000,
                    end: 0x55d0c8a02000,
                    is_private: true,
                    is_of_file: true,
                    offset: 0x1000,
                    ..none
                },
                Line { start: 0x7ffc1000, end: 0xffffffffff600000, is_accessible: true, ..none },
                Line { start: 0x1000, end: 0x2000, is_accessible: true, is_private: true, ..none },
            ]
        );
    }

    #[test]
    fn a_digest_depends_on_all_but_the_place() {
        let digest = |text: &str| {
            let mut lines = Lines::default();
            text.bytes().find_map(|byte| lines.take(byte)).map(|line| line.digest)
        };
        let one = digest("1000-2000 rw-p 00003000 fe:00 18 /data\n");
        assert_eq!(one, digest("2000-3000 rw-p 00004000 fe:00 18 /data\n"));
        let below = digest("7ffff0000000-7ffff0001000 rw-p fffff000 fe:00 18                         /data\n");
        let above = digest("7ffff0001000-7ffff0002000 rw-p 100000000 fe:00 18                        /data\n");
        assert_eq!((below, above), (one, one));
        for other in [
            "1000-2000 r--p 00003000 fe:00 18 /data\n",
            "1000-2000 rw-p 00003000 fe:01 18 /data\n",
            "1000-2000 rw-p 00003000 fe:00 19 /data\n",
            "1000-2000 rw-p 00003000 fe:00 18 /date\n",
        ] {
            assert_ne!(one, digest(other), "{other}");
        }
    }
}
