//! Who runs a script, according to its first line.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// What execve(2) reads of a script (BINPRM_BUF_SIZE).
pub const LONGEST_LINE: usize = 256;

#[derive(Debug, PartialEq, Eq)]
pub enum Interpreter {
    At(PathBuf),
    /// To be found in PATH: `#!/usr/bin/env NAME`
    Named(OsString),
    /// `env -i`
    WithoutEnvironment,
}

/// `start` is the beginning of a file that is not ELF. One without `#!` execvp(3) gives to the shell.
pub fn interpreter(start: &[u8]) -> Interpreter {
    let line = start.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let mut words = line
        .strip_prefix(b"#!")
        .unwrap_or_default()
        .split(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
        .filter(|word| !word.is_empty());
    match words.next() {
        None => Interpreter::At(PathBuf::from("/bin/sh")),
        Some(env) if env.ends_with(b"/env") => run_by_env(words, env),
        Some(interpreter) => Interpreter::At(PathBuf::from(OsStr::from_bytes(interpreter))),
    }
}

fn run_by_env<'l>(words: impl Iterator<Item = &'l [u8]>, env: &[u8]) -> Interpreter {
    for word in words {
        match word {
            b"-i" | b"-" | b"--ignore-environment" => return Interpreter::WithoutEnvironment,
            // -S and other flags, and assignments.
            flag if flag.starts_with(b"-") => {}
            assignment if assignment.contains(&b'=') => {}
            name => return Interpreter::Named(OsStr::from_bytes(name).to_owned()),
        }
    }
    Interpreter::At(PathBuf::from(OsStr::from_bytes(env)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str) -> Interpreter {
        Interpreter::At(PathBuf::from(path))
    }

    #[test]
    fn first_lines() {
        for (start, expected) in [
            ("#!/bin/bash\necho", at("/bin/bash")),
            ("#! /usr/bin/python3 -u\n", at("/usr/bin/python3")),
            ("#!/bin/awk -f", at("/bin/awk")),
            ("echo hello\n", at("/bin/sh")),
            ("", at("/bin/sh")),
            ("#!\n", at("/bin/sh")),
            ("#!/usr/bin/env python3\n", Interpreter::Named("python3".into())),
            ("#!/usr/bin/env -S A=b perl -w\n", Interpreter::Named("perl".into())),
            ("#!/usr/bin/env -i perl\n", Interpreter::WithoutEnvironment),
        ] {
            assert_eq!(interpreter(start.as_bytes()), expected, "{start:?}");
        }
    }
}
