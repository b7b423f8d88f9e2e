//! Reads a file through a memory map in one of several orders: the smallest possible reader.

use std::fs::File;
use std::io::{Read, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::{Parser, ValueEnum};
use memmap2::{Advice, Mmap, MmapOptions};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork, pipe};
use precache_demos::checksum::Checksum;
use precache_demos::quantity::size;
use precache_demos::random::Random;
use precache_demos::timing::Timing;

/// Maps FILE and reads every byte of it, or of the chosen parts; prints a checksum per part.
#[derive(Parser)]
#[command(name = "map-reader", version)]
struct Options {
    /// File to map
    file: PathBuf,

    /// First byte to read
    #[arg(long, default_value = "0", value_name = "OFFSET", value_parser = size)]
    start: u64,

    /// End of the bytes to read [default: the end of the file]
    #[arg(long, value_name = "OFFSET", value_parser = size)]
    end: Option<u64>,

    /// Distance between the starts of records [default: the record]
    #[arg(long, value_name = "BYTES", value_parser = size)]
    stride: Option<u64>,

    /// Bytes read at once
    #[arg(long, default_value = "64K", value_name = "BYTES", value_parser = size)]
    record: u64,

    /// Threads, each with its own contiguous part
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: u64,

    /// Forked processes that read the inherited map, each its own contiguous part
    #[arg(long, value_name = "N", conflicts_with = "threads", value_parser = clap::value_parser!(u64).range(1..=1024))]
    fork: Option<u64>,

    /// Passes over the part
    #[arg(long, default_value_t = 1, value_name = "E")]
    epochs: u64,

    /// Read the last record first
    #[arg(long, conflicts_with = "random")]
    backwards: bool,

    /// Read this many records in random places
    #[arg(long, value_name = "N")]
    random: Option<u64>,

    /// Seed of the random places
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,

    /// Map privately (MAP_PRIVATE) instead of shared
    #[arg(long)]
    private: bool,

    /// Advice to the kernel about the map
    #[arg(long, value_enum)]
    advise: Option<AdviceName>,

    /// Let mmap read the whole file in before it returns (MAP_POPULATE)
    #[arg(long)]
    populate: bool,

    /// Microseconds of computing (sleep) after each MiB
    #[arg(long, default_value_t = 0, value_name = "X")]
    compute_us_per_mb: u64,

    /// Print times on standard error, one line of JSON per part
    #[arg(long)]
    time: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum AdviceName {
    Sequential,
    Random,
    Willneed,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    ensure!(options.record > 0 && options.stride != Some(0), "--record and --stride must be at least 1");
    let map = map_file(&options)?;
    let end = options.end.unwrap_or(map.len() as u64).min(map.len() as u64);
    let parts = split(options.start.min(end)..end, options.fork.unwrap_or(options.threads));
    let lines = if options.fork.is_some() {
        read_in_processes(&map, &parts, &options)?
    } else {
        read_in_threads(&map, &parts, &options)
    };
    for (number, line) in lines.iter().enumerate() {
        println!("part {number}: {line}");
    }
    Ok(())
}

fn map_file(options: &Options) -> anyhow::Result<Mmap> {
    let failed = || format!("cannot map {}", options.file.display());
    let file = File::open(&options.file).with_context(failed)?;
    let mut map_options = MmapOptions::new();
    if options.populate {
        map_options.populate();
    }
    // SAFETY: the map is only read, and data sets do not change while they are read: that is what
    // this program is for, and what its README asks.
    let map = unsafe { if options.private { map_options.map_copy_read_only(&file) } else { map_options.map(&file) } }
        .with_context(failed)?;
    match options.advise {
        None => {}
        Some(AdviceName::Sequential) => map.advise(Advice::Sequential)?,
        Some(AdviceName::Random) => map.advise(Advice::Random)?,
        Some(AdviceName::Willneed) => map.advise(Advice::WillNeed)?,
    }
    Ok(map)
}

/// Cuts a range into parts of nearly equal length.
fn split(range: Range<u64>, parts: u64) -> Vec<Range<u64>> {
    let length = range.end - range.start;
    let cut = |part: u64| range.start + (u128::from(length) * u128::from(part) / u128::from(parts)) as u64;
    (0..parts).map(|part| cut(part)..cut(part + 1)).collect()
}

fn read_in_threads(map: &[u8], parts: &[Range<u64>], options: &Options) -> Vec<String> {
    thread::scope(|scope| {
        let start = |(number, part): (usize, &Range<u64>)| {
            let part = part.clone();
            scope.spawn(move || read_part(map, number, &part, options))
        };
        let threads: Vec<_> = parts.iter().enumerate().map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("reading does not panic")).collect()
    })
}

