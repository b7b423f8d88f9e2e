//! The command line of precache-bench.

use std::env;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use precache_demos::quantity::size;
use serde::Serialize;

/// Measures precache: a demonstration, the paper's figures 7 and 8, and the bars that it must reach.
///
/// Tables go to standard output; tables, JSON and plots go to --results. Runs of different configurations alternate,
/// so that what else happens on the machine meets all of them.
#[derive(Debug, Parser)]
#[command(name = "precache-bench", version)]
pub struct Options {
    #[command(subcommand)]
    pub what: What,

    #[command(flatten)]
    pub settings: Settings,
}

#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum What {
    /// One table: a reader as it is, only detected, pre-cached, and from a warm cache
    Demo,
    /// The reader in all configurations and beside its peers, on each storage
    Figure7,
    /// Pre-caching with each distance and size, on each storage
    Figure8,
    /// What precache must reach, measured and judged
    Bars,
    /// How near to the storage's limit precache comes, and that it is never in the way, measured and judged
    Limits {
        /// Measure only the row of this name, or those whose name begins so, and keep the other rows of the last run; repeatable [default: all]
        #[arg(long, value_name = "NAME")]
        only: Vec<String>,
    },
    /// What trips, interposed calls, children and the start cost, measured and judged
    Costs,
    /// Bars, limits, costs and both figures
    All,
}

/// What every measurement goes by.
#[derive(Clone, Debug, Args, Serialize)]
pub struct Settings {
    /// Size of the LMDB; the demo's is 1G unless this is given [default: 2G]
    #[arg(long, global = true, value_name = "SIZE", value_parser = size)]
    pub size: Option<u64>,

    /// Size of the LMDB on the remote HDD, which is slow [default: a quarter of --size]
    #[arg(long, global = true, value_name = "SIZE", value_parser = size)]
    pub hdd_size: Option<u64>,

    /// Size of the LMDB for the pairs that tell what detecting costs [default: an eighth of --size, at least 256M]
    #[arg(long, global = true, value_name = "SIZE", value_parser = size)]
    pub pairs_size: Option<u64>,

    /// How often each configuration runs
    #[arg(long, global = true, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub repetitions: u32,

    /// Pairs of runs that tell what detecting costs
    #[arg(long, global = true, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    pub pairs: u32,

    /// Seconds after which a row of the limits gets no more pairs [default: 40]
    #[arg(long, global = true, value_name = "SECONDS")]
    pub row_seconds: Option<u64>,

    /// Small data and few runs: shows that everything works, not how fast it is
    #[arg(long, global = true)]
    pub quick: bool,

    /// Storage to measure on; repeatable [default: all]
    #[arg(long, global = true, value_name = "NAME", value_enum)]
    pub storage: Vec<crate::storage::Kind>,

    /// Run the readers as this user, who does not own the data (needs root)
    #[arg(long, global = true, value_name = "USER")]
    pub as_user: Option<String>,

    /// Where data is made [default: precache-bench or precache-demo in $TMPDIR or /var/tmp]
    #[arg(long, global = true, value_name = "DIR")]
    pub scratch: Option<PathBuf>,

    /// Keep the data for the next time
    #[arg(long, global = true, env = "KEEP", value_parser = clap::builder::FalseyValueParser::new())]
    pub keep: bool,

    /// Where results are written; the demo writes none
    #[arg(long, global = true, value_name = "DIR", default_value = "docs/results")]
    pub results: PathBuf,
}

impl Options {
    /// The settings with every default filled in.
    pub fn resolve(&self) -> Settings {
        let mut settings = self.settings.clone();
        let (name, size) =
            if self.what == What::Demo { ("precache-demo", 1 << 30) } else { ("precache-bench", 2 << 30) };
        let size = *settings.size.get_or_insert(if settings.quick { 256 << 20 } else { size });
        settings.row_seconds.get_or_insert(if settings.quick { 5 } else { 40 });
        settings.hdd_size.get_or_insert(size / 4);
        settings.pairs_size.get_or_insert((size / 8).max(256 << 20));
        let temporary = env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
        settings.scratch.get_or_insert_with(|| temporary.join(name));
        if settings.quick {
            settings.repetitions = settings.repetitions.min(2);
            settings.pairs = settings.pairs.min(6);
        }
        settings
    }
}
