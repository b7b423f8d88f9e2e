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
         __connect __fcntl __pipe __poll __select __sched_getparam __sched_setscheduler
         mount umount umount2 pivot_root swapon swapoff acct quotactl sethostname setdomainname klogctl init_module delete_module
         fanotify_mark name_to_handle_at open_by_handle_at capget capset adjtimex ntp_adjtime clock_adjtime clock_settime
         clock_gettime getcpu mincore mq_open __mq_open_2 mq_unlink mq_setattr mq_notify pthread_setname_np ttyname_r
         __ttyname_r_chk getdirentries getdirentries64 arch_prctl __arch_prctl modify_ldt fsopen fspick fsconfig move_mount mount_setattr
         open_tree pidfd_send_signal
         arc4random_buf
         read pread pread64 readv preadv preadv64 preadv2 preadv64v2 __read_chk __pread_chk __pread64_chk
         send sendto sendmsg sendmmsg recv recvfrom recvmsg recvmmsg __recv_chk __recvfrom_chk
         process_vm_readv process_vm_writev getrandom getentropy
         getaddrinfo_a aio_read aio_read64 aio_write aio_write64 lio_listio lio_listio64
         fwrite fwrite_unlocked fread fread_unlocked __fread_chk __fread_unlocked_chk fputs fputs_unlocked puts
         printf fprintf dprintf vprintf vfprintf vdprintf perror psignal psiginfo herror warn warnx vwarn vwarnx err errx verr verrx
         __printf_chk __fprintf_chk __dprintf_chk __vprintf_chk __vfprintf_chk __vdprintf_chk
         syscall prctl abort __assert_fail __assert_perror_fail
         dlopen dlmopen dlsym
         fopen fopen64 stat stat64 lstat lstat64 fstatat fstatat64 statx __xstat __xstat64 __lxstat __lxstat64 __fxstatat
         __fxstatat64 statfs statfs64 statvfs statvfs64 access faccessat opendir chdir readlink readlinkat realpath __realpath_chk creat creat64
         mkdir mkdirat unlink unlinkat rmdir truncate truncate64 chmod remove fchmodat chown lchown fchownat utime utimes utimensat eaccess euidaccess
         __statfs fremovexattr mknodat __xmknod __xmknodat lchmod lutimes futimesat pathconf ftok scandir scandir64 scandirat
         scandirat64 catopen
         __readlink_chk __readlinkat_chk rename renameat renameat2 link linkat symlink symlinkat mkfifo freopen freopen64
         open open64 openat openat64 __open __open64 __open_2 __open64_2 __openat_2 __openat64_2",
    );
    assert_eq!(symbols(&library, "--defined-only"), interposers);
}

/// The glibc that the list below was made for.
const KNOWN: [u32; 2] = [2, 36];

/// Functions of libc that make a system call, and leave no memory of the program's to the kernel; but for the last group and `ptrace`,
/// they are given none, or take what they are given apart before.
const WITHOUT_MEMORY: &str = "
    _Exit __close __dup2 __getpgid __getpid __lseek __sched_get_priority_max __sched_get_priority_min __sched_getscheduler
    __sched_yield __setpgid _exit alarm brk clock_getcpuclockid close close_range dup dup2 dup3 epoll_create epoll_create1 eventfd
    fallocate fallocate64 fanotify_init fchdir fchmod fchown fdatasync flock fsmount fsync ftruncate ftruncate64 getegid geteuid
    getgid getpgid getpgrp getpid getppid getpriority getsid gettid getuid inotify_init inotify_init1 inotify_rm_watch ioperm iopl
    kill listen lseek lseek64 mq_close msgget msync munlock munlockall pause personality pidfd_getfd pidfd_open pkey_alloc pkey_free
    posix_fallocate posix_fallocate64 process_mrelease reboot sched_get_priority_max sched_get_priority_min sched_getcpu
    sched_getscheduler sched_yield semget setegid seteuid setfsgid setfsuid setgid setns setpgid setpriority setregid setresgid
    setresuid setreuid setsid setuid shmdt shmget shutdown socket sync sync_file_range syncfs tcdrain tee tgkill thrd_yield
    timer_delete timer_getoverrun timerfd_create umask unshare vhangup
    pthread_sigqueue ptrace sigqueue tcgetattr tcsetattr
    __clone __vfork clone vfork pthread_create
    getcontext pthread_barrier_destroy pthread_barrier_wait pthread_cond_broadcast pthread_cond_clockwait pthread_cond_destroy
    pthread_cond_signal pthread_cond_timedwait pthread_cond_wait pthread_mutex_init pthread_mutex_setprioceiling
    pthread_mutex_trylock pthread_rwlock_clockrdlock pthread_rwlock_clockwrlock pthread_rwlock_rdlock pthread_rwlock_timedrdlock
    pthread_rwlock_timedwrlock pthread_rwlock_tryrdlock pthread_rwlock_unlock pthread_rwlock_wrlock sem_post";

