//! What the injected library is told, through two variables: LD_PRELOAD and PRECACHE_READER.

use std::ffi::{CString, OsStr, OsString};
use std::path::Path;
use std::process;

use super::Injection;
use super::launch::{environment as inherited, set_variable, variable};
use super::library::preload;
use super::optimizer::Optimizer;
use crate::options::RunOptions;

/// The program's environment: ours, with these two changed if it is injected.
pub fn environment(options: &RunOptions, injection: Option<&Injection>) -> Vec<CString> {
    let mut environment = inherited();
    if let Some(Injection { library, optimizer }) = injection {
        let libraries = preload(library.path(), variable(&environment, "LD_PRELOAD"));
        set_variable(&mut environment, "LD_PRELOAD", &libraries);
        let settings = reader_settings(options, optimizer, library.path());
        set_variable(&mut environment, "PRECACHE_READER", &settings);
    }
    environment
}

/// One `key=value` a line; keys of lists repeat.
fn reader_settings(options: &RunOptions, optimizer: &Optimizer, library: &Path) -> OsString {
    let mut settings = Settings::default();
    settings.add("socket", optimizer.client().socket_name());
    settings.add("library", library);
    settings.add("session", optimizer.client().session().to_string());
    settings.add("supervisor", process::id().to_string());
    settings.add("distance", options.distance.to_string());
    settings.add("min_file", options.min_file.to_string());
    settings.add("protect", options.protect.name());
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
    settings.0
}

#[derive(Default)]
struct Settings(OsString);

impl Settings {
    fn add(&mut self, key: &str, value: impl AsRef<OsStr>) {
        self.0.push(key);
        self.0.push("=");
        self.0.push(value);
        self.0.push("\n");
    }
}
