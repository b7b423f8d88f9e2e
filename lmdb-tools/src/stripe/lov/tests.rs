use proptest::prelude::*;

use super::*;

/// A file of one stripe, as debugfs printed the attribute of its inode, number 4060620, on a metadata target of 2012; the list
/// on which it was published: lists.lustre.org/pipermail/lustre-discuss-lustre.org/2013-January/011474.html.
pub const REAL_SAMPLE: &str = "d0 0b d1 0b 01 00 00 00 cc f5 3d 00 00 00 00 00 00 00 00 00 00 00 00 00 \
     00 00 10 00 01 00 00 00 05 ec 02 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 06 00 00 00";

/// A file of 4 stripes of 1 MiB on targets 1, 3, 0 and 2, as `getfattr -n lustre.lov -e hex` prints it. Put together by
/// hand from lustre_user.h, for want of a Lustre: the object ids are made up.
const V1_SAMPLE: &str = "d00bd10b 01000000 0104000002000000 0000000000000000 00001000 0400 0000 \
     0d00000000000000 0000000000000000 00000000 01000000 \
     0e00000000000000 0000000000000000 00000000 03000000 \
     0f00000000000000 0000000000000000 00000000 00000000 \
     1000000000000000 0000000000000000 00000000 02000000";

/// The same with 2 stripes of 12 MiB, in the pool "flash".
const V3_SAMPLE: &str = "d00bd30b 01000000 0204000002000000 0000000000000000 0000c000 0200 0000 \
     666c617368000000 0000000000000000 \
     0d00000000000000 0000000000000000 00000000 01000000 \
     0e00000000000000 0000000000000000 00000000 03000000";

/// `lfs setstripe -E 16M -c 1 -S 1M -E -1 -c -1 -S 4M`: the second component has no objects yet.
const PFL_SAMPLE: &str = "d00bd60b e8000000 02000000 0000 0200 0000 000000000000 0000000000000000 \
     01000000 10000000 0000000000000000 0000000100000000 80000000 38000000 00000000 0000000000000000 00000000 \
     02000000 00000000 0000000100000000 ffffffffffffffff b8000000 30000000 00000000 0000000000000000 00000000 \
     d00bd10b 01000000 0304000002000000 0000000000000000 00001000 0100 0000 \
     0d00000000000000 0000000000000000 00000000 01000000 \
     d00bd30b 01000000 0304000002000000 0000000000000000 00004000 ffff 0000 0000000000000000 0000000000000000";

/// `lfs setstripe -E 1M -L mdt -E -1 -S 4M -c 2`, put together like the others: the first component has no objects.
const METADATA_SAMPLE: &str = "d00bd60b f0000000 02000000 0000 0200 0000 000000000000 0000000000000000 \
     01000000 10000000 0000000000000000 0000100000000000 80000000 20000000 00000000 0000000000000000 00000000 \
     02000000 10000000 0000100000000000 ffffffffffffffff a0000000 50000000 00000000 0000000000000000 00000000 \
     d00bd10b 00010000 0404000002000000 0000000000000000 00001000 0000 0000 \
     d00bd10b 01000000 0404000002000000 0000000000000000 00004000 0200 0000 \
     0d00000000000000 0000000000000000 00000000 01000000 \
     0e00000000000000 0000000000000000 00000000 03000000";

pub fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

fn component(start: u64, end: u64, stripe_size: u32, stripe_count: i32, pool: Option<&str>) -> Component {
    Component { start, end, stripe_size, stripe_count, pool: pool.map(Into::into), on_metadata_target: false }
}

#[test]
fn a_layout_from_a_real_file_system() {
    let layout = Layout::parse(&bytes(REAL_SAMPLE)).unwrap();
    let expected = component(0, u64::MAX, 1 << 20, 1, None);
    assert_eq!(layout, Layout { components: vec![expected], composite: false, mirrors: 1 });
    // Of older file systems the object id begins with the inode number: the fields are where they are looked for.
    assert_eq!(Fields(&bytes(REAL_SAMPLE)).u64(8), Ok(4_060_620));
}

#[test]
fn data_on_the_metadata_target() {
    let layout = Layout::parse(&bytes(METADATA_SAMPLE)).unwrap();
    let on_metadata_target = Component { on_metadata_target: true, ..component(0, 1 << 20, 1 << 20, 0, None) };
    assert_eq!(layout.components, [on_metadata_target, component(1 << 20, u64::MAX, 4 << 20, 2, None)]);
    assert_eq!(layout.components[0].to_string(), "on the metadata target");
}

#[test]
fn mirrors() {
    let mut mirrored = bytes(PFL_SAMPLE);
    assert_eq!(Layout::parse(&mirrored).unwrap().mirrors, 1);
    mirrored[16] = 2;
    assert_eq!(Layout::parse(&mirrored).unwrap().mirrors, 3);
}

#[test]
fn plain_layouts() {
    let v1 = Layout::parse(&bytes(V1_SAMPLE)).unwrap();
    assert_eq!(v1.components, [component(0, u64::MAX, 1 << 20, 4, None)]);
    assert_eq!(v1.components[0].to_string(), "stripes of 1 MiB over 4 targets");
    let v3 = Layout::parse(&bytes(V3_SAMPLE)).unwrap();
    assert_eq!(v3.components, [component(0, u64::MAX, 12 << 20, 2, Some("flash"))]);
}

#[test]
fn a_progressive_layout() {
    let layout = Layout::parse(&bytes(PFL_SAMPLE)).unwrap();
    assert!(layout.composite);
    assert_eq!(
        layout.components,
        [component(0, 16 << 20, 1 << 20, 1, None), component(16 << 20, u64::MAX, 4 << 20, -1, None)]
    );
    assert_eq!(layout.main(8 << 20), Some(&layout.components[0]));
    assert_eq!(layout.main(1 << 30), Some(&layout.components[1]));
}

#[test]
fn what_is_no_striped_layout() {
    assert_eq!(Layout::parse(&[]), Err(Error::Short(0)));
    assert_eq!(Layout::parse(&bytes("d00bd70b")), Err(Error::Foreign));
    assert_eq!(Layout::parse(&bytes("12345678")), Err(Error::Unknown(0x7856_3412)));
}

proptest! {
    #[test]
    fn cut_off_or_noisy_attributes_are_errors_or_layouts(
        sample in prop::sample::select(vec![REAL_SAMPLE, V1_SAMPLE, V3_SAMPLE, PFL_SAMPLE, METADATA_SAMPLE]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = bytes(sample);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = Layout::parse(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        let _ = Layout::parse(&bytes);
    }
}
