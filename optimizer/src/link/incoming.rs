//! What comes through the optimizer's socket, as bytes: told apart before anything is done with it. Readers send one
//! datagram for each thing they have to say; a supervisor's request is a line of JSON, in as many as it takes.

use super::message::Request;
use precache_contract::enrolment::{Enrolment, Kind, LockNote, Malformed};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A request of more bytes than this is nobody's honest one.
pub const LONGEST: usize = 1 << 20;

/// What a peer said.
#[derive(Debug)]
pub enum Said {
    Enrolment(Enrolment, Kind),
    Lock(LockNotice),
    Request(Request),
}

/// A process opened an LMDB lock file.
#[derive(Debug, PartialEq, Eq)]
pub struct LockNotice {
    pub session: u64,
    pub path: PathBuf,
    pub private: bool,
}

/// Why a peer cannot be understood.
#[derive(Debug, thiserror::Error)]
pub enum Nonsense {
    #[error("neither an enrolment nor a request: {0:?}")]
    Enrolment(Malformed),
    #[error("not a request: {0}")]
    Request(#[from] serde_json::Error),
    #[error("a request of more than {LONGEST} bytes")]
    TooLong,
}

/// One connection, as far as it was heard.
#[derive(Debug, Default)]
pub struct Incoming {
    /// Of a request that came in part.
    text: Vec<u8>,
}

impl Incoming {
    /// Takes a datagram of a peer that is not trusted to be well-behaved. `None`: it is a part of a request, and the rest
    /// is to come.
    pub fn take(&mut self, datagram: &[u8]) -> Result<Option<Said>, Nonsense> {
        if self.text.is_empty() && !matches!(datagram.first(), Some(b'{' | b'"')) {
            return enrolment(datagram).map(Some).map_err(Nonsense::Enrolment);
        }
        if self.text.len() + datagram.len() > LONGEST {
            return Err(Nonsense::TooLong);
        }
        self.text.extend_from_slice(datagram);
        if self.text.last() != Some(&b'\n') {
            return Ok(None);
        }
        let text = std::mem::take(&mut self.text);
        Ok(Some(Said::Request(serde_json::from_slice(&text)?)))
    }
}

fn enrolment(datagram: &[u8]) -> Result<Said, Malformed> {
    if let Some((private, session, path)) = LockNote::parse(datagram) {
        let path = PathBuf::from(OsStr::from_bytes(path));
        return Ok(Said::Lock(LockNotice { session, path, private }));
    }
    Enrolment::parse(datagram).map(|(what, kind)| Said::Enrolment(what, kind))
}
