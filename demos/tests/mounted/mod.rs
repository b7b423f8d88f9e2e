//! A slowfs mount that lives as long as its test.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use precache_demos::random::Random;
use tempfile::TempDir;

pub struct Mounted {
    slowfs: Child,
    /// Holds `source` and `mount`.
    directory: TempDir,
}

impl Mounted {
    /// Mounts an empty directory; None, with a printed reason, where FUSE cannot be used.
    pub fn new(arguments: &[&str]) -> Option<Self> {
        if !Path::new("/dev/fuse").exists() {
            eprintln!("skipped: there is no /dev/fuse");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("source")).unwrap();
        fs::create_dir(directory.path().join("mount")).unwrap();
        let mut slowfs = Command::new(env!("CARGO_BIN_EXE_slowfs"))
            .arg("--until-stdin-closes")
            .args(arguments)
            .args([directory.path().join("source"), directory.path().join("mount")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(slowfs.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        if line != "ready\n" {
            let status = slowfs.wait().unwrap();
            assert!(!nix::unistd::geteuid().is_root(), "slowfs does not mount: {status}");
            eprintln!("skipped: slowfs cannot mount here, see above ({status})");
            return None;
        }
        Some(Self { slowfs, directory })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("mount").join(name)
    }

    pub fn source(&self, name: &str) -> PathBuf {
        self.directory.path().join("source").join(name)
    }

    /// Makes a file in the source, past the mount, and returns its content.
    pub fn make_file(&self, name: &str, size: u64) -> Vec<u8> {
        let mut content = vec![0; size as usize];
        Random::new(size).fill(&mut content);
        fs::write(self.source(name), &content).unwrap();
        content
    }

    /// One counter of a file; 0 for a file that was not read.
    pub fn count(&self, file: &str, counter: &str) -> u64 {
        let json = fs::read(self.path(".slowfs/counters.json")).unwrap();
        let counters: serde_json::Value = serde_json::from_slice(&json).unwrap();
        counters["files"][file][counter].as_u64().unwrap_or(0)
    }

    pub fn reset_counters(&self) {
        fs::write(self.path(".slowfs/reset"), "1").unwrap();
    }

    pub fn kill(&mut self) {
        self.slowfs.kill().unwrap();
    }

    pub fn close_stdin(&mut self) {
        self.slowfs.stdin.take();
    }

    pub fn wait_until_unmounted(&self) {
        let mountpoint = self.path("");
        let mountpoint = mountpoint.to_str().unwrap().trim_end_matches('/');
        let mounted = || fs::read_to_string("/proc/self/mounts").unwrap().contains(mountpoint);
        for _ in 0..1000 {
            if !mounted() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("{mountpoint} is still mounted");
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.close_stdin();
        // Its exit status is of no interest: the tests that kill it get here too.
        let _ = self.slowfs.wait();
    }
}
