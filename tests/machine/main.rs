//! File systems and settings that a test cannot have without changing the machine for everybody: `make test-machine` boots one
//! for them, with another kernel. Alone, natively and under precache, programs leave the same behind there.

use precache_tests::methods::METHODS;
use precache_tests::programs::program;
use precache_tests::runs::{Program, Report};
use precache_tests::storage::{flat_file, make_cold};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const MIB: usize = 64;

/// Runs it in a shell, where it must succeed.
fn shell(script: &str) {
    let status = Command::new("sh").args(["-euc", script]).status().expect("a shell starts");
    assert!(status.success(), "{status}: {script}");
}

/// A folder in which the script mounts something as `$at`, unmounted when this drops.
struct Mount(TempDir);

impl Mount {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        shell(&format!("at={}; {script}", folder.path().display()));
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}

/// A reader of the file, cold each time, is served and does not notice.
fn is_served(file: &Path) -> Vec<Report> {
    let reader = Program::new([program("map-reader").into_os_string(), file.into()]);
    let alone = reader.alone();
    assert!(alone.status.success(), "{alone:?}");
    let run = |method| {
        make_cold(file);
        reader.must_be_as(&alone, &[method, "--distance=1M", "--size=8M"])
    };
    METHODS.map(run).into()
}

/// A server and a client of version 4.2, the kernel's own.
#[test]
fn nfs() {
    let exported = flat_file(MIB);
    let folder = exported.parent().expect("it lies in a folder").display();
    shell(&format!(
        "mkdir -p /var/lib/nfs/rpc_pipefs
         mount -t nfsd nfsd /proc/fs/nfsd
         exportfs -i -o ro,fsid=0,insecure,no_root_squash 127.0.0.1:{folder}
         rpc.mountd --no-nfs-version 2 --no-nfs-version 3
         rpc.nfsd --no-nfs-version 3 1
         # Nobody is there who was there before the server started.
         echo Y > /proc/fs/nfsd/v4_end_grace"
    ));
    let mount = Mount::new("mount -t nfs4 -o vers=4.2,ro 127.0.0.1:/ $at");
    for report in is_served(&mount.path().join(exported.file_name().expect("it has a name"))) {
        // The reader itself fetches what it reads before it is known to follow an order.
        let brought = report.of_file("fetched") + report.of_file("cached");
        assert!(brought >= (MIB << 20) as u64 && report.of_file("fetched") > 48 << 20, "{:#}", report.0);
    }
    drop(mount);
    shell("rpc.nfsd 0");
}

/// What is mapped there is the storage: there is nothing to fetch.
#[test]
fn dax() {
    let mount = Mount::new("mkfs.ext4 -q -b 4096 /dev/pmem0; mount -o dax=always /dev/pmem0 $at");
    let file = mount.path().join("flat");
    fs::copy(flat_file(MIB), &file).expect("there is room");
    for report in is_served(&file) {
        assert_eq!(report.of_file("fetched"), 0, "{:#}", report.0);
    }
}

/// Single pages of 4 KiB cannot be protected there: the first trip lets go.
#[test]
fn huge_pages() {
    fs::write("/proc/sys/vm/nr_hugepages", "64").expect("there is memory");
    let mount = Mount::new("mount -t hugetlbfs none $at");
    let file = mount.path().join("flat");
    // It has no write(2).
    let fill = "import mmap, sys; content = open(sys.argv[1], 'rb').read(); file = open(sys.argv[2], 'w+b'); \
                file.truncate(len(content)); mmap.mmap(file.fileno(), len(content))[:] = content";
    let mut filled = Command::new("python3");
    assert!(filled.args(["-c", fill]).arg(flat_file(MIB)).arg(&file).status().expect("python3 starts").success());
    let reader = Program::new([program("map-reader").into_os_string(), file.into_os_string()]);
    let alone = reader.alone();
    assert!(alone.status.success(), "{alone:?}");
    for method in METHODS {
        let (under, report) = reader.under(&[method, "--distance=1M", "--size=8M"]);
        assert_eq!(under, alone, "{:#}", report.0);
        assert!(
            report.text().contains("refused to protect pages (vm.max_map_count, RLIMIT_DATA, huge pages"),
            "{:#}",
            report.0
        );
    }
}

/// `vm.overcommit_memory` as careful administrators have it, with room for the program, for us, and for an optimizer that
/// ends.
#[test]
fn no_memory_is_promised_twice() {
    let file = flat_file(MIB);
    let _mode = Setting::put("/proc/sys/vm/overcommit_memory", "2");
    let promised = kibibytes("Committed_AS:") + (48 << 10);
    let _limit = Setting::put("/proc/sys/vm/overcommit_kbytes", &promised.to_string());
    is_served(&file);
}

/// A line of /proc/meminfo.
fn kibibytes(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/meminfo").expect("the kernel tells");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("such a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// A file of /proc/sys that is as it was when this drops.
struct Setting(PathBuf, String);

impl Setting {
    fn put(path: &str, value: &str) -> Self {
        let before = fs::read_to_string(path).expect("the kernel tells");
        fs::write(path, value).expect("root may set it");
        Self(path.into(), before)
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        let _ = fs::write(&self.0, &self.1);
    }
}
