//! What the injected library is told, through two variables: LD_PRELOAD and PRECACHE_READER.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process;

use super::Injection;
use super::launch::{environment as inherited, set_variable, variable};
use super::library::preload;
use super::optimizer::Optimizer;
use crate::options::{Mode, RunOptions};
use precache_contract::settings::{CAPACITY, SEPARATOR};

/// The library has no room for all that it should be told.
#[derive(Debug, thiserror::Error)]
#[error(
    "--data, --exclude and --range are too long for the injected library: {0} bytes with all else that it is told, of {most} \
     at most; give fewer of them, or shorter ones",
    most = CAPACITY - 1
)]
pub struct TooLong(usize);

/// The program's environment: ours, with these two changed if it is injected.
pub fn environment(injection: Option<&Injection>) -> Vec<CString> {
    let mut environment = inherited();
    if let Some(Injection { library, settings, .. }) = injection {
        let libraries = preload(library.path(), variable(&environment, "LD_PRELOAD"));
        set_variable(&mut environment, "LD_PRELOAD", &libraries);
        set_variable(&mut environment, "PRECACHE_READER", settings);
    }
    environment
}

/// `key=value` entries; keys of lists repeat.
pub fn of_readers(options: &RunOptions, optimizer: &Optimizer, library: &Path) -> Result<OsString, TooLong> {
    let mut settings = Settings::default();
    settings.add("socket", optimizer.client().socket_name());
    settings.add("library", library);
    settings.add("session", optimizer.client().session().to_string());
    settings.add("supervisor", process::id().to_string());
    settings.add("distance", options.distance.to_string());
    settings.add("min_file", options.min_file.to_string());
    settings.add("protect", options.protect.name());
    settings.add("populate", options.populate.name());
    settings.add("fetches", u8::from(options.mode == Mode::On).to_string());
    settings.add("private_lock", u8::from(options.private_lock).to_string());
    for glob in &options.data {
        settings.add("data", glob);
    }
    for glob in &options.exclude {
        settings.add("exclude", glob);
    }
    for range in &options.ranges {
        let mut value = range.file.clone().into_os_string();
        value.push(format!(":{}..{}", range.start, range.end));
        settings.add("range", value);
    }
    if settings.0.len() < CAPACITY { Ok(settings.0) } else { Err(TooLong(settings.0.len())) }
}

#[derive(Default)]
struct Settings(OsString);

impl Settings {
    fn add(&mut self, key: &str, value: impl AsRef<OsStr>) {
        self.0.push(key);
        self.0.push("=");
        self.0.push(value);
        self.0.push(OsStr::from_bytes(&[SEPARATOR]));
    }
}
