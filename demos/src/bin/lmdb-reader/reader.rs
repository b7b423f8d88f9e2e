//! One rank: opens the database, walks its records, reads every byte.

use std::fmt;
use std::ops::{Bound, Range};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, RoRange, RoTxn, WithoutTls};
use precache_demos::checksum::Checksum;
use precache_demos::datum;
use precache_demos::random::Random;
use precache_demos::timing::Timing;

use crate::options::{Options, Pattern};

/// What a rank has read.
#[derive(Debug, Default)]
pub struct Summary {
    training: Tally,
    /// None without a test database.
    test: Option<Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    records: u64,
    checksum: Checksum,
}

impl Tally {
    fn add(&mut self, record: &[u8]) {
        self.records += 1;
        self.checksum.add(record);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bytes, value) = (self.checksum.bytes(), self.checksum.value());
        write!(f, "records={} bytes={bytes} checksum={value:016x}", self.records)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.training)?;
        self.test.iter().try_for_each(|test| write!(f, " test: {test}"))
    }
}

/// Reads what `rank` has to read, as `options` say.
pub fn read(options: &Options, rank: usize, timing: &Timing) -> anyhow::Result<Summary> {
    ensure!(rank < options.processes, "there is no rank {rank} among {} processes", options.processes);
    let env = open(&options.db, options.no_lock)?;
    let transaction = env.read_txn()?;
    let records = Records::new(&env, &transaction).with_context(|| describe(&options.db))?;
    let test_env = options.test_db.as_ref().map(|path| open(path, options.no_lock)).transpose()?;
    let test_transaction = test_env.as_ref().map(Env::read_txn).transpose()?;
    let mut test = match (&test_env, &test_transaction) {
        (Some(env), Some(transaction)) => Some(Test::new(Records::new(env, transaction)?, options)?),
        _ => None,
    };

    let mut summary = Summary::default();
    let mut pace = Pace::new(options);
    let mut visit = |record: &[u8]| -> anyhow::Result<()> {
        summary.training.add(record);
        timing.record_read();
        if pace.batch_is_full() {
            thread::sleep(pace.compute);
            if let Some(test) = test.as_mut().filter(|test| pace.batches.is_multiple_of(test.every)) {
                test.run_phase()?;
            }
        }
        Ok(())
    };
    let share = Share::of(rank, options, records.count()?);
    for epoch in 0..options.epochs {
        if options.random {
            let seed = options.seed ^ (rank as u64) << 32 ^ epoch << 48;
            records.visit_random(&mut Random::new(seed), &share.all, options.count, &mut visit)?;
        } else {
            records.visit_share(&share, &mut visit)?;
        }
        if options.time && options.epochs > 1 {
            timing.print_epoch(rank, epoch + 1);
        }
    }
    summary.test = test.map(|test| test.tally);
    Ok(summary)
}

fn open(path: &Path, no_lock: bool) -> anyhow::Result<Env<WithoutTls>> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    let flags = if no_lock { EnvFlags::READ_ONLY | EnvFlags::NO_LOCK } else { EnvFlags::READ_ONLY };
    // SAFETY: NO_LOCK asks that no writer reuses pages under a reader, and the map that nobody
    // truncates the file: data sets are finished before they are read (README of this crate).
    unsafe { options.flags(flags).open(path) }.with_context(|| describe(path))
}

fn describe(path: &Path) -> String {
    format!("cannot read an LMDB in {}: make one with make-lmdb", path.display())
}

/// The records that one rank reads.
#[derive(Debug, PartialEq)]
struct Share {
    /// From the first to the last of all ranks' records.
    all: Range<u64>,
    first: u64,
    count: u64,
    /// Records passed over, untouched, after each one.
    skip: u64,
}

impl Share {
    fn of(rank: usize, options: &Options, available: u64) -> Self {
        let start = options.start_record.min(available);
        let total = options.records.unwrap_or(available).min(available - start);
        let (rank, ranks, all) = (rank as u64, options.processes as u64, start..start + total);
        match options.pattern {
            Pattern::Contiguous => {
                let (first, end) = (total * rank / ranks, total * (rank + 1) / ranks);
                Self { all, first: start + first, count: end - first, skip: 0 }
            }
            Pattern::Skipping => {
                let count = total.saturating_sub(rank).div_ceil(ranks);
                Self { all, first: start + rank, count, skip: ranks - 1 }
            }
        }
    }
}

/// The records of an open database.
struct Records<'t> {
    database: Database<'t, Bytes, Bytes>,
    transaction: &'t RoTxn<'t, WithoutTls>,
}

