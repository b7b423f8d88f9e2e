//! `stripe-advise`: how a file should lie on the targets of a parallel file system.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;

use crate::Usage;
use crate::child::isolated;
use crate::filesystem::Kind;
use crate::lmdb::survey::{Distribution, Sizes};
use crate::lmdb::{Location, look};
use crate::memory;
use crate::size::{self, Bytes};

mod advice;
pub mod caffe;
mod command;
pub mod lov;
mod lustre;
pub mod prototxt;

use advice::{Advice, UNIT, Workload};
use command::{Plan, Subject};

/// Arguments of `stripe-advise`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file to lay out; need not exist. Default: the data file of --db.
    file: Option<PathBuf>,
    /// Take the size of records from this database. Default: FILE, if it is one.
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,
    /// Only the records of the database of this name in there.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The size of a record, instead of a database.
    #[arg(long, value_name = "SIZE", value_parser = size::parse, conflicts_with_all = ["db", "name"])]
    sample_bytes: Option<u64>,
    /// Records that one GPU reads at a time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    batch_size: Option<u64>,
    /// Take the batch size from this Caffe network description (TRAIN phase).
    #[arg(long, value_name = "FILE", conflicts_with = "batch_size")]
    prototxt: Option<PathBuf>,
    /// The data layer of the network that reads this file, where several do.
    #[arg(long, value_name = "NAME", requires = "prototxt")]
    layer: Option<String>,
    /// GPUs of a node that are used.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    gpus: u32,
    /// Nodes that read the file at the same time.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    readers: u32,
    /// Storage targets of the file system. Default: what the Lustre client knows, else all there are.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    osts: Option<u32>,
    /// Round the stripe size up to a multiple of this: a multiple of 64K.
    #[arg(long, value_name = "SIZE", default_value = "64K", value_parser = alignment)]
    align: u64,
    /// Give the command for this file system instead of the one that the file lies on.
    #[arg(long, value_name = "KIND")]
    fs: Option<FileSystem>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// File systems that can be asked for by name.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum FileSystem {
    Lustre,
    Fefs,
    Beegfs,
    Gpfs,
    Plain,
}

fn alignment(text: &str) -> Result<u64, String> {
    match size::parse(text).map_err(|error| error.to_string())? {
        bytes if bytes > 0 && bytes % UNIT == 0 && bytes <= 1 << 30 => Ok(bytes),
        bytes => Err(format!("{bytes} bytes is not a multiple of 64K, at most 1G: Lustre takes no other stripe sizes")),
    }
}

/// Where the size of a record comes from.
enum Records {
    Given(u64),
    Measured(Distribution),
}

/// Prints the advice; walks the database in a child process where one is to be measured.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    // What is wrong with the arguments is said before a walk that may take a while.
    let target = args.target()?;
    let batch = args.batch(&target)?;
    match (args.database(), args.sample_bytes) {
        (Some(db), _) => {
            isolated(&db, || advise(args, &target, batch, &Records::Measured(measure(&db, args.name.as_deref())?)))
        }
        (None, Some(bytes)) => advise(args, &target, batch, &Records::Given(bytes)),
        (None, None) => Err(Usage("how large is a record? Give --db DIR or --sample-bytes SIZE".into()).into()),
    }
}

impl Args {
    /// The database to measure: the one given, else FILE where that is one.
    fn database(&self) -> Option<PathBuf> {
        if self.sample_bytes.is_some() {
            return None;
        }
        self.db.clone().or_else(|| self.file.clone().filter(|file| file.exists()))
    }

    /// The file to lay out: a directory means the database in it.
    fn target(&self) -> anyhow::Result<PathBuf> {
        let path = self.file.as_ref().or(self.db.as_ref());
        let path = path.ok_or_else(|| Usage("which file? Give its path, or --db DIR".into()))?;
        if path.is_dir() { Ok(Location::of(path)?.data) } else { Ok(path.clone()) }
    }

    fn batch(&self, target: &Path) -> anyhow::Result<u64> {
        if let Some(batch) = self.batch_size {
            return Ok(batch);
        }
        let Some(prototxt) = &self.prototxt else {
            return Err(
                Usage("how many records are read at a time? Give --batch-size N or --prototxt FILE".into()).into()
            );
        };
        let in_file = |error: &dyn std::fmt::Display| anyhow::anyhow!("{}: {error}", prototxt.display());
        let text = fs::read_to_string(prototxt).map_err(|error| in_file(&error))?;
        let layers = caffe::data_layers(&text).map_err(|error| in_file(&error))?;
        // Caffe names the database's directory.
        let is_in_directory = target.file_name().is_some_and(|name| name == "data.mdb");
        let database = if is_in_directory { target.parent() } else { Some(target) };
        let database = database.and_then(Path::file_name).and_then(|name| name.to_str());
        match caffe::choose(&layers, self.layer.as_deref(), database) {
            Ok(layer) => Ok(layer.batch_size),
            Err(error @ (caffe::Error::Ambiguous { .. } | caffe::Error::NoSuchLayer { .. })) => {
                Err(Usage(in_file(&error).to_string()).into())
            }
            Err(error) => Err(in_file(&error)),
        }
    }
}

