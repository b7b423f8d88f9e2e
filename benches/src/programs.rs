//! The programs that are measured, as Cargo builds them beside this one, and who runs them.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::User;
use procfs::process::Process;

/// Everything that another user must be able to run.
const NAMES: [&str; 10] = [
    "precache-run",
    "precache",
    "slowfs",
    "make-lmdb",
    "lmdb-reader",
    "map-reader",
    "vast-reader",
    "ahead-reader",
    "cost-reader",
    "filler",
];

#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    #[error("{0} is missing: build it with `cargo build --release` for the whole workspace, or run `make build`")]
    Missing(PathBuf),
    #[error("there is no user {0}: name an existing one with --as-user, such as nobody")]
    NoSuchUser(String),
    #[error("only root can run readers as {0}: leave out --as-user, or use sudo")]
    NotRoot(String),
    #[error(
        "process {process}, {}, is an optimizer of another build that would serve what is measured: \
         end the programs that it serves, and run this again",
        .program.display()
    )]
    OtherOptimizer { process: i32, program: PathBuf },
    #[error("cannot look for running optimizers: {0}")]
    Processes(#[from] procfs::ProcError),
    #[error("cannot prepare the programs in {folder}: {why}", folder = .0.display(), why = .1)]
    Unprepared(PathBuf, std::io::Error),
}

/// Where the programs are, and as whom readers run.
pub struct Programs {
    folder: PathBuf,
    user: Option<User>,
    /// Home of that user while it is measured: precache keeps its unpacked library there.
    home: PathBuf,
}

impl Programs {
    pub fn find(scratch: &Path, as_user: Option<&str>) -> Result<Self, ProgramError> {
        let own = std::env::current_exe().map_err(|why| ProgramError::Unprepared("/proc/self/exe".into(), why))?;
        let built = own.parent().unwrap_or(Path::new("/")).to_owned();
        if let Some(missing) = NAMES.iter().map(|name| built.join(name)).find(|path| !path.exists()) {
            return Err(ProgramError::Missing(missing));
        }
        let home = scratch.join("home");
        let unprepared = |why| ProgramError::Unprepared(scratch.to_owned(), why);
        // Of a run as another user it would be that one's, whom nobody else trusts with what is executed.
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(&home).map_err(unprepared)?;
        let Some(name) = as_user else { return Self { folder: built, user: None, home }.without_others() };

        if !nix::unistd::geteuid().is_root() {
            return Err(ProgramError::NotRoot(name.to_owned()));
        }
        let user = User::from_name(name).ok().flatten().ok_or_else(|| ProgramError::NoSuchUser(name.to_owned()))?;
        chown(&home, Some(user.uid.as_raw()), Some(user.gid.as_raw())).map_err(unprepared)?;
        // The build folder may lie where that user cannot look.
        let folder = scratch.join("programs");
        fs::create_dir_all(&folder).map_err(unprepared)?;
        for name in NAMES {
            fs::copy(built.join(name), folder.join(name)).map_err(unprepared)?;
        }
        Self { folder, user: Some(user), home }.without_others()
    }

    /// One optimizer serves all readers in a place (`precache::link::name`), also those of a build that differs in the optimizer
    /// alone.
    fn without_others(self) -> Result<Self, ProgramError> {
        let user = self.user.as_ref().map_or(nix::unistd::geteuid(), |user| user.uid);
        let name = precache::link::name::of_this_place(user);
        let file = |path: PathBuf| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
        let own = ["precache-run", "precache"].map(|program| file(self.path(program)));
        let other = |process: Process| {
            let program = process.exe().ok()?;
            // What was built anew since has the same name, and is another file.
            let running = file(format!("/proc/{}/exe", process.pid()).into());
            let is_other = is_service(&process, Some(&name)) && running.is_some() && !own.contains(&running);
            is_other.then_some(ProgramError::OtherOptimizer { process: process.pid(), program })
        };
        match procfs::process::all_processes()?.flatten().find_map(other) {
            None => Ok(self),
            Some(other) => Err(other),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A command that readers are run by: as the chosen user, with a home of its own.
    pub fn command<S: AsRef<OsStr>>(&self, words: &[S]) -> Command {
        let mut words = words.iter().map(|word| word.as_ref().to_owned());
        let mut command = match &self.user {
            None => Command::new(words.next().unwrap_or_default()),
            Some(user) => {
                let mut setpriv = Command::new("setpriv");
                setpriv.args([format!("--reuid={}", user.uid), format!("--regid={}", user.gid)]);
                setpriv.args(["--clear-groups", "--"]);
                setpriv
            }
        };
        command.args(words).env("HOME", &self.home).env("XDG_CACHE_HOME", self.caches()).env_remove("XDG_RUNTIME_DIR");
        command
    }

    /// Has the next run unpack the injected library again: into other pages of memory, for the most part.
    pub fn forget_library(&self) -> Result<(), ProgramError> {
        let folder = self.caches().join("precache");
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ProgramError::Unprepared(folder, error)),
            _ => Ok(()),
        }
    }

    fn caches(&self) -> PathBuf {
        self.home.join(".cache")
    }

    /// The optimizers that run now: processes of our program as `precache service`.
    pub fn services(&self) -> procfs::ProcResult<Vec<Process>> {
        let program = self.path("precache-run");
        let is_ours = |process: &Process| is_service(process, None) && process.exe().is_ok_and(|exe| exe == program);
        Ok(procfs::process::all_processes()?.flatten().filter(is_ours).collect())
    }

    pub fn is_other_user(&self) -> bool {
        self.user.is_some()
    }

    /// Where readers, whoever runs them, may write.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// A system's program, if it is installed.
    pub fn installed(name: &str) -> Option<OsString> {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file()).map(Into::into)
    }
}

/// Whether it runs as `precache service`, under this name.
fn is_service(process: &Process, name: Option<&str>) -> bool {
    let Ok(words) = process.cmdline() else { return false };
    let is_named = |name| words.windows(2).any(|pair| pair == ["--name", name]);
    words.get(1).is_some_and(|word| word == "service") && name.is_none_or(is_named)
}
