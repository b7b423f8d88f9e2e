//! The report in a few lines, for stderr.

use super::{FileReport, SessionReport};
use std::fmt::Write;

impl SessionReport {
    /// One line per file, and one per reason why something was not accelerated.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        for file in &self.files {
            let _ = writeln!(text, "{}", line_of(file));
        }
        let trips: u64 = self.readers.iter().map(|reader| reader.trips).sum();
        if !self.files.is_empty() {
            let mut methods: Vec<_> =
                self.readers.iter().flat_map(|r| &r.mappings).map(|mapping| mapping.method.as_str()).collect();
            methods.sort_unstable();
            methods.dedup();
            let readers = self.readers.iter().filter(|reader| !reader.mappings.is_empty()).count();
            let _ =
                writeln!(text, "{trips} trips in {} ({})", count(readers, "process", "processes"), methods.join(", "));
        }
        for refused in &self.refused {
            let _ = writeln!(text, "{}: not accelerated: {}", refused.file.display(), refused.reason);
        }
        for trouble in &self.troubles {
            let _ = writeln!(text, "{trouble}");
        }
        for lock in &self.locks {
            let times = count(lock.count as usize, "time", "times");
            let _ = match lock.private {
                true => writeln!(text, "{}: a private lock file instead, {times}", lock.file.display()),
                false => writeln!(
                    text,
                    "warning: {} was opened for writing, {times}, with the shared lock file: readers with private lock \
                     files do not protect the pages that they read from its writer",
                    lock.file.display()
                ),
            };
        }
        let mut reasons: Vec<_> = self.readers.iter().flat_map(|reader| &reader.refusals).map(|r| &r.reason).collect();
        reasons.sort_unstable();
        reasons.dedup();
        for reason in reasons.into_iter().filter(|reason| !self.refused.iter().any(|r| r.reason == **reason)) {
            let _ = writeln!(text, "a mapping was let go of: {reason}");
        }
        if self.files.is_empty() && self.refused.is_empty() {
            text.push_str(if self.loaded {
                "nothing accelerated: no file that qualifies was mapped (--min-file, --data, --exclude)\n"
            } else {
                "nothing accelerated: the program did not load the library (LD_PRELOAD was stripped or ignored)\n"
            });
        }
        text
    }
}

fn line_of(file: &FileReport) -> String {
    format!(
        "{}: {} of {} pre-cached, {} cached already; {}",
        file.path.display(),
        size(file.fetched),
        size(file.size),
        size(file.cached),
        file.decision
    )
}

fn count(n: usize, one: &str, many: &str) -> String {
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

    #[test]
    fn sizes_read_well() {
        assert_eq!(size(0), "0 B");
        assert_eq!(size(50 << 20), "50.0 MiB");
        assert_eq!(size(2 << 30), "2.00 GiB");
        assert_eq!(size(1536), "1.50 KiB");
    }

    #[test]
    fn silence_is_explained() {
        assert!(SessionReport::default().summary().contains("did not load"));
        assert!(SessionReport { loaded: true, ..Default::default() }.summary().contains("no file that qualifies"));
    }
}
