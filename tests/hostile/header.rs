//! The first comment of a case: what is expected of it, in words, and how to run it.
//!
//! Its first line begins with `Expected:`. A line with `@` says what differs from the usual:
//!
//! | directive | meaning |
//! |---|---|
//! | `@options ...` | more options for `precache-run` |
//! | `@compile ...` | more options for the compiler |
//! | `@own-data` | the program changes its data file: each run gets a copy of its own |
//! | `@no-trap WHY` | no checkpoint is hit, and why none need be |
//! | `@no-guards WHY` | no mapping of it has guards, and why |
//! | `@not-killed WHY` | never reaches the rendezvous, and why: it is not run with the optimizer killed or stopped |
//! | `@not-detected WHY` | cannot be run with the detector behind it, and why |
//! | `@root` | only root can do what it does: it is not run by others |
//! | `@stopped` | is run with the optimizer stopped half-way, too |
//! | `@counter NAME N` | the report's counter is at least N (`active_readers`: processes that tripped) |
//! | `@at-most NAME N` | the report's counter is at most N |
//! | `@report TEXT` | the report says this |
//!
//! A case that natively ends with status 77 says on stdout what this machine lacks for it.

#[derive(Debug, Default)]
pub struct Header {
    pub options: Vec<String>,
    pub compile: Vec<String>,
    pub own_data: bool,
    pub no_trap: bool,
    pub no_guards: bool,
    pub not_killed: bool,
    pub not_detected: bool,
    pub stopped: bool,
    pub root: bool,
    pub counters: Vec<(String, u64)>,
    pub limits: Vec<(String, u64)>,
    pub report: Vec<String>,
}

impl Header {
    pub fn parse(source: &str) -> Result<Self, String> {
        let mut header = Self::default();
        let mut lines = comment(source);
        if !lines.next().is_some_and(|line| line.starts_with("Expected: ")) {
            return Err("the first line does not say `Expected: ...`".into());
        }
        for line in lines.filter_map(|line| line.strip_prefix('@')) {
            header.take(line)?;
        }
        Ok(header)
    }

    fn take(&mut self, directive: &str) -> Result<(), String> {
        let (name, value) = directive.split_once(' ').unwrap_or((directive, ""));
        let words = || value.split_whitespace().map(str::to_owned);
        let why_missing = || Err(format!("`@{name}` does not say why"));
        match name {
            "options" => self.options.extend(words()),
            "compile" => self.compile.extend(words()),
            "own-data" => self.own_data = true,
            "stopped" => self.stopped = true,
            "root" => self.root = true,
            "no-trap" if value.is_empty() => return why_missing(),
            "no-trap" => self.no_trap = true,
            "no-guards" if value.is_empty() => return why_missing(),
            "no-guards" => self.no_guards = true,
            "not-killed" if value.is_empty() => return why_missing(),
            "not-killed" => self.not_killed = true,
            "not-detected" if value.is_empty() => return why_missing(),
            "not-detected" => self.not_detected = true,
            "counter" => self.counters.push(bound(directive, value)?),
            "at-most" => self.limits.push(bound(directive, value)?),
            "report" => self.report.push(value.to_owned()),
            _ => return Err(format!("there is no directive `@{name}`")),
        }
        Ok(())
    }
}

/// A counter's name and a number.
fn bound(directive: &str, value: &str) -> Result<(String, u64), String> {
    let parts = value.split_once(' ').and_then(|(counter, number)| Some((counter.to_owned(), number.parse().ok()?)));
    parts.ok_or(format!("`@{directive}` does not give a name and a number"))
}

/// The lines of the comment that a source begins with, without its signs.
fn comment(source: &str) -> impl Iterator<Item = &str> {
    let is_comment = |line: &&str| ["/*", " *", "//", "# ", "#!"].iter().any(|sign| line.starts_with(sign));
    source
        .lines()
        .take_while(is_comment)
        .filter(|line| !line.starts_with("#!"))
        .map(|line| line.trim_start_matches(['/', '*', '#', ' ']).trim_end_matches("*/").trim_end())
}
