use super::*;
use crate::engine::SentFile;

/// What the first file of a mount has shown of the engines, the next one need not show again; and when nobody reads there,
/// no thread stays.
#[test]
fn the_next_file_profits_and_idle_threads_end() {
    /// Enough for all trials, where requests are as long as they get.
    const SIZE: u64 = 640 << 20;
    let file = || {
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        file.set_len(SIZE).unwrap();
        Arc::new(DataFile::new(SentFile::new(file), None, None, &Arc::default()).unwrap())
    };
    let wait_until = |what: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !what() {
            assert!(begun.elapsed() < Duration::from_secs(60), "waited in vain");
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let (pool, first, next, account) = (Pool::default(), file(), file(), Arc::<Account>::default());
    let _seat = pool.join(Wish { session: 1, jobs: Some(2), max_inflight: None });
    pool.request((1, 1, 1), &first, &account, [0..SIZE / 2, SIZE / 2..SIZE].into());
    let is_through = || pool.inner.lock().lanes.is_empty() && pool.inner.lock().lanes.in_flight() == 0;
    wait_until(&is_through);
    assert!(!pool.inner.lock().settled.is_empty(), "the trials are over");
    pool.request((1, 1, 2), &next, &account, [0..1 << 20, 1 << 20..2 << 20].into());
    assert!(!next.filling.is_on_trial());
    wait_until(&is_through);
    wait_until(&|| pool.inner.lock().threads == 0);
}
