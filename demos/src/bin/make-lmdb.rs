//! Makes an LMDB of Caffe `Datum` records with pseudo-random images, or a flat file of such bytes.

use std::fs::{self, File, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Parser;
use heed::types::{Bytes, Str};
use heed::{CommitOrAbort, Database, EnvFlags, EnvOpenOptions, PutFlags};
use precache_demos::datum::{self, Shape};
use precache_demos::quantity::size;
use precache_demos::random::Random;

/// Records per write transaction.
const BATCH: u64 = 1000;
/// The page size of LMDB, and the bytes of it that a large value cannot use.
const PAGE: u64 = 4096;
const PAGE_HEADER: u64 = 16;

/// Makes an LMDB data set for lmdb-reader: Caffe Datum records under 8-digit keys, in key order.
#[derive(Parser)]
#[command(name = "make-lmdb", version)]
struct Options {
    /// Directory of the new LMDB; it must not hold one yet
    #[arg(required_unless_present = "flat")]
    out_dir: Option<PathBuf>,

    /// Size of the data file, about: 1G, 256M
    #[arg(long, default_value = "1G", value_name = "SIZE", value_parser = size)]
    size: u64,

    /// Number of records, instead of --size
    #[arg(long, value_name = "N", conflicts_with = "size")]
    records: Option<u64>,

    /// Channels, height and width of an image
    #[arg(long, default_value = "3x256x256", value_name = "CxHxW")]
    shape: Shape,

    /// Seed of the images
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,

    /// Write a flat file of --size pseudo-random bytes instead of an LMDB
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out_dir", "records"])]
    flat: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    match (&options.flat, &options.out_dir) {
        (Some(file), _) => make_flat(file, options.size, options.seed),
        (None, Some(directory)) => make_lmdb(directory, &options),
        (None, None) => unreachable!("clap requires one of them"),
    }
}

fn make_lmdb(directory: &Path, options: &Options) -> anyhow::Result<()> {
    let data_file = directory.join("data.mdb");
    anyhow::ensure!(!data_file.exists(), "{} exists: remove it or choose another directory", data_file.display());
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;

    let record_bytes = pages_of(options.shape) * PAGE;
    let records = options.records.unwrap_or(options.size / record_bytes).max(1);
    let mut env_options = EnvOpenOptions::new();
    // As Caffe's tools leave it: they double the map when it is full, so it is longer than the file.
    env_options.map_size((records * record_bytes + (1 << 20)).next_power_of_two() as usize);
    // SAFETY: NO_SYNC gives up the data after a crash of the machine, no memory safety; one sync
    // follows at the end. The environment was created just now, so no other process changes the file
    // behind the map.
    let env = unsafe { env_options.flags(EnvFlags::NO_SYNC).open(directory) }
        .with_context(|| format!("cannot create an LMDB in {}", directory.display()))?;

    let database: Database<Str, Bytes> = env
        .create_databases_and_commit(env.write_txn()?, |creator, transaction| {
            creator.create_database(transaction, None).map(CommitOrAbort::<_, ()>::Commit)
        })?
        .unwrap_commit();
    let mut transaction = env.write_txn()?;
    let mut images = Random::new(options.seed);
    let (mut image, mut message) = (vec![0; options.shape.bytes()], Vec::new());
    for record in 0..records {
        if record > 0 && record % BATCH == 0 {
            transaction.commit()?;
            transaction = env.write_txn()?;
        }
        images.fill(&mut image);
        message.clear();
        datum::encode(options.shape, &image, (record % 1000) as u32, &mut message);
        // APPEND fills pages completely and lays the records out in key order.
        database.put_with_flags(&mut transaction, PutFlags::APPEND, &datum::key(record), &message)?;
    }
    transaction.commit()?;
    env.force_sync()?;
    // Any user may read it, as with Caffe's tools; LMDB readers write to the lock file.
    fs::set_permissions(&data_file, Permissions::from_mode(0o644))?;
    fs::set_permissions(directory.join("lock.mdb"), Permissions::from_mode(0o666))?;
    println!("records={records} file_bytes={}", fs::metadata(&data_file)?.len());
    Ok(())
}

/// Pages that a record of this shape takes: large values have whole pages of their own.
fn pages_of(shape: Shape) -> u64 {
    const FIELDS: u64 = 24;
    (shape.bytes() as u64 + FIELDS + PAGE_HEADER).div_ceil(PAGE)
}

fn make_flat(path: &Path, bytes: u64, seed: u64) -> anyhow::Result<()> {
    let file = File::create_new(path).with_context(|| format!("cannot create {}", path.display()))?;
    let mut writer = BufWriter::new(file);
    let mut random = Random::new(seed);
    let mut block = vec![0; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        random.fill(&mut block);
        let count = left.min(block.len() as u64) as usize;
        writer.write_all(&block[..count])?;
        left -= count as u64;
    }
    writer.flush()?;
    println!("file_bytes={bytes}");
    Ok(())
}
