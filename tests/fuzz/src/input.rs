//! An input as a sequence of small numbers: what a target that is no parser takes for its orders.

/// What is left of the input. Behind its end all is zero.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// So many bytes, or what is left.
    pub fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    /// A number of so many bytes, in little-endian order.
    fn number(&mut self, length: usize) -> u64 {
        self.bytes(length).iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
    }

    pub fn byte(&mut self) -> u8 {
        self.number(1) as u8
    }

    pub fn short(&mut self) -> u16 {
        self.number(2) as u16
    }

    pub fn word(&mut self) -> u64 {
        self.number(8)
    }

    /// A number of any magnitude in three bytes: small ones, those near a power of two, and those near the end.
    pub fn magnitude(&mut self) -> u64 {
        let (kind, number) = (self.byte() % 64, u64::from(self.short()));
        match kind {
            0..48 => number << kind,
            48..56 => (1 << (kind + 4)) - number,
            _ => u64::MAX - (number << (kind - 56)),
        }
    }
}
