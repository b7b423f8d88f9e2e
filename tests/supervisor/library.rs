//! Where the injected library is unpacked, and what it is checked for.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::stage::{finish, supervisor};

/// The library that a program started by this command has in LD_PRELOAD, and whether it has it mapped.
fn preloaded(command: &mut Command) -> (PathBuf, bool) {
    let finished = finish(command.args(["--", "sh", "-c", "echo \"$LD_PRELOAD\"; cat /proc/self/maps"]));
    let (path, maps) = finished.stdout.split_once('\n').unwrap_or_else(|| panic!("{finished:?}"));
    assert!(!path.is_empty(), "it was injected: {finished:?}");
    (PathBuf::from(path), maps.contains("precache_inject"))
}

struct Home {
    folder: TempDir,
}

impl Home {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn supervisor(&self) -> Command {
        let mut command = supervisor();
        command.env("HOME", self.folder.path());
        command
    }

    /// A program is injected, with a library that is in the home's cache.
    fn unpack(&self) -> PathBuf {
        let (path, mapped) = preloaded(&mut self.supervisor());
        assert!(mapped, "{path:?} is not mapped");
        assert!(path.starts_with(self.folder.path().join(".cache/precache")), "{path:?}");
        path
    }

    /// A program is injected, but with a library in memory.
    fn expect_memory(&self) {
        expect_memory(&mut self.supervisor());
    }
}

fn expect_memory(command: &mut Command) {
    let (path, mapped) = preloaded(command);
    assert!(path.starts_with("/proc") && mapped, "{path:?}");
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn it_is_unpacked_once_and_for_its_user_alone() {
    let home = Home::new();
    let path = home.unpack();
    assert_eq!(mode(&path), 0o500);
    let folder = path.parent().unwrap();
    assert_eq!((mode(folder), mode(folder.parent().unwrap())), (0o700, 0o700));
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1, "no temporary file stays");

    let changed = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    let first = changed(&path);
    assert_eq!(home.unpack(), path);
    assert_eq!(changed(&path), first, "it was not written again");
}

#[test]
fn the_cache_may_lie_elsewhere() {
    let home = Home::new();
    let cache = home.folder.path().join("elsewhere");
    fs::create_dir(&cache).unwrap();
    let (path, _) = preloaded(home.supervisor().env("XDG_CACHE_HOME", &cache));
    assert!(path.starts_with(cache.join("precache")), "{path:?}");
}

/// What others, or accidents, may do to the unpacked file. It is replaced, with the right content.
#[test]
fn a_file_that_is_not_as_written_is_replaced() {
    let tamperings: [fn(&Path); 5] = [
        |path| set_mode(path, 0o722),
        |path| {
            // The same length, another content.
            let mut content = fs::read(path).unwrap();
            content[100] ^= 1;
            set_mode(path, 0o700);
            fs::write(path, content).unwrap();
            set_mode(path, 0o500);
        },
        |path| fs::write(path, "").unwrap_or_else(|_| fs::remove_file(path).unwrap()),
        |path| {
            let target = path.with_file_name("target");
            fs::rename(path, &target).unwrap();
            symlink(target, path).unwrap();
        },
        |path| {
            if nix::unistd::getuid().is_root() {
                chown(path, Some(65534), None).unwrap();
            }
        },
    ];
    for tamper in tamperings {
        let home = Home::new();
        let path = home.unpack();
        let content = fs::read(&path).unwrap();
        tamper(&path);
        assert_eq!(home.unpack(), path);
        assert!(fs::read(&path).unwrap() == content);
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        assert_eq!(mode(&path), 0o500);
        assert_eq!(std::os::unix::fs::MetadataExt::uid(&fs::metadata(&path).unwrap()), nix::unistd::getuid().as_raw());
    }
}

#[test]
fn a_folder_that_others_may_write_is_not_used() {
    for exposed in [".cache/precache", ".cache", ""] {
        let home = Home::new();
        home.unpack();
        set_mode(&home.folder.path().join(exposed), 0o777);
        home.expect_memory();
    }
}

#[test]
fn a_folder_of_somebody_else_is_not_used() {
    if !nix::unistd::getuid().is_root() {
        return eprintln!("skipped: only root can give a folder away");
    }
    for foreign in [".cache/precache", ".cache", ""] {
        let home = Home::new();
        home.unpack();
        chown(home.folder.path().join(foreign), Some(65534), None).unwrap();
        home.expect_memory();
    }
}

#[test]
fn a_folder_behind_a_link_is_not_used() {
    let home = Home::new();
    let path = home.unpack();
    let folder = path.parent().unwrap();
    let moved = home.folder.path().join("moved");
    fs::rename(folder, &moved).unwrap();
    symlink(moved, folder).unwrap();
    home.expect_memory();
}

#[test]
fn paths_that_the_loader_would_misread_are_not_used() {
    for name in ["a b", "a:b", "a\tb", "$ORIGIN"] {
        let home = Home::new();
        let cache = home.folder.path().join(name);
        fs::create_dir(&cache).unwrap();
        expect_memory(home.supervisor().env("XDG_CACHE_HOME", &cache));
    }
}

#[test]
fn no_home_is_needed() {
    for home in [None, Some("relative"), Some("/no/such/folder"), Some("/proc")] {
        let mut command = supervisor();
        match home {
            Some(home) => command.env("HOME", home),
            None => command.env_remove("HOME"),
        };
        expect_memory(&mut command);
    }
}

#[test]
fn in_memory_it_leaves_the_program_no_descriptor() {
    let mut command = supervisor();
    command.env_remove("HOME").args(["-q", "--", "sh", "-c", "ls /proc/$$/fd"]);
    assert_eq!(finish(&mut command).stdout, finish(Command::new("sh").args(["-c", "ls /proc/$$/fd"])).stdout);
}
