//! Interposed calls, most of them with buffers that lie elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::Context;

use super::{compile_library, cost_reader, output_of, under_precache, warm_file};
use crate::bench::Bench;
use crate::statistics::Median;
use crate::verdict::{Bar, Verdict};

/// Nanoseconds more than without precache.
const BAR: f64 = 10.0;
/// Runs with and without precache, in turn.
const PAIRS: usize = 24;
/// The calls in `wrapper.c` whose result it sees.
const WRAPPED: [&str; 6] = ["write", "read", "send", "recv", "writev", "sendmsg"];
/// Those whose messages it looks at.
const LOOKED_AT: [&str; 2] = ["sendmmsg of four", "sendmmsg of four with names"];

/// What was measured, in nanoseconds, by call and place of the buffer.
type Costs = BTreeMap<String, f64>;

pub fn judge(bench: &Bench) -> anyhow::Result<Vec<Bar>> {
    let file = warm_file(bench)?;
    let wrapper = compile_library(bench, "wrapper", include_str!("wrapper.c"))?;
    let alone = cost_reader(bench, "calls", &file);
    let under = under_precache(bench, &["--distance=1M"], alone.clone());
    let run = |command: &mut Command| costs_of(&output_of(command)?);
    let measure_alone = || run(&mut bench.programs.command(&alone));
    let (mut pairs, mut wrapped) = (Vec::new(), Vec::new());
    for number in 0..PAIRS {
        // Which lines of the processor's caches the library shares with the kernel decides over some 10 ns of long calls (open(2)),
        // and follows from where its file lies in memory: for each pair it is unpacked anew.
        bench.programs.forget_library()?;
        // Who goes first changes from pair to pair.
        let before = if number.is_multiple_of(2) { Some(measure_alone()?) } else { None };
        let costs = run(&mut bench.programs.command(&under))?;
        let least = run(bench.programs.command(&alone).env("LD_PRELOAD", &wrapper))?;
        let without = before.map_or_else(measure_alone, Ok)?;
        wrapped.push((without.clone(), least));
        pairs.push((without, costs));
    }
    let places =
        ["stack", "heap", "mmap", "between mappings", "apart", "by number", "by number between mappings", "none"];
    let mut bars = places.map(|place| bar(place, &pairs)).into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    bars.push(Bar::new(
        "calls with an armed mapping's bytes, eight at a time (write and send to no file)".to_owned(),
        written(&over("armed mapping", &pairs)?),
        Verdict::NoBar,
    ));
    bars.push(least("heap", &WRAPPED, "only passes these calls on and sees what they return", &wrapped)?);
    for (place, says) in [("heap", ""), ("apart", ", where names lie apart")] {
        let does = format!("only compares what these calls are given with two addresses{says}");
        bars.push(least(place, &LOOKED_AT, &does, &wrapped)?);
    }
    Ok(bars)
}

/// Of the calls whose buffers lie in this place; the worst of them decides.
fn bar(place: &str, pairs: &[(Costs, Costs)]) -> anyhow::Result<Bar> {
    let calls = over(place, pairs)?;
    let highest = |end: fn(&Median) -> f64| calls.iter().map(|(over, _)| end(over)).max_by(f64::total_cmp);
    let (low, high) = highest(|over| over.low)
        .zip(highest(|over| over.high))
        .with_context(|| format!("nothing was measured for the place `{place}`"))?;
    let requirement = match place {
        "none" => format!("a call by number that has no buffer takes at most {BAR} ns more"),
        "apart" => {
            format!("messages whose buffers lie on the stack, and their names on the heap, take at most {BAR} ns more")
        }
        "by number" => format!("calls by number whose buffer lies on the stack take at most {BAR} ns more"),
        "by number between mappings" => {
            format!("calls by number whose buffer lies between four armed mappings take at most {BAR} ns more")
        }
        "between mappings" => format!("calls whose buffer lies between four armed mappings take at most {BAR} ns more"),
        "mmap" => format!("calls whose buffer lies in a mapping of its own take at most {BAR} ns more"),
        place => format!("calls whose buffer lies on the {place} take at most {BAR} ns more"),
    };
    Ok(Bar::new(requirement, written(&calls), Verdict::at_most((low, high), BAR)))
}

/// What of it a library takes that does so much.
fn least(place: &str, calls: &[&str], does: &str, pairs: &[(Costs, Costs)]) -> anyhow::Result<Bar> {
    let requirement = format!("the same through a library that {does}");
    let calls = over(place, pairs)?.into_iter().filter(|(_, call)| calls.contains(call)).collect::<Vec<_>>();
    Ok(Bar::new(requirement, written(&calls), Verdict::NoBar))
}

/// What calls with buffers in this place take more, the worst first.
fn over<'a>(place: &str, pairs: &'a [(Costs, Costs)]) -> anyhow::Result<Vec<(Median, &'a str)>> {
    let of_call = |name: &String| {
        let each: Option<Vec<f64>> =
            pairs.iter().map(|(alone, under)| Some(under.get(name)? - alone.get(name)?)).collect();
        each.and_then(Median::of).with_context(|| format!("`{name}` was not measured in every run"))
    };
    let names = pairs.iter().flat_map(|(alone, under)| alone.keys().chain(under.keys())).collect::<BTreeSet<_>>();
    let of_place = names.into_iter().filter_map(|name| match name.split_once(", ")? {
        (call, of) if of == place => Some(of_call(name).map(|over| (over, call))),
        _ => None,
    });
    let mut calls: Vec<(Median, &str)> = of_place.collect::<anyhow::Result<_>>()?;
    calls.sort_by(|(one, _), (other, _)| other.median.total_cmp(&one.median));
    Ok(calls)
}

fn written(calls: &[(Median, &str)]) -> String {
    let each =
        calls.iter().map(|(over, call)| format!("{call} {:+.1} ({:.1} to {:.1})", over.median, over.low, over.high));
    format!("{} ns, {PAIRS} pairs", each.collect::<Vec<_>>().join(", "))
}

fn costs_of(output: &str) -> anyhow::Result<Costs> {
    let cost = |line: &str| {
        let (name, time) = line.split_once('\t').context("a name, a tab and a time were expected")?;
        Ok((name.to_owned(), time.parse()?))
    };
    output.lines().map(cost).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_call_of_a_place_decides() {
        let costs = |text: &str| costs_of(text).unwrap();
        let alone = || costs("read, heap\t5\nwrite, heap\t5.0\nread, stack\t5\n");
        let verdict = |under: [&str; 2]| {
            let pairs = under.map(|under| (alone(), costs(under)));
            bar("heap", &pairs).unwrap().verdict
        };
        let near = "read, heap\t7\nwrite, heap\t14.5\nread, stack\t90\n";
        let far = "read, heap\t7\nwrite, heap\t15.5\nread, stack\t5\n";
        assert_eq!(verdict([near, near]), Verdict::Met);
        assert_eq!(verdict([near, far]), Verdict::Undecided);
        assert_eq!(verdict([far, far]), Verdict::NotMet);
        assert!(bar("mmap", &[]).is_err());
    }

    #[test]
    fn no_call_is_left_out() {
        let both = || costs_of("read, heap\t5\nwrite, heap\t5\n").unwrap();
        let one = || costs_of("read, heap\t5\n").unwrap();
        assert!(bar("heap", &[(both(), both())]).is_ok());
        for missing in [(both(), one()), (one(), both())] {
            let complaint = bar("heap", &[(both(), both()), missing]).unwrap_err().to_string();
            assert!(complaint.contains("`write, heap`"), "{complaint}");
        }
    }
}
