//! `lmdb info`: what a database is like.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;

use super::survey::{Distribution, Survey};
use super::{Database, Env, Error, ReaderTable, Target, look};
use crate::size::Bytes;

/// Arguments of `lmdb info`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub target: Target,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// All that a walk of the trees tells, values unread.
#[derive(Debug, Serialize)]
pub struct Info {
    pub page_size: u64,
    pub map_size: u64,
    pub file_size: u64,
    /// Bytes of the file up to the last page in use.
    pub used_bytes: u64,
    pub transaction: u64,
    pub databases: Vec<Database>,
    /// Lengths of the values; none where there are no records.
    pub values: Option<Distribution>,
    pub value_bytes: u64,
    /// Records whose value has pages of its own.
    pub overflow_records: u64,
    /// Share of steps, in key order, that jump in the file: 0 is sequential.
    pub fragmentation: f64,
    pub free_pages: u64,
    pub free_transactions: u64,
    /// None where there is no reader table; then the next field says why.
    pub readers: Option<Readers>,
    pub no_readers: Option<String>,
}

/// The reader table in numbers.
#[derive(Debug, Serialize)]
pub struct Readers {
    pub slots: u64,
    pub used: usize,
    pub stale: usize,
}

impl Readers {
    pub fn of(table: &ReaderTable) -> Self {
        Self { slots: table.slots, used: table.used, stale: table.stale }
    }
}

impl fmt::Display for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} slots taken, {} of them stale", self.used, self.slots, self.stale)
    }
}

impl Info {
    /// Walks all trees of the database.
    pub fn gather(env: &Env) -> Result<Self, Error> {
        let mut survey = Survey::default();
        let databases = env.walk_databases::<Error>(None, |_, record| {
            survey.add(record.length, record.overflow, record.pages(env.page_size));
            Ok(())
        })?;
        let (free_pages, free_transactions) = env.free_pages()?;
        let (readers, no_readers) = match ReaderTable::read(&env.location().lock) {
            Ok(table) => (Some(Readers::of(&table)), None),
            Err(why) => (None, Some(why.to_string())),
        };
        Ok(Self {
            page_size: env.page_size,
            map_size: env.map_size,
            file_size: env.file_size,
            used_bytes: env.used,
            transaction: env.transaction,
            databases,
            values: survey.sizes.distribution(),
            value_bytes: survey.sizes.total,
            overflow_records: survey.in_overflow,
            fragmentation: survey.order.fragmentation(),
            free_pages,
            free_transactions,
            readers,
            no_readers,
        })
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    look(&args.target.db, |env| {
        let info = Info::gather(env)?;
        let mut out = io::stdout().lock();
        if args.json {
            serde_json::to_writer_pretty(&mut out, &info)?;
            writeln!(out)?;
        } else {
            write_text(&info, env, &mut out)?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn write_text(info: &Info, env: &Env, out: &mut impl Write) -> io::Result<()> {
    let mut line = |name: &str, text: String| writeln!(out, "{name:<15}{text}");
    line("data file", env.location().data.display().to_string())?;
    line("page size", Bytes(info.page_size).to_string())?;
    let share = info.used_bytes as f64 / info.map_size.max(1) as f64 * 100.0;
    line("map size", format!("{}, {share:.0} % in use", Bytes(info.map_size)))?;
    line("file size", format!("{}, {} up to the last page in use", Bytes(info.file_size), Bytes(info.used_bytes)))?;
    line("transaction", info.transaction.to_string())?;
    for database in &info.databases {
        let stat = &database.stat;
        let name = database.name.as_deref().map_or("(unnamed)".into(), |name| format!("\"{name}\""));
        let kinds = [(stat.dupsort, ", duplicates"), (stat.integer_keys, ", integer keys")];
        let kinds: String = kinds.iter().filter(|(is, _)| *is).map(|(_, kind)| *kind).collect();
        line(
            "database",
            format!(
                "{name}: {} records, depth {}, pages: {} branch, {} leaf, {} overflow{kinds}",
                stat.entries, stat.depth, stat.branch_pages, stat.leaf_pages, stat.overflow_pages
            ),
        )?;
    }
    if let Some(values) = &info.values {
        line(
            "values",
            format!(
                "{} in {} records: mean {:.0}, min {}, half <= {}, 90 % <= {}, 99 % <= {}, max {} bytes",
                Bytes(info.value_bytes),
                values.count,
                values.mean,
                values.min,
                values.p50,
                values.p90,
                values.p99,
                values.max
            ),
        )?;
        line("", format!("{} of them in overflow pages, the others inside leaf pages", info.overflow_records))?;
    }
    line("fragmentation", format!("{:.1} % of the steps in key order jump in the file", info.fragmentation * 100.0))?;
    let free = Bytes(info.free_pages * info.page_size);
    line("free list", format!("{} pages ({free}) of {} transactions", info.free_pages, info.free_transactions))?;
    line(
        "readers",
        match &info.readers {
            Some(readers) => readers.to_string(),
            None => {
                format!(
                    "unknown: {}: {}",
                    env.location().lock.display(),
                    info.no_readers.as_deref().unwrap_or_default()
                )
            }
        },
    )
}
