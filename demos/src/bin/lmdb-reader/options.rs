//! The command line of lmdb-reader.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Reads an LMDB with the access patterns of MPI-Caffe and prints a checksum per process.
#[derive(Debug, Parser)]
#[command(name = "lmdb-reader", version)]
pub struct Options {
    /// Directory of the LMDB
    pub db: PathBuf,

    /// LMDB that is read in turn with the first, as in the test phases of a training
    #[arg(long, value_name = "DB", requires = "test_every")]
    pub test_db: Option<PathBuf>,

    /// Batches between two test phases
    #[arg(long, value_name = "N", requires = "test_db", value_parser = clap::value_parser!(u64).range(1..))]
    pub test_every: Option<u64>,

    /// Records read in a test phase
    #[arg(long, default_value_t = 32, value_name = "M")]
    pub test_records: u64,

    /// How the records are divided among the processes
    #[arg(long, value_enum, default_value_t = Pattern::Contiguous)]
    pub pattern: Pattern,

    /// Processes (ranks) that read together
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = at_least_one)]
    pub processes: usize,

    /// Be only this rank of the --processes, counted from 0
    #[arg(long, value_name = "R")]
    pub rank: Option<usize>,

    /// Passes over the records
    #[arg(long, default_value_t = 1, value_name = "E")]
    pub epochs: u64,

    /// Records in a batch
    #[arg(long, default_value_t = 32, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub batch: u64,

    /// Milliseconds of computing (sleep) after each batch
    #[arg(long, default_value_t = 0.0, value_name = "X")]
    pub compute_ms: f64,

    /// First record to read
    #[arg(long, default_value_t = 0, value_name = "K")]
    pub start_record: u64,

    /// Number of records to divide among the processes [default: all from the start record]
    #[arg(long, value_name = "N")]
    pub records: Option<u64>,

    /// Read single records in random order, --count of them per process and epoch
    #[arg(long)]
    pub random: bool,

    /// Seed of the random order
    #[arg(long, default_value_t = 1, value_name = "S")]
    pub seed: u64,

    /// Random records to read
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub count: u64,

    /// Open the LMDB without its lock file
    #[arg(long)]
    pub no_lock: bool,

    /// Print times on standard error, one line of JSON per process, and one when each of several epochs ends
    #[arg(long)]
    pub time: bool,
}

/// Which of the records a rank reads.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub enum Pattern {
    /// Rank r reads the r-th part of the records
    Contiguous,
    /// Rank r reads record r, skips the others', and so on
    Skipping,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&number| number > 0).ok_or_else(|| format!("`{text}` is not a number of at least 1"))
}
