//! Against what else one could do: never slower than the best of it, and faster where that leaves something to gain.

use std::time::Duration;

use anyhow::Context;

use super::{Case, DEPENDENT, skipping};
use crate::bandwidth::Limit;
use crate::bench::Bench;
use crate::configuration::Configuration;
use crate::data;
use crate::mount::Slow;
use crate::results::table::seconds;
use crate::statistics::{Ratio, Spread};
use crate::storage::{Kind, READ_AHEAD, Storage};
use crate::verdict::{Bar, Verdict};

/// Of the best peer's time.
const BAR: f64 = 1.02;
/// Of the limit: a peer above it can be beaten.
const NEAR: f64 = 1.05;
/// Of the best peer's time in the first round: who takes longer is not the best, and does not run again.
const RIVAL: f64 = 1.5;

/// With the default size a run takes precache five seconds on storage of this bandwidth; of faster storage more is read. The least,
/// in bytes, that slower storage is read from.
const COMMON_BANDWIDTH: u64 = 400 * MEGA;
const MEGA: u64 = 1_000_000;
const LEAST: u64 = 256 << 20;
/// The longest that a peer is to take.
const LONGEST: Duration = Duration::from_secs(50);
/// Bytes per second at which the way into the page cache is what holds most of them up.
const FAST: u64 = 800 * MEGA;

/// What all of them read, and where from.
#[derive(Clone)]
struct Race {
    /// None: the local disk.
    slow: Option<Slow>,
    pattern: &'static [&'static str],
    peers: &'static [Configuration],
}

pub fn cases() -> Vec<Case> {
    let race = |name: &str, label: &str, slow| {
        let race = Race { slow, pattern: &[], peers: &Configuration::PEERS };
        case(name, format!("peers, sequential, cold, {label}"), race)
    };
    let of = |name, kind: Kind| race(name, kind.label(), kind.slow());
    let fast = |name, latency| {
        let slow = Slow::new(latency, FAST);
        race(name, &slow.label(), Some(slow))
    };
    let ssd = Kind::RemoteSsd;
    let skipping = Race { slow: ssd.slow(), pattern: &skipping::PATTERN, peers: &Configuration::PEERS_OF_ANY };
    vec![
        of("peers-local", Kind::Local),
        of("peers-remote-ssd", ssd),
        of("peers-remote-hdd", Kind::RemoteHdd),
        fast("peers-2000us-800MB", Duration::from_millis(2)),
        fast("peers-10000us-800MB", Duration::from_millis(10)),
        case("peers-skipping", format!("peers, 1 of 4 records, cold, {}", ssd.label()), skipping),
    ]
}

fn case(name: &str, subject: String, race: Race) -> Case {
    Case::new(name, subject, move |bench, subject| judge(bench, subject, &race))
}

/// What takes precache some seconds, and the slowest peer no longer than it may: two requests at a time are all that a plain reader
/// has in flight.
fn size(bench: &Bench, slow: Option<&Slow>) -> u64 {
    let Some(slow) = slow else { return bench.size() * 2 };
    let plain = (2 * u64::from(READ_AHEAD) * 1024) as f64 * LONGEST.as_secs_f64() / slow.latency.as_secs_f64();
    (bench.size() * (slow.bandwidth / MEGA) / (COMMON_BANDWIDTH / MEGA)).min(plain as u64).max(LEAST)
}

fn judge(bench: &Bench, subject: &str, Race { slow, pattern, peers }: &Race) -> anyhow::Result<Vec<Bar>> {
    let source = data::lmdb(bench, size(bench, slow.as_ref()))?;
    let storage = match slow {
        Some(slow) => Storage::slow(bench, slow, &source)?,
        None => Storage::attach(bench, Kind::Local, &source)?,
    };
    let latency = slow.as_ref().map(|slow| slow.latency).unwrap_or_default();
    let limit = Limit::measure(&storage, latency, DEPENDENT)?;
    let all = [&[Configuration::PrefetchOn, Configuration::Warm, Configuration::Baseline][..], *peers].concat();
    let (can, cannot): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.obstacle(&storage).is_none());
    let mut runs: Vec<(Configuration, Vec<f64>)> = can.into_iter().map(|one| (one, Vec::new())).collect();
    let mut bytes = 0;
    for (configuration, times) in &mut runs {
        let run = configuration.run_reading(pattern, bench, &storage)?;
        if *configuration == Configuration::PrefetchOn {
            bytes = run.field("bytes").context("the reader does not say what it read")?.parse()?;
        }
        times.push(run.seconds);
    }
    let first = |(_, times): &(Configuration, Vec<f64>)| times.first().copied().unwrap_or(f64::INFINITY);
    let best = runs.iter().filter(|(one, _)| one.is_peer()).map(first).fold(f64::INFINITY, f64::min);
    let (mut rivals, others): (Vec<_>, Vec<_>) =
        runs.into_iter().partition(|run| !run.0.is_peer() || first(run) <= best * RIVAL);
    for _ in bench.count(bench.settings.repetitions).pairs() {
        for (configuration, times) in &mut rivals {
            times.push(configuration.run_reading(pattern, bench, &storage)?.seconds);
        }
    }
    let times =
        |wanted| rivals.iter().find(|(one, _)| *one == wanted).map(|(_, times)| times.as_slice()).unwrap_or(&[]);
    let median = |times: &[f64]| Spread::of(times.iter().copied()).map_or(f64::NAN, |spread| spread.median);
    let ours = times(Configuration::PrefetchOn);
    let limits: Vec<f64> = times(Configuration::Warm).iter().map(|warm| limit.seconds(bytes, *warm)).collect();

    let mut peers: Vec<(Configuration, &[f64])> =
        rivals.iter().filter(|(one, _)| one.is_peer()).map(|(one, times)| (*one, times.as_slice())).collect();
    peers.sort_by(|(_, one), (_, other)| median(one).total_cmp(&median(other)));
    let (best, best_times) = *peers.first().context("no peer can run here")?;
    let others = others.iter().map(|(peer, times)| (*peer, times.as_slice()));
    let list: Vec<String> = peers
        .iter()
        .copied()
        .chain(others)
        .map(|(peer, times)| format!("{} {}", peer.label(), seconds(median(times))))
        .collect();
    if !cannot.is_empty() {
        // One of these might be the best.
        let cannot: Vec<&str> = cannot.iter().map(|one| one.label()).collect();
        let why = format!("of {}; cannot run here: {}", list.join(", "), cannot.join(", "));
        return Ok(vec![Bar::not_measured(format!("{subject}: time <= {BAR} x best peer"), why)]);
    }
    let list = format!("of {}", list.join(", "));

    let requirement = format!("{subject}: time <= {BAR} x best peer");
    let what = format!("{} ({list})", best.label());
    let no_slower = Bar::of_times(requirement, ours, (&what, best_times), BAR);
    let room = Ratio::of(best_times, &limits).context("they ran at least once")?;
    let requirement = format!("{subject}: faster than the best peer if that is above {NEAR} x limit");
    let of_best = Ratio::of(ours, best_times).context("they ran at least once")?;
    let verdict = match (Verdict::at_most(room.interval(), NEAR), Verdict::at_most(of_best.interval(), 1.0)) {
        (Verdict::Met, _) | (_, Verdict::Met) => Verdict::Met,
        (Verdict::NotMet, other) => other,
        _ => Verdict::Undecided,
    };
    let measured = format!("{of_best} of {}, which is at {room} of the limit", best.label());
    let faster = Bar::new(requirement, measured, verdict);
    Ok(no_slower.into_iter().chain([faster]).collect())
}
