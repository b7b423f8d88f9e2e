//! Figure 8: pre-caching with each distance and size, on each storage.

use serde::Serialize;

use crate::bench::Bench;
use crate::configuration::lmdb_reader;
use crate::machine::Machine;
use crate::measure::Launch;
use crate::results::bars::{self, Group, Panel};
use crate::results::publish;
use crate::results::table::{Table, mebibytes, seconds};
use crate::statistics::Spread;
use crate::storage::Kind;

/// In MiB, as in the paper and a little beyond.
const DISTANCES: [u64; 4] = [8, 10, 20, 40];
const SIZES: [u64; 3] = [50, 100, 200];

/// One storage.
#[derive(Serialize)]
struct Part {
    storage: Kind,
    bytes: u64,
    points: Vec<Point>,
}

#[derive(Serialize)]
struct Point {
    distance_mib: u64,
    size_mib: u64,
    seconds: Vec<f64>,
    spread: Option<Spread>,
}

pub fn run(bench: &Bench) -> anyhow::Result<()> {
    let machine = Machine::here(bench.scratch(), bench.settings.as_user.as_deref());
    let parts = bench.storages().into_iter().map(|kind| measure(bench, kind)).collect::<anyhow::Result<Vec<_>>>()?;
    let text: String = parts.iter().map(describe).collect();
    publish(bench, &machine, "figure8", "Figure 8: distances and sizes, prefetch-on", &text, &parts)?;
    let panels: Vec<Panel> = parts.iter().map(panel).collect();
    let series = SIZES.map(|size| format!("size {size} MiB"));
    bars::draw(&bench.settings.results.join("figure8.svg"), &panels, &series)
}

fn measure(bench: &Bench, kind: Kind) -> anyhow::Result<Part> {
    let storage = bench.storage(kind, bench.size_for(kind))?;
    let combinations = DISTANCES.into_iter().flat_map(|distance| SIZES.map(|size| (distance, size)));
    let mut points: Vec<Point> = combinations
        .map(|(distance_mib, size_mib)| Point { distance_mib, size_mib, seconds: Vec::new(), spread: None })
        .collect();
    for repetition in 1..=bench.settings.repetitions {
        for point in &mut points {
            let (distance, size) = (format!("{}M", point.distance_mib), format!("{}M", point.size_mib));
            let launch = Launch::new(lmdb_reader(bench, &storage, &[]));
            let launch = launch.under_precache(&["--distance", &distance, "--size", &size]);
            let _memory = storage.make_cold()?;
            let run = launch.run(bench, &storage)?;
            eprintln!("{} {repetition}: {distance} {size}: {}", kind.label(), seconds(run.seconds));
            point.seconds.push(run.seconds);
        }
    }
    for point in &mut points {
        point.spread = Spread::of(point.seconds.iter().copied());
    }
    Ok(Part { storage: kind, bytes: storage.file_size()?, points })
}

impl Part {
    fn spread(&self, distance: u64, size: u64) -> Option<Spread> {
        self.points.iter().find(|point| (point.distance_mib, point.size_mib) == (distance, size))?.spread
    }
}

fn describe(part: &Part) -> String {
    let titles = SIZES.iter().map(|size| format!("size {size} MiB"));
    let mut table = Table::new([String::from("distance")].into_iter().chain(titles));
    for distance in DISTANCES {
        let cells = SIZES.map(|size| {
            part.spread(distance, size).map_or(String::new(), |spread| {
                format!("{} ({} to {})", seconds(spread.median), seconds(spread.least), seconds(spread.most))
            })
        });
        table.row([format!("{distance} MiB")].into_iter().chain(cells));
    }
    let runs = part.points.first().map_or(0, |point| point.seconds.len());
    format!("## {}, {} LMDB, {runs} runs each\n\n{table}\n", part.storage.label(), mebibytes(part.bytes))
}

fn panel(part: &Part) -> Panel {
    let group = |distance: u64| Group {
        name: format!("distance {distance}"),
        bars: SIZES.map(|size| part.spread(distance, size)).to_vec(),
    };
    Panel { title: part.storage.label().to_owned(), groups: DISTANCES.into_iter().map(group).collect(), limit: None }
}
