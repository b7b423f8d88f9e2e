//! Which parts of a range are cached, from a source that counts the cached pages of any range.

use precache_contract::PAGE;
use std::ops::Range;

/// Pages of a range that are cached; `None` where the source does not answer.
pub type Count<'a> = &'a dyn Fn(&Range<u64>) -> Option<u64>;

/// Pages that a range touches.
pub fn pages(range: &Range<u64>) -> u64 {
    range.end.div_ceil(PAGE) - range.start / PAGE
}

/// Whether all of it is cached.
pub fn is_cached(count: Count, range: &Range<u64>) -> bool {
    count(range).is_some_and(|cached| cached >= pages(range))
}

/// The parts that are not.
pub fn lacking(count: Count, range: Range<u64>) -> Vec<Range<u64>> {
    let mut lacking = Vec::new();
    find_lacking(count, range, &mut lacking);
    lacking
}

/// Halves a range until each part is cached as a whole or not at all, and appends those that are not.
fn find_lacking(count: Count, range: Range<u64>, lacking: &mut Vec<Range<u64>>) {
    match count(&range).unwrap_or(0) {
        cached if cached >= pages(&range) => {}
        0 => match lacking.last_mut() {
            Some(before) if before.end == range.start => before.end = range.end,
            _ => lacking.push(range),
        },
        _ => {
            let middle = (range.start / PAGE + pages(&range) / 2) * PAGE;
            find_lacking(count, range.start..middle, lacking);
            find_lacking(count, middle..range.end, lacking);
        }
    }
}

/// What of a part that was cached is not any more, in pieces of so many bytes.
pub fn missing(count: Count, part: &Range<u64>, piece: u64) -> Vec<Range<u64>> {
    let all = count(part);
    if all.is_some_and(|cached| cached >= pages(part)) {
        return Vec::new();
    }
    if all == Some(0) {
        return vec![part.clone()];
    }
    let starts = std::iter::successors(Some(part.start), |start| Some((start / piece + 1) * piece));
    let pieces =
        starts.take_while(|start| *start < part.end).map(|start| start..part.end.min((start / piece + 1) * piece));
    // A page more or less may be part of a larger folio that reaches beyond.
    pieces.filter(|part| count(part).is_some_and(|cached| cached <= pages(part) / 2)).collect()
}
