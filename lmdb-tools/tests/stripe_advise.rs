//! `stripe-advise` from end to end.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

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

/// A kernel that answers as Lustre's does, with the attribute of a file of one stripe of 1 MiB (the real one in
/// `src/stripe/lov/tests.rs`), or with an error.
#[test]
fn the_present_layout_is_read_from_the_file() {
    const ATTRIBUTE: &str = "d00bd10b01000000ccf53d00000000000000000000000000\
                             000010000100000005ec02000000000000000000000000000000000006000000";
    if !have("strace", &["-e", "inject=getxattr:retval=1:poke_exit=@arg3=00", "true"]) {
        return;
    }
    let dir = directory();
    let file = dir.path().join("data.mdb");
    fs::write(&file, "x").unwrap();
    let advise = |answer: &str| {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-o"]).arg(dir.path().join("log")).args(["-e", &format!("inject=getxattr:{answer}")]);
        strace.arg(env!("CARGO_BIN_EXE_precache-lmdb")).arg("stripe-advise").arg(&file);
        strace.args(["--sample-bytes", "24K", "--batch-size", "256", "--gpus", "2", "--fs", "lustre", "--json"]);
        let output = strace.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let calls = fs::read_to_string(dir.path().join("log")).unwrap();
        assert!(calls.contains("data.mdb\", \"lustre.lov\""), "{calls}");
        (json(&String::from_utf8(output.stdout).unwrap()), String::from_utf8(output.stderr).unwrap())
    };
    let (known, warning) = advise(&format!("retval={}:poke_exit=@arg3={ATTRIBUTE}", ATTRIBUTE.len() / 2));
    assert_eq!(known["present"]["components"][0]["stripe_size"], 1 << 20, "{known}");
    assert_eq!((&known["notes"][0], warning.as_str()), (&"now: stripes of 1 MiB over 1 target".into(), ""));
    let (unknown, warning) = advise("error=EIO");
    assert!(
        unknown["present"].is_null() && warning.contains("its present layout is not taken into account: Input/output")
    );
}

/// One that may not be looked for is not called one that is yet to be made.
#[test]
fn a_file_out_of_reach_is_an_error() {
    if !is_root() {
        return;
    }
    let dir = directory();
    let tool = for_others(dir.path());
    let closed = dir.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::write(closed.join("data.mdb"), "x").unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let mut advise = as_nobody(tool);
    advise.arg("stripe-advise").arg(closed.join("data.mdb"));
    let output = advise.args(["--sample-bytes", "24K", "--batch-size", "256", "--fs", "lustre"]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("closed/data.mdb: Permission denied") && output.status.code() == Some(1), "{error}");
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
    let text =
        succeed(&["stripe-advise", "/no/such/new", "--sample-bytes", "1M", "--batch-size", "8", "--fs", "plain"]);
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
