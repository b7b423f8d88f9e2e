//! The kernel's read-ahead of a device, set for a while and put back whatever happens.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// What to write where when a signal ends this process.
static SET: Mutex<Vec<(PathBuf, String)>> = Mutex::new(Vec::new());

/// From now on the signals that end this process put back first what is set.
pub fn restore_on_signals() -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            for (knob, before) in SET.lock().unwrap_or_else(PoisonError::into_inner).drain(..).rev() {
                restore(&knob, &before);
            }
            // Ends this process, as it would have been without us.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
    Ok(())
}

/// A device whose read-ahead is another until this drops.
pub struct ReadAhead(PathBuf);

impl ReadAhead {
    /// Sets the read-ahead of the file system that `path` is on. Only root may.
    pub fn set(kilobytes: u32, path: &Path) -> io::Result<Self> {
        let device = path.metadata()?.dev();
        let knob = format!("/sys/class/bdi/{}:{}/read_ahead_kb", libc::major(device), libc::minor(device));
        let before = fs::read_to_string(&knob)?;
        fs::write(&knob, kilobytes.to_string())?;
        SET.lock().unwrap_or_else(PoisonError::into_inner).push((knob.clone().into(), before));
        Ok(Self(knob.into()))
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        let mut set = SET.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = set.iter().rposition(|(knob, _)| *knob == self.0) {
            let (knob, before) = set.remove(index);
            restore(&knob, &before);
        }
    }
}

fn restore(knob: &Path, before: &str) {
    if let Err(error) = fs::write(knob, before) {
        eprintln!("{} is not put back ({error}): write {} to it", knob.display(), before.trim());
    }
}
