//! `stripe-advise` from end to end.

mod support;

use std::fs;

use support::*;

#[test]
fn the_papers_case() {
    let args = ["stripe-advise", "/scratch/new.mdb", "--sample-bytes", "24K", "--batch-size", "256", "--gpus", "2"];
    let advice = json(&succeed(&[&args[..], &["--fs", "lustre", "--osts", "4", "--json"]].concat()));
    assert_eq!(advice["stripe_size"], 12 << 20);
    assert_eq!(advice["stripe_count"], 4);
    assert_eq!(advice["command"], "lfs setstripe -S 12582912 -c 4 /scratch/new.mdb");
    assert_eq!((&advice["distance"], &advice["size"]), (&(8 << 20).into(), &(48 << 20).into()));
    let text = succeed(&[&args[..], &["--fs", "fefs"]].concat());
    assert!(text.contains("12 MiB") && text.contains("--distance 8M --size 48M"), "{text}");
}

/// FEFS cannot move a file to another layout: it is copied.
#[test]
fn a_file_on_fefs_is_copied() {
    let dir = directory();
    let file = dir.path().join("data.mdb");
    fs::write(&file, "x").unwrap();
    let file = file.to_str().unwrap();
    let args = ["stripe-advise", file, "--sample-bytes", "24K", "--batch-size", "256", "--gpus", "2", "--json"];
    let advice = json(&succeed(&[&args[..], &["--fs", "fefs", "--osts", "4"]].concat()));
    assert_eq!(advice["file_system"], "fefs");
    let expected =
        format!("lfs setstripe -S 12582912 -c 1 {file}.new && cp -p {file} {file}.new && mv {file}.new {file}");
    assert_eq!(advice["command"], expected);
    let advice = json(&succeed(&[&args[..], &["--fs", "lustre", "--osts", "4"]].concat()));
    assert!(advice["command"].as_str().unwrap().starts_with("lfs migrate "), "{advice}");
}

#[test]
fn beegfs_is_told_what_it_is_set_to() {
    let args = ["stripe-advise", "/scratch/new.mdb", "--sample-bytes", "24K", "--batch-size", "256", "--gpus", "2"];
    let args = [&args[..], &["--fs", "beegfs", "--json"]].concat();
    let advice = json(&succeed(&[&args[..], &["--osts", "4"]].concat()));
    assert_eq!(advice["stripe_size"], 16 << 20);
    assert_eq!(advice["size"], 48 << 20);
    assert_eq!(advice["command"], "beegfs-ctl --setpattern --chunksize=16777216 --numtargets=4 /scratch");
    let unknown = json(&succeed(&args));
    assert!(unknown["command"].is_null(), "{unknown}");
}

#[test]
fn from_a_real_database_and_a_real_network() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let db = dir.path().join("ilsvrc12_train_lmdb");
    make(&db, 1000, 24 << 10, true);
    let network = dir.path().join("train_val.prototxt");
    let layer = |name: &str, source: &str, batch: u32, phase: &str| {
        format!(
            "layer {{\n  name: \"{name}\"\n  type: \"Data\"\n  include {{ phase: {phase} }}\n  data_param {{\n    \
             source: \"examples/{source}\"\n    batch_size: {batch}\n    backend: LMDB\n  }}\n}}\n"
        )
    };
    let text = layer("data", "ilsvrc12_train_lmdb", 256, "TRAIN")
        + &layer("labels", "labels_lmdb", 32, "TRAIN")
        + &layer("data", "ilsvrc12_val_lmdb", 50, "TEST");
    fs::write(&network, text).unwrap();
    let (db, network) = (db.to_str().unwrap(), network.to_str().unwrap());
    let args = ["stripe-advise", "--db", db, "--prototxt", network, "--gpus", "2", "--json"];
    let advice = json(&succeed(&[&args[..], &["--fs", "lustre"]].concat()));
    assert_eq!(advice["stripe_size"], 12 << 20);
    assert_eq!(advice["stripe_count"], -1);
    assert_eq!(advice["records"]["mean"], 24576.0);
    let command = advice["command"].as_str().unwrap();
    assert!(command.starts_with("lfs migrate -E 12582912 ") && command.ends_with("/data.mdb"), "{command}");
    let labels = json(&succeed(&[&args[..], &["--layer", "labels"]].concat()));
    assert_eq!(labels["batch_size"], 32);
    assert!(fail(&[&args[..], &["--layer", "nope"]].concat(), 2).contains("\"data\" 256"));
}

/// Images and labels in one file: what a batch of images takes.
#[test]
fn the_records_of_one_of_several_databases() {
    if !have_py_lmdb() {
        return;
    }
    let dir = directory();
    let script = "import lmdb, sys\nenv = lmdb.open(sys.argv[1], map_size=1 << 28, max_dbs=2)\n\
                  images, labels = env.open_db(b'images'), env.open_db(b'labels')\n\
                  with env.begin(write=True) as txn:\n  \
                  for i in range(100): txn.put(b'%d' % i, b'i' * 24576, db=images), txn.put(b'%d' % i, b'1', db=labels)\n";
    let db = dir.path().to_str().unwrap();
    python_ok(script, &[db]);
    let args = ["stripe-advise", "--db", db, "--batch-size", "256", "--gpus", "2", "--fs", "lustre", "--json"];
    let mean = |more: &[&str]| json(&succeed(&[&args[..], more].concat()))["record_bytes"].clone();
    assert_eq!((mean(&[]), mean(&["--name", "images"])), (12288.5.into(), 24576.0.into()));
    assert!(fail(&[&args[..], &["--name", "nope"]].concat(), 1).contains("images, labels"));
}

#[test]
fn a_plain_file_system_has_nothing_to_stripe() {
    let text = succeed(&["stripe-advise", "/tmp/new", "--sample-bytes", "1M", "--batch-size", "8", "--fs", "plain"]);
    assert!(text.contains("nothing to stripe"), "{text}");
}

#[test]
fn bad_usage() {
    let file = "/no/such/file";
    for args in [
        vec!["stripe-advise"],
        vec!["stripe-advise", file],
        vec!["stripe-advise", file, "--batch-size", "8"],
        vec!["stripe-advise", file, "--sample-bytes", "1M"],
        vec!["stripe-advise", file, "--sample-bytes", "1M", "--batch-size", "0"],
        vec!["stripe-advise", file, "--sample-bytes", "1M", "--batch-size", "8", "--align", "100K"],
        vec!["stripe-advise", file, "--sample-bytes", "1M", "--batch-size", "8", "--gpus", "0"],
    ] {
        fail(&args, 2);
    }
    let missing = ["stripe-advise", file, "--sample-bytes", "1M", "--prototxt", "/no/such.prototxt"];
    assert!(fail(&missing, 1).contains("/no/such.prototxt"));
}
