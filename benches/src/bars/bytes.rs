//! In one pass every byte is fetched once, whatever number of processes want it.

use crate::bench::Bench;
use crate::configuration::lmdb_reader;
use crate::measure::Launch;
use crate::results::table::mebibytes;
use crate::storage::{Kind, Storage};
use crate::verdict::{Bar, Verdict};

const BAR: f64 = 1.01;

pub fn judge(bench: &Bench) -> anyhow::Result<Vec<Bar>> {
    if !Storage::can_mount() {
        return Ok(Vec::new());
    }
    let storage = bench.storage(Kind::RemoteSsd, bench.size())?;
    let size = storage.file_size()?;
    let mut bars = Vec::new();
    for (readers, arguments) in [
        ("1 process", &[][..]),
        ("4 processes, contiguous", &["--processes", "4"]),
        ("4 processes, skipping", &["--processes", "4", "--pattern", "skipping"]),
    ] {
        let launch = Launch::new(lmdb_reader(bench, &storage, arguments)).under_precache(&[]);
        let mut most = 0;
        for _ in 0..bench.settings.repetitions.min(3) {
            let _memory = storage.make_cold()?;
            most = most.max(launch.run(bench, &storage)?.fetched.map_or(0, |fetched| fetched.bytes));
        }
        let share = most as f64 / size as f64;
        bars.push(Bar::new(
            format!("{readers}: at most {BAR} x the file fetched in one pass"),
            format!("{} of {}: {share:.4}", mebibytes(most), mebibytes(size)),
            Verdict::is(share <= BAR),
        ));
    }
    Ok(bars)
}
