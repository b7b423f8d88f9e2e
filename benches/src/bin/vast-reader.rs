//! Maps a vast file, reads here and there in it, and tells what having it mapped costs: the time of its first byte, its
//! map count, its page tables, and the time of a fork. Then it waits for the end of its standard input.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::time::Instant;

use anyhow::{Context, ensure};
use memmap2::Mmap;
use nix::time::{ClockId, clock_gettime};

/// Bytes read in a row at the beginning, and at each of the other places.
const BEGINNING: usize = 64 << 20;
const PIECE: usize = 1 << 20;
const PLACES: usize = 64;
const PAGE: usize = 4096;
const FORKS: usize = 15;

fn main() -> anyhow::Result<()> {
    let path = std::env::args_os().nth(1).context("name the file to map")?;
    let file = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
    // SAFETY: the file belongs to the measurement, which does not change it.
    let map = unsafe { Mmap::map(&file) }.with_context(|| format!("cannot map {}", path.display()))?;
    ensure!(map.len() > PLACES * BEGINNING, "{} is not vast", path.display());

    let mut sum = u64::from(map[0]);
    let first_byte = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
    let starts = (1..PLACES).map(|place| map.len() / PLACES * place);
    for (start, length) in [(0, BEGINNING)].into_iter().chain(starts.map(|start| (start, PIECE))) {
        sum += map[start..start + length].iter().step_by(PAGE).map(|&byte| u64::from(byte)).sum::<u64>();
    }
    ensure!(sum == 0, "{} is not sparse", path.display());

    let fork = median_fork()?;
    println!(
        "{{\"first_byte_at\": {}.{:09}, \"maps\": {}, \"page_table_kilobytes\": {}, \"fork_seconds\": {fork:.9}}}",
        first_byte.tv_sec(),
        first_byte.tv_nsec(),
        fs::read_to_string("/proc/self/maps")?.lines().count(),
        page_tables()?,
    );
    io::stdout().flush()?;
    // While it waits, others can look at the processes that serve it.
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn page_tables() -> anyhow::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmPTE:")).context("the kernel tells no VmPTE")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// Seconds that a fork keeps the parent.
fn median_fork() -> anyhow::Result<f64> {
    let mut times = Vec::new();
    for _ in 0..FORKS {
        let start = Instant::now();
        // SAFETY: this process has one thread, and the child only ends.
        match unsafe { libc::fork() } {
            -1 => return Err(io::Error::last_os_error()).context("cannot fork"),
            // SAFETY: as above; _exit runs nothing of the parent's.
            0 => unsafe { libc::_exit(0) },
            child => {
                times.push(start.elapsed().as_secs_f64());
                // SAFETY: waits for the child just made; no status is asked for.
                unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            }
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[FORKS / 2])
}
