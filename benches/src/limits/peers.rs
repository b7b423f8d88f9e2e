//! Against what else one could do: never slower than the best of it, and faster where that leaves something to gain.

use anyhow::Context;

use super::{Case, DEPENDENT, skipping};
use crate::bandwidth::Limit;
use crate::bench::Bench;
use crate::configuration::Configuration;
use crate::results::table::seconds;
use crate::statistics::{Ratio, Spread};
use crate::storage::Kind;
use crate::verdict::{Bar, Verdict};

/// Of the best peer's time.
const BAR: f64 = 1.02;
/// Of the limit: a peer above it can be beaten.
const NEAR: f64 = 1.05;
/// Of the best peer's time in the first round: who takes longer is not the best, and does not run again.
const RIVAL: f64 = 1.5;

/// What all of them read, and where from.
#[derive(Clone, Copy)]
struct Race {
    kind: Kind,
    pattern: &'static [&'static str],
    peers: &'static [Configuration],
}

pub fn cases() -> Vec<Case> {
    let sequential = |kind: Kind| {
        let name = match kind {
            Kind::Local => "peers-local",
            Kind::RemoteSsd => "peers-remote-ssd",
            Kind::RemoteHdd => "peers-remote-hdd",
        };
        let race = Race { kind, pattern: &[], peers: &Configuration::PEERS };
        Case::new(name, format!("peers, sequential, cold, {}", kind.label()), move |bench, subject| {
            judge(bench, subject, race)
        })
    };
    let race = Race { kind: Kind::RemoteSsd, pattern: &skipping::PATTERN, peers: &Configuration::PEERS_OF_ANY };
    let subject = format!("peers, 1 of 4 records, cold, {}", race.kind.label());
    let skipping = Case::new("peers-skipping", subject, move |bench, subject| judge(bench, subject, race));
    Kind::ALL.into_iter().map(sequential).chain([skipping]).collect()
}

/// What takes precache some seconds, and peers up to ten times as long.
fn size(bench: &Bench, kind: Kind) -> u64 {
    match kind {
        Kind::Local => bench.size() * 2,
        Kind::RemoteSsd => bench.size(),
        Kind::RemoteHdd => bench.size() * 3 / 8,
    }
}

fn judge(bench: &Bench, subject: &str, Race { kind, pattern, peers }: Race) -> anyhow::Result<Vec<Bar>> {
    let storage = bench.storage(kind, size(bench, kind))?;
    let latency = kind.slow().map(|slow| slow.latency).unwrap_or_default();
    let limit = Limit::measure(&storage, latency, DEPENDENT)?;
    let all = [&[Configuration::PrefetchOn, Configuration::Warm, Configuration::Baseline][..], peers].concat();
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
    let faster = if room.median > NEAR {
        Bar::of_times(requirement, ours, (best.label(), best_times), 1.0)
    } else {
        Some(Bar::new(requirement, format!("{} is at {room} of the limit", best.label()), Verdict::Met))
    };
    Ok(no_slower.into_iter().chain(faster).collect())
}
