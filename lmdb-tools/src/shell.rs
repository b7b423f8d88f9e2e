//! Text that people paste into a shell.

use std::path::Path;

/// A path as a POSIX shell takes it, and as the argument of a program that has options.
pub fn quoted(path: impl AsRef<Path>) -> String {
    let path = path.as_ref().to_string_lossy();
    let path = if path.starts_with('-') { format!("./{path}") } else { path.into_owned() };
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    if !path.is_empty() && path.chars().all(plain) { path } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_survive_the_shell() {
        assert_eq!(quoted("/a/b-1.mdb"), "/a/b-1.mdb");
        assert_eq!(quoted("/a b/it's"), "'/a b/it'\\''s'");
        assert_eq!(quoted("-n"), "./-n");
        assert_eq!(quoted(""), "''");
    }
}
