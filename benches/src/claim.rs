//! Memory that a run is going to fill, held until it does.
//!
//! The host of a virtual machine takes back what has lain free for two seconds (mm/page_reporting.c), and then each page of
//! it costs a fault there, several times what copying it takes, which looks like work here. What is let go of as it is
//! needed is taken before that.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use memmap2::{Advice, MmapMut, MmapOptions};
use nix::sys::sysinfo::sysinfo;
use precache::memory::{DataPages, Memory};

/// Let go of at a time.
const PIECE: usize = 128 << 20;
/// Beyond what was used: what is used in a few ticks.
const AHEAD: u64 = 512 << 20;
const TICK: Duration = Duration::from_millis(10);

/// Memory that is let go of as the machine uses as much, and in the end.
#[must_use]
pub struct Claim {
    is_over: Arc<AtomicBool>,
    holder: Option<JoinHandle<()>>,
}

impl Claim {
    /// Holds somewhat more than so many bytes: at most a quarter of what is free and half of what the memory cgroup has room
    /// for, so that nobody finds memory scarce.
    pub fn hold(bytes: u64) -> io::Result<Self> {
        // Nothing is known of data files here: programs keep what they use.
        let nothing = DataPages { cached: 0, mapped: 0, displaced: u64::MAX };
        let most = (free()? / 4).min(Memory::here().budget(nothing) / 2);
        let pieces = (bytes / 4 * 5).min(most) as usize / PIECE;
        let held = (0..pieces).map(|_| piece()).collect::<io::Result<Vec<_>>>()?;
        let (is_over, before) = (Arc::new(AtomicBool::new(false)), free()?);
        let told = Arc::clone(&is_over);
        let holder = thread::spawn(move || let_go(held, before, &told));
        Ok(Self { is_over, holder: Some(holder) })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        if let Some(holder) = self.holder.take() {
            holder.thread().unpark();
            let _ = holder.join();
        }
    }
}

/// In huge pages where there are any: to give back 4 GiB page by page takes a processor 0.3 s in the midst of the run, and so 0.01.
fn piece() -> io::Result<MmapMut> {
    let memory = MmapOptions::new().len(PIECE).map_anon()?;
    let _ = memory.advise(Advice::HugePage);
    memory.advise(Advice::PopulateWrite)?;
    Ok(memory)
}

/// Bytes of memory that nobody uses.
fn free() -> io::Result<u64> {
    Ok(sysinfo()?.ram_unused())
}

/// So much was free before anything of it was let go of.
fn let_go(mut held: Vec<MmapMut>, before: u64, is_over: &AtomicBool) {
    let mut let_go = 0;
    while !is_over.load(Relaxed) && !held.is_empty() {
        let used = (before + let_go).saturating_sub(free().unwrap_or(0));
        while let_go < used + AHEAD && held.pop().is_some() {
            let_go += PIECE as u64;
        }
        thread::park_timeout(TICK);
    }
}
