//! Storage for the tests: a data file of known content, and slow storage that counts what is fetched from it.

use crate::programs::program;
use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// The folder, and the process whose it is.
static SCRATCH: OnceLock<(PathBuf, u32)> = OnceLock::new();

/// A folder that lasts as long as the test program.
pub fn scratch() -> &'static Path {
    let make = || {
        // Programs that root runs may become other users, who must get at what is in it.
        let readable = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir_in("/var/tmp");
        let folder = readable.expect("a folder on a disk").keep();
        // SAFETY: atexit(3) takes a function that lives as long as the program. Statics are not dropped at its end.
        unsafe { libc::atexit(remove_scratch) };
        (folder, std::process::id())
    };
    &SCRATCH.get_or_init(make).0
}

extern "C" fn remove_scratch() {
    // A forked child that exits has its parent's handlers.
    if let Some((folder, _)) = SCRATCH.get().filter(|(_, owner)| *owner == std::process::id()) {
        let _ = fs::remove_dir_all(folder);
    }
}

/// A file of so many MiB in which every 4-byte word tells its place, so that a wrong byte is noticed.
pub fn flat_file(mebibytes: usize) -> PathBuf {
    static MADE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one_at_a_time = MADE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let path = scratch().join(format!("flat-{mebibytes}M"));
    if !path.exists() {
        let mut file = File::create(path.with_extension("part")).expect("a file can be made");
        for block in 0..mebibytes as u32 {
            let words = (0..1u32 << 18).map(|word| (block << 18 | word).wrapping_mul(2_654_435_761));
            let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
            file.write_all(&bytes).expect("the disk has room");
        }
        file.sync_all().expect("the file reaches the disk");
        fs::rename(path.with_extension("part"), &path).expect("it can be renamed");
    }
    path
}

/// An LMDB of Caffe's records, of about so many MiB.
pub fn lmdb(mebibytes: usize) -> PathBuf {
    static MADE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one_at_a_time = MADE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let path = scratch().join(format!("lmdb-{mebibytes}M"));
    if !path.exists() {
        let made = Command::new(program("make-lmdb"))
            .arg(&path)
            .args(["--size", &format!("{mebibytes}M")])
            .stdout(Stdio::null())
            .status();
        assert!(made.expect("make-lmdb starts").success(), "make-lmdb failed");
    }
    path
}

/// Drops what the page cache holds of a file.
pub fn make_cold(file: &Path) {
    let file = File::open(file).expect("the file is there");
    file.sync_all().expect("nothing of it is dirty");
    nix::fcntl::posix_fadvise(&file, 0, 0, nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED)
        .expect("advice is taken");
}

/// What the machine lacks for a test; under PRECACHE_TESTS_COMPLETE, which a machine with everything sets, that is a
/// failure.
pub fn lacking(what: &str) {
    assert!(std::env::var_os("PRECACHE_TESTS_COMPLETE").is_none(), "this machine should have {what}");
    eprintln!("not all is tested: there is no {what} here");
}

/// Whether slow storage can be mounted here; says so where it cannot.
pub fn can_mount() -> bool {
    let can = Path::new("/dev/fuse").exists();
    if !can {
        lacking("/dev/fuse, so no slow storage that counts and fails: cold local files stand in where they can");
    }
    can
}

/// Slow storage with the files of one folder: a slowfs mount, gone when this drops or the test dies; without /dev/fuse
/// the folder itself, with none of it in the page cache.
pub struct SlowStorage {
    mounted: Option<(Child, TempDir)>,
    source: PathBuf,
}

impl SlowStorage {
    /// Mounts `source` with these options of slowfs; caches are kept across opens.
    pub fn mount(source: &Path, options: &[&str]) -> Self {
        Self::mount_forgetful(source, &[&["--keep-cache"], options].concat())
    }

    /// The same, but what is cached of a file is dropped when it is opened again.
    pub fn mount_forgetful(source: &Path, options: &[&str]) -> Self {
        let mounted = can_mount().then(|| Self::start(source, options));
        if mounted.is_none() {
            for entry in fs::read_dir(source).expect("the folder can be read").flatten() {
                make_cold(&entry.path());
            }
        }
        Self { mounted, source: source.to_owned() }
    }

    fn start(source: &Path, options: &[&str]) -> (Child, TempDir) {
        let mount = tempfile::tempdir().expect("a folder");
        let mut process = Command::new(program("slowfs"))
            .arg("--until-stdin-closes")
            .args(options)
            .arg(source)
            .arg(mount.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("slowfs starts");
        let mut line = String::new();
        let output = process.stdout.as_mut().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("slowfs speaks");
        assert_eq!(line.trim(), "ready", "slowfs did not mount");
        (process, mount)
    }

    pub fn path(&self) -> &Path {
        self.mounted.as_ref().map_or(&self.source, |(_, mount)| mount.path())
    }

    /// Bytes fetched from the file so far, where they are counted.
    pub fn bytes_of(&self, file: &str) -> Option<u64> {
        Some(self.counters()?["files"][file]["bytes"].as_u64().unwrap_or(0))
    }

    /// The most requests that it served at a time, where they are counted.
    pub fn most_in_flight(&self) -> Option<u64> {
        self.counters()?["total"]["max_in_flight"].as_u64()
    }

    fn counters(&self) -> Option<serde_json::Value> {
        self.mounted.as_ref()?;
        let text = fs::read(self.path().join(".slowfs/counters.json")).expect("counters can be read");
        Some(serde_json::from_slice(&text).expect("counters are JSON"))
    }
}

impl Drop for SlowStorage {
    fn drop(&mut self) {
        if let Some((process, _mount)) = &mut self.mounted {
            drop(process.stdin.take());
            let _ = process.wait();
        }
    }
}
