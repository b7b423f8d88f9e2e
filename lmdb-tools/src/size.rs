//! Byte counts as people write them: `64K`, `12MiB`, `1.5G`, powers of 1024 throughout.

use std::fmt;

const UNITS: [(&str, u64); 4] = [("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)];

/// Why a byte count cannot be understood.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("\"{0}\" is not a size: give bytes, or a number with K, M, G or T (\"64K\", \"12MiB\", \"1.5G\")")]
    Syntax(String),
    #[error("\"{0}\" is larger than any file can be")]
    TooLarge(String),
}

/// Reads a byte count; a fraction needs a unit. `M`, `MB` and `MiB` all mean 1024 * 1024.
pub fn parse(text: &str) -> Result<u64, Error> {
    let syntax = || Error::Syntax(text.to_owned());
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let unit = unit.trim().to_ascii_uppercase();
    let unit = unit.strip_suffix("IB").or(unit.strip_suffix('B')).unwrap_or(&unit);
    let factor = match UNITS.iter().find(|(name, _)| *name == unit) {
        Some((_, factor)) => *factor,
        None if unit.is_empty() => 1,
        None => return Err(syntax()),
    };
    let bytes = match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(factor),
        Err(_) if factor > 1 && number.contains('.') => {
            let bytes = number.parse::<f64>().map_err(|_| syntax())? * factor as f64;
            (bytes < i64::MAX as f64).then_some(bytes as u64)
        }
        Err(_) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => None,
        Err(_) => return Err(syntax()),
    };
    bytes.filter(|&bytes| bytes <= i64::MAX as u64).ok_or_else(|| Error::TooLarge(text.to_owned()))
}

/// A byte count for people: the largest unit that leaves at least 1, with one decimal where it is not whole.
#[derive(Clone, Copy)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.iter().find(|(_, factor)| self.0 >= *factor) {
            None => write!(f, "{} B", self.0),
            Some((name, factor)) if self.0.is_multiple_of(*factor) => write!(f, "{} {name}iB", self.0 / factor),
            Some((name, factor)) => write!(f, "{:.1} {name}iB", self.0 as f64 / *factor as f64),
        }
    }
}

/// A byte count as command lines take it, exact: `12M`, else plain bytes.
pub fn flag(bytes: u64) -> String {
    match UNITS.iter().find(|(_, factor)| bytes > 0 && bytes.is_multiple_of(*factor)) {
        Some((name, factor)) => format!("{}{name}", bytes / factor),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("64k", 65536),
            ("6MiB", 6 << 20),
            ("6 MB", 6 << 20),
            ("1.5G", 3 << 29),
            ("2T", 2 << 40),
            ("12b", 12),
        ] {
            assert_eq!(parse(text).unwrap(), bytes, "{text}");
        }
        for text in ["", "M", "1.5", "-1", "1e3", "6 apples", "1.2.3M", "."] {
            assert!(matches!(parse(text), Err(Error::Syntax(_))), "{text}");
        }
        for text in ["99999999999999999999", "9000000000G", "9999999999.5G"] {
            assert!(matches!(parse(text), Err(Error::TooLarge(_))), "{text}");
        }
    }

    #[test]
    fn writes_what_it_reads() {
        for bytes in [1, 4096, 12 << 20, (12 << 20) + 1, 50 << 30] {
            assert_eq!(parse(&flag(bytes)).unwrap(), bytes);
        }
        assert_eq!(Bytes(12 << 20).to_string(), "12 MiB");
        assert_eq!(Bytes(1536).to_string(), "1.5 KiB");
        assert_eq!(Bytes(17).to_string(), "17 B");
    }
}
