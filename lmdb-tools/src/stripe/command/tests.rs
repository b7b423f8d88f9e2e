use super::super::lov::Component;
use super::*;

const ADVICE: Advice = Advice { stripe_size: 12 << 20, stripe_count: 5, distance: 8 << 20, size: 48 << 20 };

fn layout(stripe_size: u32, stripe_count: i32) -> Layout {
    let component = Component { start: 0, end: u64::MAX, stripe_size, stripe_count, pool: None };
    Layout { components: vec![component], composite: false }
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
    assert!(plan.notes.iter().any(|note| note.contains("lfs setstripe -S 12582912 -c 5 /scratch/db/data.mdb.new")));
}

#[test]
fn lustre_file_that_is_right() {
    let now = layout(12 << 20, 5);
    let plan = plan(&Subject { layout: Some(&now), ..subject(Kind::Lustre) }, &ADVICE);
    assert_eq!(plan.command, None);
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
