//! Caffe's `Datum`: the protocol buffer message that its LMDB data sets consist of.

use std::str::FromStr;

/// Channels, height and width of an image of bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    pub channels: u32,
    pub height: u32,
    pub width: u32,
}

impl Shape {
    /// Bytes of one image.
    pub fn bytes(self) -> usize {
        self.channels as usize * self.height as usize * self.width as usize
    }
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Vec<u32> = text.split('x').filter_map(|part| part.parse().ok()).collect();
        match numbers[..] {
            [channels, height, width] if text.matches('x').count() == 2 => Ok(Self { channels, height, width }),
            _ => Err(format!("`{text}` is not a shape: write CHANNELSxHEIGHTxWIDTH, as in 3x256x256")),
        }
    }
}

/// The key of a record: eight digits, so that the order of the keys is that of the numbers.
pub fn key(record: u64) -> String {
    format!("{record:08}")
}

/// Appends the encoded message to `out`.
///
/// The fields are those of `caffe.proto`: channels = 1, height = 2, width = 3, data = 4, label = 5.
pub fn encode(shape: Shape, data: &[u8], label: u32, out: &mut Vec<u8>) {
    for (field, value) in [(1, shape.channels), (2, shape.height), (3, shape.width)] {
        number_field(field, value, out);
    }
    out.push(4 << 3 | LENGTH_DELIMITED);
    varint(data.len() as u64, out);
    out.extend_from_slice(data);
    number_field(5, label, out);
}

/// The wire type of strings, bytes and messages; that of numbers is 0.
const LENGTH_DELIMITED: u8 = 2;

fn number_field(field: u8, value: u32, out: &mut Vec<u8>) {
    out.push(field << 3);
    varint(u64::from(value), out);
}

/// Seven bits a byte, the lowest first; the top bit says that more follow.
fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_that_of_protocol_buffers() {
        let mut out = Vec::new();
        encode(Shape { channels: 3, height: 256, width: 1 }, b"xyz", 300, &mut out);
        assert_eq!(out, b"\x08\x03\x10\x80\x02\x18\x01\x22\x03xyz\x28\xac\x02");
    }

    #[test]
    fn shapes() {
        assert_eq!("3x256x256".parse::<Shape>().unwrap().bytes(), 196_608);
        assert!("3x256".parse::<Shape>().is_err());
        assert!("3x256xx256".parse::<Shape>().is_err());
    }
}
