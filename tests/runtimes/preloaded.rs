//! Other preloaded libraries, before us and after us.

use crate::{data, unnoticed};
use precache_tests::storage::lacking;
use std::process::Command;

/// Where the loader finds a library.
fn library(name: &str) -> Option<String> {
    let output = Command::new("/sbin/ldconfig").arg("-p").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let found =
        text.lines().find(|line| line.trim_start().starts_with(name)).and_then(|line| line.split(" => ").nth(1));
    if found.is_none() {
        lacking(name);
    }
    found.map(str::to_owned)
}

fn both_orders(name: &str) {
    let Some(library) = library(name) else { return };
    let code = "
import mmap, sys, zlib
with open(sys.argv[1], 'rb') as file:
    data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
print(zlib.crc32(data))
sys.stdout.buffer.write(data[5_000_000:5_100_000])
with open('/proc/self/maps') as maps:
    print(any('NAME' in line for line in maps))
";
    let code = code.replace("NAME", name);
    for preload in [format!("{library} $LD_PRELOAD"), format!("$LD_PRELOAD {library}")] {
        let command = format!("LD_PRELOAD=\"{preload}\" exec /usr/bin/python3 \"$@\"");
        unnoticed(["sh".into(), "-c".into(), command.into(), "sh".into(), "-c".into(), code.clone().into(), data()]);
    }
}

#[test]
fn jemalloc() {
    both_orders("libjemalloc.so.2");
}

#[test]
fn libeatmydata() {
    both_orders("libeatmydata.so");
}
