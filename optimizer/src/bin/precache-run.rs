//! `precache-run [OPTIONS] [--] COMMAND [ARGS]...`, the short name of `precache run`.

use std::process::ExitCode;

fn main() -> ExitCode {
    precache::cli::precache_run()
}
