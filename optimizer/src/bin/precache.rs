//! `precache run [OPTIONS] [--] COMMAND [ARGS]...` and the other commands.

use std::process::ExitCode;

fn main() -> ExitCode {
    precache::cli::precache()
}
