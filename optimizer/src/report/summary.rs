//! The report in a few lines, for stderr.

use super::{FileReport, SessionReport};

/// Programs without the library that are told one by one.
const PROGRAMS: usize = 5;

/// The last page of a file is fetched whole.
const A_PAGE: u64 = precache_contract::PAGE;

impl SessionReport {
    /// One line per file, and one per reason why something was not accelerated.
    pub fn summary(&self) -> Vec<String> {
        let mut lines: Vec<_> = self.files.iter().map(line_of).collect();
        if !self.files.is_empty() {
            let trips = self.readers.iter().map(|reader| reader.trips).fold(0, u64::saturating_add);
            let mut methods: Vec<_> =
                self.readers.iter().flat_map(|r| &r.mappings).map(|mapping| mapping.method.as_str()).collect();
            methods.sort_unstable();
            methods.dedup();
            let readers = self.readers.iter().filter(|reader| !reader.mappings.is_empty()).count();
            let populated = self.readers.iter().flat_map(|r| &r.mappings).map(|mapping| mapping.populated);
            let populated = populated.fold(0, u64::saturating_add);
            lines.push(format!(
                "{} in {} ({}){}",
                count(trips, "trip", "trips"),
                count(readers as u64, "process", "processes"),
                methods.join(", "),
                if populated > 0 { format!("; {} mapped ahead", size(populated)) } else { String::new() }
            ));
        }
        let private = self.locks.iter().filter(|lock| lock.private);
        lines.extend(private.map(|lock| {
            format!("{}: a private lock file instead, {}", lock.file.display(), count(lock.count, "time", "times"))
        }));
        lines.extend(self.shortcomings());
        lines
    }

    /// What was not accelerated, and what the user should know of: one line each.
    pub fn shortcomings(&self) -> Vec<String> {
        let mut lines: Vec<_> = self
            .refused
            .iter()
            .chain(self.uninjected.iter().take(PROGRAMS))
            .map(|refused| format!("{}: not accelerated: {}", refused.file.display(), refused.reason))
            .chain(self.troubles.iter().cloned())
            .collect();
        if let Some(more @ 1..) = self.uninjected.len().checked_sub(PROGRAMS) {
            lines.push(format!("{more} other programs were not accelerated; the report has them (--report)"));
        }
        let shared = self.locks.iter().filter(|lock| !lock.private);
        lines.extend(shared.map(|lock| {
            format!(
                "warning: {} was opened for writing, {}, with the shared lock file: readers with private lock files do not \
                 protect the pages that they read from its writer",
                lock.file.display(),
                count(lock.count, "time", "times")
            )
        }));
        let mut reasons: Vec<_> = self.readers.iter().flat_map(|reader| &reader.refusals).map(|r| &r.reason).collect();
        reasons.sort_unstable();
        reasons.dedup();
        let untold = reasons.into_iter().filter(|reason| !self.refused.iter().any(|r| r.reason == **reason));
        lines.extend(untold.map(|reason| format!("a mapping was let go of: {reason}")));
        let unserved = self.readers.iter().map(|reader| reader.unserved).fold(0, u64::saturating_add);
        if unserved > 0 {
            lines.push(format!(
                "{} not served: the optimizer had too many to hear at once, or could not be reached (another network namespace, \
                 another user's by then, Landlock)",
                count(unserved, "forked process was", "forked processes were")
            ));
        }
        if self.files.is_empty() && self.refused.is_empty() && self.troubles.is_empty() {
            let why = if self.loaded {
                "no process with the library in it mapped 1 MiB or more of a file that qualifies (--min-file, --data, \
                 --exclude, --range), or none that did could reach the optimizer (another network namespace, Landlock)"
            } else {
                "the program did not load the library (LD_PRELOAD was stripped or ignored)"
            };
            lines.push(format!("nothing accelerated: {why}"));
        }
        lines
    }
}

fn line_of(file: &FileReport) -> String {
    let name = match file.is_of_many() {
        false => file.path.display().to_string(),
        true => format!("{} more", count(file.files, "file", "files")),
    };
    format!(
        "{name}: {} of {} pre-cached, {} cached already{}; {}",
        size(file.fetched),
        size(file.size),
        size(file.cached),
        if file.fetched.saturating_add(file.cached) > file.size + A_PAGE { " (all passes together)" } else { "" },
        file.decision
    )
}

fn count(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// Bytes in binary units, with three digits.
fn size(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.into_iter().find(|(_, shift)| bytes >> shift > 0) {
        Some((unit, shift)) => {
            let value = bytes as f64 / (1u64 << shift) as f64;
            let digits = if value >= 100.0 {
                0
            } else if value >= 10.0 {
                1
            } else {
                2
            };
            format!("{value:.digits$} {unit}")
        }
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{ReaderReport, Refused};

    #[test]
    fn sizes_read_well() {
        assert_eq!(size(0), "0 B");
        assert_eq!(size(50 << 20), "50.0 MiB");
        assert_eq!(size(2 << 30), "2.00 GiB");
        assert_eq!(size(1536), "1.50 KiB");
    }

    #[test]
    fn what_was_read_again_does_not_look_like_more_than_there_is() {
        let line = |fetched, cached| line_of(&FileReport { size: 8 << 20, fetched, cached, ..Default::default() });
        assert!(line(3 << 20, 5 << 20).contains("3.00 MiB of 8.00 MiB pre-cached, 5.00 MiB cached already; "));
        assert!(line(3 << 20, 6 << 20).contains("6.00 MiB cached already (all passes together); "));
    }

    #[test]
    fn forks_that_were_not_heard_of_are_told() {
        let of = |unserved| ReaderReport { unserved, ..Default::default() };
        let told = |readers| SessionReport { readers, ..Default::default() }.shortcomings().concat();
        assert!(told(vec![of(0), of(1)]).contains("1 forked process was not served"));
        assert!(told(vec![of(2), of(3)]).contains("5 forked processes were not served"));
        assert!(!told(vec![of(0)]).contains("not served"));
    }

    #[test]
    fn of_many_programs_without_the_library_a_few_are_told_one_by_one() {
        let told = |count| {
            let program = |number| Refused { file: format!("/bin/{number}").into(), reason: "static".into() };
            let uninjected = (0..count).map(program).collect();
            SessionReport { loaded: true, uninjected, ..Default::default() }.shortcomings()
        };
        let of_programs =
            |lines: &[String]| lines.iter().filter(|line| line.contains(": not accelerated: static")).count();
        let (few, many) = (told(5), told(7));
        assert!(of_programs(&few) == 5 && !few.concat().contains("other programs"), "{few:?}");
        assert!(of_programs(&many) == 5 && many.concat().contains("2 other programs"), "{many:?}");
    }

    #[test]
    fn silence_is_explained() {
        let told = |report: SessionReport| (report.summary(), report.shortcomings());
        let (summary, shortcomings) = told(SessionReport::default());
        assert!(summary == shortcomings && summary.concat().contains("did not load"), "{summary:?}");
        let (summary, shortcomings) = told(SessionReport { loaded: true, ..Default::default() });
        assert!(summary == shortcomings && summary.concat().contains("file that qualifies"), "{summary:?}");
    }
}
