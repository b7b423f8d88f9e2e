//! What supervisor and optimizer say to each other: JSON in datagrams, on the same socket that readers enrol at.

use crate::options::RunOptions;
use crate::report::SessionReport;
use serde::{Deserialize, Serialize};

/// A datagram's largest length in bytes; a longer text goes in several.
pub const DATAGRAM: usize = 32 << 10;

#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// Opens a session, or opens it again at another optimizer.
    Open { version: u32, session: u64, options: RunOptions, again: bool },
    /// The program ended: answer with the report, then hang up.
    Finish,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    Opened,
    Refused { why: String },
    Report(Box<SessionReport>),
}
