//! The options of a run as the user gives them: a table first, resolved in a second step.

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::{env, fs, io, path};

use clap::ArgAction::Set;
use precache_contract::PAGE;

use super::values::{
    SizeOrAuto, Unusable, parse_glob, parse_percent, parse_range, parse_requests, parse_size, parse_size_or_auto,
    parse_switch,
};
use crate::engine::Way;
use crate::options::{DEFAULT_DISTANCE, DEFAULT_SIZE, DataRange, Mode, Populate, Protect, RunOptions};

/// Headings of the help.
const FILES: &str = "Which files";
const AHEAD: &str = "How far ahead";
const FILLING: &str = "How pages are brought in";
const READER: &str = "What is done in the program";
const TOLD: &str = "What is told";

/// Why the options, each usable by itself, make no run.
#[derive(Debug, thiserror::Error)]
pub enum UnusableArguments {
    #[error("unusable {variable} {value:?}: {why}")]
    Variable { variable: &'static str, value: String, why: Unusable },
    #[error(
        "--size {size} is smaller than --distance {distance}: a window would end before its next checkpoint; \
         give a size of at least the distance"
    )]
    SizeBelowDistance { size: u64, distance: u64 },
    #[error("unusable --range of {file:?}: {why}")]
    Range { file: PathBuf, why: Unusable },
    #[error("cannot place --report {file:?}: {why}; give an absolute path")]
    Report { file: PathBuf, why: io::Error },
}

/// Runs a program that maps large files, with their pages in the cache before it touches them.
#[derive(Debug, Clone, clap::Args)]
pub struct RunArguments {
    /// Files to accelerate, as a shell pattern; repeatable [default: every regular file of at least --min-file]
    #[arg(long, help_heading = FILES, value_name = "GLOB", value_parser = parse_glob)]
    data: Vec<String>,

    /// Files to leave alone, as a shell pattern; repeatable
    #[arg(long, help_heading = FILES, value_name = "GLOB", value_parser = parse_glob)]
    exclude: Vec<String>,

    /// Leave smaller files alone
    #[arg(long, help_heading = FILES, env = "PRECACHE_MIN_FILE", hide_env = true, value_name = "SIZE", default_value = "32M", value_parser = parse_size)]
    min_file: u64,

    /// Process data range: what will be read of a file; repeatable
    #[arg(long, help_heading = FILES, value_name = "FILE:START..END", value_parser = parse_range)]
    range: Vec<DataRange>,

    /// Spacing of checkpoints, the pages that report progress; auto begins with 8M and follows the pace
    #[arg(long, help_heading = AHEAD, env = "PRECACHE_DISTANCE", hide_env = true, value_name = "SIZE|auto", default_value = "auto", value_parser = parse_size_or_auto)]
    distance: SizeOrAuto,

    /// Amount pre-cached per trigger, at least the distance; auto begins with 50M and follows the pace
    #[arg(long, help_heading = AHEAD, env = "PRECACHE_SIZE", hide_env = true, value_name = "SIZE|auto", default_value = "auto", value_parser = parse_size_or_auto)]
    size: SizeOrAuto,

    /// Share of a window after which the next checkpoint starts the next one
    #[arg(long, help_heading = AHEAD, env = "PRECACHE_THRESHOLD", hide_env = true, value_name = "PERCENT", default_value = "75", value_parser = parse_percent)]
    threshold: u8,

    /// Page cache that data files may take [default: what the memory cgroup and the system leave]
    #[arg(long, help_heading = AHEAD, env = "PRECACHE_CACHE_LIMIT", hide_env = true, value_name = "SIZE", value_parser = parse_size)]
    cache_limit: Option<u64>,

    /// Requests in flight on each mount [default: as many as bring bandwidth, measured]
    #[arg(long, help_heading = FILLING, env = "PRECACHE_JOBS", hide_env = true, value_name = "N", value_parser = parse_requests)]
    jobs: Option<usize>,

    /// Never have more requests in flight on a mount, for all programs together; of a number that is given two for each
    /// program, half at most, are left for its own faults [default: 128, or --jobs if that is more]
    #[arg(long, help_heading = FILLING, env = "PRECACHE_MAX_INFLIGHT", hide_env = true, value_name = "N", value_parser = parse_requests)]
    max_inflight: Option<usize>,

