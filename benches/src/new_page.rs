//! What a page of memory takes that nobody had before: filling a cache is made of them. In a virtual machine whose host takes
//! back what is freed (free page reporting, Documentation/mm/free_page_reporting.rst) that may be most of it.

use std::io;
use std::time::{Duration, Instant};

use memmap2::{Advice, MmapOptions};

const PAGE: usize = 4096;

/// As many as a row of the limits fills within a second or two.
const BYTES: usize = 1 << 30;

/// The mean time in which this process gets a new one, a fault included.
pub fn time() -> io::Result<Duration> {
    let mut memory = MmapOptions::new().len(BYTES).map_anon()?;
    memory.advise(Advice::NoHugePage)?;
    let start = Instant::now();
    memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    Ok(start.elapsed() / (BYTES / PAGE) as u32)
}
