//! A sequential reader, cold, takes little longer than the storage needs, whatever the storage.

use std::time::Duration;

use super::control::Control;
use super::{Case, DEPENDENT};
use crate::bandwidth::Limit;
use crate::bench::Bench;
use crate::configuration::Configuration;
use crate::data;
use crate::mount::Slow;
use crate::pairs::Pairs;
use crate::storage::Storage;
use crate::verdict::Bar;

const LATENCIES: [Duration; 3] = [Duration::from_micros(200), Duration::from_millis(2), Duration::from_millis(10)];
const BANDWIDTHS: [u64; 2] = [200 * MEGA, 800 * MEGA];
const BAR: f64 = 1.05;

/// With the default size a run on storage of this bandwidth takes five seconds; faster storage reads more.
const COMMON_BANDWIDTH: u64 = 400 * MEGA;
const MEGA: u64 = 1_000_000;

/// As many background requests as a client of remote storage asks FUSE for (JuiceFS, pkg/fuse/fuse.go), on the path that what
/// the kernel allows by itself does not fill: 12, and read-ahead is dropped from 9 on.
const BACKGROUND: u16 = 50;

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for willneed in [true, false] {
        for latency in LATENCIES {
            for bandwidth in BANDWIDTHS {
                cases.push(case(Slow { willneed, ..Slow::new(latency, bandwidth) }));
            }
        }
    }
    let [.., longest] = LATENCIES;
    let [.., fastest] = BANDWIDTHS;
    cases.push(case(Slow { background: Some(BACKGROUND), ..Slow::new(longest, fastest) }));
    cases
}

fn case(slow: Slow) -> Case {
    let (micros, megabytes) = (slow.latency.as_micros(), slow.bandwidth / MEGA);
    let willneed = if slow.willneed { "" } else { "-no-willneed" };
    let background = slow.background.map(|most| format!("-background-{most}")).unwrap_or_default();
    let name = format!("sequential-{micros}us-{megabytes}MB{willneed}{background}");
    let subject = format!("sequential, cold, {}", slow.label());
    Case::new(name, subject, move |bench, subject| judge(bench, subject, &slow))
}

fn judge(bench: &Bench, subject: &str, slow: &Slow) -> anyhow::Result<Vec<Bar>> {
    let source = data::lmdb(bench, bench.size() * (slow.bandwidth / MEGA) / (COMMON_BANDWIDTH / MEGA))?;
    let storage = Storage::slow(bench, slow, &source)?;
    let limit = Limit::measure(&storage, slow.latency, DEPENDENT)?;
    // The slower storage every way reaches.
    let mut control =
        (slow.bandwidth > COMMON_BANDWIDTH).then(|| Control::choose(bench, &storage, slow)).transpose()?;
    let count = bench.count(bench.settings.repetitions);
    let ours = || Configuration::PrefetchOn.run(bench, &storage);
    let pairs = Pairs::cold_then_warm(
        count,
        || match &mut control {
            Some(control) => control.before(bench, &storage, ours),
            None => ours(),
        },
        || Configuration::Warm.run(bench, &storage),
    )?;
    let size = storage.file_size()?;
    let limits: Vec<f64> = pairs.their_times().into_iter().map(|warm| limit.seconds(size, warm)).collect();
    let requirement = format!("{subject}: time <= {BAR} x limit");
    let what = format!("limit ({:.0} MB/s)", limit.bandwidth / 1e6);
    let bar = Bar::of_times(requirement, &pairs.our_times(), (&what, &limits), BAR);
    let beside = control.and_then(|control| control.bar(subject, count.most as usize, limit.seconds(size, 0.0)));
    Ok(bar.into_iter().chain(beside).collect())
}