impl<'t> Records<'t> {
    fn new(env: &'t Env<WithoutTls>, transaction: &'t RoTxn<'t, WithoutTls>) -> anyhow::Result<Self> {
        let database = env.open_databases_and_commit(env.read_txn()?, |opener, transaction| {
            opener.open_database(transaction, None).map(CommitOrAbort::<_, ()>::Commit)
        })?;
        let database = database.unwrap_commit().context("it has no main database")?;
        Ok(Self { database, transaction })
    }

    fn count(&self) -> anyhow::Result<u64> {
        Ok(self.database.len(self.transaction)?)
    }

    /// A cursor that moves on by MDB_NEXT. Large values lie on pages of their own, which the cursor
    /// does not touch: only who reads the value does.
    fn cursor_at(&self, record: u64) -> anyhow::Result<RoRange<'t, Bytes, Bytes>> {
        let key = datum::key(record);
        Ok(self.database.range(self.transaction, &(Bound::Included(key.as_bytes()), Bound::Unbounded))?)
    }

    fn visit_share(&self, share: &Share, visit: &mut impl FnMut(&[u8]) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let mut cursor = self.cursor_at(share.first)?;
        for _ in 0..share.count {
            let (_, record) = cursor.next().context("the database ended before the last record")??;
            visit(record)?;
            for _ in 0..share.skip {
                cursor.next().transpose()?;
            }
        }
        Ok(())
    }

    fn visit_random(
        &self,
        random: &mut Random,
        among: &Range<u64>,
        count: u64,
        visit: &mut impl FnMut(&[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        ensure!(!among.is_empty(), "there are no records to choose from");
        for _ in 0..count {
            let key = datum::key(among.start + random.below(among.end - among.start));
            let record = self.database.get(self.transaction, key.as_bytes())?;
            visit(record.with_context(|| format!("no record has the key {key}"))?)?;
        }
        Ok(())
    }
}

/// Counts batches, and knows how long one is computed on.
struct Pace {
    size: u64,
    filled: u64,
    batches: u64,
    compute: Duration,
}

impl Pace {
    fn new(options: &Options) -> Self {
        let compute = Duration::from_secs_f64(options.compute_ms.max(0.0) / 1e3);
        Self { size: options.batch, filled: 0, batches: 0, compute }
    }

    /// Counts a record; true if it was the last one of a batch.
    fn batch_is_full(&mut self) -> bool {
        self.filled = (self.filled + 1) % self.size;
        self.batches += u64::from(self.filled == 0);
        self.filled == 0
    }
}

/// The test phases: they walk on through their own database, from phase to phase, round and round.
struct Test<'t> {
    records: Records<'t>,
    cursor: RoRange<'t, Bytes, Bytes>,
    every: u64,
    per_phase: u64,
    tally: Tally,
}

impl<'t> Test<'t> {
    fn new(records: Records<'t>, options: &Options) -> anyhow::Result<Self> {
        let cursor = records.cursor_at(0)?;
        let every = options.test_every.unwrap_or(u64::MAX);
        Ok(Self { records, cursor, every, per_phase: options.test_records, tally: Tally::default() })
    }

    fn run_phase(&mut self) -> anyhow::Result<()> {
        for _ in 0..self.per_phase {
            let (_, record) = match self.cursor.next() {
                Some(record) => record?,
                None => {
                    self.cursor = self.records.cursor_at(0)?;
                    self.cursor.next().context("the test database is empty")??
                }
            };
            self.tally.add(record);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn shares(arguments: &str, available: u64) -> Vec<Vec<u64>> {
        let options = Options::parse_from(format!("lmdb-reader db {arguments}").split_whitespace());
        let list = |share: Share| (0..share.count).map(|i| share.first + i * (share.skip + 1)).collect();
        (0..options.processes).map(|rank| list(Share::of(rank, &options, available))).collect()
    }

    #[test]
    fn every_record_belongs_to_one_rank() {
        for pattern in ["contiguous", "skipping"] {
            for (processes, available) in [(1, 10), (3, 10), (4, 3), (4, 0)] {
                let all = shares(&format!("--pattern {pattern} --processes {processes}"), available);
                let mut records = all.concat();
                records.sort_unstable();
                assert_eq!(records, (0..available).collect::<Vec<_>>(), "{pattern} {processes}");
            }
        }
    }

    #[test]
    fn a_range_limits_the_records() {
        assert_eq!(shares("--start-record 5 --records 4 --processes 2", 100), [[5, 6], [7, 8]]);
        assert_eq!(shares("--pattern skipping --start-record 5 --records 4 --processes 2", 100), [[5, 7], [6, 8]]);
        assert_eq!(shares("--start-record 98 --records 4", 100), [[98, 99]]);
    }
}
