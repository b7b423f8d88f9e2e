//! How a file should be striped: arithmetic only.
//!
//! The paper (section 2.3): stripe size = batch size x GPUs per node, so that what a node reads at a time lies on one
//! target. The rest follows from what the targets can do together.

use serde::Serialize;

use crate::size::Bytes;

/// Where the paper's measurements were best (its figure 8): windows of 50 MB, checkpoints every 8 to 10.
const WINDOW: u64 = 48 << 20;
/// Checkpoints to a window: the last one must fall into its final quarter (the pre-cache threshold is 75 %).
const CHECKPOINTS: u64 = 6;
/// Lustre's unit: stripe sizes are multiples of it.
pub const UNIT: u64 = 64 << 10;
/// The largest that Lustre's 32-bit stripe size can be.
const LARGEST: u64 = (4 << 30) - UNIT;
/// The largest power of two that is.
const LARGEST_POWER: u64 = 2 << 30;

/// What is read, by whom, from what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// Bytes of one batch of one GPU.
    pub batch_bytes: u64,
    /// GPUs of a node; each reads a batch at a time.
    pub gpus: u32,
    /// Nodes that read the file at the same time.
    pub nodes: u32,
    /// Bytes of the file; none where it does not exist yet.
    pub file_size: Option<u64>,
    /// Storage targets of the file system; none where unknown.
    pub targets: Option<u32>,
    /// Stripe sizes are multiples of this; itself a multiple of [`UNIT`].
    pub align: u64,
    /// The file system wants powers of two: that comes before `align`.
    pub power_of_two: bool,
}

/// How to stripe a file and how to pre-cache it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// In bytes.
    pub stripe_size: u64,
    /// In targets; -1 is "all there are", as in `lfs setstripe`.
    pub stripe_count: i64,
    /// Spacing of checkpoints, in bytes: precache-run's --distance.
    pub distance: u64,
    /// Bytes to pre-cache at a time: precache-run's --size.
    pub size: u64,
}

/// Bytes of a batch of `records` records of `mean` bytes, rounded up.
pub fn batch_bytes(mean: f64, records: u64) -> u64 {
    (mean * records as f64).ceil() as u64
}

impl Workload {
    pub fn advice(&self) -> Advice {
        let stripe_size = self.stripe_size();
        let size = WINDOW.div_ceil(stripe_size) * stripe_size;
        let distance = size / CHECKPOINTS / UNIT * UNIT;
        Advice { stripe_size, stripe_count: self.stripe_count(stripe_size, size), distance, size }
    }

    /// What of the advice does not fit: stripes, or a machine with so many bytes of memory; a line each.
    pub fn doubts(&self, advice: &Advice, memory: Option<u64>) -> Vec<String> {
        let (wanted, stripe, window) = (self.at_a_time(), advice.stripe_size, advice.size);
        let too_small = (wanted > stripe).then(|| {
            format!("a node reads {} at a time, and no stripe can be larger than {}", Bytes(wanted), Bytes(stripe))
        });
        let too_large = memory.filter(|&memory| window > memory).map(|memory| {
            format!(
                "this machine has {} of memory for windows of {}: give precache-run a smaller --size there",
                Bytes(memory),
                Bytes(window)
            )
        });
        too_small.into_iter().chain(too_large).collect()
    }

    /// Bytes that a node reads at a time.
    fn at_a_time(&self) -> u64 {
        self.batch_bytes.saturating_mul(u64::from(self.gpus))
    }

    /// Rounded up, so that what a node reads at a time never spans more stripes than it must.
    fn stripe_size(&self) -> u64 {
        let wanted = self.at_a_time().clamp(1, LARGEST);
        let rounded = wanted.next_multiple_of(self.align);
        if self.power_of_two {
            return rounded.next_power_of_two().min(LARGEST_POWER);
        }
        if rounded <= LARGEST { rounded } else { (LARGEST / self.align * self.align).max(self.align) }
    }

