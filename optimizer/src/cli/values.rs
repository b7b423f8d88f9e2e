//! How the values of options are spelled: sizes, percentages, globs and ranges.

use std::path::PathBuf;

use precache_contract::PAGE;

use crate::options::{DataRange, LARGEST, REQUESTS};

/// A size that the user leaves to precache with `auto`, or gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeOrAuto {
    Auto,
    Bytes(u64),
}

impl SizeOrAuto {
    pub fn or_default(self, default: u64) -> (u64, bool) {
        match self {
            Self::Auto => (default, true),
            Self::Bytes(bytes) => (bytes, false),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("not a size; give a number with an optional unit, such as 4096, 8M, 8MiB or 1.5G")]
    NotASize,
    #[error("unknown unit {0:?}; use k, M, G or T (powers of 1024, also as KiB, MiB, GiB, TiB)")]
    Unit(String),
    #[error("not a whole number of bytes; give one, or a unit, such as 1.5G")]
    Fraction,
    #[error("more bytes than a file can have; give a smaller size")]
    TooLarge,
    #[error("less than one page; give at least {PAGE}, or such as 8M")]
    TooSmall,
    #[error("neither yes nor no; give true or false")]
    NotASwitch,
    #[error("not a percentage; give a whole number from 1 to 99")]
    Percent,
    #[error("not a number of requests; give one from {} to {}", REQUESTS.start(), REQUESTS.end())]
    Requests,
    #[error("an empty pattern matches no file; give one such as '/data/*.mdb'")]
    EmptyGlob,
    #[error("it matches no whole path, which it is held against; begin with '/' or '*/', or give a name without '/'")]
    RelativeGlob,
    #[error("the '[' at character {0} is never closed; close it with ']', or write '\\[' for the character itself")]
    UnclosedBracket(usize),
    #[error("it ends in a lone '\\'; write '\\\\' for the character itself")]
    TrailingBackslash,
    #[error("a line break cannot be handed to the program's side; match it with '?'")]
    LineBreak,
    #[error("not UTF-8, which patterns and ranges must be; match other bytes with `?`")]
    NotUtf8,
    #[error("not a range; give FILE:START..END, such as train.mdb:0..1G")]
    NotARange,
    #[error("its {0} {1:?} is {2}")]
    RangeEnd(&'static str, String, Box<Unusable>),
    #[error("it ends at byte {end}, not after its start at byte {start}; give START < END")]
    EmptyRange { start: u64, end: u64 },
}

/// `4096`, `8M`, `8MiB`, `1.5G`: binary multiples, whatever the spelling.
fn parse_bytes(text: &str) -> Result<u64, Unusable> {
    let unit_start = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_start);
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(Unusable::NotASize);
    }
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(Unusable::Unit(unit.to_owned())),
    };
    let multiple = 1u64 << shift;

    let bytes = match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(multiple).ok_or(Unusable::TooLarge)?,
        Err(_) if !number.contains('.') => return Err(Unusable::TooLarge),
        Err(_) if shift == 0 => return Err(Unusable::Fraction),
        Err(_) => {
            let fraction: f64 = number.parse().map_err(|_| Unusable::NotASize)?;
            (fraction * multiple as f64) as u64
        }
    };
    if bytes > LARGEST {
        return Err(Unusable::TooLarge);
    }
    Ok(bytes)
}

pub fn parse_size(text: &str) -> Result<u64, Unusable> {
    match parse_bytes(text)? {
        bytes if bytes < PAGE => Err(Unusable::TooSmall),
        bytes => Ok(bytes),
    }
}

pub fn parse_size_or_auto(text: &str) -> Result<SizeOrAuto, Unusable> {
    if text == "auto" {
        return Ok(SizeOrAuto::Auto);
    }
    parse_size(text).map(SizeOrAuto::Bytes)
}

pub fn parse_percent(text: &str) -> Result<u8, Unusable> {
    match text.strip_suffix('%').unwrap_or(text).parse() {
        Ok(percent @ 1..=99) => Ok(percent),
        _ => Err(Unusable::Percent),
    }
}

/// Requests in flight.
pub fn parse_requests(text: &str) -> Result<usize, Unusable> {
    text.parse().ok().filter(|requests| REQUESTS.contains(requests)).ok_or(Unusable::Requests)
}

/// What a variable may say in place of a flag.
pub fn parse_switch(text: &str) -> Result<bool, Unusable> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "" | "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(Unusable::NotASwitch),
    }
}

/// Checks a shell pattern (`*`, `?`, `[a-z]`, `\`), which the program's side matches later, where nobody can complain.
pub fn parse_glob(pattern: &str) -> Result<String, Unusable> {
    if pattern.is_empty() {
        return Err(Unusable::EmptyGlob);
    }
    if pattern.contains('\n') {
        return Err(Unusable::LineBreak);
    }
    // A name with a path before it is held against the path that the kernel has for the file.
    if pattern.contains('/') && !pattern.starts_with(['/', '*', '?', '[']) {
        return Err(Unusable::RelativeGlob);
    }
    let mut characters = pattern.chars().enumerate();
    while let Some((position, character)) = characters.next() {
        match character {
            '\\' => {
                characters.next().ok_or(Unusable::TrailingBackslash)?;
            }
            '[' => close_bracket(&mut characters).ok_or(Unusable::UnclosedBracket(position + 1))?,
            _ => {}
        }
    }
    Ok(pattern.to_owned())
}

