use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

/// `u::rw-,u:777:rw-,g::r--,m::rw-,o::r--` as the kernel keeps it (linux/posix_acl_xattr.h): the version, then tag,
/// permissions and id of each entry.
const LIST: [u8; 44] = [
    2, 0, 0, 0, //
    1, 0, 6, 0, 0xFF, 0xFF, 0xFF, 0xFF, //
    2, 0, 6, 0, 9, 3, 0, 0, //
    4, 0, 4, 0, 0xFF, 0xFF, 0xFF, 0xFF, //
    16, 0, 6, 0, 0xFF, 0xFF, 0xFF, 0xFF, //
    32, 0, 4, 0, 0xFF, 0xFF, 0xFF, 0xFF,
];

/// Two files in a directory whose default list is that list; none where the file system has no lists.
fn files() -> Option<(TempDir, PathBuf, PathBuf)> {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    fs::write(&from, "").unwrap();
    match xattr::set(dir.path(), DEFAULT, &LIST) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            crate::lacking("access control lists in the temporary directory");
            return None;
        }
        set => set.unwrap(),
    }
    fs::write(&to, "").unwrap();
    assert!(xattr::get(&to, ACCESS).unwrap().is_some(), "handed down");
    Some((dir, from, to))
}

fn copies_a_list(copy: fn(&Path, &Path) -> io::Result<()>) {
    let Some((dir, from, to)) = files() else { return };
    remove_lists(&to).unwrap();
    copy(&from, &to).unwrap();
    assert_eq!(xattr::get(&to, ACCESS).unwrap(), None, "the original has none");
    xattr::set(&from, ACCESS, &LIST).unwrap();
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&from, &link).unwrap();
    copy(&link, &to).unwrap();
    assert_eq!(xattr::get(&to, ACCESS).unwrap().as_deref(), Some(&LIST[..]));
    // The file systems of the kernel's own files keep no lists.
    let error = copy(&from, Path::new("/proc/self/comm")).unwrap_err();
    assert!(error.to_string().contains("keeps no access control lists"), "{error}");
    copy(Path::new("/proc/self/comm"), &to).unwrap();
}

#[cfg(feature = "acl")]
#[test]
fn libacl_copies_a_list() {
    copies_a_list(libacl::copy);
}

#[test]
fn the_attribute_is_a_list_to_copy() {
    copies_a_list(attribute::copy);
}

#[test]
fn nothing_handed_down_stays() {
    let Some((_dir, from, to)) = files() else { return };
    fs::set_permissions(&from, fs::Permissions::from_mode(0o640)).unwrap();
    copy(&from, &to, LOCK_FILE).unwrap();
    assert_eq!(xattr::get(&to, ACCESS).unwrap(), None);
    assert_eq!(fs::metadata(&to).unwrap().mode() & 0o7777, 0o640);
}

#[test]
fn a_directory_hands_nothing_down() {
    let Some((dir, ..)) = files() else { return };
    let (from, to) = (tempfile::tempdir().unwrap(), dir.path().join("directory"));
    fs::create_dir(&to).unwrap();
    assert!(xattr::get(&to, DEFAULT).unwrap().is_some(), "handed down");
    copy(from.path(), &to, DIRECTORY).unwrap();
    assert_eq!((xattr::get(&to, ACCESS).unwrap(), xattr::get(&to, DEFAULT).unwrap()), (None, None));
}
