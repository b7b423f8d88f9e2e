//! The fuzzer's stored inputs: no target panics. Those of whole databases are run in `lmdb-tools/tests/damaged.rs`.

use std::fs;
use std::path::Path;

#[test]
fn every_stored_input_is_survived() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (name, target) in precache_fuzz::TARGETS {
        let mut inputs = 0;
        for input in fs::read_dir(corpus.join(name)).unwrap() {
            let path = input.unwrap().path();
            // Printed when the target panics.
            println!("{}", path.display());
            target(&fs::read(&path).unwrap());
            inputs += 1;
        }
        assert!(inputs > 0, "{name}");
    }
}
