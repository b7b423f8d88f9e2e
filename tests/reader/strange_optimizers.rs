//! The test plays the optimizer, and does what ours does not: the program must not notice.
//!
//! The reader never waits for an answer, and takes what stands in the shared memory for a stranger's word.

use crate::library::unpacked;
use crate::programs::compiled;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr, accept4, bind, getsockopt,
    listen, recvmsg, socket,
};
use precache_contract::enrolment::{Enrolment, Kind};
use precache_contract::segment::Segment;
use precache_tests::runs::{Program, finish};
use std::io::IoSliceMut;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use std::time::Duration;

/// What kind of optimizer is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Listens, and takes no connection while the program runs.
    Deaf,
    /// Hangs up on what it does not understand, as one that speaks another version of the protocol.
    OfAnotherVersion,
    /// Takes trips now and then, one at a time, and tells nothing.
    Slow,
    /// Writes whatever comes to its mind wherever it may write.
    Lying,
}

/// A reader's memory, shared with it.
struct Shared(&'static Segment);

impl Shared {
    fn map(file: &OwnedFd) -> Self {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping at a place of the kernel's choice.
        let address =
            unsafe { libc::mmap(std::ptr::null_mut(), Segment::LENGTH, protection, flags, file.as_raw_fd(), 0) };
        assert_ne!(address, libc::MAP_FAILED);
        // SAFETY: as long as a segment, which its reader sealed at that length, never unmapped, and made of atomics.
        Self(unsafe { &*address.cast() })
    }

    fn takes_one(&self) {
        self.0.news.pop();
        self.0.sleeper.0.store(1, SeqCst);
    }

    /// Writes a random word to a random place: not to the counters, which the test needs, and seldom a veto that counts.
    fn lies(&self, dice: &mut Dice) {
        let counters = offset_of!(Segment, counters)..offset_of!(Segment, mappings);
        let place = dice.throw() as usize % (Segment::LENGTH / size_of::<AtomicU64>()) * size_of::<AtomicU64>();
        if place < size_of::<u64>() || counters.contains(&place) || place + size_of::<u64>() > size_of::<Segment>() {
            return;
        }
        let value = match dice.throw() % 4 {
            0 => dice.throw() % 2,
            1 => dice.throw() % (64 << 20),
            2 => u64::MAX - dice.throw() % 4096,
            _ => dice.throw(),
        };
        // SAFETY: inside the segment, aligned to 8 bytes, and atomic on both sides.
        unsafe { &*(self.0 as *const Segment as *const AtomicU64).byte_add(place) }.store(value, Relaxed);
        for mapping in self.0.mappings.iter().take(4) {
            mapping.distance.store(value, Relaxed);
            mapping.watched.store(dice.throw() as u32 % 10, Relaxed);
            let watch = &mapping.watches[dice.throw() as usize % mapping.watches.len()];
            watch.low.store(dice.throw() % (80 << 20), Relaxed);
            watch.high.store(dice.throw() % (80 << 20), Relaxed);
            watch.checkpoints[0].store(dice.throw() % (80 << 20), Relaxed);
            watch.is_backward.store(dice.throw() % 2, Relaxed);
            mapping.letting_go.ask(dice.throw() % (80 << 20), value);
        }
        self.0.sleeper.0.store(1, SeqCst);
    }
}

/// The same throws in every run (xorshift64).
pub struct Dice(pub u64);

impl Dice {
    pub fn throw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

struct Optimizer {
    socket: OwnedFd,
    name: String,
    manner: Manner,
    readers: Vec<Shared>,
}

impl Optimizer {
    fn new(manner: Manner) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("precache-test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None).expect("a socket");
        bind(socket.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes()).expect("a name")).expect("a free name");
        listen(&socket, Backlog::new(if manner == Manner::Deaf { 8 } else { 4096 }).expect("a number"))
            .expect("it listens");
        Self { socket, name, manner, readers: Vec::new() }
    }

    fn act(&mut self, over: &AtomicBool) {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        while !over.load(Acquire) {
            match self.manner {
                Manner::Deaf => std::thread::yield_now(),
                Manner::OfAnotherVersion => self.take_connections(),
                Manner::Slow => {
                    self.take_connections();
                    self.readers.iter().for_each(Shared::takes_one);
                    // Slowness is the matter, not a way to wait for something.
                    std::thread::sleep(Duration::from_millis(20));
                }
                Manner::Lying => {
                    self.take_connections();
                    // From its first checkpoint on: a veto before that would leave nothing to lie about.
                    let tripped = self.readers.iter().filter(|reader| reader.0.counters.trips.load(Relaxed) > 0);
                    tripped.for_each(|reader| reader.lies(&mut dice));
                }
            }
        }
        self.take_connections();
    }

    /// All that those who have come have to say: each hangs up as soon as it has said it.
    fn take_connections(&mut self) {
        while let Ok(number) = accept4(self.socket.as_raw_fd(), SockFlag::SOCK_CLOEXEC) {
            // SAFETY: accept4 made this descriptor for us.
            let connection = unsafe { OwnedFd::from_raw_fd(number) };
            assert!(getsockopt(&connection, PeerCredentials).is_ok());
            while let Some((bytes, file)) = receive(&connection) {
                match (Enrolment::parse(&bytes), file) {
                    (Ok((_, Kind::Reader)), Some(file)) => self.readers.push(Shared::map(&file)),
                    // Any earlier, and the reader would hear of it before it arms anything.
                    (Ok((_, Kind::Mapping)), _) if self.manner == Manner::OfAnotherVersion => break,
                    (Ok(_), _) => {}
                    (Err(why), _) => panic!("{why:?}"),
                }
            }
        }
    }

    fn trips(&self) -> u64 {
        self.readers.iter().map(|reader| reader.0.counters.trips.load(Relaxed)).sum()
    }
}

/// One datagram, and the descriptor that came with it; `None` when there is no more.
fn receive(connection: &OwnedFd) -> Option<(Vec<u8>, Option<OwnedFd>)> {
    let mut bytes = vec![0; 8192];
    let mut control = nix::cmsg_space!([RawFd; 1]);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(connection.as_raw_fd(), &mut parts, Some(&mut control), flags).ok()?;
    let mut file = None;
    for part in message.cmsgs().ok()? {
        if let ControlMessageOwned::ScmRights(numbers) = part {
            // SAFETY: the kernel made these descriptors for us in this call.
            file = numbers.first().map(|&number| unsafe { OwnedFd::from_raw_fd(number) });
        }
    }
    let length = message.bytes;
    bytes.truncate(length);
    (length > 0).then_some((bytes, file))
}

/// Runs the program alone, then injected with such an optimizer, with both ways of protecting pages.
fn must_not_notice(manner: Manner, program: &str) {
    let (_home, library) = unpacked();
    let Program(words) = compiled(program);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    let alone = finish(&mut command);
    assert!(alone.status.success(), "{alone:?}");
    for protect in ["guard", "mprotect"] {
        let mut optimizer = Optimizer::new(manner);
        let settings = format!(
            "socket={}\x1elibrary={}\x1esession=1\x1esupervisor=0\x1edistance=1048576\x1emin_file=1048576\x1eprotect={protect}\x1e",
            optimizer.name,
            library.display()
        );
        command.env("LD_PRELOAD", &library).env("PRECACHE_READER", settings);
        let over = AtomicBool::new(false);
        let under = std::thread::scope(|threads| {
            threads.spawn(|| optimizer.act(&over));
            let under = finish(&mut command);
            over.store(true, Release);
            under
        });
        assert_eq!(under, alone, "{program} notices that its optimizer is {manner:?}, with {protect}");
        assert!(optimizer.trips() > 0, "no checkpoint was hit by {program} with {protect}");
    }
}

#[test]
fn one_that_is_deaf() {
    must_not_notice(Manner::Deaf, "many_threads");
    must_not_notice(Manner::Deaf, "families");
}

#[test]
fn one_of_another_version() {
    must_not_notice(Manner::OfAnotherVersion, "many_threads");
    must_not_notice(Manner::OfAnotherVersion, "families");
}

#[test]
fn one_that_is_slow() {
    must_not_notice(Manner::Slow, "many_threads");
    must_not_notice(Manner::Slow, "families");
    must_not_notice(Manner::Slow, "changed_mappings");
}

#[test]
fn one_that_lies() {
    for program in ["many_threads", "families", "changed_mappings", "several_at_once"] {
        must_not_notice(Manner::Lying, program);
    }
}
