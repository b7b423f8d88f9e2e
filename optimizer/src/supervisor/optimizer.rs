//! The optimizer as the supervisor sees it: reached at the start, started again when it dies, asked at the end.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use crate::link::{self, Client};
use crate::options::RunOptions;
use crate::report::SessionReport;

use super::restarts::{self, Restarts};

#[derive(Debug, thiserror::Error)]
#[error(
    "the optimizer was started anew {} times in a row, and each time it did not start or died within {} s; the program ran on \
     alone",
    restarts::MOST,
    restarts::LASTING.as_secs()
)]
struct GivenUp;

pub struct Optimizer {
    client: Client,
    restarts: Restarts,
    /// Why another one did not take its place, each time that none did.
    failures: Vec<String>,
    state: State,
}

enum State {
    /// Or on its way: it has been asked for the session.
    Running,
    /// It died, or did not come up in time.
    Lost,
    GivenUp,
}

impl Optimizer {
    pub fn start(options: &RunOptions) -> Result<Self, link::Error> {
        let client = Client::start(options)?;
        let mut failures = Vec::new();
        let state = match client.socket() {
            Some(_) => State::Running,
            None => {
                failures.push(format!(
                    "the program started alone: {}; what it mapped until then stays so",
                    link::Error::Silent(link::PATIENCE_IN_NEED)
                ));
                State::Lost
            }
        };
        Ok(Self { client, restarts: Restarts::new(Instant::now()), failures, state })
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn restarts(&self) -> u32 {
        self.restarts.total()
    }

    /// Readable when the optimizer has answered, or is lost. Nothing while it is.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.client.socket().filter(|_| matches!(self.state, State::Running))
    }

    /// The descriptor is readable.
    pub fn note_news(&mut self) {
        if self.client.is_asked() {
            match self.client.note_answer() {
                Ok(()) => return,
                Err(error) => self.failures.push(format!("nothing was accelerated so far: {error}")),
            }
        }
        self.restarts.note_loss(Instant::now());
        self.state = State::Lost;
    }

    /// How long `restart_if_due` has nothing to do.
    pub fn time_to_restart(&self) -> Option<Duration> {
        match self.state {
            State::Lost => Some(self.restarts.wait(Instant::now())),
            State::Running | State::GivenUp => None,
        }
    }

    pub fn restart_if_due(&mut self) {
        if self.time_to_restart() != Some(Duration::ZERO) {
            return;
        }
        if !self.restarts.start(Instant::now()) {
            self.state = State::GivenUp;
            return;
        }
        match self.client.restart() {
            Ok(()) => self.state = State::Running,
            Err(error) => {
                self.failures.push(format!("the optimizer died or did not come up, and none took its place: {error}"))
            }
        }
    }

    /// What is to be told of the times when there was none.
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    /// What the session came to, or why that is not known within this time.
    pub fn finish(self, patience: Duration) -> Result<SessionReport, String> {
        match self.state {
            State::GivenUp => Err(GivenUp.to_string()),
            State::Lost if self.client.socket().is_none() => Err("there was no optimizer at the end".into()),
            State::Running | State::Lost => self.client.finish(patience).map_err(|error| error.to_string()),
        }
    }
}