/// Forks one process per part; each sends its line through a pipe.
fn read_in_processes(map: &[u8], parts: &[Range<u64>], options: &Options) -> anyhow::Result<Vec<String>> {
    let mut children = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let (receiver, sender) = pipe()?;
        // SAFETY: this process has one thread (threads and --fork exclude each other), so the child
        // may run any code (fork(2), async-signal-safety).
        match unsafe { fork() }.context("cannot fork")? {
            ForkResult::Child => {
                let line = read_part(map, number, part, options);
                let written = File::from(sender).write_all(line.as_bytes());
                std::process::exit(i32::from(written.is_err()));
            }
            ForkResult::Parent { child } => children.push((child, File::from(receiver))),
        }
    }
    let receive = |(child, mut pipe): (nix::unistd::Pid, File)| {
        let mut line = String::new();
        pipe.read_to_string(&mut line)?;
        let status = waitpid(child, None)?;
        ensure!(!line.is_empty(), "a forked reader ended without a result: {status:?}");
        Ok(line)
    };
    children.into_iter().map(receive).collect()
}

/// Reads one part and describes it in a line.
fn read_part(map: &[u8], number: usize, part: &Range<u64>, options: &Options) -> String {
    let timing = Timing::start();
    let mut checksum = Checksum::default();
    let mut computed = 0;
    for epoch in 0..options.epochs {
        for start in starts(part, options, number as u64 ^ epoch << 32) {
            let end = (start + options.record).min(part.end);
            checksum.add(&map[start as usize..end as usize]);
            timing.record_read();
            let megabytes = (checksum.bytes() >> 20) - computed;
            if megabytes > 0 && options.compute_us_per_mb > 0 {
                thread::sleep(Duration::from_micros(options.compute_us_per_mb * megabytes));
                computed += megabytes;
            }
        }
    }
    if options.time {
        timing.print(number);
    }
    format!("bytes={} checksum={:016x}", checksum.bytes(), checksum.value())
}

/// Where the records to read start, in reading order.
fn starts<'a>(part: &Range<u64>, options: &Options, salt: u64) -> Box<dyn Iterator<Item = u64> + 'a> {
    let stride = options.stride.unwrap_or(options.record);
    let (first, count) = (part.start, (part.end - part.start).div_ceil(stride));
    let place = move |record: u64| first + record * stride;
    match options.random {
        Some(_) if count == 0 => Box::new(std::iter::empty()),
        Some(number) => {
            let mut random = Random::new(options.seed ^ salt);
            Box::new((0..number).map(move |_| place(random.below(count))))
        }
        None if options.backwards => Box::new((0..count).rev().map(place)),
        None => Box::new((0..count).map(place)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_range_once() {
        assert_eq!(split(3..13, 3), [3..6, 6..9, 9..13]);
        assert_eq!(split(0..1, 2), [0..0, 0..1]);
    }

    #[test]
    fn orders() {
        let starts = |arguments: &str, part: Range<u64>| -> Vec<u64> {
            let options = Options::parse_from(format!("map-reader f {arguments}").split_whitespace());
            starts(&part, &options, 0).collect()
        };
        assert_eq!(starts("--record 4", 2..11), [2, 6, 10]);
        assert_eq!(starts("--record 4 --backwards", 2..11), [10, 6, 2]);
        assert_eq!(starts("--record 1 --stride 4", 0..8), [0, 4]);
        assert_eq!(starts("--random 5", 0..0), []);
        assert_eq!(starts("--random 5 --record 2", 0..10).len(), 5);
    }
}
