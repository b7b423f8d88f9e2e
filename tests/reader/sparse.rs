//! A 240 GiB file: what protecting it costs the reader does not grow with its length.

use precache_tests::methods::METHODS;
use precache_tests::programs::compile;
use precache_tests::runs::Program;
use precache_tests::storage::scratch;
use std::fs::File;
use std::path::Path;

/// Mappings and kilobytes of page tables that the program printed.
fn figures(stdout: &[u8]) -> (i64, i64) {
    let text = String::from_utf8_lossy(stdout).into_owned();
    let mut words = text.split_whitespace().map(|word| word.parse().expect("a number"));
    (words.next().expect("mappings"), words.next().expect("page tables"))
}

#[test]
fn a_very_large_file_costs_no_more_than_a_small_one() {
    let data = scratch().join("sparse");
    File::create(&data).unwrap().set_len(240 << 30).unwrap();
    let program = scratch().join("sparse-reader");
    compile(&Path::new(env!("CARGO_MANIFEST_DIR")).join("reader/programs/sparse.c"), &program, &[]).unwrap();
    let reader = Program::new([program.into_os_string(), data.into_os_string()]);
    let (areas, tables) = figures(&reader.alone().stdout);
    for method in METHODS {
        let (left, report) = reader.under(&["--mode=detect", "--distance=8M", method]);
        assert!(report.trips() >= 64, "{:#}", report.0);
        let (areas_under, tables_under) = figures(&left.stdout);
        assert!(areas_under - areas <= 256, "{method}: {} more kernel mappings", areas_under - areas);
        assert!(tables_under - tables <= 16 << 10, "{method}: {} KiB more of page tables", tables_under - tables);
    }
}
