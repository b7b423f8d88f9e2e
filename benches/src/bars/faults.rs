//! A reader is known after a few faults, wherever it starts.

use std::ffi::OsString;

use crate::bench::Bench;
use crate::configuration::{lmdb_reader, map_reader};
use crate::measure::Launch;
use crate::storage::{Kind, Storage};
use crate::verdict::{Bar, Verdict};

const BAR: u32 = 8;

pub fn judge(bench: &Bench) -> anyhow::Result<Vec<Bar>> {
    let kind = if Storage::can_mount() { Kind::RemoteSsd } else { Kind::Local };
    let storage = bench.storage(kind, bench.settings.pairs_size.expect("defaults are filled in"))?;
    // Not at a multiple of anything.
    let middle = (storage.file_size()? / 2 + 12_345).to_string();
    let readers: [(&str, Vec<OsString>); 4] = [
        ("lmdb-reader", lmdb_reader(bench, &storage, &[])),
        ("lmdb-reader from record 500", lmdb_reader(bench, &storage, &["--start-record", "500"])),
        ("map-reader", map_reader(bench, &storage, &[])),
        ("map-reader from the middle", map_reader(bench, &storage, &["--start", &middle])),
    ];
    let mut bars = Vec::new();
    for (name, reader) in readers {
        let _memory = storage.make_cold()?;
        let run = Launch::new(reader).under_precache(&[]).run(bench, &storage)?;
        let faults = run.mappings().filter_map(|mapping| mapping.faults_before_first_request).max();
        bars.push(Bar::new(
            format!("{name}: at most {BAR} data faults before the first request"),
            faults.map_or("nothing was requested".to_owned(), |faults| faults.to_string()),
            Verdict::is(faults.is_some_and(|faults| faults <= BAR)),
        ));
    }
    Ok(bars)
}
