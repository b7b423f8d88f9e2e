//! Bad input: one line that says what is wrong, why and what to do; status 2; nothing started.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::stage::{finish, supervisor};

/// Options, variables, and what the line has to name: the culprit and the way out.
type Case = (&'static [&'static str], &'static [(&'static str, &'static str)], [&'static str; 2]);

const CASES: &[Case] = &[
    (&["--size", "0"], &[], ["--size \"0\"", "at least 4096"]),
    (&["--size", "4095"], &[], ["less than one page", "at least 4096"]),
    (&["--distance", "8Q"], &[], ["--distance \"8Q\"", "k, M, G or T"]),
    (&["--distance", "much"], &[], ["not a size", "such as 4096"]),
    (&["--distance=-1"], &[], ["--distance \"-1\"", "such as 4096"]),
    (&["--size", "1.5"], &[], ["whole number", "1.5G"]),
    (&["--size", "99999999999T"], &[], ["more bytes", "smaller"]),
    (&["--min-file", "x"], &[], ["--min-file", "give a number"]),
    (&["--threshold", "0"], &[], ["--threshold \"0\"", "from 1 to 99"]),
    (&["--threshold", "100"], &[], ["--threshold \"100\"", "from 1 to 99"]),
    (&["--data", ""], &[], ["--data", "give one"]),
    (&["--data", "a[b"], &[], ["--data \"a[b\"", "close it"]),
    (&["--exclude", "a\nb"], &[], ["--exclude \"a\\nb\"", "match it with"]),
    (&["--range", "train.mdb"], &[], ["--range", "FILE:START..END"]),
    (&["--range", "f:2M..1M"], &[], ["--range", "START < END"]),
    (&["--range", "f:x..1M"], &[], ["start \"x\"", "such as 4096"]),
    (&["--size", "4M", "--distance", "8M"], &[], ["--size 4194304", "at least the distance"]),
    (&["--mode", "maybe"], &[], ["--mode \"maybe\"", "on, detect, off"]),
    (&["--protect", "no"], &[], ["--protect \"no\"", "auto, guard, mprotect"]),
    (&["--jobs", "0"], &[], ["--jobs \"0\"", "from 1 to 1024"]),
    (&["--jobs", "many"], &[], ["--jobs \"many\"", "from 1 to 1024"]),
    (&["--size", "2000000T"], &[], ["--size \"2000000T\"", "smaller"]),
    (&["--data", "data/*.mdb"], &[], ["--data \"data/*.mdb\"", "begin with"]),
    (&["--populate=maybe"], &[], ["--populate \"maybe\"", "auto, on, off"]),
    (&["--report", ""], &[("PRECACHE_REPORT", "")], ["--report", "has no value"]),
    (&["--sise", "8M"], &[], ["\"--sise\"", "--size"]),
    (&["--xyzzy"], &[], ["\"--xyzzy\"", "--help"]),
    (&["--size"], &[], ["--size", ""]),
    (&["--size", "8M", "--size", "9M"], &[], ["--size", "give it once"]),
    (&[], &[("PRECACHE_SIZE", "0")], ["PRECACHE_SIZE \"0\"", "at least 4096"]),
    (&[], &[("PRECACHE_THRESHOLD", "x")], ["PRECACHE_THRESHOLD \"x\"", "from 1 to 99"]),
    (&[], &[("PRECACHE_DATA", "a*:b[")], ["PRECACHE_DATA \"b[\"", "close it"]),
    (&[], &[("PRECACHE_RANGE", "f:2..1")], ["PRECACHE_RANGE \"f:2..1\"", "START < END"]),
    (&[], &[("PRECACHE_MODE", "x")], ["PRECACHE_MODE \"x\"", "on, detect, off"]),
    (&[], &[("PRECACHE_QUIET", "x")], ["PRECACHE_QUIET \"x\"", "true or false"]),
];

#[test]
fn bad_input_is_one_line_and_nothing_runs() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    for (options, variables, names) in CASES {
        let mut command = supervisor();
        command.envs(variables.iter().copied()).args(*options);
        // Where an option lacks its value, the program's name would be taken for it.
        if options != &["--size"] {
            command.arg("touch").arg(&trace);
        }
        let finished = finish(&mut command);
        assert_eq!(finished.status.code(), Some(2), "{options:?} {finished:?}");
        assert_eq!(finished.stdout, "");
        let stderr = &finished.stderr;
        assert_eq!(stderr.matches('\n').count(), 1, "one line: {stderr}");
        assert!(stderr.starts_with("precache-run: ") && stderr.ends_with('\n'), "{stderr}");
        for name in names {
            assert!(stderr.contains(name), "{name} in {stderr}");
        }
        assert!(!trace.exists(), "{options:?} started the program");
    }
}

#[test]
fn without_a_command_there_is_nothing_to_do() {
    for options in [&[][..], &["--"], &["-q", "--size", "8M"]] {
        let finished = finish(supervisor().args(options));
        assert_eq!(finished.status.code(), Some(2));
        assert_eq!(finished.stderr.lines().count(), 1, "{finished:?}");
        assert!(finished.stderr.contains("no command to run; give one"), "{finished:?}");
    }
}

#[test]
fn help_and_version_are_no_complaints() {
    for option in ["--help", "--version"] {
        let finished = finish(supervisor().arg(option));
        assert_eq!(finished.status.code(), Some(0));
        assert!(finished.stdout.contains("precache-run"), "{finished:?}");
        assert_eq!(finished.stderr, "");
    }
}

/// Both say of the same options what they do, and which variables stand for them.
#[test]
fn help_and_readme_have_all_options() {
    let help = finish(supervisor().arg("--help")).stdout;
    for rule in ["[OPTIONS] [--] COMMAND [ARGS]...", "8MiB", "PRECACHE_SIZE", "PRECACHE=off", "127", "126"] {
        assert!(help.contains(rule), "{rule} in {help}");
    }
    let flag = |word: &str| word.split(['[', '=', ' ', '`']).next().map(str::to_owned).filter(|flag| flag.len() > 2);
    let options = help.lines().map(str::trim_start).filter(|line| line.starts_with('-') && !line.starts_with("- "));
    let in_help: BTreeSet<_> = options.filter_map(|line| flag(&line[line.find("--")?..])).collect();
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")).unwrap();
    let rows = readme.lines().filter(|line| line.starts_with("| `-"));
    let mut in_readme = BTreeSet::from(["--help", "--version"].map(str::to_owned));
    for row in rows {
        let name = flag(&row[row.find("--").unwrap()..]).unwrap();
        let variable = format!("`PRECACHE_{}`", name[2..].replace('-', "_").to_uppercase());
        assert!(row.contains(&variable), "{variable} in {row}");
        // What may be left out is not another word: that would be the command.
        assert!(!row.contains(&format!("{name} [")), "{row}");
        in_readme.insert(name);
    }
    assert_eq!(in_help, in_readme);
}
