//! A checksum fast enough not to be what a warm run waits for.

const LANES: usize = 4;
const BLOCK: usize = LANES * 8;
const PRIME: u64 = 0x9e37_79b1_85eb_ca87;

/// A checksum of all bytes added, in their order. It finds wrong bytes; it does not resist attackers.
///
/// Four lanes of 64 bits run beside each other, because one would wait for its own multiplications.
#[derive(Clone, Debug)]
pub struct Checksum {
    lanes: [u64; LANES],
    bytes: u64,
}

impl Default for Checksum {
    fn default() -> Self {
        Self { lanes: [1, 2, 3, 4], bytes: 0 }
    }
}

impl Checksum {
    /// Adds a piece. The value depends on where pieces end: readers to be compared cut alike.
    pub fn add(&mut self, piece: &[u8]) {
        let (blocks, rest) = piece.as_chunks::<BLOCK>();
        for block in blocks {
            self.add_block(block);
        }
        if !rest.is_empty() {
            let mut block = [0; BLOCK];
            block[..rest.len()].copy_from_slice(rest);
            self.add_block(&block);
        }
        self.bytes += piece.len() as u64;
    }

    fn add_block(&mut self, block: &[u8; BLOCK]) {
        let (words, _) = block.as_chunks::<8>();
        for (lane, word) in self.lanes.iter_mut().zip(words) {
            *lane = (*lane ^ u64::from_le_bytes(*word)).wrapping_mul(PRIME).rotate_left(29);
        }
    }

    pub fn value(&self) -> u64 {
        let combine = |sum: u64, lane: &u64| (sum ^ lane).wrapping_mul(PRIME).rotate_left(31);
        self.lanes.iter().fold(self.bytes, combine)
    }

    /// Bytes added so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pieces: &[&[u8]]) -> u64 {
        let mut checksum = Checksum::default();
        pieces.iter().for_each(|piece| checksum.add(piece));
        checksum.value()
    }

    #[test]
    fn every_byte_and_the_order_count() {
        let data: Vec<u8> = (0..200).collect();
        for changed in 0..data.len() {
            let mut other = data.clone();
            other[changed] ^= 1;
            assert_ne!(of(&[&data]), of(&[&other]), "byte {changed}");
        }
        assert_ne!(of(&[b"ab", b"cd"]), of(&[b"cd", b"ab"]));
        assert_ne!(of(&[b"a"]), of(&[b"a\0"]));
    }
}
