//! slowfs: a FUSE file system that shows a directory as if it lay on slow storage.

mod changes;
mod client;
mod control;
mod counters;
mod faults;
mod files;
mod filesystem;
mod mount;
mod nodes;
mod options;
mod shown;
mod storage;

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use anyhow::Context;
use clap::Parser;
use fuser::Session;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::client::SharedNotifier;
use crate::mount::Guardian;
use crate::options::Options;
use crate::shown::SlowFs;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == mount::GUARDIAN) {
        let mountpoint = PathBuf::from(arguments.next().context("the guardian needs a mount point")?);
        return Ok(mount::be_guardian(&mountpoint)?);
    }
    serve(&Options::parse())
}

/// Mounts, serves until something asks for the end, and unmounts.
fn serve(options: &Options) -> anyhow::Result<()> {
    mount::detach_if_dead(&options.mountpoint)?;
    let mountpoint = options.mountpoint.canonicalize().with_context(|| {
        format!("cannot use {} as the mount point: create that directory first", options.mountpoint.display())
    })?;
    let notifier = SharedNotifier::default();
    let file_system =
        SlowFs::new(options, &notifier).with_context(|| format!("cannot show {}", options.source.display()))?;

    // Threads inherit it: requests sleep to the microsecond instead of up to 50 us longer.
    nix::sys::prctl::set_timerslack(1)?;
    // New files get the mode that the kernel has already masked.
    nix::sys::stat::umask(nix::sys::stat::Mode::empty());

    let (end, ended) = channel();
    end_on_signals(end.clone())?;
    if options.until_stdin_closes {
        end_on_stdin(end.clone());
    }
    let session = Session::new(file_system, &mountpoint, &mount::configuration(options))
        .with_context(|| format!("cannot mount at {}: is FUSE installed and permitted?", mountpoint.display()))?;
    let guardian = Guardian::start(&mountpoint)?;
    notifier.get_or_init(|| session.notifier());
    thread::spawn(move || end.send(End::Unmounted(session.run())));

    let end = mount::set_readahead(&mountpoint, options.kernel_readahead()).and_then(|()| {
        writeln!(std::io::stdout(), "ready")?;
        Ok(ended.recv()?)
    });
    let outcome = match end {
        Ok(End::Unmounted(result)) => result.context("the FUSE session broke off"),
        Ok(End::Asked) => mount::unmount(&mountpoint).context("cannot unmount"),
        Err(error) => mount::unmount(&mountpoint).context("cannot unmount").and(Err(error)),
    };
    guardian.dismiss();
    outcome
}

/// Why the mount ends.
enum End {
    /// By a signal or the end of standard input.
    Asked,
    /// Someone unmounted it, or the session failed.
    Unmounted(std::io::Result<()>),
}

fn end_on_signals(end: Sender<End>) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || signals.forever().next().map(|_| end.send(End::Asked)));
    Ok(())
}

fn end_on_stdin(end: Sender<End>) {
    thread::spawn(move || {
        // An unreadable standard input is one that has ended.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        end.send(End::Asked)
    });
}
