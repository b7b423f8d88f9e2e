//! Damage to a database, mostly where its structure is.

/// A few bytes, words or pages overwritten, mostly in headers and in meta pages; now and then cut off.
pub fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    const PAGE: usize = 4096;
    let pages = bytes.len() / PAGE;
    if pages < 2 {
        return;
    }
    for _ in 0..=random.below(4) {
        let page = if random.below(4) == 0 { random.below(2) } else { random.below(pages) };
        let at = page * PAGE + if random.below(2) == 0 { random.below(160) } else { random.below(PAGE) };
        match random.below(5) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => bytes[at & !7..][..8].copy_from_slice(&random.next().to_ne_bytes()),
            // Page numbers and counts are small: such values reach further into liblmdb.
            3 => bytes[at & !1..][..2].copy_from_slice(&(random.below(2 * pages) as u16).to_ne_bytes()),
            _ => {
                let from = random.below(pages) * PAGE;
                bytes.copy_within(from..from + PAGE, page * PAGE);
            }
        }
    }
    if random.below(10) == 0 {
        bytes.truncate(random.below(bytes.len()));
    }
}

/// xorshift64: small, seeded, the same everywhere.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 16) as usize % bound
    }
}