    /// How pages are brought in
    #[arg(
        long,
        help_heading = FILLING,
        env = "PRECACHE_ENGINE",
        hide_env = true,
        value_enum,
        default_value = "auto"
    )]
    engine: EngineOrAuto,

    /// Map cached pages ahead of the program, so that it takes fewer page faults
    #[arg(long, help_heading = FILLING, env = "PRECACHE_POPULATE", hide_env = true, value_enum, default_value = "off", num_args = 0..=1, require_equals = true, default_missing_value = "auto", value_name = "WHEN")]
    populate: Populate,

    /// Whether to pre-cache, to watch only, or to run the program alone
    #[arg(
        long,
        help_heading = READER,
        env = "PRECACHE_MODE",
        hide_env = true,
        value_enum,
        default_value = "on"
    )]
    mode: Mode,

    /// How checkpoint pages are protected
    #[arg(
        long,
        help_heading = READER,
        env = "PRECACHE_PROTECT",
        hide_env = true,
        value_enum,
        default_value = "auto"
    )]
    protect: Protect,

    /// Give LMDB readers lock files of their own: for databases that nobody writes meanwhile
    #[arg(long, help_heading = READER, env = "PRECACHE_PRIVATE_LOCK", hide_env = true, action = Set, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_default_value = true, hide_possible_values = true, value_name = "true|false", value_parser = parse_switch)]
    private_lock: bool,

    /// Write the report there as JSON, instead of a summary to stderr
    #[arg(long, help_heading = TOLD, env = "PRECACHE_REPORT", hide_env = true, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Write nothing to stderr, but that the report cannot be written
    #[arg(short, long, help_heading = TOLD, env = "PRECACHE_QUIET", hide_env = true, action = Set, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_default_value = true, hide_possible_values = true, value_name = "true|false", value_parser = parse_switch)]
    quiet: bool,

    /// Print the summary also with --report
    #[arg(short, long, help_heading = TOLD, env = "PRECACHE_VERBOSE", hide_env = true, action = Set, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_default_value = true, hide_possible_values = true, value_name = "true|false", value_parser = parse_switch)]
    verbose: bool,

    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// `--engine`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum EngineOrAuto {
    /// The fastest on the file's first windows
    Auto,
    /// readahead(2), checked: no copy
    Readahead,
    /// pread(2) into a buffer that is thrown away: works nearly everywhere, and costs a copy
    Pread,
    /// The same through io_uring: fewer threads
    #[value(name = "io_uring")]
    IoUring,
    /// MADV_POPULATE_READ on a mapping: for file systems whose read does not fill what mappings see
    Populate,
}

impl From<EngineOrAuto> for Option<Way> {
    fn from(engine: EngineOrAuto) -> Self {
        match engine {
            EngineOrAuto::Auto => None,
            EngineOrAuto::Readahead => Some(Way::ReadAhead),
            EngineOrAuto::Pread => Some(Way::Read),
            EngineOrAuto::IoUring => Some(Way::Ring),
            EngineOrAuto::Populate => Some(Way::Populate),
        }
    }
}

impl RunArguments {
    /// Fills in what was left out, from variables that hold lists and from what the other options say.
    pub fn resolve(self) -> Result<(RunOptions, Vec<OsString>), UnusableArguments> {
        let (distance, size) = (self.distance, self.size);
        let (mut distance, distance_auto) = distance.or_default(DEFAULT_DISTANCE);
        let (mut size, size_auto) = size.or_default(DEFAULT_SIZE);
        // What is left to us gives way to what was asked for.
        match (distance_auto, size_auto) {
            (true, _) => distance = distance.min(size),
            (false, true) => size = size.max(distance),
            (false, false) if size < distance => {
                return Err(UnusableArguments::SizeBelowDistance { size, distance });
            }
            (false, false) => {}
        }
        // Checkpoints are pages.
        distance = distance.next_multiple_of(PAGE);
        size = size.max(distance);

        let options = RunOptions {
            distance,
            distance_auto,
            size,
            size_auto,
            threshold: self.threshold,
            data: given_or_variable(self.data, "PRECACHE_DATA", ':', parse_glob)?,
            exclude: given_or_variable(self.exclude, "PRECACHE_EXCLUDE", ':', parse_glob)?,
            min_file: self.min_file,
            // File names have colons more often than line breaks.
            ranges: given_or_variable(self.range, "PRECACHE_RANGE", '\n', parse_range)?
                .into_iter()
                .map(absolute)
                .collect::<Result<_, _>>()?,
            mode: match env::var_os("PRECACHE") {
                Some(value) if value == "off" => Mode::Off,
                _ => self.mode,
            },
            protect: self.protect,
            populate: self.populate,
            jobs: self.jobs,
            max_inflight: self.max_inflight.and_then(NonZeroUsize::new),
            engine: self.engine.into(),
            cache_limit: self.cache_limit,
            private_lock: self.private_lock,
            report: self.report.map(absolute_report).transpose()?,
            quiet: self.quiet,
            verbose: self.verbose,
        };
        Ok((options, self.command))
    }
}

/// The flags' values, or else those in the variable, one between two separators.
fn given_or_variable<T>(
    given: Vec<T>,
    variable: &'static str,
    separator: char,
    parse: fn(&str) -> Result<T, Unusable>,
) -> Result<Vec<T>, UnusableArguments> {
    if !given.is_empty() {
        return Ok(given);
    }
    let Some(values) = env::var_os(variable) else {
        return Ok(given);
    };
    let unusable = |value: &OsStr| UnusableArguments::Variable {
        variable,
        value: value.to_string_lossy().into_owned(),
        why: Unusable::NotUtf8,
    };
    let values = values.to_str().ok_or_else(|| unusable(&values))?;
    values
        .split(separator)
        .filter(|value| !value.is_empty())
        .map(|value| parse(value).map_err(|why| UnusableArguments::Variable { variable, value: value.to_owned(), why }))
        .collect()
}

/// The mapping will be known by the name that the kernel has for the file: absolute, without links.
fn absolute(range: DataRange) -> Result<DataRange, UnusableArguments> {
    let file = fs::canonicalize(&range.file).or_else(|_| path::absolute(&range.file)).unwrap_or(range.file);
    let why = match file.to_str() {
        Some(name) if !name.contains('\n') => return Ok(DataRange { file, ..range }),
        Some(_) => Unusable::LineBreak,
        None => Unusable::NotUtf8,
    };
    Err(UnusableArguments::Range { file, why })
}

fn absolute_report(file: PathBuf) -> Result<PathBuf, UnusableArguments> {
    path::absolute(&file).map_err(|why| UnusableArguments::Report { file, why })
}
