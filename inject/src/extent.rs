//! Several places in memory as one.
//!
//! It begins where the first of them does or before, and ends where the last one does or behind: of what lies close together that is
//! about their lowest address and their highest, unless a high bit changes between them. It takes bits instead of comparisons, for
//! calls with many buffers take as long as the instructions for each are many.

/// Buffers, by their addresses and lengths.
pub struct Extent {
    /// The bits that all of the addresses have.
    common: usize,
    /// The bits that any of the addresses has.
    address: usize,
    /// The bits that any of the lengths has.
    length: usize,
}

impl Extent {
    /// Without a buffer: nothing lies there.
    pub const NONE: Self = Self::of_buffers_up_to(0);

    /// The same, of buffers that are no longer than this, whatever their lengths are told to be.
    pub const fn of_buffers_up_to(length: usize) -> Self {
        Self { common: usize::MAX, address: 0, length }
    }

    #[inline(always)]
    pub fn add(&mut self, address: usize, length: usize) {
        self.common &= address;
        self.address |= address;
        self.length |= length;
    }

    /// Two, one of which may be null, and counts as the other then; the length is that of the second.
    #[inline(always)]
    pub fn add_any(&mut self, one: usize, other: usize, length: usize) {
        self.common &= if one == 0 { other } else { one };
        self.common &= if other == 0 { one } else { other };
        self.address |= one | other;
        self.length |= length;
    }

    /// Start and end.
    #[inline(always)]
    pub fn range(&self) -> (usize, usize) {
        (self.common, self.address.saturating_add(self.length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESSES: [usize; 9] =
        [1, 0xfff, 0x1000, 0x1001, 0x7fff_f000, 0x8000_0000, 0x7ffd_1234_5678, 0xffff_ffff_ffff_ff00, usize::MAX];
    const LENGTHS: [usize; 5] = [0, 1, 0x1000, 0xfff1, usize::MAX];

    fn holds((start, end): (usize, usize), address: usize, length: usize) -> bool {
        start <= address && address.saturating_add(length) <= end
    }

    #[test]
    fn all_that_was_added_lies_inside() {
        for (one, other) in ADDRESSES.iter().flat_map(|&one| ADDRESSES.map(|other| (one, other))) {
            for (length, other_length) in LENGTHS.iter().flat_map(|&one| LENGTHS.map(|other| (one, other))) {
                let mut extent = Extent::NONE;
                extent.add(one, length);
                extent.add_any(0, other, other_length);
                assert!(holds(extent.range(), one, length), "{one:#x}, {length:#x} beside {other:#x}");
                assert!(holds(extent.range(), other, other_length), "{other:#x}, {other_length:#x} beside {one:#x}");
            }
        }
    }

    #[test]
    fn what_lies_close_together_takes_no_more_than_that() {
        let mut extent = Extent::of_buffers_up_to(128);
        extent.add(0x7f00_0000_1000, 16);
        extent.add_any(0x7f00_0000_1100, 0, 0);
        extent.add(0x7f00_0000_1f00, 64);
        assert_eq!(extent.range(), (0x7f00_0000_1000, 0x7f00_0000_1f00 + (128 | 16 | 64)));
        assert_eq!(Extent::NONE.range(), (usize::MAX, 0));
    }
}
