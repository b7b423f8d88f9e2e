//! Sizes, rates and durations as they are written on the command line.

use std::time::Duration;

/// A number of bytes: `4096`, `8M`, `8MiB`, `1.5G`. All units are binary: `8M` is 8 x 2^20.
pub fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1024.0 * 1024.0,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "t" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return Err(format!("unknown unit `{unit}`: write a size like 4096, 128K, 8M or 1.5G")),
    };
    Ok((number * factor).round() as u64)
}

/// Bytes per second: `400M` is 400 x 10^6, as networks and disks are rated; `400MiB` is binary.
pub fn rate(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let factor = match unit.to_ascii_lowercase().trim_end_matches("/s") {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(format!("unknown unit `{unit}`: write a rate like 400M, 1.2G or 0 for unlimited")),
    };
    Ok((number * factor).round() as u64)
}

/// A duration: `2ms`, `200us`, `5s`, `0`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text)?;
    let seconds = match unit {
        "" if number == 0.0 => 0.0,
        "ns" => number * 1e-9,
        "us" => number * 1e-6,
        "ms" => number * 1e-3,
        "s" => number,
        "" => return Err(format!("`{text}` has no unit: write a duration like 200us, 2ms or 5s")),
        _ => return Err(format!("unknown unit `{unit}`: write a duration like 200us, 2ms or 5s")),
    };
    Duration::try_from_secs_f64(seconds).map_err(|error| format!("`{text}`: {error}"))
}

/// Splits `1.5G` into the number and the unit.
fn split(text: &str) -> Result<(f64, &str), String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number = text[..end]
        .parse()
        .map_err(|_| format!("`{text}` does not start with a number: write one like 4096, 1.5G or 2ms"))?;
    Ok((number, text[end..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("8M"), Ok(8 << 20));
        assert_eq!(size("8MiB"), Ok(8 << 20));
        assert_eq!(size("1.5G"), Ok(3 << 29));
        assert_eq!(size("128k"), Ok(128 << 10));
        assert!(size("8X").unwrap_err().contains("unknown unit `X`"));
        assert!(size("-1").is_err());
        assert!(size("").is_err());
    }

    #[test]
    fn rates_are_decimal_unless_they_say_otherwise() {
        assert_eq!(rate("400M"), Ok(400_000_000));
        assert_eq!(rate("400MB/s"), Ok(400_000_000));
        assert_eq!(rate("1MiB"), Ok(1 << 20));
        assert_eq!(rate("0"), Ok(0));
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration("2ms"), Ok(Duration::from_millis(2)));
        assert_eq!(duration("0.5s"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("200us"), Ok(Duration::from_micros(200)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        assert!(duration("2").unwrap_err().contains("no unit"));
    }
}
