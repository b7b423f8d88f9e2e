//! The supervisor: the process that the user started, and sees in the program's place.
//!
//! It starts the program with the injected library, passes signals on, stops and continues with it, keeps the optimizer
//! alive, and ends as the program did. Whatever it cannot do, it says, and the program runs all the same.

mod elf;
mod inherited;
mod launch;
mod library;
pub mod message;
mod namespaces;
mod optimizer;
mod orphans;
mod outcome;
mod publish;
mod restarts;
mod script;
mod sentry;
mod settings;
mod signals;
mod stop;
mod target;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Instant;

pub use self::outcome::RunReport;

use self::launch::{LaunchError, Program, Started};
use self::library::{Library, LibraryError};
use self::optimizer::Optimizer;
use self::outcome::Destination;
use self::sentry::Sentry;
use self::signals::Inbox;
use self::target::NotInjected;
use crate::link;
use crate::options::{Mode, RunOptions};

/// Why the program runs as if alone.
#[derive(Debug, thiserror::Error)]
enum NotAccelerated {
    #[error(transparent)]
    Namespace(#[from] namespaces::Unfit),
    #[error(transparent)]
    Target(#[from] NotInjected),
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error(transparent)]
    Optimizer(#[from] link::Error),
    #[error(transparent)]
    Settings(#[from] settings::TooLong),
}

/// What the program is injected with, and who serves it.
struct Injection {
    library: Library,
    optimizer: Optimizer,
    /// What the library is told, as `PRECACHE_READER`.
    settings: OsString,
}

pub fn run(options: &RunOptions, command: &[OsString]) -> ExitCode {
    if options.mode == Mode::Off {
        return run_alone(command);
    }
    if let Err(why) = namespaces::where_children_start() {
        not_accelerated(options, &why);
        return run_alone(command);
    }
    let start = Instant::now();
    inherited::outlive_file_limit();
    let destination = options.report.as_deref().map(Destination::open);
    let (mut injection, mut reasons) = match prepare(options, command) {
        Ok(injection) => (Some(injection), Vec::new()),
        Err(why) => (None, vec![not_accelerated(options, &why)]),
    };
    let environment = settings::environment(injection.as_ref());
    let program = Program::new(command, environment);
    let Supervised { inbox, sentry, started } = match supervised(&program) {
        Ok(supervised) => supervised,
        Err(why) => {
            not_accelerated(options, &why);
            return run_alone(command);
        }
    };
    let optimizer = injection.as_mut().map(|injection| &mut injection.optimizer);
    let end = watch::until_end(&inbox, sentry, started.pid, optimizer);
    let program_id = started.pid;
    if let Some(why) = started.exec_error() {
        return cannot_run(&why);
    }

    let mut report = RunReport::new(options, command, end);
    report.wall_seconds = start.elapsed().as_secs_f64();
    report.injected = injection.is_some();
    if let Some(Injection { optimizer, .. }) = injection {
        report.optimizer_restarts = optimizer.restarts();
        reasons.extend(optimizer.failures().iter().map(|why| said(options, why)));
        let patience = if destination.is_some() { link::PATIENCE_IN_NEED } else { link::PATIENCE };
        match optimizer.finish(patience) {
            Ok(session) => {
                reasons.extend(session.shortcomings());
                reasons.extend(outcome::crash_in_handler(end, program_id, &session).map(|line| said(options, line)));
                report.session = Some(session);
            }
            Err(why) => reasons.push(said(options, &format!("what was accelerated is not known: {why}"))),
        }
    }
    report.reasons = reasons;
    report.publish(destination, options);
    outcome::pass_on(end)
}

fn prepare(options: &RunOptions, command: &[OsString]) -> Result<Injection, NotAccelerated> {
    let against = target::other_pages().or_else(|| target::reason_against(command.first()?));
    if let Some(why) = against.or_else(target::preloaded_sanitizer) {
        return Err(why.into());
    }
    namespaces::who_we_are()?;
    let library = Library::unpack()?;
    let optimizer = Optimizer::start(options)?;
    let settings = settings::of_readers(options, &optimizer, library.path())?;
    Ok(Injection { library, optimizer, settings })
}

/// The program under way, and who passes its signals on.
struct Supervised {
    inbox: Inbox,
    sentry: Option<Sentry>,
    started: Started,
}

/// Blocks signals first: from the program's first moment on, none may end us without it.
fn supervised(program: &Program) -> Result<Supervised, LaunchError> {
    let inbox = Inbox::open().map_err(|errno| program.cannot_start(errno.into()))?;
    let mut started = program.start()?;
    inherited::let_go_of_descriptors();
    // Without one, most signals still reach the program once.
    let sentry = Sentry::post(&inbox, started.pid).ok();
    started.go();
    Ok(Supervised { inbox, sentry, started })
}

/// A plain exec, with what we inherited.
fn run_alone(command: &[OsString]) -> ExitCode {
    cannot_run(&Program::new(command, launch::environment()).replace_us())
}

fn cannot_run(why: &LaunchError) -> ExitCode {
    message::line(&why.to_string());
    ExitCode::from(why.status())
}

/// Says so, and returns it for the report.
fn not_accelerated(options: &RunOptions, why: &dyn ToString) -> String {
    let why = why.to_string();
    said(options, &format!("not accelerated: {why}"));
    why
}

fn said(options: &RunOptions, line: &str) -> String {
    if !options.quiet {
        message::line(line);
    }
    line.to_owned()
}
