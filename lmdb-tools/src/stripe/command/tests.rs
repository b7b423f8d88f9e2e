use std::path::Path;

use super::super::lov::tests::{REAL_SAMPLE, bytes};
use super::*;

const ADVICE: Advice = Advice { stripe_size: 12 << 20, stripe_count: 5, distance: 8 << 20, size: 48 << 20 };

fn layout(stripe_size: u32, stripe_count: i32) -> Layout {
    let component =
        Component { start: 0, end: u64::MAX, stripe_size, stripe_count, pool: None, on_metadata_target: false };
    Layout { components: vec![component], composite: false, mirrors: 1 }
}

fn subject(kind: Kind) -> Subject<'static> {
    Subject { kind, path: "/scratch/db/data.mdb", size: Some(1 << 30), layout: None }
}

#[test]
fn lustre_file_that_does_not_exist_yet() {
    let plan = plan(&Subject { size: None, ..subject(Kind::Lustre) }, &ADVICE);
    assert_eq!(plan.command.as_deref(), Some("lfs setstripe -S 12582912 -c 5 /scratch/db/data.mdb"));
}

#[test]
fn lustre_file_that_must_move() {
    let now = layout(1 << 20, 1);
    let plan = plan(&Subject { layout: Some(&now), ..subject(Kind::Lustre) }, &ADVICE);
    assert_eq!(
        plan.command.as_deref(),
        Some("lfs migrate -E 12582912 -S 12582912 -c 1 -E -1 -S 12582912 -c 5 /scratch/db/data.mdb")
    );
    assert_eq!(plan.notes[0], "now: stripes of 1 MiB over 1 target");
    assert!(
        plan.notes.iter().any(|note| note.contains("lfs setstripe -S 12582912 -c 5 /scratch/db/data.mdb.new && cp"))
    );
}

#[test]
fn lustre_file_that_is_right() {
    let now = layout(12 << 20, 5);
    let plan = plan(&Subject { layout: Some(&now), ..subject(Kind::Lustre) }, &ADVICE);
    assert_eq!(plan.command, None);
}

/// From the attribute of a file on a real file system to what is to be done.
#[test]
fn from_the_attribute_to_the_command() {
    let now = super::super::lustre::layout(Path::new("data.mdb"), &bytes(REAL_SAMPLE)).unwrap();
    let plan = plan(&Subject { layout: Some(&now), ..subject(Kind::Lustre) }, &ADVICE);
    assert!(plan.command.unwrap().starts_with("lfs migrate -E 12582912 "));
    assert_eq!(plan.notes[0], "now: stripes of 1 MiB over 1 target");
    assert_eq!(plan.notes[2], "targets: 1 now, 5 advised for what reads it at a time");
    assert_eq!(super::super::lustre::layout(Path::new("data.mdb"), b"what is this?"), None);
}

#[test]
fn fefs_has_no_migrate() {
    let now = layout(1 << 20, 1);
    for layout in [None, Some(&now)] {
        let plan = plan(&Subject { layout, ..subject(Kind::Fefs) }, &ADVICE);
        let (path, new) = ("/scratch/db/data.mdb", "/scratch/db/data.mdb.new");
        let expected = format!("lfs setstripe -S 12582912 -c 5 {new} && cp -p {path} {new} && mv {new} {path}");
        assert_eq!(plan.command, Some(expected));
        assert!(!plan.notes.iter().any(|note| note.contains("migrate")), "{plan:?}");
    }
    let fresh = plan(&Subject { size: None, ..subject(Kind::Fefs) }, &ADVICE);
    assert_eq!(fresh.command.as_deref(), Some("lfs setstripe -S 12582912 -c 5 /scratch/db/data.mdb"));
}

#[test]
fn a_file_stays_in_its_pool() {
    let mut now = layout(1 << 20, 1);
    now.components[0].pool = Some("flash".into());
    let command = |kind| plan(&Subject { layout: Some(&now), ..subject(kind) }, &ADVICE).command.unwrap();
    let path = "/scratch/db/data.mdb";
    let migrate = "lfs migrate -E 12582912 -S 12582912 -c 1 -p flash -E -1 -S 12582912 -c 5 -p flash";
    assert_eq!(command(Kind::Lustre), format!("{migrate} {path}"));
    assert!(command(Kind::Fefs).starts_with("lfs setstripe -S 12582912 -c 5 -p flash /scratch/db/data.mdb.new && "));
}

/// It has its objects already, and setstripe would fail.
#[test]
fn an_empty_file_is_migrated() {
    let now = layout(1 << 20, 1);
    let empty = Subject { size: Some(0), layout: Some(&now), ..subject(Kind::Lustre) };
    assert!(plan(&empty, &ADVICE).command.unwrap().starts_with("lfs migrate "));
}

#[test]
fn without_the_number_of_targets_the_stripe_size_decides() {
    let now = layout(12 << 20, 3);
    let unknown = Advice { stripe_count: -1, ..ADVICE };
    let right = plan(&Subject { layout: Some(&now), ..subject(Kind::Lustre) }, &unknown);
    assert!(right.command.is_none() && right.notes[0].contains("give --osts N"), "{right:?}");
    let now = layout(1 << 20, 3);
    assert!(plan(&Subject { layout: Some(&now), ..subject(Kind::Lustre) }, &unknown).command.is_some());
}

#[test]
fn what_has_no_stripes_or_several_layouts() {
    let mut now = layout(12 << 20, 5);
    now.components[0].on_metadata_target = true;
    let small = plan(&Subject { layout: Some(&now), ..subject(Kind::Lustre) }, &ADVICE);
    assert!(small.command.is_some() && small.notes[0] == "now: on the metadata target", "{small:?}");
    let mirrored = Layout { mirrors: 2, ..layout(1 << 20, 5) };
    let mirrored = plan(&Subject { layout: Some(&mirrored), ..subject(Kind::Lustre) }, &ADVICE);
    assert!(mirrored.command.is_none() && mirrored.notes.iter().any(|note| note.contains("2 mirrors")), "{mirrored:?}");
}

#[test]
fn block_sizes_as_mmcrfs_takes_them() {
    for (stripe_size, block) in [(12 << 20, "-B 16M`"), (192 << 10, "-B 256K`")] {
        let plan = plan(&subject(Kind::Gpfs), &Advice { stripe_size, ..ADVICE });
        assert!(plan.notes[1].ends_with(block), "{plan:?}");
    }
}

#[test]
fn the_others() {
    let advice = Advice { stripe_size: 16 << 20, ..ADVICE };
    let beegfs = plan(&subject(Kind::BeeGfs), &advice);
    let command = "beegfs-ctl --setpattern --chunksize=16777216 --numtargets=5 /scratch/db";
    assert_eq!(beegfs.command.as_deref(), Some(command));
    let unknown = plan(&subject(Kind::BeeGfs), &Advice { stripe_count: -1, ..advice });
    assert!(unknown.command.is_none() && unknown.notes[0].contains("--osts N"), "{unknown:?}");
    for kind in [Kind::Gpfs, Kind::Local("ext4"), Kind::Shared("nfs")] {
        let plan = plan(&subject(kind), &ADVICE);
        assert!(plan.command.is_none() && plan.notes[0].contains("nothing to stripe"), "{plan:?}");
    }
}
