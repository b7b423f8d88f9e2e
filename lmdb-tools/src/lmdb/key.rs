//! Keys as text: what people can read stays readable, everything else survives.

use std::fmt;

use serde_json::{Value, json};

use super::env::Stat;

/// A key as the tree it comes from means it.
#[derive(Debug, Clone, Copy)]
pub struct Key<'a> {
    pub bytes: &'a [u8],
    pub integer: bool,
}

impl<'a> Key<'a> {
    pub fn of(bytes: &'a [u8], stat: &Stat) -> Self {
        Self { bytes, integer: stat.integer_keys }
    }

    /// The number that an MDB_INTEGERKEY key is: native, 4 or 8 bytes long.
    fn number(&self) -> Option<u64> {
        match (self.integer, self.bytes.len()) {
            (true, 4) => self.bytes.try_into().ok().map(u32::from_ne_bytes).map(u64::from),
            (true, 8) => self.bytes.try_into().ok().map(u64::from_ne_bytes),
            _ => None,
        }
    }

    /// For JSON: a field name and a value. `key` is a string or a number, `key_hex` stands for bytes that are no text.
    pub fn json(&self) -> (&'static str, Value) {
        match (self.number(), std::str::from_utf8(self.bytes)) {
            (Some(number), _) => ("key", json!(number)),
            (None, Ok(text)) => ("key", json!(text)),
            (None, Err(_)) => ("key_hex", json!(self.bytes.iter().map(|b| format!("{b:02x}")).collect::<String>())),
        }
    }
}

/// Printable ASCII as it is, a backslash as `\\`, all other bytes as `\xNN`: one word without white space.
impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(number) = self.number() {
            return write!(f, "{number}");
        }
        for &byte in self.bytes {
            match byte {
                b'\\' => f.write_str("\\\\")?,
                b'!'..=b'~' => write!(f, "{}", char::from(byte))?,
                _ => write!(f, "\\x{byte:02x}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_as_text() {
        let text = |bytes: &[u8], integer| Key { bytes, integer }.to_string();
        assert_eq!(text(b"00000001_n01440764/x.JPEG", false), "00000001_n01440764/x.JPEG");
        assert_eq!(text(b"a b\\\xff\0", false), "a\\x20b\\\\\\xff\\x00");
        assert_eq!(text(&7_u32.to_ne_bytes(), true), "7");
        assert_eq!(text(&u64::MAX.to_ne_bytes(), true), u64::MAX.to_string());
        assert_eq!(Key { bytes: &[0xff], integer: false }.json(), ("key_hex", json!("ff")));
        assert_eq!(Key { bytes: "ä".as_bytes(), integer: false }.json(), ("key", json!("ä")));
    }
}
