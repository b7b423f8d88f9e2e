//! The datagrams by which a reader makes itself known, over an abstract `SOCK_SEQPACKET` socket.
//!
//! A reader connects, sends, and closes inside one call; it never waits for an answer. Each datagram carries one
//! descriptor (`SCM_RIGHTS`): the segment for [`Kind::Reader`], the data file for [`Kind::Mapping`] and
//! [`Kind::Refused`], the program for [`Kind::Uninjected`], none otherwise.

use crate::VERSION;

const MAGIC: [u8; 8] = *b"precache";

/// What an enrolment announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// The injected library is loaded in the program itself (sent once by the supervisor's direct child).
    Loaded = 1,
    /// A process with its segment. A forked child names its parent's token and inherits its mappings.
    Reader = 2,
    /// A mapping in one slot of the segment's table, with the descriptor of its file.
    Mapping = 3,
    /// An LMDB lock file was opened; a [`LockNote`] follows.
    Lock = 5,
    /// A file that was mapped but will not be armed; `slot` holds the [`Refusal`](crate::segment::Refusal).
    Refused = 4,
    /// A program that was executed without the library, with its descriptor; `slot` holds the
    /// [`Uninjected`](crate::uninjected::Uninjected).
    Uninjected = 6,
}

/// One datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Enrolment {
    magic: [u8; 8],
    version: u32,
    kind: u32,
    /// The supervisor's session that the process belongs to.
    pub session: u64,
    /// Names the segment: random, never reused; of a reader never 0.
    pub token: u64,
    /// The token of the process that this one was forked from, or 0.
    pub parent: u64,
    /// Slot in the segment's table of mappings.
    pub slot: u32,
    /// Generation of the mapping in that slot.
    pub generation: u32,
}

/// Why a datagram is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    Length,
    Magic,
    Version(u32),
    Kind(u32),
    /// 0, which names nobody.
    Token,
}

impl Enrolment {
    /// Size of the datagram in bytes.
    pub const LENGTH: usize = size_of::<Self>();

    pub fn new(kind: Kind, session: u64, token: u64, parent: u64, slot: u32) -> Self {
        Self::of_mapping(kind, session, token, parent, slot, 0)
    }

    fn of_mapping(kind: Kind, session: u64, token: u64, parent: u64, slot: u32, generation: u32) -> Self {
        Self { magic: MAGIC, version: VERSION, kind: kind as u32, session, token, parent, slot, generation }
    }

    /// Announces a mapping.
    pub fn mapping(session: u64, token: u64, slot: u32, generation: u32) -> Self {
        Self::of_mapping(Kind::Mapping, session, token, 0, slot, generation)
    }

    /// The datagram as bytes in native order: both ends are on one machine.
    pub fn to_bytes(self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        let mut at = 0;
        let mut put = |field: &[u8]| {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        put(&self.magic);
        put(&self.version.to_ne_bytes());
        put(&self.kind.to_ne_bytes());
        put(&self.session.to_ne_bytes());
        put(&self.token.to_ne_bytes());
        put(&self.parent.to_ne_bytes());
        put(&self.slot.to_ne_bytes());
        put(&self.generation.to_ne_bytes());
        bytes
    }

    /// Reads a datagram from a peer that is not trusted to be well-behaved.
    pub fn parse(bytes: &[u8]) -> Result<(Self, Kind), Malformed> {
        if bytes.len() != Self::LENGTH {
            return Err(Malformed::Length);
        }
        let half = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
        let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        if bytes[..8] != MAGIC {
            return Err(Malformed::Magic);
        }
        if half(8) != VERSION {
            return Err(Malformed::Version(half(8)));
        }
        let kind = match half(12) {
            1 => Kind::Loaded,
            2 => Kind::Reader,
            3 => Kind::Mapping,
            4 => Kind::Refused,
            5 => Kind::Lock,
            6 => Kind::Uninjected,
            other => return Err(Malformed::Kind(other)),
        };
        if kind == Kind::Reader && word(24) == 0 {
            return Err(Malformed::Token);
        }
        Ok((Self::of_mapping(kind, word(16), word(24), word(32), half(40), half(44)), kind))
    }
}

/// An [`Enrolment`] of kind [`Kind::Lock`] with the path of the lock file behind it; `slot` is 1 if the process was given
/// a private one.
pub struct LockNote;

impl LockNote {
    /// The longest datagram, in bytes; a path that does not fit is not told.
    pub const LENGTH: usize = Enrolment::LENGTH + 4096;

    /// Writes the datagram into `buffer`.
    pub fn write<'a>(buffer: &'a mut [u8], session: u64, private: bool, path: &[u8]) -> Option<&'a [u8]> {
        let length = Enrolment::LENGTH + path.len();
        let datagram = buffer.get_mut(..length)?;
        let (head, tail) = datagram.split_at_mut(Enrolment::LENGTH);
        head.copy_from_slice(&Enrolment::new(Kind::Lock, session, 0, 0, u32::from(private)).to_bytes());
        tail.copy_from_slice(path);
        Some(datagram)
    }

    /// Whether the lock file was a private one, the session, and the path.
    pub fn parse(bytes: &[u8]) -> Option<(bool, u64, &[u8])> {
        let (head, path) = bytes.split_at_checked(Enrolment::LENGTH)?;
        match Enrolment::parse(head) {
            Ok((what, Kind::Lock)) => Some((what.slot == 1, what.session, path)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn survives_the_journey(session: u64, token: u64, slot: u32, generation: u32) {
            let sent = Enrolment::mapping(session, token, slot, generation);
            prop_assert_eq!(Enrolment::parse(&sent.to_bytes()), Ok((sent, Kind::Mapping)));
        }

        #[test]
        fn anything_else_is_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assert!(Enrolment::parse(&bytes).is_err());
        }
    }

    #[test]
    fn a_lock_note_keeps_its_path() {
        let mut buffer = [0; LockNote::LENGTH];
        let datagram = LockNote::write(&mut buffer, 7, true, b"/db/lock.mdb").unwrap();
        assert_eq!(LockNote::parse(datagram), Some((true, 7, &b"/db/lock.mdb"[..])));
        assert_eq!(LockNote::parse(&datagram[..20]), None);
    }

    /// Every reader that was not forked names 0 as its parent.
    #[test]
    fn nobody_is_everybodys_parent() {
        let nameless = Enrolment::new(Kind::Reader, 1, 0, 0, 0);
        assert_eq!(Enrolment::parse(&nameless.to_bytes()), Err(Malformed::Token));
    }

    #[test]
    fn another_version_is_named() {
        let mut bytes = Enrolment::new(Kind::Reader, 1, 2, 0, 0).to_bytes();
        bytes[8..12].copy_from_slice(&(VERSION + 1).to_ne_bytes());
        assert_eq!(Enrolment::parse(&bytes), Err(Malformed::Version(VERSION + 1)));
    }
}
