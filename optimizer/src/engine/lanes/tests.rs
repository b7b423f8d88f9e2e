use super::*;
use crate::engine::SentFile;
use crate::policy::pieces::FEW;
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;

const MIB: u64 = 1 << 20;

/// A file of so many bytes, filled by this engine.
fn file(size: u64, way: Way) -> Arc<DataFile> {
    let file = tempfile::tempfile().unwrap();
    file.set_len(size).unwrap();
    Arc::new(DataFile::new(SentFile::new(file), None, Some(way), &Arc::default()).unwrap())
}

fn lanes(cap: usize) -> Lanes {
    let mut lanes = Lanes::default();
    lanes.set_cap(cap);
    lanes
}

/// The chunks that these extents are cut into, each landed before the next, and their engines.
fn cut(file: &Arc<DataFile>, extents: Vec<Range<u64>>) -> Vec<(Range<u64>, Way)> {
    let mut lanes = lanes(64);
    lanes.append((0, 0, 0), file, &Arc::default(), extents);
    std::iter::from_fn(|| {
        let job = lanes.next(None)?;
        lanes.land(&job);
        Some((job.chunk, job.way))
    })
    .collect()
}

/// All of what is asked for, and of the pieces that it begins and ends in no more than comes with the larger part.
#[test]
fn large_pieces_are_cut_where_they_come_as_a_whole() {
    let file = file(7 * MIB, Way::Populate);
    if file.chunk(Way::Populate) < LARGE_PIECE {
        return;
    }
    let chunks = cut(&file, [3 * MIB / 2..4 * MIB, 4 * MIB..9 * MIB / 2].into());
    let (small, large): (Vec<_>, Vec<_>) = chunks.into_iter().partition(|(_, way)| *way == Way::Read);
    assert_eq!(large, [(2 * MIB..4 * MIB, Way::Populate)]);
    let parts = small.into_iter().map(|(chunk, _)| chunk);
    let bytes = parts.clone().map(|chunk| chunk.end - chunk.start).sum::<u64>();
    assert_eq!(bytes, MIB);
    assert!(parts.clone().all(|chunk| chunk.end <= 2 * MIB || chunk.start >= 4 * MIB));

    assert_eq!(
        cut(&file, [MIB..2 * MIB, 2 * MIB..7 * MIB].into()),
        [0, 2, 4, 6].map(|at| { (at * MIB..((at + 2) * MIB).min(7 * MIB), Way::Populate) })
    );
}

/// What lies between the records of a reader that skips is not wanted.
#[test]
fn extents_with_gaps_are_not_fetched_in_large_pieces() {
    let file = file(64 * MIB, Way::Populate);
    let extents: Vec<_> = (0..8).map(|record| record * 8 * MIB..record * 8 * MIB + 3 * MIB).collect();
    let chunks = cut(&file, extents.clone());
    assert!(chunks.iter().all(|(_, way)| *way != Way::Populate));
    let bytes: u64 = chunks.iter().map(|(chunk, _)| chunk.end - chunk.start).sum();
    assert_eq!(bytes, 8 * 3 * MIB);
}

/// Of chunks of any size; of tiny ones as many as would be requests.
#[test]
fn lanes_get_as_many_bytes_each() {
    let (file, other) = (file(512 * MIB, Way::Populate), file(512 * MIB, Way::Read));
    let mut lanes = lanes(64);
    lanes.append((0, 0, 0), &file, &Arc::default(), [0..256 * MIB, 256 * MIB..512 * MIB].into());
    let records = (0..512).map(|record| record * MIB..record * MIB + (100 << 10)).collect();
    lanes.append((1, 0, 0), &other, &Arc::default(), records);
    let mut taken = [0; 2];
    while taken[1] < 20 * MIB {
        let job = lanes.next(None).unwrap();
        lanes.land(&job);
        taken[job.lane.0 as usize] += job.chunk.end - job.chunk.start;
        let ahead = taken[0].abs_diff(taken[1]);
        assert!(ahead <= 8 * MIB, "{taken:?}");
    }
    let records = (0..512).map(|record| record * MIB..record * MIB + (4 << 10)).collect();
    lanes.append((2, 0, 0), &other, &Arc::default(), records);
    lanes.forget(|lane| lane.0 == 1);
    let tiny = std::iter::from_fn(|| lanes.next(None).inspect(|job| lanes.land(job)));
    let most = tiny.take(64).collect::<Vec<_>>().chunk_by(|one, other| one.lane == other.lane).map(<[Job]>::len).max();
    assert_eq!(most, Some((LARGE_PIECE / LEAST_TAKEN) as usize));
}

