use proptest::prelude::*;

use super::*;

const HEADER: Header = Header { page_size: 4096, file_size: 1 << 40, transaction: 7 };

fn write(items: &[Item]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), HEADER).unwrap();
    for item in items {
        match item {
            Item::Database { name, dupsort, integer_keys } => writer.database(name, *dupsort, *integer_keys),
            Item::Record { key, offset, length } => writer.record(key, *offset, *length),
        }
        .unwrap();
    }
    writer.finish().unwrap()
}

fn item() -> impl Strategy<Value = Item> {
    prop_oneof![
        1 => (".{0,8}", any::<bool>(), any::<bool>())
            .prop_map(|(name, dupsort, integer_keys)| Item::Database { name, dupsort, integer_keys }),
        8 => (prop::collection::vec(0..4_u8, 0..12), 0..1_u64 << 60, 0..1_u64 << 32)
            .prop_map(|(key, offset, length)| Item::Record { key, offset, length }),
    ]
}

fn map() -> impl Strategy<Value = Vec<Item>> {
    prop::collection::vec(item(), 0..60).prop_map(|mut items| {
        items.insert(0, Item::Database { name: String::new(), dupsort: false, integer_keys: false });
        items
    })
}

proptest! {
    #[test]
    fn reads_what_it_writes(items in map()) {
        let bytes = write(&items);
        let reader = Reader::new(&bytes[..]).unwrap();
        prop_assert_eq!(reader.header, HEADER);
        prop_assert_eq!(reader.collect::<Result<Vec<_>, _>>().unwrap(), items);
    }

    #[test]
    fn a_map_that_was_cut_off_is_an_error(items in map(), cut in 0.0..1.0_f64) {
        let bytes = write(&items);
        let cut = (bytes.len() as f64 * cut) as usize;
        let read = Reader::new(&bytes[..cut]).and_then(|reader| reader.collect::<Result<Vec<_>, _>>());
        prop_assert!(read.is_err());
    }

    #[test]
    fn noise_is_an_error_or_a_map(noise in prop::collection::vec(any::<u8>(), 0..200)) {
        let bytes = [MAGIC.as_slice(), &noise].concat();
        let _ = Reader::new(&bytes[..]).and_then(|reader| reader.collect::<Result<Vec<_>, _>>());
    }

    #[test]
    fn numbers_survive(number: u64, signed: i64) {
        let mut bytes = Vec::new();
        put(&mut bytes, number).unwrap();
        prop_assert_eq!(take(&mut &bytes[..]).unwrap(), number);
        prop_assert_eq!(unzigzag(zigzag(signed)), signed);
    }
}

#[test]
fn a_record_of_a_sequential_database_takes_few_bytes() {
    let mut writer = Writer::new(Vec::new(), HEADER).unwrap();
    writer.database("", false, false).unwrap();
    for record in 0..10_000_u64 {
        writer.record(format!("{record:08}").as_bytes(), record * 102_416, 100_000).unwrap();
    }
    assert!(writer.finish().unwrap().len() < 10_000 * 11);
}
