//! `lmdb map`: where every record lies.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Map, Value, json};

use super::map_format::{Header, Writer};
use super::output::Output;
use super::{Database, Env, Key, Location, Record, Target, look};
use crate::child::{self, isolated};

/// Arguments of `lmdb map`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub target: Target,
    /// Only the database of this name.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// One JSON object a line.
    #[arg(long, conflicts_with = "binary")]
    json: bool,
    /// The compact binary format (see docs/lmdb.md).
    #[arg(long)]
    binary: bool,
    /// Write to this file instead of stdout; it is replaced once the map is complete.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Walks in a child process; its stdout is the output file where one is wanted, which this process, who survives whatever
/// happens to that one, puts into its place.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let db = &args.target.db;
    let Some(path) = args.output.as_ref().filter(|_| !child::is_child()) else {
        return isolated(db, || print(args));
    };
    let output = Output::create(path, &Location::of(db)?)?;
    let code = child::start(db, output.stdio()?)?;
    if code == ExitCode::SUCCESS {
        output.keep()?;
    }
    Ok(code)
}

fn print(args: &Args) -> anyhow::Result<ExitCode> {
    look(&args.target.db, |env| {
        let out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        let name = args.name.as_deref();
        let mut out = match (args.binary, args.json) {
            (true, _) => binary(env, name, out)?,
            (_, true) => json_lines(env, name, out)?,
            _ => text(env, name, out)?,
        };
        out.flush()?;
        Ok(ExitCode::SUCCESS)
    })
}

/// Key, offset and length, separated by tabs; a line `# database NAME` before the records of a named database.
fn text<W: Write>(env: &Env, only: Option<&str>, mut out: W) -> anyhow::Result<W> {
    let mut last = None;
    env.walk_databases::<anyhow::Error>(only, |database, record| {
        if last != database.name {
            last.clone_from(&database.name);
            writeln!(out, "# database {}", last.as_deref().unwrap_or_default())?;
        }
        let key = Key::of(record.key, &database.stat);
        Ok(writeln!(out, "{key}\t{}\t{}", record.offset, record.length)?)
    })?;
    Ok(out)
}

fn json_lines<W: Write>(env: &Env, only: Option<&str>, mut out: W) -> anyhow::Result<W> {
    env.walk_databases::<anyhow::Error>(only, |database, record| {
        serde_json::to_writer(&mut out, &object(database, &record))?;
        Ok(out.write_all(b"\n")?)
    })?;
    Ok(out)
}

fn object(database: &Database, record: &Record<'_>) -> Value {
    let mut object = Map::new();
    if let Some(name) = &database.name {
        object.insert("database".into(), json!(name));
    }
    let (field, key) = Key::of(record.key, &database.stat).json();
    object.insert(field.into(), key);
    object.insert("offset".into(), json!(record.offset));
    object.insert("length".into(), json!(record.length));
    Value::Object(object)
}

fn binary<W: Write>(env: &Env, only: Option<&str>, out: W) -> anyhow::Result<W> {
    let header = Header { page_size: env.page_size, file_size: env.file_size, transaction: env.transaction };
    let mut writer = Writer::new(out, header)?;
    let mut current: Option<Option<String>> = None;
    env.walk_databases::<anyhow::Error>(only, |database, record| {
        if current.as_ref() != Some(&database.name) {
            let name = database.name.as_deref().unwrap_or_default();
            writer.database(name, database.stat.dupsort, database.stat.integer_keys)?;
            current = Some(database.name.clone());
        }
        Ok(writer.record(record.key, record.offset, record.length)?)
    })?;
    Ok(writer.finish()?)
}
