//! The least latency of a storage, told from that of a chunk that somebody else had brought in for the most part.

use std::time::Duration;

/// Answers that must have come so soon: where nobody tells what is cached, the first chunk is one in which a reader has been
/// already, and comes in at once.
const WITNESSES: usize = 3;

/// The least latencies so far.
#[derive(Clone, Copy, Debug)]
pub struct Least([Duration; WITNESSES]);

impl Default for Least {
    fn default() -> Self {
        Self([Duration::MAX; WITNESSES])
    }
}

impl Least {
    /// A request took so long.
    pub fn hear(&mut self, latency: Duration) {
        let [.., greatest] = &mut self.0;
        *greatest = latency.min(*greatest);
        self.0.sort_unstable();
    }

    /// The latency that at least three requests have kept to, or all, as long as there are fewer.
    pub fn latency(&self) -> Option<Duration> {
        self.0.iter().copied().rfind(|latency| *latency < Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_alone_does_not_count() {
        let mut least = Least::default();
        assert_eq!(least.latency(), None);
        // As they were measured: the first chunk was cached but for a page or two.
        for (tenths, so_far) in [(4, 4), (94, 94), (96, 96), (108, 96), (93, 94), (198, 94)] {
            least.hear(Duration::from_micros(tenths * 100));
            assert_eq!(least.latency(), Some(Duration::from_micros(so_far * 100)));
        }
    }
}
