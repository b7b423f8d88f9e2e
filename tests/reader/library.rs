//! The injected library as a file: what it offers to the program, what it takes from libc, and how large it is.

use precache_tests::preload;
use precache_tests::runs::Program;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The library as `precache-run` unpacks it, or the one that is tested in its place.
pub fn unpacked() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    if let Some(library) = preload::replacement() {
        return (home, library);
    }
    let (mut command, _) = Program::new(["true"]).command(&[]);
    assert!(command.env("XDG_CACHE_HOME", home.path()).status().unwrap().success());
    let folder = fs::read_dir(home.path().join("precache")).unwrap().next().unwrap().unwrap();
    let library = folder.path().join("libprecache_inject.so");
    (home, library)
}

/// Names that `nm` lists with these options, without versions.
fn symbols(library: &PathBuf, which: &str) -> BTreeSet<String> {
    let output = Command::new("nm").args(["-D", which]).arg(library).output().expect("nm starts");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.split_whitespace().last());
    names.map(|name| name.split('@').next().unwrap_or(name).to_owned()).collect()
}

fn names(list: &str) -> BTreeSet<String> {
    list.split_whitespace().map(str::to_owned).collect()
}

/// Every exported symbol stands in front of one of libc's: whoever adds one, adds it here.
#[test]
fn only_interposers_are_exported() {
    let (_home, library) = unpacked();
    let interposers = names(
        "mmap mmap64 munmap mremap mprotect pkey_mprotect remap_file_pages shmat madvise process_madvise posix_madvise posix_fadvise posix_fadvise64 readahead mlock mlock2 mlockall
         sigaction __sigaction signal bsd_signal ssignal sysv_signal __sysv_signal sigset sigignore siginterrupt sigvec timer_create sigaltstack setcontext swapcontext
         sigprocmask pthread_sigmask sighold sigrelse sigblock sigsetmask siggetmask
         ppoll __ppoll_chk pselect epoll_pwait epoll_pwait2 sigsuspend __sigsuspend sigpause __sigpause __xpg_sigpause
         pthread_attr_setsigmask_np pthread_attr_getsigmask_np
         execl execlp execle execve execv execvp execvpe fexecve execveat posix_spawn posix_spawnp popen _Fork
         write pwrite pwrite64 writev pwritev pwritev64 pwritev2 pwritev64v2 vmsplice
         __write __pwrite64 __send __read __pread64
         mq_send mq_timedsend mq_receive mq_timedreceive msgsnd msgrcv
         setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr
         fstat fstat64 __fxstat __fxstat64 getcwd __getcwd_chk ioctl getdents64 poll __poll_chk connect bind setsockopt getsockopt system
         fstatfs fstatfs64 fstatvfs fstatvfs64 futimens sendfile sendfile64 memfd_create uname waitpid wait4 waitid nanosleep
         clock_nanosleep timerfd_settime pipe pipe2 select epoll_ctl epoll_wait socketpair accept accept4 getsockname
         sigwaitinfo sigtimedwait getpeername chroot inotify_add_watch mknod
         fcntl fcntl64 wait wait3 getitimer setitimer getgroups setgroups semop semtimedop mkfifoat removexattr lremovexattr
         getrlimit getrlimit64 setrlimit setrlimit64 prlimit prlimit64 getrusage sysinfo times eventfd_read timerfd_gettime clock_getres
         sched_getaffinity sched_setaffinity pthread_getaffinity_np pthread_setaffinity_np sched_getparam sched_setparam
         sched_setscheduler getresuid getresgid timer_settime timer_gettime copy_file_range splice signalfd sigpending sigwait
         shmctl msgctl semctl mq_getattr sched_rr_get_interval pthread_setschedparam pthread_getname_np
         arc4random_buf
         read pread pread64 readv preadv preadv64 preadv2 preadv64v2 __read_chk __pread_chk __pread64_chk
         send sendto sendmsg sendmmsg recv recvfrom recvmsg recvmmsg __recv_chk __recvfrom_chk
         process_vm_readv process_vm_writev getrandom getentropy
         getaddrinfo_a aio_read aio_read64 aio_write aio_write64 lio_listio lio_listio64
         fwrite fwrite_unlocked fread fread_unlocked __fread_chk __fread_unlocked_chk fputs fputs_unlocked puts
         printf fprintf dprintf vprintf vfprintf vdprintf warn warnx vwarn vwarnx err errx verr verrx
         __printf_chk __fprintf_chk __dprintf_chk __vprintf_chk __vfprintf_chk __vdprintf_chk
         syscall prctl abort __assert_fail __assert_perror_fail
         dlopen dlmopen dlsym
         fopen fopen64 stat stat64 lstat lstat64 fstatat fstatat64 statx __xstat __xstat64 __lxstat __lxstat64 __fxstatat
         __fxstatat64 statfs statfs64 statvfs statvfs64 access faccessat opendir chdir readlink readlinkat realpath __realpath_chk creat creat64
         mkdir mkdirat unlink unlinkat rmdir truncate truncate64 chmod remove fchmodat chown lchown fchownat utime utimes utimensat eaccess euidaccess
         __readlink_chk __readlinkat_chk rename renameat renameat2 link linkat symlink symlinkat mkfifo freopen freopen64
         open open64 openat openat64 __open __open64 __open_2 __open64_2 __openat_2 __openat64_2",
    );
    assert_eq!(symbols(&library, "--defined-only"), interposers);
}

