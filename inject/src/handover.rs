//! Making this process and its mappings known to the optimizer. Nothing here waits for it.

use crate::handler::attachment;
use crate::place::{self, Claim};
use crate::{fork_gate, owner, registry, settings, sys};
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering::*};
use precache_contract::VERSION;
use precache_contract::enrolment::{Enrolment, Kind, LockNote};
use precache_contract::segment::{Refusal, Segment};

/// The segment of this process; null before the first data file is mapped.
static SEGMENT: AtomicPtr<Segment> = AtomicPtr::new(core::ptr::null_mut());

pub fn segment() -> Option<&'static Segment> {
    // SAFETY: points to a place at which some segment of this process lies for as long as that lives (`place`); the contents
    // are atomics, for which every value is valid.
    unsafe { SEGMENT.load(Acquire).as_ref() }
}

/// A new segment that this process alone has so far, and the descriptor to hand over.
fn create(claim: &Claim, old: Option<&Segment>) -> sys::Result<(&'static Segment, sys::Descriptor)> {
    let file = sys::memory_file()?;
    sys::seal_at_length(&file, Segment::LENGTH)?;
    let token = sys::random_word()?;
    let place = claim.map(file.0, old.map_or(core::ptr::null(), core::ptr::from_ref))?;
    // SAFETY: mapped just now at full length, page-aligned, zeroed, and never unmapped (see `segment`).
    let segment = unsafe { &*place };
    segment.version.store(VERSION, Relaxed);
    segment.token.store(token, Relaxed);
    Ok((segment, file))
}

/// The optimizer that has it.
static OPTIMIZER: AtomicI32 = AtomicI32::new(0);

/// A conversation with the optimizer: closed when it drops.
pub struct Connection {
    socket: sys::Descriptor,
    session: u64,
    pub segment: &'static Segment,
}

/// How often this thread yields to another that is enrolling the process, which takes some microseconds.
const PATIENCE: u32 = 10_000;

/// Connects, and enrols this process if this optimizer does not know it yet. Not for signal context.
pub fn connect() -> sys::Result<Connection> {
    // Also for handlers of the program's, which may map, too, or never return.
    let _shut = fork_gate::Shut::begin();
    let (socket, optimizer) = sys::connect(settings::socket())?;
    // Before a claim: a child that comes past the gate while there is one must know that it is a child.
    if !owner::establish() {
        return Err(sys::Error::ENOMEM);
    }
    let known = || segment().filter(|_| OPTIMIZER.load(Acquire) == optimizer);
    for _ in 0..PATIENCE {
        if let Some(segment) = known() {
            return Connection::over(socket, segment);
        }
        let Some(claim) = Claim::take() else {
            sys::yield_now();
            continue;
        };
        if let Some(segment) = known() {
            return Connection::over(socket, segment);
        }
        let old = segment();
        let connection = enrol(socket, optimizer, old, 0, &claim)?;
        if old.is_some() {
            attachment::announce_all(&connection, |held| held.doom());
        }
        return Ok(connection);
    }
    Err(sys::Error::EBUSY)
}

/// Enrols this process with a new segment, which describes the same mappings as the old one.
fn enrol(
    socket: sys::Descriptor,
    optimizer: i32,
    old: Option<&Segment>,
    parent: u64,
    claim: &Claim,
) -> sys::Result<Connection> {
    let (segment, file) = create(claim, old)?;
    let mappings = old.iter().flat_map(|old| &old.mappings).zip(&segment.mappings);
    for (from, to) in mappings {
        to.address.store(from.address.load(Relaxed), Relaxed);
        to.length.store(from.length.load(Relaxed), Relaxed);
        to.offset.store(from.offset.load(Relaxed), Relaxed);
        to.method.store(from.method.load(Relaxed), Relaxed);
        to.counted.store(from.generation.load(Relaxed), Relaxed);
        to.generation.store(from.generation.load(Relaxed), Release);
    }
    let connection = Connection::over(socket, segment)?;
    connection.introduce(&file, parent)?;
    SEGMENT.store(core::ptr::from_ref(segment).cast_mut(), Release);
    OPTIMIZER.store(optimizer, Release);
    Ok(connection)
}

impl Connection {
    fn over(socket: sys::Descriptor, segment: &'static Segment) -> sys::Result<Self> {
        let session = settings::get().ok_or(sys::Error::EINVAL)?.session;
        Ok(Self { socket, session, segment })
    }

    /// Hands over the segment.
    fn introduce(&self, file: &sys::Descriptor, parent: u64) -> sys::Result<()> {
        let datagram = Enrolment::new(Kind::Reader, self.session, token(self.segment), parent, 0);
        sys::send(&self.socket, &datagram.to_bytes(), Some(file.0))
    }

    /// Announces the mapping, filled into its slot of the segment, with the descriptor of its file.
    pub fn announce(&self, slot: usize, generation: u32, file: c_int) -> sys::Result<()> {
        let datagram = Enrolment::mapping(self.session, token(self.segment), slot as u32, generation);
        sys::send(&self.socket, &datagram.to_bytes(), Some(file))
    }

