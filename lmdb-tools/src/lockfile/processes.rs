//! Which processes of this machine have a file open, and how: the access modes in /proc.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
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
}

/// A process, for people.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Process {
    pub pid: i32,
    pub command: String,
}

/// Looks through all processes that /proc shows; those of other PID namespaces are not among them.
pub fn scan(data: &Path) -> io::Result<Scan> {
    let wanted = fs::metadata(data)?;
    let mut scan = Scan::default();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        if pid == std::process::id() as i32 {
            continue;
        }
        match access(pid, (wanted.dev(), wanted.ino())) {
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

#[derive(Clone, Copy)]
enum Access {
    Read,
    Write,
}

/// The widest access of a process to the file with that device and inode number.
fn access(pid: i32, wanted: (u64, u64)) -> io::Result<Option<Access>> {
    let mut widest = None;
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))?.flatten() {
        let Ok(metadata) = fs::metadata(entry.path()) else { continue };
        if (metadata.dev(), metadata.ino()) != wanted {
            continue;
        }
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{}", entry.file_name().display()));
        match info.ok().and_then(|info| flags(&info)) {
            Some(flags) if flags & libc::O_ACCMODE == libc::O_RDONLY => widest = widest.or(Some(Access::Read)),
            // What cannot be read is taken for the worse.
            _ => return Ok(Some(Access::Write)),
        }
    }
    Ok(widest)
}

/// The `flags:` line of /proc/PID/fdinfo/FD, in octal (proc(5)).
fn flags(info: &str) -> Option<i32> {
    let line = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
    i32::from_str_radix(line.trim(), 8).ok()
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
}