/// The sizes of all records of all databases in there, or of the one called `name`, their values unread.
fn measure(db: &Path, name: Option<&str>) -> anyhow::Result<Distribution> {
    let mut sizes = Sizes::default();
    look(db, |env| {
        env.walk_databases(name, |_, record| {
            sizes.add(record.length);
            Ok(())
        })
    })?;
    sizes.distribution().ok_or_else(|| anyhow::anyhow!("{}: no records to measure; give --sample-bytes", db.display()))
}

fn advise(args: &Args, target: &Path, batch: u64, records: &Records) -> anyhow::Result<ExitCode> {
    let kind = match args.fs {
        None => Kind::of(target)?,
        Some(FileSystem::Lustre) => Kind::Lustre,
        Some(FileSystem::Fefs) => Kind::Fefs,
        Some(FileSystem::Beegfs) => Kind::BeeGfs,
        Some(FileSystem::Gpfs) => Kind::Gpfs,
        Some(FileSystem::Plain) => Kind::Local("plain"),
    };
    let file_size = size_of(target).with_context(|| target.display().to_string())?;
    let mean = match records {
        Records::Given(bytes) => *bytes as f64,
        Records::Measured(distribution) => distribution.mean,
    };
    let batch_bytes = advice::batch_bytes(mean, batch);
    let targets = args.osts.or_else(|| matches!(kind, Kind::Lustre | Kind::Fefs).then(lustre::known_targets).flatten());
    let workload = Workload {
        batch_bytes,
        gpus: args.gpus,
        nodes: args.readers,
        file_size,
        targets,
        align: args.align,
        power_of_two: kind == Kind::BeeGfs,
    };
    let advice = workload.advice();
    let layout = matches!(kind, Kind::Lustre | Kind::Fefs).then(|| lustre::present(target)).flatten();
    let path = target.to_string_lossy();
    let mut plan = command::plan(&Subject { kind, path: &path, size: file_size, layout: layout.as_ref() }, &advice);
    plan.notes.extend(workload.doubts(&advice, memory::available()));

    let mut out = io::stdout().lock();
    if args.json {
        let object = json!({
            "file": path, "file_system": kind.name(), "file_size": file_size,
            "record_bytes": mean,
            "records": match records { Records::Measured(distribution) => Some(distribution), Records::Given(_) => None },
            "batch_size": batch, "batch_bytes": batch_bytes, "gpus": args.gpus,
            "stripe_size": advice.stripe_size, "stripe_count": advice.stripe_count,
            "distance": advice.distance, "size": advice.size,
            "present": layout, "command": plan.command, "notes": plan.notes,
        });
        serde_json::to_writer_pretty(&mut out, &object)?;
        writeln!(out)?;
    } else {
        write_text(&mut out, records, batch, &workload, &advice, &plan)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write_text(
    out: &mut impl Write,
    records: &Records,
    batch: u64,
    workload: &Workload,
    advice: &Advice,
    plan: &Plan,
) -> io::Result<()> {
    match records {
        Records::Given(bytes) => writeln!(out, "record        {}", Bytes(*bytes))?,
        Records::Measured(found) => writeln!(
            out,
            "record        mean {:.0} bytes of {} records: min {}, half <= {}, 90 % <= {}, 99 % <= {}, max {}",
            found.mean, found.count, found.min, found.p50, found.p90, found.p99, found.max
        )?,
    }
    let batch_bytes = Bytes(workload.batch_bytes);
    writeln!(
        out,
        "batch         {batch} records, {batch_bytes}; {} GPUs a node read one each at a time",
        workload.gpus
    )?;
    let rounded_to =
        if workload.power_of_two { "power of two".into() } else { format!("multiple of {}", Bytes(workload.align)) };
    writeln!(out, "stripe size   {} (rounded up to a {rounded_to})", Bytes(advice.stripe_size))?;
    match advice.stripe_count {
        -1 => writeln!(out, "stripe count  all targets (their number is unknown: give --osts N)")?,
        count => writeln!(out, "stripe count  {count}")?,
    }
    let (distance, size) = (size::flag(advice.distance), size::flag(advice.size));
    writeln!(out, "pre-caching   precache-run --distance {distance} --size {size}: whole stripes at a time")?;
    match &plan.command {
        Some(command) => writeln!(out, "command       {command}")?,
        None => writeln!(out, "command       none")?,
    }
    plan.notes.iter().try_for_each(|note| writeln!(out, "              {note}"))
}

/// Bytes of the file; none where it does not exist yet.
fn size_of(file: &Path) -> io::Result<Option<u64>> {
    match fs::metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(|metadata| metadata.is_file().then_some(metadata.len())),
    }
}
