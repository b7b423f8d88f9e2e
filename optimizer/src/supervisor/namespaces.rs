//! Looks at the namespaces that we were started in (namespaces(7)): can a child be supervised, and others be told from us?

use std::fs;

use nix::unistd::geteuid;

#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    #[error(
        "what precache-run starts would be in another PID namespace than itself; start it in there (`unshare --fork`) to \
         accelerate the program"
    )]
    ChildrenElsewhere,
    #[error(
        "in this user namespace user {0} may be anybody who has no number there, and would get at what the program maps; \
         run as a user that the namespace maps to accelerate the program"
    )]
    Anybody(u32),
}

/// After unshare(2) with CLONE_NEWPID the first child is the init of a new namespace, and the last: when it has ended, no other can be
/// started, and it is not reaped before what else is in there. To become the program is all that we can do.
pub fn where_children_start() -> Result<(), Unfit> {
    const CHILDREN: &str = "/proc/self/ns/pid_for_children";
    // Kernels before 4.12 have no such link.
    let can_be_told = fs::symlink_metadata(CHILDREN).is_ok();
    // Before the first child is there, it leads nowhere (pid_namespaces(7)).
    let are_here = || fs::read_link(CHILDREN).ok() == fs::read_link("/proc/self/ns/pid").ok();
    if !can_be_told || are_here() { Ok(()) } else { Err(Unfit::ChildrenElsewhere) }
}

/// Users that a namespace does not map have the overflow number there (user_namespaces(7)), and so in the credentials of their sockets.
pub fn who_we_are() -> Result<(), Unfit> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let overflow = read("/proc/sys/kernel/overflowuid").trim().parse().unwrap_or(65534);
    let all = u32::MAX.to_string();
    let maps_all = read("/proc/self/uid_map").split_whitespace().eq(["0", "0", &all]);
    if geteuid().as_raw() == overflow && !maps_all { Err(Unfit::Anybody(overflow)) } else { Ok(()) }
}