    /// As many targets as the nodes' windows touch at a time: more add round trips, fewer make nodes wait for each other.
    /// Never more than there are, or than the file has stripes.
    fn stripe_count(&self, stripe_size: u64, window: u64) -> i64 {
        let Some(targets) = self.targets else { return -1 };
        // A window that does not begin with a stripe touches one more.
        let at_a_time = (window / stripe_size + 1).saturating_mul(u64::from(self.nodes));
        let stripes = self.file_size.map_or(u64::MAX, |size| size.div_ceil(stripe_size));
        at_a_time.min(stripes).min(u64::from(targets)).max(1) as i64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAPER: Workload = Workload {
        batch_bytes: 6 << 20,
        gpus: 2,
        nodes: 1,
        file_size: Some(240 << 30),
        targets: Some(4),
        align: 64 << 10,
        power_of_two: false,
    };

    #[test]
    fn the_papers_case() {
        let advice = PAPER.advice();
        assert_eq!(advice, Advice { stripe_size: 12 << 20, stripe_count: 4, distance: 8 << 20, size: 48 << 20 });
    }

    #[test]
    fn powers_of_two() {
        let advice = Workload { power_of_two: true, ..PAPER }.advice();
        assert_eq!(advice, Advice { stripe_size: 16 << 20, stripe_count: 4, distance: 8 << 20, size: 48 << 20 });
        let huge = Workload { power_of_two: true, batch_bytes: u64::MAX, ..PAPER }.advice();
        assert_eq!(huge.stripe_size, 2 << 30);
    }

    #[test]
    fn counts() {
        let count = |workload: Workload| workload.advice().stripe_count;
        assert_eq!(count(Workload { targets: None, ..PAPER }), -1);
        assert_eq!(count(Workload { targets: Some(100), ..PAPER }), 5);
        assert_eq!(count(Workload { targets: Some(100), nodes: 8, ..PAPER }), 40);
        assert_eq!(count(Workload { file_size: Some(20 << 20), ..PAPER }), 2);
        assert_eq!(count(Workload { file_size: Some(0), ..PAPER }), 1);
        assert_eq!(count(Workload { file_size: None, ..PAPER }), 4);
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let doubts = |workload: Workload, memory| workload.doubts(&workload.advice(), memory);
        assert_eq!(doubts(PAPER, Some(1 << 30)), Vec::<String>::new());
        let huge = Workload { batch_bytes: 5 << 30, ..PAPER };
        assert_eq!(doubts(huge, None), ["a node reads 10 GiB at a time, and no stripe can be larger than 4.0 GiB"]);
        let small_machine = doubts(huge, Some(1 << 30));
        assert!(small_machine[1].contains("1 GiB of memory for windows of 4.0 GiB"), "{small_machine:?}");
    }

    proptest! {
        #[test]
        fn what_lustre_demands(
            batch_bytes in 0..=u64::MAX, gpus in 1..=u32::MAX, nodes in 1..=u32::MAX,
            file_size in prop::option::of(0..=u64::MAX), targets in prop::option::of(1..=u32::MAX), align in 1..1000_u64,
        ) {
            let align = align * (64 << 10);
            let power_of_two = false;
            let workload = Workload { batch_bytes, gpus, nodes, file_size, targets, align, power_of_two };
            let advice = workload.advice();
            prop_assert!(advice.stripe_size > 0 && advice.stripe_size <= LARGEST);
            prop_assert_eq!(advice.stripe_size % align, 0);
            prop_assert!(advice.stripe_count == -1 || advice.stripe_count >= 1);
            prop_assert_eq!(advice.size % advice.stripe_size, 0);
            prop_assert!(advice.distance > 0 && advice.distance <= advice.size / 4);
        }

        #[test]
        fn a_stripe_holds_what_a_node_reads(batch_bytes in 1..1_u64 << 28, gpus in 1..=8_u32) {
            let advice = Workload { batch_bytes, gpus, ..PAPER }.advice();
            let wanted = batch_bytes * u64::from(gpus);
            prop_assert!(advice.stripe_size >= wanted && advice.stripe_size < wanted + PAPER.align);
        }
    }
}
