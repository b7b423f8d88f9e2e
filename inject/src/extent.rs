//! Several places in memory as one.
//!
//! It begins where the first of them does or before, and ends where the last one does or behind: of what lies close together that is
//! about their lowest address and their highest. It takes bits instead of comparisons, for calls with many buffers take as long as
//! the instructions for each are many.

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

    /// A buffer with the byte before it, so that null, of no length, changes nothing.
    #[inline(always)]
    pub fn add_unless_null(&mut self, address: usize, length: usize) {
        self.common &= address.wrapping_sub(1);
        self.address |= address;
        self.length |= length;
    }

    /// Start and end.
    #[inline(always)]
    pub fn range(&self) -> (usize, usize) {
        (self.common, self.address.saturating_add(self.length))
    }
}

/// Places by how their addresses differ from one.
pub struct Around {
    address: usize,
    /// The bits in which any of them does.
    apart: usize,
}

impl Around {
    #[inline(always)]
    pub fn new(address: usize) -> Self {
        Self { address, apart: 0 }
    }

    #[inline(always)]
    pub fn add(&mut self, address: usize) {
        self.apart |= address ^ self.address;
    }

    /// Start and end, where none of them is longer than this.
    #[inline(always)]
    pub fn range(&self, length: usize) -> (usize, usize) {
        // What follows the first bit that differs may be anything.
        let any = usize::MAX.checked_shr(self.apart.leading_zeros()).unwrap_or(0);
        (self.address & !any, (self.address | any).saturating_add(length))
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
                extent.add_unless_null(0, 0);
                extent.add_unless_null(other, other_length);
                assert!(holds(extent.range(), one, length), "{one:#x}, {length:#x} beside {other:#x}");
                assert!(holds(extent.range(), other, other_length), "{other:#x}, {other_length:#x} beside {one:#x}");
            }
            let mut around = Around::new(one);
            around.add(other);
            assert!(holds(around.range(0x4000), one, 0x4000) && holds(around.range(0x4000), other, 0x4000));
        }
    }

    #[test]
    fn what_lies_close_together_takes_no_more_than_that() {
        let mut extent = Extent::of_buffers_up_to(128);
        extent.add(0x7f00_0000_1000, 16);
        extent.add_unless_null(0, 0);
        extent.add(0x7f00_0000_1f00, 64);
        assert_eq!(extent.range(), (0x7f00_0000_1000, 0x7f00_0000_1f00 + (128 | 16 | 64)));
        let mut around = Around::new(0x7f00_0000_1234);
        assert_eq!(around.range(16), (0x7f00_0000_1234, 0x7f00_0000_1244));
        around.add(0x7f00_0000_1fff);
        assert_eq!(around.range(16), (0x7f00_0000_1000, 0x7f00_0000_1fff + 16));
        assert_eq!(Extent::NONE.range(), (usize::MAX, 0));
    }
}
