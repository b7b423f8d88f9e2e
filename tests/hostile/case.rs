//! One case: built, run in every way, compared.

use crate::header::Header;
use crate::run::{Left, Run, Way, run};
use precache_contract::segment::Refusal;
use precache_tests::methods::{MPROTECT, must_be_in_use};
use precache_tests::programs::compile;
use precache_tests::runs::Report;
use precache_tests::storage::{flat_file, lacking, scratch};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Length of the data file that each program gets as its first argument.
const MIB: usize = 64;

/// Many checkpoints in that.
const SPACING: [&str; 2] = ["--distance=1M", "--size=8M"];

/// Runs in one way, if the optimizer is without a processor in all but the last.
const TURNS: u32 = 3;

/// The exit status of a case that says what this machine lacks for it.
const LACKING: i32 = 77;

/// Runs the case natively and in every other way; the answer is what somebody could have noticed.
pub fn must_not_notice(source: &Path) -> Result<(), String> {
    let name = source.file_name().and_then(|name| name.to_str()).ok_or("the name is not UTF-8")?;
    let numbered =
        name.as_bytes().first_chunk().is_some_and(|[a, b, c]| [a, b].iter().all(|d| d.is_ascii_digit()) && *c == b'_');
    if !numbered {
        return Err(format!("{name}: not named NN_name.EXTENSION"));
    }
    let text = fs::read_to_string(source).map_err(|error| error.to_string())?;
    let header = Header::parse(&text)?;
    if header.root && !nix::unistd::geteuid().is_root() {
        lacking("root for it");
        return Ok(());
    }
    let Some(program) = build(source, &header)? else { return Ok(()) };
    let in_way = |way: Way| {
        let data = data_file(&header)?;
        let words: Vec<OsString> = program.iter().cloned().chain([data.path.clone().into()]).collect();
        let options: Vec<&str> = SPACING.into_iter().chain(header.options.iter().map(String::as_str)).collect();
        run(&words, way, &options).map_err(|what| format!("{way:?}: {what}"))
    };
    let Some(Run { left: native, .. }) = in_way(Way::Native)? else { return Err("cannot be run natively".into()) };
    if native.status == (Some(LACKING), None) {
        lacking(native.stdout.trim());
        return Ok(());
    }
    for way in Way::INJECTED {
        let (runs, complete) = match way {
            Way::Guard | Way::Mprotect => (true, true),
            Way::OptimizerKilled => (!header.not_killed, false),
            Way::OptimizerStopped => (header.stopped, false),
            Way::Detected => (!header.not_detected, true),
            Way::Native => (false, false),
        };
        if !runs {
            continue;
        }
        for turn in 1.. {
            let Some(run) = in_way(way)? else { break };
            match check(&header, way, complete, &native, &run) {
                Err(_) if turn < TURNS && run.left == native && was_without_optimizer(&run.report) => {}
                outcome => {
                    outcome?;
                    break;
                }
            }
        }
    }
    Ok(())
}

/// What a run in this way must have left and have met. What is wrong comes behind the report: that is where a log ends.
fn check(header: &Header, way: Way, complete: bool, native: &Left, run: &Run) -> Result<(), String> {
    let Run { left, report, hit, served } = run;
    if left != native {
        return Err(format!("{:#}\n{way:?} is noticed.\nnatively: {native}\n{way:?}: {left}", report.0));
    }
    // A trap that was not hit tests nothing.
    if let Some(hit) = hit.filter(|hit| header.no_trap != (*hit == 0)) {
        return Err(format!("{:#}\n{way:?}: {hit} checkpoints were hit", report.0));
    }
    if complete {
        check_method(header, way, report)
            .and_then(|()| check_report(header, report))
            .and_then(|()| check_served(served, report))
            .map_err(|what| format!("{:#}\n{way:?}: {what}", report.0))?;
    }
    Ok(())
}

/// Whether the optimizer got no processor in time, beside so many other tests: everything was opened then, or the process could not
/// get through to it, behind those of a test that maps in a loop, and what was to be met may not have been. Such a run says nothing
/// of it.
fn was_without_optimizer(report: &Report) -> bool {
    [Refusal::OptimizerStalled, Refusal::NotEnrolled].iter().any(|why| report.text().contains(why.explain()))
}