/// More of them would be dropped, also where others have requests in flight.
#[test]
fn few_large_pieces_are_in_flight() {
    let (file, other) = (file(64 * MIB, Way::Populate), file(64 * MIB, Way::Read));
    if file.chunk(Way::Populate) < LARGE_PIECE {
        return;
    }
    let mut lanes = lanes(64);
    lanes.append(
        (0, 0, 0),
        &other,
        &Arc::default(),
        [0..6 * other.request(), 6 * other.request()..12 * other.request()].into(),
    );
    let mut small: Vec<_> = std::iter::from_fn(|| lanes.next(None)).collect();
    assert_eq!(small.len(), 12);
    lanes.append((1, 0, 0), &file, &Arc::default(), [0..32 * MIB, 32 * MIB..64 * MIB].into());
    while lanes.in_flight() > 2 * (FEW - 1) {
        assert!(!lanes.has_next());
        lanes.land(&small.pop().unwrap());
    }
    let mut jobs: Vec<_> = lanes.next(None).into_iter().collect();
    assert!(!lanes.has_next());
    small.iter().for_each(|job| lanes.land(job));
    jobs.extend((1..FEW).filter_map(|_| lanes.next(None)));
    assert_eq!((lanes.in_flight(), lanes.has_next()), (FEW, false));
    lanes.land(&jobs.pop().unwrap());
    assert!(lanes.has_next());
}

/// On a mount that bears them.
#[test]
fn large_pieces_become_more() {
    let file = file(1024 * MIB, Way::Populate);
    if file.chunk(Way::Populate) < LARGE_PIECE {
        return;
    }
    let (mut lanes, mut jobs) = (lanes(64), VecDeque::new());
    lanes.append((0, 0, 0), &file, &Arc::default(), [0..512 * MIB, 512 * MIB..1024 * MIB].into());
    let (mut now, path) = (Duration::ZERO, Duration::from_millis(64));
    for _ in 0..256 {
        jobs.extend(std::iter::from_fn(|| lanes.next(None)));
        // The more there are, the more come in.
        now += path / jobs.len() as u32;
        let mut job: Job = jobs.pop_front().unwrap();
        job.lacking = vec![job.chunk.clone()];
        lanes.learn(&job, now, path);
        lanes.land(&job);
    }
    assert!(lanes.in_flight() > FEW);
}

/// Also where the last one would be a piece of two requests, and where no piece fits.
#[test]
fn no_more_requests_are_in_flight_than_may_be() {
    let file = file(64 * MIB, Way::Populate);
    if file.chunk(Way::Populate) < LARGE_PIECE {
        return;
    }
    for cap in 1..8 {
        let mut lanes = lanes(cap);
        // Short ones first, which are read, then pieces.
        lanes.append((0, 0, 0), &file, &Arc::default(), [3 * MIB / 2..4 * MIB, 4 * MIB..64 * MIB].into());
        let mut jobs = Vec::new();
        while lanes.has_next() {
            jobs.push(lanes.next(None).unwrap());
        }
        let requests: u64 = jobs.iter().map(|job| (job.chunk.end - job.chunk.start).div_ceil(MIB)).sum();
        assert!((1..=cap as u64).contains(&requests), "{requests} of {cap}");
        assert!(lanes.next(None).is_none());
        // What is queued comes in the end.
        while let Some(job) = jobs.pop() {
            lanes.land(&job);
            jobs.extend(lanes.next(None));
        }
        assert!(lanes.is_empty());
    }
}

/// What is trusted to be cached comes in long stretches, as far as it is wanted, and in chunks after all where it is not.
#[test]
fn what_is_trusted_comes_in_stretches() {
    // No device that reads ahead.
    let memory = File::from(memfd_create("data", MFdFlags::empty()).unwrap());
    memory.set_len(64 * MIB).unwrap();
    let file = Arc::new(DataFile::new(SentFile::new(memory), None, Some(Way::Read), &Arc::default()).unwrap());
    let chunk = file.request();
    assert!(chunk < LARGEST_CHUNK);
    file.trust.note(1 << 30, true);
    let mut lanes = lanes(64);
    let wanted = [MIB / 2..20 * MIB, 30 * MIB..30 * MIB + 3 * chunk];
    lanes.append((0, 0, 0), &file, &Arc::default(), wanted.to_vec());
    let (mut come, mut stretches) = (Vec::new(), 0);
    while let Some(job) = lanes.next(None) {
        let within = wanted.iter().find(|extent| extent.contains(&job.chunk.start)).unwrap();
        assert!(job.chunk.end <= within.end && job.chunk.end <= (job.chunk.start / MIB + 1) * MIB);
        match job.sample {
            Some(page) => assert!(job.chunk.contains(&page)),
            None => assert!(job.chunk.end - job.chunk.start <= chunk),
        }
        stretches += usize::from(job.sample.is_some());
        if job.sample.is_some() && stretches == 5 {
            file.trust.disappoint();
            lanes.put_back(job);
            continue;
        }
        if stretches == 5 {
            assert!(job.sample.is_none());
        }
        lanes.land(&job);
        come.push(job.chunk);
    }
    assert_eq!(stretches, 5);
    let parts: Vec<_> =
        wanted.iter().map(|extent| come.iter().filter(|part| extent.contains(&part.start)).cloned()).collect();
    for (extent, parts) in wanted.iter().zip(parts) {
        let end = parts.fold(extent.start, |at, part| {
            assert_eq!(part.start, at);
            part.end
        });
        assert_eq!(end, extent.end);
    }
}
