//! What is left of a measurement: a table to read, JSON to compute with, plots to look at.

pub mod bars;
pub mod table;

use std::fs;

use anyhow::Context;
use serde::Serialize;

use crate::bench::Bench;
use crate::machine::Machine;
use crate::options::Settings;

/// What the JSON files hold.
#[derive(Serialize)]
struct Document<'a, T> {
    title: &'a str,
    machine: &'a Machine,
    settings: &'a Settings,
    results: T,
}

/// Prints the text, and writes it as Markdown, and the results as JSON, under this name.
pub fn publish(
    bench: &Bench,
    machine: &Machine,
    name: &str,
    title: &str,
    text: &str,
    results: impl Serialize,
) -> anyhow::Result<()> {
    println!("{}", write(bench, machine, name, title, text, results)?);
    Ok(())
}

/// Puts the results where they are kept, without showing them. Returns what there is to show.
pub fn write(
    bench: &Bench,
    machine: &Machine,
    name: &str,
    title: &str,
    text: &str,
    results: impl Serialize,
) -> anyhow::Result<String> {
    let text = format!("# {title}\n\n{}\n\n{text}", machine.line());
    let folder = &bench.settings.results;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}: choose --results", folder.display()))?;
    fs::write(folder.join(format!("{name}.md")), &text)?;
    let document = Document { title, machine, settings: &bench.settings, results };
    let mut json = serde_json::to_string_pretty(&document)?;
    json.push('\n');
    fs::write(folder.join(format!("{name}.json")), json)?;
    Ok(text)
}