/// Skips to the `]` that closes a set. One that comes first, also after `!` or `^`, is a member of it.
fn close_bracket(characters: &mut impl Iterator<Item = (usize, char)>) -> Option<()> {
    let mut first = true;
    loop {
        match characters.next()?.1 {
            '!' | '^' if first => continue,
            ']' if !first => return Some(()),
            '\\' => {
                characters.next()?;
            }
            _ => {}
        }
        first = false;
    }
}

/// `FILE:START..END`; FILE itself may contain colons.
pub fn parse_range(text: &str) -> Result<DataRange, Unusable> {
    if text.contains('\n') {
        return Err(Unusable::LineBreak);
    }
    let (file, bounds) = text.rsplit_once(':').ok_or(Unusable::NotARange)?;
    let (start, end) = bounds.split_once("..").ok_or(Unusable::NotARange)?;
    if file.is_empty() {
        return Err(Unusable::NotARange);
    }
    let bound =
        |name, text: &str| parse_bytes(text).map_err(|why| Unusable::RangeEnd(name, text.to_owned(), Box::new(why)));
    let (start, end) = (bound("start", start)?, bound("end", end)?);
    if start >= end {
        return Err(Unusable::EmptyRange { start, end });
    }
    Ok(DataRange { file: PathBuf::from(file), start, end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary_multiples() {
        for (text, bytes) in [
            ("4096", 4096),
            ("4k", 4096),
            ("4K", 4096),
            ("8M", 8 << 20),
            ("8MB", 8 << 20),
            ("8MiB", 8 << 20),
            ("8mib", 8 << 20),
            ("1.5G", 3 << 29),
            ("2TiB", 2 << 40),
            ("5000B", 5000),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        assert_eq!(parse_size_or_auto("auto"), Ok(SizeOrAuto::Auto));
    }

    #[test]
    fn unusable_sizes_say_why() {
        for (text, why) in [
            ("", Unusable::NotASize),
            ("-1", Unusable::NotASize),
            ("M", Unusable::NotASize),
            (".5G", Unusable::NotASize),
            ("1.2.3M", Unusable::NotASize),
            ("8 M", Unusable::Unit(" M".into())),
            ("8Q", Unusable::Unit("Q".into())),
            ("8Mi", Unusable::Unit("Mi".into())),
            ("4096.5", Unusable::Fraction),
            ("99999999999999999999", Unusable::TooLarge),
            ("9000000T", Unusable::TooLarge),
            ("2000000T", Unusable::TooLarge),
            ("0", Unusable::TooSmall),
            ("4095", Unusable::TooSmall),
            ("0.0001M", Unusable::TooSmall),
        ] {
            assert_eq!(parse_size(text), Err(why), "{text}");
        }
    }

    #[test]
    fn percentages() {
        assert_eq!(parse_percent("75"), Ok(75));
        assert_eq!(parse_percent("75%"), Ok(75));
        for text in ["0", "100", "-5", "x", "7.5", ""] {
            assert_eq!(parse_percent(text), Err(Unusable::Percent), "{text}");
        }
    }

    #[test]
    fn globs() {
        for pattern in ["*", "/data/**/*.mdb", "a[b-d]", "[]]", "[!]]x", "\\[x", "a]", "[\\]]"] {
            assert_eq!(parse_glob(pattern).as_deref(), Ok(pattern));
        }
        for (pattern, why) in [
            ("", Unusable::EmptyGlob),
            ("a\nb", Unusable::LineBreak),
            ("./a.mdb", Unusable::RelativeGlob),
            ("data/*.mdb", Unusable::RelativeGlob),
            ("ab[c", Unusable::UnclosedBracket(3)),
            ("[]", Unusable::UnclosedBracket(1)),
            ("[!]", Unusable::UnclosedBracket(1)),
            ("x\\", Unusable::TrailingBackslash),
        ] {
            assert_eq!(parse_glob(pattern), Err(why), "{pattern:?}");
        }
    }

    #[test]
    fn ranges() {
        let range = parse_range("/a:b/train.mdb:0..1.5G").unwrap();
        assert_eq!(range.file, PathBuf::from("/a:b/train.mdb"));
        assert_eq!((range.start, range.end), (0, 3 << 29));
        for text in ["", "x", "x:", "x:1", ":0..1M", "x:1..y", "x:..2M", "x:a\n:0..1"] {
            assert!(parse_range(text).is_err(), "{text:?}");
        }
        assert_eq!(parse_range("x:2M..1M"), Err(Unusable::EmptyRange { start: 2 << 20, end: 1 << 20 }));
        assert!(parse_range("x:5..5").is_err());
    }
}
