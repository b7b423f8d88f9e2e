//! Which processes of this machine have a file open, and how: the access modes in /proc.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// What /proc tells about one file.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Scan {
    /// Processes that could write: liblmdb opens the data file for writing even while its writer is idle, and leaves no
    /// other trace of that.
    pub writers: Vec<Process>,
    /// Processes that have it open for reading only.
    pub readers: usize,
    /// Processes that were looked into.
    pub seen: usize,
    /// Processes of others, which this user may not look into.
    pub unseen: usize,
    /// Why there may be processes of this machine that /proc does not even list; empty where it lists all.
    pub hidden: Vec<String>,
}

impl Scan {
    /// Why a writer on this machine may have been missed; empty where none can be.
    pub fn doubts(&self) -> Vec<String> {
        let unseen =
            (self.unseen > 0).then(|| format!("{} processes of other users cannot be looked into", self.unseen));
        unseen.into_iter().chain(self.hidden.iter().cloned()).collect()
    }
}

/// A process, for people.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Process {
    pub pid: i32,
    pub command: String,
}

/// Looks through all processes that /proc shows, and says when it may not show all. Of the file systems of other files
/// nothing is asked: one whose server is gone would keep us waiting.
pub fn scan(data: &Path) -> io::Result<Scan> {
    let wanted = Wanted::of(data)?;
    let mut scan = Scan { hidden: hidden(), ..Scan::default() };
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        if pid == std::process::id() as i32 {
            continue;
        }
        match access(pid, &wanted) {
            Ok(access) => {
                scan.seen += 1;
                match access {
                    Some(Access::Write) => scan.writers.push(Process { pid, command: command(pid) }),
                    Some(Access::Read) => scan.readers += 1,
                    None => {}
                }
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !is_kernel_thread(pid) => scan.unseen += 1,
            // It ended meanwhile, or it belongs to the kernel.
            Err(_) => {}
        }
    }
    Ok(scan)
}

/// The inode numbers of the first PID and user namespaces, which the kernel fixes (linux/proc_ns.h).
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;
const FIRST_USER_NAMESPACE: u64 = 0xEFFF_FFFD;

fn hidden() -> Vec<String> {
    let is = |namespace: &str, first| {
        fs::metadata(format!("/proc/self/ns/{namespace}")).is_ok_and(|metadata| metadata.ino() == first)
    };
    let mut why = Vec::new();
    if !is("pid", FIRST_PID_NAMESPACE) {
        why.push("processes outside this container (PID namespace) are not listed".into());
    }
    // Root sees all in spite of it; the root of a user namespace does not.
    let is_root = nix::unistd::geteuid().is_root() && is("user", FIRST_USER_NAMESPACE);
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    if !is_root && hides_processes(&mounts) {
        why.push("/proc hides the processes of other users (hidepid)".into());
    }
    why
}

/// Whether the /proc that is on top is mounted with `hidepid`; its options follow a lone `-`, a type and a source, and are
/// the last field of a line of /proc/self/mountinfo (proc(5)).
fn hides_processes(mounts: &str) -> bool {
    let options = mounts
        .lines()
        .filter(|line| line.split(' ').nth(4) == Some("/proc"))
        .filter_map(|line| line.rsplit(' ').next())
        .next_back();
    let value = options.and_then(|options| options.split(',').find_map(|option| option.strip_prefix("hidepid=")));
    value.is_some_and(|value| value != "0" && value != "off")
}

#[derive(Clone, Copy)]
enum Access {
    Read,
    Write,
}

/// The file that is looked for.
struct Wanted {
    /// Device and inode number (stat(2)).
    identity: (u64, u64),
    /// As /proc/PID/fdinfo has it, which some stacked file systems number otherwise; none before Linux 5.14.
    number: Option<u64>,
}

impl Wanted {
    fn of(data: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(data)?;
        // By its path alone (O_PATH): some file systems drop what they have cached of a file when it is opened.
        let file = File::options().read(true).custom_flags(libc::O_PATH).open(data)?;
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
        Ok(Self { identity: (metadata.dev(), metadata.ino()), number: inode(&info) })
    }
}

/// The widest access of a process to the file.
fn access(pid: i32, wanted: &Wanted) -> io::Result<Option<Access>> {
    let mut widest = None;
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))?.flatten() {
        let info =
            fs::read_to_string(format!("/proc/{pid}/fdinfo/{}", entry.file_name().display())).unwrap_or_default();
        let number = inode(&info);
        if number.is_some() && wanted.number.is_some() && number != wanted.number {
            continue;
        }
        if !identity(&entry.path()).is_ok_and(|found| found == wanted.identity) {
            continue;
        }
        match flags(&info) {
            Some(flags) if flags & libc::O_ACCMODE == libc::O_RDONLY => widest = widest.or(Some(Access::Read)),
            // What cannot be read is taken for the worse.
            _ => return Ok(Some(Access::Write)),
        }
    }
    Ok(widest)
}

/// Device and inode number of a file as this machine knows them, without a word to a server.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut status = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: a C string, and a structure of statx(2) that the kernel fills in on success; all its fields may be zero.
    let status = unsafe {
        let answer =
            libc::statx(libc::AT_FDCWD, path.as_ptr(), libc::AT_STATX_DONT_SYNC, libc::STATX_INO, status.as_mut_ptr());
        nix::Error::result(answer)?;
        status.assume_init()
    };
    Ok((libc::makedev(status.stx_dev_major, status.stx_dev_minor), status.stx_ino))
}

/// The `flags:` line of /proc/PID/fdinfo/FD, in octal (proc(5)).
fn flags(info: &str) -> Option<i32> {
    i32::from_str_radix(field(info, "flags:")?, 8).ok()
}

/// The `ino:` line.
fn inode(info: &str) -> Option<u64> {
    field(info, "ino:")?.parse().ok()
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// PF_KTHREAD in the flags of /proc/PID/stat: its ninth field, the seventh after the name in brackets.
fn is_kernel_thread(pid: i32) -> bool {
    const PF_KTHREAD: u64 = 0x0020_0000;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let flags = after_name.split_ascii_whitespace().nth(6).and_then(|flags| flags.parse::<u64>().ok());
    flags.is_some_and(|flags| flags & PF_KTHREAD != 0)
}

fn command(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_access_modes() {
        assert_eq!(flags("pos:\t0\nflags:\t02100002\nmnt_id:\t1\n").map(|f| f & libc::O_ACCMODE), Some(libc::O_RDWR));
        assert_eq!(flags("pos:\t0\n"), None);
    }

    #[test]
    fn knows_a_proc_that_hides() {
        let mount = |options: &str| format!("22 1 0:20 / /proc rw,nosuid shared:5 - proc proc {options}\n");
        let other = "23 1 0:21 / /sys rw - sysfs sysfs rw,hidepid=2\n";
        for (options, hides) in [("rw", false), ("rw,hidepid=0", false), ("rw,gid=4,hidepid=2", true)] {
            assert_eq!(hides_processes(&(mount(options) + other)), hides, "{options}");
        }
        assert!(hides_processes(&(mount("rw") + &mount("rw,hidepid=ptraceable"))), "the last mount is on top");
        assert!(!hides_processes(other));
    }
}