/// Functions that programs are linked to and that make a system call themselves, by their machine code: of this libc, those that no
/// interposer stands in front of are known to leave the kernel nothing of a mapping, or are in `docs/limitations.md` (locks). What came with a later glibc than the list was
/// made for is not judged.
#[test]
#[cfg(target_arch = "x86_64")]
fn all_of_libc_that_hands_memory_to_the_kernel_is_interposed() {
    let (_home, library) = unpacked();
    let known: BTreeSet<String> = names(WITHOUT_MEMORY).union(&symbols(&library, "--defined-only")).cloned().collect();
    let making = functions_that_make_calls(&libc());
    assert!(
        making.len() > 200 && making.contains("fchmod") && making.contains("mount"),
        "they are not found: {making:?}"
    );
    let unknown: Vec<_> = making.difference(&known).collect();
    assert!(unknown.is_empty(), "what do these hand to the kernel? {unknown:?}");
}

/// The file that the name `libc.so.6` stands for in this process.
fn libc() -> PathBuf {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let path = maps.lines().find_map(|line| line.split_whitespace().last().filter(|path| path.ends_with("/libc.so.6")));
    path.expect("tests are linked to libc").into()
}

fn functions_that_make_calls(library: &PathBuf) -> BTreeSet<String> {
    let run = |command: &mut Command| {
        let output = command.arg(library).output().expect("binutils are there");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let address = |text: &str| u64::from_str_radix(text, 16).ok();
    // Start, length, type and name; several at one place. Of a name those are left out that only old programs, or libc itself, use.
    let table = run(Command::new("nm").args(["-D", "--defined-only", "--print-size"]));
    let function = |line: &str| {
        let mut words = line.split_whitespace();
        let (start, length, kind) = (address(words.next()?)?, address(words.next()?)?, words.next()?);
        let (name, version) = words.next()?.split_once("@@")?;
        let version: Vec<u32> =
            version.strip_prefix("GLIBC_")?.split('.').map_while(|part| part.parse().ok()).collect();
        let is_known = !version.is_empty() && version.as_slice() <= KNOWN.as_slice();
        (["T", "W", "i"].contains(&kind) && is_known).then(|| (start, (start + length, name.to_owned())))
    };
    let functions: Vec<_> = table.lines().filter_map(function).collect();
    let code = run(Command::new("objdump").args(["--disassemble", "--no-show-raw-insn"]));
    let calls = code.lines().filter_map(|line| {
        let (at, instruction) = line.trim_start().split_once(':')?;
        (instruction.trim() == "syscall").then(|| address(at)).flatten()
    });
    let calls: BTreeSet<u64> = calls.collect();
    let makes_call = |(start, (end, _)): &&(u64, (u64, String))| calls.range(start..end).next().is_some();
    functions.iter().filter(makes_call).map(|(_, (_, name))| name.clone()).collect()
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
