//! precache-bench: measures what precache promises, beside what else one could do.

mod bandwidth;
mod bars;
mod bench;
mod cache;
mod cgroup;
mod claim;
mod configuration;
mod costs;
mod data;
mod demo;
mod figure7;
mod figure8;
mod limits;
mod machine;
mod measure;
mod mount;
mod new_page;
mod options;
mod pairs;
mod programs;
mod readahead;
mod results;
mod statistics;
mod steal;
mod storage;
mod verdict;

use std::process::ExitCode;

use clap::Parser;

use crate::bench::Bench;
use crate::options::{Options, What};

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("precache-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> anyhow::Result<()> {
    readahead::restore_on_signals()?;
    let bench = Bench::prepare(options)?;
    match &options.what {
        What::Demo => demo::run(&bench),
        What::Figure7 => figure7::run(&bench),
        What::Figure8 => figure8::run(&bench),
        What::Bars => bars::run(&bench),
        What::Limits { only } => limits::run(&bench, only),
        What::Costs => costs::run(&bench),
        What::All => {
            bars::run(&bench)?;
            limits::run(&bench, &[])?;
            costs::run(&bench)?;
            figure7::run(&bench)?;
            figure8::run(&bench)
        }
    }
}