    /// Tells why a file that was mapped is not accelerated.
    pub fn refuse(&self, why: Refusal, file: c_int) -> sys::Result<()> {
        self.segment.counters.refuse(why);
        let datagram = Enrolment::new(Kind::Refused, self.session, token(self.segment), 0, why as u32);
        sys::send(&self.socket, &datagram.to_bytes(), Some(file))
    }
}

/// Tells whoever listens why a file that was mapped is not accelerated, if this process cannot be enrolled.
pub fn refuse(why: Refusal, file: c_int) {
    if let Some(segment) = segment() {
        segment.counters.refuse(why);
    }
    let _quiet = sys::Quiet::begin();
    if let Some(settings) = settings::get()
        && let Ok((socket, _)) = sys::connect(settings::socket())
    {
        let datagram = Enrolment::new(Kind::Refused, settings.session, 0, 0, why as u32);
        let _ = sys::send(&socket, &datagram.to_bytes(), Some(file));
    }
}

/// Tells the optimizer that the library is loaded, if this is the program that the supervisor started itself: so a
/// report can tell "nothing was mapped" from "the library was not loaded".
pub fn report_loaded() {
    let Some(settings) = settings::get() else { return };
    if settings.supervisor == sys::parent()
        && let Ok((socket, _)) = sys::connect(settings::socket())
    {
        let _ = sys::send(&socket, &Enrolment::new(Kind::Loaded, settings.session, 0, 0, 0).to_bytes(), None);
    }
}

/// Tells the optimizer that a process opened the lock file at this path, and whether it was given a private one.
#[inline(never)] // Its buffer must not weigh on the stacks of those who open other files.
pub fn report_lock(private: bool, path: &[u8]) {
    let Some(settings) = settings::get() else { return };
    let mut text = [0u8; LockNote::LENGTH];
    if let Some(datagram) = LockNote::write(&mut text, settings.session, private, path)
        && let Ok((socket, _)) = sys::connect(settings::socket())
    {
        let _ = sys::send(&socket, datagram, None);
    }
}

/// In a forked child: a segment of its own, with the mappings that it inherits. Signal context. On failure the child
/// is left without a segment: nothing that it does may count as its parent's.
pub fn enrol_heir() -> sys::Result<Option<Connection>> {
    place::reset_after_fork();
    let Some(inherited) = segment() else { return Ok(None) };
    SEGMENT.store(core::ptr::null_mut(), Release);
    let (socket, optimizer) = sys::connect(settings::socket())?;
    let claim = Claim::take().ok_or(sys::Error::EBUSY)?;
    enrol(socket, optimizer, Some(inherited), token(inherited), &claim).map(Some)
}

/// Who listens at the optimizer's socket.
pub enum Listener {
    /// The optimizer that has our segment.
    Ours,
    /// Another one, to which this process has just been handed over; its mappings are still to be announced.
    Another(Connection),
    Nobody,
}

/// Looks who listens. The old segment stays mapped: other threads may be at work with it.
pub fn find_listener() -> Listener {
    let (socket, optimizer) = match sys::connect(settings::socket()) {
        Ok(found) => found,
        // Many others are before us: it is there, and has our segment or will be asked again.
        Err(sys::Error::EAGAIN) => return Listener::Ours,
        Err(_) => return Listener::Nobody,
    };
    // Another thread is seeing to it.
    let Some(claim) = Claim::take() else { return Listener::Ours };
    let Some(old) = segment().filter(|_| OPTIMIZER.load(Acquire) != optimizer) else { return Listener::Ours };
    enrol(socket, optimizer, Some(old), 0, &claim).map_or(Listener::Nobody, Listener::Another)
}

/// Fills in the mapping's slot of the segment.
pub fn describe(segment: &Segment, slot: usize, generation: u32, what: &registry::Description) {
    let Some(shared) = segment.mappings.get(slot) else { return };
    shared.address.store(what.start as u64, Relaxed);
    shared.length.store(what.length as u64, Relaxed);
    shared.offset.store(what.offset, Relaxed);
    shared.method.store(what.method as u32, Relaxed);
    shared.counted.store(generation, Relaxed);
    shared.trips.store(0, Relaxed);
    shared.advice.store(0, Relaxed);
    shared.populated.store(0, Relaxed);
    shared.gain.store(0, Relaxed);
    shared.presence.clear();
    shared.letting_go.met.store(shared.letting_go.asked.load(Relaxed), Relaxed);
    shared.distance.store(0, Relaxed);
    for watch in &shared.watches {
        watch.clear();
    }
    shared.generation.store(generation, Release);
}

/// Tells the optimizer that the mapping is gone, so that it lets go of the file.
pub fn retract(slot: usize) {
    let Some(segment) = segment() else { return };
    let Some(shared) = segment.mappings.get(slot) else { return };
    shared.generation.store(0, SeqCst);
    if segment.sleeper.take_wake() {
        sys::futex_wake(&segment.sleeper.0);
    }
}

fn token(segment: &Segment) -> u64 {
    segment.token.load(Relaxed)
}
