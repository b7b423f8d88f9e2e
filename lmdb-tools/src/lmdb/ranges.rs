//! `lmdb ranges`: process data ranges, contiguous in key order and equal in bytes.

use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::{Value, json};

use super::split::part_of;
use super::survey::{Order, SHUFFLED};
use super::{Database, Env, Error, Key, Stat, Target, command, look};
use crate::Usage;
use crate::lockfile::rank;
use crate::shell::quoted;
use crate::size::Bytes;

/// Arguments of `lmdb ranges`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub target: Target,
    /// Number of ranges; with --this-rank the default is the job's number of processes.
    #[arg(short = 'n', long = "count", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: Option<u32>,
    /// Only the range of this process.
    #[arg(long, value_name = "RANK", conflicts_with = "this_rank")]
    rank: Option<u32>,
    /// Only the range of the process whose rank the launcher put into the environment.
    #[arg(long)]
    this_rank: bool,
    /// The database of this name; needed where there are several with records.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The part of a database that one process reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Range {
    pub records: u64,
    /// Bytes of the values.
    pub bytes: u64,
    pub first: Vec<u8>,
    pub last: Vec<u8>,
    /// The bytes of the file that hold these values, in whole pages; both 0 where there are no records.
    pub start: u64,
    pub end: u64,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let wanted = match (args.rank, args.this_rank) {
        (Some(rank), _) => Some(rank),
        (None, true) => Some(rank::rank(rank::environment)?),
        (None, false) => None,
    };
    let from_job = if args.this_rank { rank::size(rank::environment)? } else { None };
    let count = args.count.or(from_job).filter(|&count| count > 0);
    let count = count.ok_or_else(|| Usage("how many ranges? Give -n N, the number of processes".into()))?;
    if let Some(rank) = wanted.filter(|&rank| rank >= count) {
        return Err(Usage(format!("rank {rank} has no range: there are {count}, numbered from 0")).into());
    }
    look(&args.target.db, |env| {
        let (database, ranges, order) = split(env, args.name.as_deref(), count)?;
        warn_if_shuffled(env, order);
        let chosen = ranges.iter().enumerate().filter(|(rank, _)| wanted.is_none_or(|wanted| wanted as usize == *rank));
        print(env, &database.stat, chosen, args.json)?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Splits one database into `count` ranges of equal bytes: a first walk for their sum, a second for the ranges. A key is
/// in one range with all its duplicates. Where all values are empty, the ranges have equal numbers of records.
fn split(env: &Env, name: Option<&str>, count: u32) -> anyhow::Result<(Database, Vec<Range>, Order)> {
    let mut sums: Vec<(Database, u64, Order)> = Vec::new();
    env.walk_databases::<Error>(name, |database, record| {
        if sums.last().is_none_or(|(last, ..)| last.name != database.name) {
            sums.push((database.clone(), 0, Order::default()));
        }
        let (_, sum, order) = sums.last_mut().expect("pushed above");
        *sum += record.length;
        order.add(record.pages(env.page_size));
        Ok(())
    })?;
    let (database, bytes, order) = match sums.len() {
        0 => anyhow::bail!("{}: there are no records to share out", env.location().path.display()),
        1 => sums.remove(0),
        _ => {
            let names: Vec<_> =
                sums.iter().map(|(database, ..)| database.name.as_deref().unwrap_or("(unnamed)")).collect();
            let names = names.join(", ");
            return Err(Usage(format!("several databases hold records ({names}): choose one with --name NAME")).into());
        }
    };
    let total = if bytes > 0 { bytes } else { database.stat.entries };
    let weight = |range: &Range| if bytes > 0 { range.bytes } else { range.records };
    let mut ranges = vec![Range::default(); count as usize];
    let mut before = 0;
    let mut finish = |key: Range| {
        let weight = weight(&key);
        ranges[part_of(before, weight, total, count) as usize].append(key);
        before += weight;
    };
    let mut key = Range::default();
    env.walk_databases::<Error>(name, |current, record| {
        if current.name == database.name {
            if key.records > 0 && key.first != record.key {
                finish(std::mem::take(&mut key));
            }
            key.append(Range::of(record.key, record.length, record.pages(env.page_size)));
        }
        Ok(())
    })?;
    finish(key);
    Ok((database, ranges, order))
}

impl Range {
    /// That of one record.
    fn of(key: &[u8], bytes: u64, (start, end): (u64, u64)) -> Self {
        Self { records: 1, bytes, first: key.to_vec(), last: key.to_vec(), start, end }
    }

    /// Adds what follows it.
    fn append(&mut self, next: Self) {
        if self.records == 0 {
            *self = next;
        } else if next.records > 0 {
            self.records += next.records;
            self.bytes += next.bytes;
            self.last = next.last;
            self.start = self.start.min(next.start);
            self.end = self.end.max(next.end);
        }
    }
}

fn warn_if_shuffled(env: &Env, order: Order) {
    if order.fragmentation() > SHUFFLED {
        eprintln!(
            "warning: {}: the file is not laid out in key order: {:.0} % of the steps from key to key jump in it, so a range \
             of keys is not read in one go, and ranges may overlap in the file. This writes it in key order: {}",
            env.location().path.display(),
            order.fragmentation() * 100.0,
            command::copy_in_order(env.location())
        );
    }
}

fn print<'a>(
    env: &Env,
    stat: &Stat,
    ranges: impl Iterator<Item = (usize, &'a Range)>,
    as_json: bool,
) -> anyhow::Result<()> {
    let file = env.location().data.display();
    let mut out = io::stdout().lock();
    let option = |range: &Range| format!("--range {}", quoted(format!("{file}:{}..{}", range.start, range.end)));
    if as_json {
        let ranges: Vec<Value> = ranges.map(|(rank, range)| json(rank, range, stat, option(range))).collect();
        serde_json::to_writer_pretty(&mut out, &ranges)?;
        return Ok(writeln!(out)?);
    }
    for (rank, range) in ranges {
        if range.records == 0 {
            writeln!(out, "rank {rank}: no records: fewer records than ranges, or one as long as a whole range")?;
            continue;
        }
        let (first, last) = (Key::of(&range.first, stat), Key::of(&range.last, stat));
        let bytes = Bytes(range.bytes);
        writeln!(out, "rank {rank}: {} records, {bytes}, keys {first} .. {last}, {}", range.records, option(range))?;
    }
    Ok(())
}

fn json(rank: usize, range: &Range, stat: &Stat, option: String) -> Value {
    let mut object = json!({ "rank": rank, "records": range.records, "bytes": range.bytes });
    if range.records > 0 {
        for (end, key) in [("first", &range.first), ("last", &range.last)] {
            let (field, key) = Key::of(key, stat).json();
            object[format!("{end}_{field}")] = key;
        }
        object["start"] = json!(range.start);
        object["end"] = json!(range.end);
        object["option"] = json!(option);
    }
    object
}
