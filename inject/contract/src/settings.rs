//! What the supervisor tells the injected library: the value of one environment variable.
//!
//! The value is a list of `key=value` entries, each with a [`SEPARATOR`] behind it: it lies in one line, so that who reads the environment
//! line by line goes on doing so. Keys that repeat (`data`, `exclude`, `range`) are lists.

/// Bytes that the library has room for in the value, with its end; a longer one leaves the process alone.
pub const CAPACITY: usize = 16 << 10;

/// What ends an entry: ASCII's record separator, which no file is named with.
pub const SEPARATOR: u8 = 0x1e;

/// The variable.
pub const VARIABLE: &str = "PRECACHE_READER";

/// Iterates over the `key=value` entries of a value; those without `=` are passed over. The library keeps the value with zeros at their
/// ends, so that each is a C string.
pub fn entries(value: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    value.split(|&byte| byte == SEPARATOR || byte == 0).filter_map(|line| {
        let middle = line.iter().position(|&byte| byte == b'=')?;
        Some((line.get(..middle)?, line.get(middle + 1..)?))
    })
}

/// A decimal number; `None` when it is anything else or does not fit.
pub fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |sum, &digit| match digit {
        b'0'..=b'9' => sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

/// `FILE:START..END` as its parts; the file may contain colons.
pub fn range(text: &[u8]) -> Option<(&[u8], u64, u64)> {
    let colon = text.iter().rposition(|&byte| byte == b':')?;
    let bounds = text.get(colon + 1..)?;
    let dots = bounds.windows(2).position(|pair| pair == b"..")?;
    let (start, end) = (number(bounds.get(..dots)?)?, number(bounds.get(dots + 2..)?)?);
    (start < end).then_some((text.get(..colon)?, start, end))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn entries_become_pairs() {
        let pairs: Vec<_> = entries(b"socket=a=b\x1enoise\x1edata=*.mdb\x1edata=/x\n").collect();
        assert_eq!(pairs, [(&b"socket"[..], &b"a=b"[..]), (b"data", b"*.mdb"), (b"data", b"/x\n")]);
    }

    #[test]
    fn numbers_do_not_overflow() {
        assert_eq!(number(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(number(b"18446744073709551616"), None);
        assert_eq!(number(b""), None);
        assert_eq!(number(b"-1"), None);
    }

    #[test]
    fn ranges_keep_colons_in_the_name() {
        assert_eq!(range(b"/a:b:0..10"), Some((&b"/a:b"[..], 0, 10)));
        assert_eq!(range(b"/a:10..10"), None);
        assert_eq!(range(b"/a"), None);
    }
}
