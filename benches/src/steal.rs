//! Processor time that the host of a virtual machine took away from it (steal, proc_stat(5)).

use std::time::Instant;

use procfs::{CurrentSI, KernelStats, ticks_per_second};

/// Measures from its beginning on.
pub struct Watch {
    start: Instant,
    stolen: u64,
}

impl Watch {
    pub fn begin() -> Self {
        Self { start: Instant::now(), stolen: stolen() }
    }

    /// The share of all processors' time that was taken; 0 on hardware.
    pub fn share(&self) -> f64 {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let seconds = (stolen() - self.stolen) as f64 / ticks_per_second() as f64;
        seconds / (self.start.elapsed().as_secs_f64() * processors as f64)
    }
}

/// Of all processors so far, in ticks.
fn stolen() -> u64 {
    KernelStats::current().ok().and_then(|stat| stat.total.steal).unwrap_or(0)
}
