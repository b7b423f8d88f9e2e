//! Where the injected library is unpacked, and what it is checked for.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use precache_tests::storage::lacking;
use tempfile::TempDir;

use crate::stage::{finish, supervisor, with_own_var_cache};

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
        command.env("HOME", self.folder.path()).env("XDG_CACHE_HOME", self.folder.path().join(".cache"));
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

/// Modes of the folders and the file: root's are for everybody to read, for what root starts may become another user.
fn expected_modes() -> (u32, u32) {
    if nix::unistd::getuid().is_root() { (0o755, 0o555) } else { (0o700, 0o500) }
}

#[test]
fn it_is_unpacked_once_and_for_its_user_alone_to_write() {
    let home = Home::new();
    let path = home.unpack();
    let (folders, file) = expected_modes();
    assert_eq!(mode(&path), file);
    let folder = path.parent().unwrap();
    assert_eq!((mode(folder), mode(folder.parent().unwrap())), (folders, folders));
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
            set_mode(path, expected_modes().1);
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
        assert_eq!(mode(&path), expected_modes().1);
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
        return lacking("root's rights, to give a folder away");
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
    for cache in ["/no/such/folder", "/proc"] {
        expect_memory(supervisor().env("XDG_CACHE_HOME", cache));
    }
    for home in [None, Some("relative"), Some("/no/such/folder"), Some("/proc")] {
        let mut command = supervisor();
        command.env("XDG_CACHE_HOME", "relative");
        match home {
            Some(home) => command.env("HOME", home),
            None => command.env_remove("HOME"),
        };
        if nix::unistd::getuid().is_root() {
            // Where root's library would lie otherwise, it could not be executed.
            command = with_own_var_cache(&command, "noexec");
        }
        expect_memory(&mut command);
    }
}

/// Full, and read-only.
#[test]
fn where_nothing_can_be_written_it_is_kept_in_memory() {
    if !nix::unistd::getuid().is_root() {
        return lacking("root's rights, to mount file systems");
    }
    for how in ["size=64k", "ro"] {
        let mut command = supervisor();
        command.env("XDG_CACHE_HOME", "/var/cache");
        expect_memory(&mut with_own_var_cache(&command, how));
    }
}

/// A child of root's that becomes another user executes programs as if there were no library to be read.
#[test]
fn whoever_roots_children_become_can_read_it() {
    if !nix::unistd::getuid().is_root() {
        return lacking("root's rights, to become somebody else");
    }
    let home = Home::new();
    set_mode(home.folder.path(), 0o700);
    let mut command = home.supervisor();
    command.env_remove("XDG_CACHE_HOME").args(["-q", "--"]);
    command.args(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c"]);
    command.arg(
        "echo \"$LD_PRELOAD\"; id -u; ls -ld $(dirname \"$LD_PRELOAD\"); ls -l \"$LD_PRELOAD\"; cat /proc/self/maps",
    );
    let finished = finish(&mut with_own_var_cache(&command, "exec"));
    let lines: Vec<_> = finished.stdout.lines().collect();
    assert!(lines[0].starts_with("/var/cache/precache/"), "{finished:?}");
    assert_eq!(lines[1], "65534");
    assert!(lines[2].starts_with("drwxr-xr-x"), "{}", lines[2]);
    assert!(lines[3].starts_with("-r-xr-xr-x"), "{}", lines[3]);
    assert!(lines[4..].iter().any(|line| line.ends_with(lines[0])), "{finished:?}");
    assert_eq!(finished.stderr, "", "the loader complains");
}

/// As the path of one in memory may be, when its supervisor is gone.
#[test]
fn root_executes_nothing_with_a_library_of_somebody_elses() {
    if !nix::unistd::getuid().is_root() {
        return lacking("root's rights, to give a file away");
    }
    let home = Home::new();
    home.unpack();
    let mut command = home.supervisor();
    let script = "for owner in 0 65534 0; do chown $owner \"$LD_PRELOAD\"; cat /proc/self/maps; echo; done";
    let finished = finish(command.args(["-q", "--", "sh", "-c", script]));
    let mapped: Vec<_> = finished.stdout.split("\n\n").map(|maps| maps.contains("precache_inject")).collect();
    assert_eq!(mapped[..3], [true, false, true], "{finished:?}");
}

#[test]
fn in_memory_it_leaves_the_program_no_descriptor() {
    let mut command = supervisor();
    command.env("XDG_CACHE_HOME", "/proc").args(["-q", "--", "sh", "-c", "ls /proc/$$/fd"]);
    assert_eq!(finish(&mut command).stdout, finish(Command::new("sh").args(["-c", "ls /proc/$$/fd"])).stdout);
}
