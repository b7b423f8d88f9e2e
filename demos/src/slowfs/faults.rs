//! Faults injected into reads: `KIND@WHERE[,file=GLOB]`.

use std::str::FromStr;
use std::sync::Mutex;
use std::time::Duration;

use globset::{Glob, GlobMatcher};
use precache_demos::quantity;
use precache_demos::random::Random;

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// The request fails with EIO.
    Eio,
    /// The request takes this much longer.
    Stall(Duration),
    /// The request returns half of its bytes.
    Short,
}

/// Which requests it goes wrong with.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Where {
    /// Those that cover this byte of the file.
    Offset(u64),
    /// Each one with this probability.
    Probability(f64),
}

/// One `--fault`.
#[derive(Clone, Debug)]
pub struct Fault {
    kind: Kind,
    place: Where,
    /// Restricts the fault to files of this name (the last part of the path).
    file: Option<GlobMatcher>,
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (rule, file) = match text.split_once(",file=") {
            Some((rule, glob)) => (rule, Some(matcher(glob)?)),
            None => (text, None),
        };
        let (kind, place) = rule.split_once('@').ok_or_else(|| {
            format!("`{text}` does not say where: write a fault like eio@4096, stall:5s@1M or short@p=0.001")
        })?;
        Ok(Self { kind: kind_from(kind)?, place: place_from(place)?, file })
    }
}

fn matcher(glob: &str) -> Result<GlobMatcher, String> {
    Ok(Glob::new(glob).map_err(|error| error.to_string())?.compile_matcher())
}

fn kind_from(text: &str) -> Result<Kind, String> {
    match text.split_once(':') {
        Some(("stall", time)) => Ok(Kind::Stall(quantity::duration(time)?)),
        None if text == "eio" => Ok(Kind::Eio),
        None if text == "short" => Ok(Kind::Short),
        _ => Err(format!("unknown kind of fault `{text}`: it is eio, short, or stall:TIME as in stall:5s")),
    }
}

fn place_from(text: &str) -> Result<Where, String> {
    let Some(probability) = text.strip_prefix("p=") else {
        return quantity::size(text).map(Where::Offset);
    };
    match probability.parse() {
        Ok(p) if (0.0..=1.0).contains(&p) => Ok(Where::Probability(p)),
        _ => Err(format!("`{probability}` is not a probability: write a number from 0 to 1, as in p=0.001")),
    }
}

/// All faults of a mount.
#[derive(Debug)]
pub struct Faults {
    rules: Vec<Fault>,
    random: Mutex<Random>,
}

impl Faults {
    pub fn new(rules: Vec<Fault>, seed: u64) -> Self {
        Self { rules, random: Mutex::new(Random::new(seed)) }
    }

    /// The faults of a request for `size` bytes at `offset` of the file called `name`.
    pub fn strike(&self, name: &str, offset: u64, size: u64) -> Vec<Kind> {
        let hit = |rule: &&Fault| {
            rule.file.as_ref().is_none_or(|glob| glob.is_match(name))
                && match rule.place {
                    Where::Offset(at) => (offset..offset + size).contains(&at),
                    Where::Probability(p) => self.draw() < p,
                }
        };
        self.rules.iter().filter(hit).map(|rule| rule.kind).collect()
    }

    fn draw(&self) -> f64 {
        self.random.lock().expect("no thread panics while it draws").fraction()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(rules: &[&str]) -> Faults {
        Faults::new(rules.iter().map(|rule| rule.parse().unwrap()).collect(), 1)
    }

    #[test]
    fn an_offset_strikes_the_requests_that_cover_it() {
        let faults = faults(&["eio@1M"]);
        assert_eq!(faults.strike("data.mdb", 1 << 20, 4096), [Kind::Eio]);
        assert_eq!(faults.strike("data.mdb", (1 << 20) - 4096, 4097), [Kind::Eio]);
        assert_eq!(faults.strike("data.mdb", (1 << 20) - 4096, 4096), []);
    }

    #[test]
    fn a_glob_restricts_the_files() {
        let faults = faults(&["stall:5s@0,file=*.mdb", "short@0,file=*.bin"]);
        assert_eq!(faults.strike("data.mdb", 0, 1), [Kind::Stall(Duration::from_secs(5))]);
        assert_eq!(faults.strike("x.bin", 0, 1), [Kind::Short]);
    }

    #[test]
    fn a_probability_strikes_about_as_often() {
        let faults = faults(&["eio@p=0.1"]);
        let struck = (0..10_000).filter(|_| !faults.strike("f", 0, 1).is_empty()).count();
        assert!((800..1200).contains(&struck), "{struck}");
    }

    #[test]
    fn messages_say_what_to_write() {
        for (text, expected) in [
            ("eio", "does not say where"),
            ("boom@1", "unknown kind of fault `boom`"),
            ("eio@p=2", "not a probability"),
            ("stall:5@1", "no unit"),
        ] {
            let error = text.parse::<Fault>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
