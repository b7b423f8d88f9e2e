//! How much page cache this process may hope for.

use std::fs;
use std::path::Path;

/// The smaller of the machine's available memory and the tightest limit of this process's memory cgroups, in bytes. What the
/// groups use already is not taken off: most of it is page cache, which makes room.
pub fn available() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| mem_available(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    machine.into_iter().chain(cgroup_limit(&groups, Path::new("/sys/fs/cgroup"))).min()
}

fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// The tightest `memory.max` on the way up from this process's cgroup (version 2, or the memory controller of version 1).
fn cgroup_limit(groups: &str, root: &Path) -> Option<u64> {
    let entry = |line: &str| -> Option<(bool, String)> {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        let is_memory = controllers.split(',').any(|name| name == "memory");
        (is_memory || controllers.is_empty()).then_some((is_memory, fields.next()?.trim_start_matches('/').to_owned()))
    };
    let limits = groups.lines().filter_map(entry).flat_map(|(version_1, path)| {
        let (base, file) =
            if version_1 { (root.join("memory"), "memory.limit_in_bytes") } else { (root.to_owned(), "memory.max") };
        let directories: Vec<_> =
            base.join(path).ancestors().take_while(|dir| dir.starts_with(&base)).map(Into::into).collect();
        directories.into_iter().map(move |dir: std::path::PathBuf| dir.join(file))
    });
    limits.filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok()).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_meminfo() {
        assert_eq!(mem_available("MemTotal: 9 kB\nMemAvailable:    2048 kB\n"), Some(2 << 20));
        assert_eq!(mem_available("MemTotal: 9 kB\n"), None);
    }

    #[test]
    fn the_tightest_group_counts() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("job/step")).unwrap();
        fs::write(root.path().join("job/memory.max"), "1000\n").unwrap();
        fs::write(root.path().join("job/step/memory.max"), "max\n").unwrap();
        assert_eq!(cgroup_limit("0::/job/step\n", root.path()), Some(1000));
        assert_eq!(cgroup_limit("0::/\n", root.path()), None);
    }
}