/// A function is looked up by the hash of its name alone, of which the table keeps all but the last bit (`inject/src/symbols.rs`).
#[test]
fn no_two_exported_names_have_one_hash() {
    let (_home, library) = unpacked();
    let names = symbols(&library, "--defined-only");
    let hash = |name: &str| name.bytes().fold(5381u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(byte.into()));
    let hashes: BTreeSet<_> = names.iter().map(|name| hash(name) | 1).collect();
    assert_eq!(hashes.len(), names.len());
}

/// Nothing that allocates, locks, or keeps thread-local storage can be called, for it is not there.
#[test]
fn little_is_imported() {
    let (_home, library) = unpacked();
    let allowed = names(
        "abort bcmp dl_iterate_phdr dlvsym environ __errno_location fnmatch getenv memcmp memcpy memmove memset
         posix_spawnattr_getflags posix_spawnattr_init posix_spawnattr_setflags posix_spawnattr_setsigmask strlen
         __register_atfork",
    );
    let imported = symbols(&library, "--undefined-only");
    assert!(imported.is_subset(&allowed), "also imported: {:?}", imported.difference(&allowed).collect::<Vec<_>>());
}

/// A library in front of ours that has, say, a `vfprintf` of its own does not get to see those of the program's `fprintf`, as it
/// would not without us.
#[test]
fn its_functions_are_not_bound_to_those_in_front_of_it() {
    let (_home, library) = unpacked();
    let output = Command::new("readelf").args(["--relocs", "--wide"]).arg(&library).output().expect("readelf starts");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    // Offset, info, type, the symbol's value and its name.
    let bound: BTreeSet<_> =
        text.lines().filter_map(|line| line.split_whitespace().nth(4)?.split('@').next()).collect();
    assert!(bound.contains("dlvsym"), "{text}");
    let own = symbols(&library, "--defined-only");
    let outside: Vec<_> = own.iter().filter(|name| bound.contains(name.as_str())).collect();
    assert!(outside.is_empty(), "bound when it is loaded: {outside:?}");
}

/// Nothing in it, and so nothing that runs in signal context, uses thread-local storage: it has none, and reaches for
/// nobody's past the C library (x86-64: by a segment register).
#[test]
fn no_thread_local_storage_is_used() {
    let (_home, library) = unpacked();
    let output_of = |program: &str, option: &str| {
        let output = Command::new(program).arg(option).arg(&library).output().expect("it starts");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let code = output_of("objdump", "--disassemble");
    assert!(code.lines().filter(|line| line.contains("syscall")).count() > 10, "it was not disassembled:\n{code}");
    let accesses: Vec<&str> = code.lines().filter(|line| line.contains("%fs:") || line.contains("%gs:")).collect();
    assert!(accesses.is_empty(), "{accesses:#?}");
    let segments = output_of("objdump", "--private-headers");
    assert!(segments.contains("LOAD") && !segments.contains("TLS"), "{segments}");
}

#[test]
fn it_is_small() {
    let (_home, library) = unpacked();
    let length = fs::metadata(library).unwrap().len();
    assert!(length < 150_000, "{length} bytes");
}
