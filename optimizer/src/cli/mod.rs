//! The command lines of `precache` and `precache-run`.

mod arguments;
mod complaint;
mod values;

use std::io::Write;
use std::process::ExitCode;

use clap::builder::Resettable;
use clap::{CommandFactory, FromArgMatches, Parser};

use self::arguments::RunArguments;
use crate::{service, supervisor};

/// Bad input: nothing was started.
const USAGE: u8 = 2;

/// What `--help` says below the options.
const RULES: &str = "\
Sizes are 4096, 8M, 8MiB, 1.5G: powers of 1024. A pattern without `/` is held against a file's name, one with it against \
the whole path.

Each option has a variable, PRECACHE_SIZE for --size and so on; the option wins, and one without a value counts as not set. In PRECACHE_DATA and PRECACHE_EXCLUDE \
a `:` stands between two patterns, in PRECACHE_RANGE a line break. PRECACHE=off turns everything off.

The exit status is the program's; 127 if it is not found, 126 if it cannot be executed, 2 for options that cannot be used: \
then nothing is started.";

/// `precache-run [OPTIONS] [--] COMMAND [ARGS]...`
#[derive(Debug, Parser)]
#[command(
    name = "precache-run",
    version,
    about = "Runs a program with the large files that it maps in the page cache before it touches them",
    override_usage = "precache-run [OPTIONS] [--] COMMAND [ARGS]...",
    after_long_help = RULES
)]
struct PrecacheRun {
    #[command(flatten)]
    run: RunArguments,
}

/// `precache run ...` and its kin.
#[derive(Debug, Parser)]
#[command(name = "precache", version, about = "Runs programs that map large files at page-cache speed on slow storage")]
struct Precache {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Run a program; the same as precache-run
    #[command(override_usage = "precache run [OPTIONS] [--] COMMAND [ARGS]...", after_long_help = RULES)]
    Run(RunArguments),
    #[command(flatten)]
    Tools(precache_lmdb_tools::Command),
    /// The optimizer itself, as supervisors start it
    #[command(hide = true)]
    Service {
        /// Name of its abstract socket
        #[arg(long)]
        name: String,
        /// Descriptor at which its starter waits for a word
        #[arg(long)]
        ready_fd: Option<i32>,
    },
}

/// The program `precache-run`; called as `precache`, it is that.
pub fn precache_run() -> ExitCode {
    if std::env::args_os().next().is_some_and(|name| name == "precache") {
        return precache();
    }
    match parse::<PrecacheRun>(PrecacheRun::command().mut_args(without_empty_variable)) {
        Ok(arguments) => run(arguments.run),
        Err(error) => complaint::of_parsing(&error),
    }
}

/// The program `precache`.
pub fn precache() -> ExitCode {
    let known = Precache::command().mut_subcommand("run", |run| run.mut_args(without_empty_variable));
    match parse::<Precache>(known).map(|arguments| arguments.command) {
        Ok(Command::Run(arguments)) => run(arguments),
        Ok(Command::Tools(command)) => precache_lmdb_tools::run(command).unwrap_or_else(failed),
        Ok(Command::Service { name, ready_fd }) => serve(&name, ready_fd),
        Err(error) if std::env::args_os().nth(1).is_some_and(|command| command == "run") => {
            complaint::of_parsing(&error)
        }
        Err(error) => error.exit(),
    }
}

fn parse<A: FromArgMatches>(known: clap::Command) -> Result<A, clap::Error> {
    A::from_arg_matches(&known.try_get_matches()?)
}

/// A variable without a value counts as not set, as scripts leave it that hand on what they may not have been given.
fn without_empty_variable(option: clap::Arg) -> clap::Arg {
    let is_empty = option.get_env().and_then(std::env::var_os).is_some_and(|value| value.is_empty());
    if is_empty { option.env(Resettable::Reset) } else { option }
}

fn run(arguments: RunArguments) -> ExitCode {
    match arguments.resolve() {
        Ok((options, command)) => supervisor::run(&options, &command),
        Err(error) => complaint::line(&error.to_string()),
    }
}

fn serve(name: &str, ready: Option<i32>) -> ExitCode {
    match service::run(name, ready) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(error),
    }
}

/// A command that was understood and did not succeed.
fn failed(error: anyhow::Error) -> ExitCode {
    // Nobody is left to tell that stderr is closed.
    let _ = writeln!(std::io::stderr(), "precache: {error:#}");
    ExitCode::FAILURE
}
