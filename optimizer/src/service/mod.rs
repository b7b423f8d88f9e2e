//! The optimizer as a service: shared by all supervisors of one user, limited memory cgroup, and mount, PID and user namespace,
//! started by the first, ended when idle.

mod daemon;
mod early;
mod enrol;
mod feeder;
mod files;
mod ledger;
mod listener;
mod lookout;
mod promises;
mod reader;
mod retainer;
mod session;
mod sweeper;
mod thread;
mod worker;

use self::listener::Listener;
use std::time::Duration;

/// How long the service stays without sessions and readers.
const IDLE: Duration = Duration::from_secs(1);

/// Serves under `name` until idle. `ready` is a descriptor at which the starter waits for a word.
pub fn run(name: &str, ready: Option<i32>) -> anyhow::Result<()> {
    let starter = daemon::detach(ready)?;
    let listener = match Listener::bind(name) {
        Ok(listener) => listener,
        Err(nix::errno::Errno::EADDRINUSE) => {
            starter.tell("taken");
            return Ok(());
        }
        Err(error) => {
            starter.tell(&format!("cannot listen at {name}: {error}"));
            return Err(error.into());
        }
    };
    starter.tell("ready");
    listener.serve(IDLE);
    Ok(())
}
