//! The command line of slowfs.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use precache_demos::quantity::{duration, rate, size};

use crate::faults::Fault;
use crate::shown::Locks;
use crate::storage::Limits;

/// Shows the directory SOURCE at MOUNTPOINT as if it lay on slow storage.
///
/// Runs in the foreground, prints `ready` when the mount can be used, and unmounts on SIGINT or
/// SIGTERM. MOUNTPOINT/.slowfs/counters.json tells what was read; writing anything to
/// MOUNTPOINT/.slowfs/reset zeroes it.
///
/// The source is read through the page cache, so warm data costs memory twice: once for the source
/// and once for the mount.
#[derive(Debug, Parser)]
#[command(name = "slowfs", version)]
pub struct Options {
    /// Directory to show
    pub source: PathBuf,

    /// Empty directory to show it at
    pub mountpoint: PathBuf,

    /// Time from the start of a read request to its first byte: 2ms, 200us, 0
    #[arg(long, default_value = "0", value_name = "TIME", value_parser = duration)]
    pub latency: Duration,

    /// How much longer than the latency a request takes at most; how much of it is random
    #[arg(long, default_value = "0", value_name = "TIME", value_parser = duration)]
    pub jitter: Duration,

    /// Bytes per second that all requests share: 400M is 400 x 10^6, 0 is unlimited
    #[arg(long, default_value = "0", value_name = "RATE", value_parser = rate)]
    pub bandwidth: u64,

    /// Requests that the storage serves at the same time
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub concurrency: u16,

    /// Background requests (read-ahead) that the kernel sends before it waits
    #[arg(long, default_value_t = 12, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub max_background: u16,

    /// Kernel read-ahead of the mount, in binary units; raising it above 128K needs root
    #[arg(long, default_value = "128K", value_name = "SIZE", value_parser = size)]
    pub readahead: u64,

    /// Keep the page cache of a file when it is opened again; FUSE drops it by default
    #[arg(long)]
    pub keep_cache: bool,

    /// Make read-ahead calls do nothing, as on Lustre: the mount has no kernel read-ahead at all,
    /// and slowfs reads ahead by itself, --readahead at a time
    #[arg(long)]
    pub no_willneed: bool,

    /// Read into no cache that mappings see: what is read goes past the page cache, as on GPFS, and
    /// only faults fill it (Linux 6.6)
    #[arg(long)]
    pub read_past_cache: bool,

    /// Let other users than the one who mounts use the files
    #[arg(long)]
    pub allow_other: bool,

    /// Pass changes through to the source, unthrottled; otherwise they fail with EROFS
    #[arg(long)]
    pub writable: bool,

    /// Refuse file locks with ENOLCK
    #[arg(long)]
    pub no_locks: bool,

    /// Take file locks and forget them, so that nobody else sees them
    #[arg(long, conflicts_with = "no_locks")]
    pub forget_locks: bool,

    /// Fault to inject: KIND@WHERE[,file=GLOB], repeatable. KIND is eio, short or stall:TIME;
    /// WHERE is an offset in the file (1M) or a probability (p=0.001)
    #[arg(long = "fault", value_name = "FAULT")]
    pub faults: Vec<Fault>,

    /// Seed of the jitter and the random faults
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,

    /// Unmount and exit when standard input ends, so that a killed parent leaves no mount
    #[arg(long)]
    pub until_stdin_closes: bool,
}

impl Options {
    pub fn limits(&self) -> Limits {
        Limits {
            latency: self.latency,
            jitter: self.jitter,
            bandwidth: self.bandwidth,
            concurrency: usize::from(self.concurrency),
        }
    }

    /// The read-ahead that the kernel is told to do, in bytes.
    pub fn kernel_readahead(&self) -> u64 {
        if self.no_willneed { 0 } else { self.readahead }
    }

    pub fn locks(&self) -> Locks {
        if self.no_locks {
            Locks::Refused
        } else if self.forget_locks {
            Locks::Forgotten
        } else {
            Locks::OfTheKernel
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_fuse() {
        let options = Options::parse_from(["slowfs", "src", "mnt"]);
        assert_eq!((options.max_background, options.readahead, options.concurrency), (12, 128 << 10, 64));
        assert!(!options.keep_cache && !options.writable);
    }

    #[test]
    fn bad_values_say_what_to_write() {
        let error = Options::try_parse_from(["slowfs", "--latency", "2", "src", "mnt"]).unwrap_err().to_string();
        assert!(error.contains("no unit"), "{error}");
        assert!(Options::try_parse_from(["slowfs", "--concurrency", "0", "src", "mnt"]).is_err());
    }
}
