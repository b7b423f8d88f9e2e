//! The supervisor's side of the connection to the optimizer.

use std::os::fd::{AsFd, BorrowedFd};

use crate::options::RunOptions;
use crate::report::SessionReport;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("this build has none")]
    Missing,
}

pub struct Client {
    descriptor: std::os::fd::OwnedFd,
}

impl Client {
    pub fn start(_options: &RunOptions) -> Result<Self, Error> {
        Err(Error::Missing)
    }

    pub fn socket_name(&self) -> &str {
        ""
    }

    pub fn session(&self) -> u64 {
        0
    }

    pub fn restart(&mut self) -> Result<(), Error> {
        Err(Error::Missing)
    }

    pub fn finish(self) -> Result<SessionReport, Error> {
        Err(Error::Missing)
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