/// Pages were protected as this way demands.
fn check_method(header: &Header, way: Way, report: &Report) -> Result<(), String> {
    let option = if header.no_guards { MPROTECT } else { way.option() };
    if header.no_trap { Ok(()) } else { must_be_in_use(option, report) }
}

/// What the case wants to be in the report.
fn check_report(header: &Header, report: &Report) -> Result<(), String> {
    let count = |counter: &str| match counter {
        "active_readers" => report.active_readers() as u64,
        _ => report.sum(counter),
    };
    for (counter, least) in &header.counters {
        if count(counter) < *least {
            return Err(format!("{counter} is {}, which should be at least {least}", count(counter)));
        }
    }
    for (counter, most) in &header.limits {
        if count(counter) > *most {
            return Err(format!("{counter} is {}, which should be at most {most}", count(counter)));
        }
    }
    match header.report.iter().find(|text| !report.text().contains(*text)) {
        Some(text) => Err(format!("the report does not say {text:?}")),
        None => Ok(()),
    }
}

/// Whoever the program says must be served is a reader that tripped as often, and nobody else is.
fn check_served(served: &BTreeMap<u64, u64>, report: &Report) -> Result<(), String> {
    let trips = |reader: &Value| Some((reader["pid"].as_u64()?, reader["trips"].as_u64()?));
    let readers: BTreeMap<u64, u64> = report.readers().filter_map(trips).collect();
    let are_served = served.keys().eq(readers.keys()) && served.values().zip(readers.values()).all(|(a, b)| a <= b);
    match served.is_empty() || are_served {
        true => Ok(()),
        false => Err(format!("readers with their trips are {readers:?}, which should be at least {served:?}")),
    }
}

/// A data file, and what removes it afterwards.
struct Data {
    path: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

fn data_file(header: &Header) -> Result<Data, String> {
    let shared = flat_file(MIB);
    if !header.own_data {
        return Ok(Data { path: shared, _folder: None });
    }
    let folder = tempfile::tempdir_in(scratch()).map_err(|error| error.to_string())?;
    let path = folder.path().join("data");
    fs::copy(shared, &path).map_err(|error| error.to_string())?;
    Ok(Data { path, _folder: Some(folder) })
}

/// The words by which the program starts; `None`: this machine lacks what it is made with.
fn build(source: &Path, header: &Header) -> Result<Option<Vec<OsString>>, String> {
    let stem = source.file_stem().expect("it has a name");
    let program = scratch().join("hostile").join(stem);
    fs::create_dir_all(scratch().join("hostile")).map_err(|error| error.to_string())?;
    let extra: Vec<&str> = header.compile.iter().map(String::as_str).collect();
    let made_by = |compiler: &str, arguments: &[&str]| {
        let mut command = Command::new(compiler);
        command.args(arguments).arg("-o").arg(&program).args(&extra).arg(source);
        let output = match command.output() {
            Ok(output) => output,
            Err(_) => {
                lacking(compiler);
                return Ok(None);
            }
        };
        match output.status.success() {
            true => Ok(Some(vec![program.clone().into_os_string()])),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    };
    let interpreted_by = |words: &[&str]| {
        let there = Command::new(words[0]).arg("--version").output().is_ok();
        if !there {
            lacking(words[0]);
        }
        Ok(there.then(|| words.iter().map(Into::into).chain([source.as_os_str().to_owned()]).collect()))
    };
    match source.extension().and_then(|extension| extension.to_str()) {
        Some("c") => {
            let flags = [&["-pthread", "-Wno-stringop-overread", "-lm"], &extra[..]].concat();
            compile(source, &program, &flags).map(|()| Some(vec![program.into_os_string()]))
        }
        Some("cpp") => made_by("g++", &["-O1"]),
        Some("rs") => made_by("rustc", &["--edition=2024", "-O"]),
        Some("go") => made_by("go", &["build"]),
        Some("py") => interpreted_by(&["/usr/bin/python3"]),
        Some("sh") => interpreted_by(&["bash"]),
        // JEP 330: a single source file is run as it is.
        Some("java") => interpreted_by(&["java"]),
        _ => Err("nobody knows how to run a file with this extension".into()),
    }
}
