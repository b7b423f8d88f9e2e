//! Mounting, and never leaving a mount behind.

use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};

use anyhow::{Context, bail};
use fuser::{Config, MountOption, SessionACL};
use nix::mount::{MntFlags, umount2};

use crate::options::Options;

/// The first argument that makes this program a guardian.
pub const GUARDIAN: &str = "--guardian-of-mountpoint";

/// The session that `options` ask for.
pub fn configuration(options: &Options) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("slowfs".into()),
        MountOption::Subtype("slowfs".into()),
        MountOption::DefaultPermissions,
        MountOption::NoAtime,
    ];
    config.acl = if options.allow_other { SessionACL::All } else { SessionACL::Owner };
    // Each thread serves one request from start to end, so the storage can serve `concurrency` of
    // them; the others keep metadata flowing meanwhile, or wait for pages that others will deliver.
    let spare = if options.no_willneed { 64 } else { 4 };
    config.n_threads = Some(usize::from(options.concurrency) + spare);
    config
}

/// A process that unmounts when this one dies, whatever kills it.
#[derive(Debug)]
pub struct Guardian(ChildStdin);

impl Guardian {
    pub fn start(mountpoint: &Path) -> anyhow::Result<Self> {
        let mut guardian = Command::new("/proc/self/exe")
            .arg(GUARDIAN)
            .arg(mountpoint)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Out of the terminal's foreground group: Ctrl-C is not for it.
            .process_group(0)
            .spawn()
            .context("cannot start the process that unmounts if slowfs is killed")?;
        Ok(Self(guardian.stdin.take().expect("it was asked for a pipe")))
    }

    /// Tells it that nothing is left to unmount: the mount point may be someone else's by now.
    pub fn dismiss(mut self) {
        // One that has died needs no dismissal.
        let _ = self.0.write_all(b"dismissed");
    }
}

/// The life of the guardian: its standard input ends without a word when slowfs was killed.
pub fn be_guardian(mountpoint: &Path) -> io::Result<()> {
    let mut last_words = Vec::new();
    io::stdin().read_to_end(&mut last_words)?;
    if last_words.is_empty() { unmount(mountpoint) } else { Ok(()) }
}

/// Removes a mount whose file system has died ("transport endpoint is not connected").
pub fn detach_if_dead(mountpoint: &Path) -> io::Result<()> {
    match mountpoint.metadata() {
        Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => unmount(mountpoint),
        _ => Ok(()),
    }
}

/// Unmounts, lazily if files are still open: they fail once this process has ended.
pub fn unmount(mountpoint: &Path) -> io::Result<()> {
    match umount2(mountpoint, MntFlags::empty()).or_else(|_| umount2(mountpoint, MntFlags::MNT_DETACH)) {
        Err(nix::Error::EPERM) => {
            // Ordinary users unmount through the helper that mounted for them.
            Command::new("fusermount3").args(["-u", "-q", "-z", "--"]).arg(mountpoint).status().map(drop)
        }
        result => result.map_err(io::Error::from),
    }
}

/// Makes sure that the kernel reads ahead `bytes` on this mount: the handshake of FUSE can only
/// lower the kernel's default.
pub fn set_readahead(mountpoint: &Path, bytes: u64) -> anyhow::Result<()> {
    let device = mountpoint.metadata()?.dev();
    let knob = format!("/sys/class/bdi/{}:{}/read_ahead_kb", libc::major(device), libc::minor(device));
    let wanted = bytes / 1024;
    let current = || -> anyhow::Result<u64> {
        let text = std::fs::read_to_string(&knob).with_context(|| format!("cannot read {knob}"))?;
        Ok(text.trim().parse()?)
    };
    if current()? != wanted {
        // Failure shows in the next line, with the value that counts.
        let _ = std::fs::OpenOptions::new().write(true).open(&knob).and_then(|mut f| write!(f, "{wanted}"));
    }
    match current()? {
        got if got == wanted => Ok(()),
        got => bail!(
            "the kernel reads ahead {got} KiB on this mount instead of {wanted}: \
             run slowfs as root or choose a --readahead of at most {got}K"
        ),
    }
}
