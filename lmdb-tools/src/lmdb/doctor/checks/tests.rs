use super::super::super::info::Readers;
use super::super::super::survey::Sizes;
use super::*;
use crate::lmdb::Location;
use crate::lmdb::info::Info;

fn healthy() -> Facts {
    let mut sizes = Sizes::default();
    sizes.add(4000);
    Facts {
        location: Location { path: "db".into(), data: "db/data.mdb".into(), lock: "db/lock.mdb".into(), subdir: true },
        info: Info {
            page_size: 4096,
            map_size: 1 << 30,
            file_size: 100 << 20,
            used_bytes: 100 << 20,
            transaction: 1,
            databases: Vec::new(),
            values: sizes.distribution(),
            value_bytes: 4000,
            overflow_records: 1,
            fragmentation: 0.0,
            free_pages: 0,
            free_transactions: 0,
            readers: Some(Readers { slots: 126, used: 1, stale: 0 }),
            no_readers: None,
        },
        kind: Kind::Local("ext4"),
        shared: false,
        unvouched: false,
        read_ahead: Some(128 << 10),
        read_ahead_setting: None,
        locks: Some(Locks::Honoured),
        lock_file: LockFile::Writable,
        memory: Some(1 << 30),
    }
}

fn hurting(facts: &Facts) -> Vec<&'static str> {
    let findings = all(facts);
    assert!(findings.iter().all(|finding| finding.hurts == finding.command.is_some()));
    findings.into_iter().filter(|finding| finding.hurts).map(|finding| finding.subject).collect()
}

#[test]
fn a_healthy_database_hurts_nowhere() {
    assert_eq!(hurting(&healthy()), Vec::<&str>::new());
}

#[test]
fn each_ill_is_found_alone() {
    type Ill = fn(&mut Facts);
    let ills: [(&str, Ill); 13] = [
        ("file system", |facts| facts.kind = Kind::Lustre),
        ("file system", |facts| facts.kind = Kind::Fefs),
        ("file system", |facts| facts.kind = Kind::Shared("nfs")),
        ("read-ahead", |facts| facts.read_ahead = Some(2048)),
        ("memory", |facts| facts.memory = Some(1 << 20)),
        ("locks", |facts| facts.locks = Some(Locks::Refused(nix::Error::ENOLCK))),
        ("locks", |facts| facts.locks = Some(Locks::Ignored)),
        ("lock file", |facts| facts.lock_file = LockFile::Refused("Permission denied".into())),
        ("lock file", |facts| facts.lock_file = LockFile::Missing { may_be_made: false }),
        ("readers", |facts| facts.info.readers = Some(Readers { slots: 126, used: 126, stale: 0 })),
        ("readers", |facts| facts.info.readers = Some(Readers { slots: 126, used: 4, stale: 3 })),
        ("map size", |facts| facts.info.map_size = 105 << 20),
        ("free pages", |facts| facts.info.free_pages = 10_000),
    ];
    for (subject, ill) in ills {
        let mut facts = healthy();
        ill(&mut facts);
        assert_eq!(hurting(&facts), [subject]);
    }
}

#[test]
fn shuffled_keys_make_read_ahead_wasteful() {
    let mut facts = healthy();
    facts.info.fragmentation = 0.95;
    assert_eq!(hurting(&facts), ["read-ahead", "key order"]);
}

/// Nothing hurts whose mending would change nothing.
#[test]
fn the_largest_read_ahead_is_as_good_as_it_gets() {
    let mut facts = healthy();
    facts.info.values = {
        let mut sizes = Sizes::default();
        sizes.add(100 << 20);
        sizes.distribution()
    };
    assert_eq!(hurting(&facts), ["read-ahead"]);
    let told = all(&facts).into_iter().find_map(|finding| finding.command).unwrap();
    let kib: u64 = told.split(' ').nth(1).unwrap().parse().unwrap();
    facts.read_ahead = Some(kib << 10);
    assert_eq!(hurting(&facts), Vec::<&str>::new());
}

#[test]
fn where_writers_may_be_unseen_the_user_must_vouch() {
    let mut facts = healthy();
    facts.lock_file = LockFile::Missing { may_be_made: false };
    let command = |facts: &Facts| all(facts).into_iter().find_map(|finding| finding.command).unwrap();
    assert!(!command(&facts).contains("--assume-read-only"));
    facts.unvouched = true;
    assert!(command(&facts).contains("--assume-read-only"));
}
