//! Making this process and its mappings known to the optimizer. Nothing here waits for it.

use crate::place::{self, Place};
use crate::{owner, registry, settings, sys};
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering::*};
use precache_contract::VERSION;
use precache_contract::enrolment::{Enrolment, Kind, LockNote};
use precache_contract::segment::{Refusal, Segment};

/// The segment of this process; null before the first data file is mapped.
static SEGMENT: AtomicPtr<Segment> = AtomicPtr::new(core::ptr::null_mut());

pub fn segment() -> Option<&'static Segment> {
    // SAFETY: points to a place at which a segment lies for as long as the process lives, of whatever optimizer; the
    // contents are atomics, for which every value is valid.
    unsafe { SEGMENT.load(Acquire).as_ref() }
}

/// A new segment that this process alone has so far.
struct New {
    segment: &'static Segment,
    /// To be handed over.
    file: sys::Descriptor,
    /// Kept until the segment is in use.
    _place: Place,
}

impl New {
    /// Anywhere but where the old one lies.
    fn create(old: *const Segment) -> sys::Result<Self> {
        let place = Place::claim(|place| place == old || place == SEGMENT.load(Acquire))?;
        let file = sys::memory_file()?;
        sys::seal_at_length(&file, Segment::LENGTH)?;
        let token = sys::random_word()?;
        // SAFETY: mapped just now at full length, page-aligned, zeroed, and never unmapped (see `segment`).
        let segment = unsafe { &*place.map(file.0)? };
        segment.version.store(VERSION, Relaxed);
        segment.token.store(token, Relaxed);
        Ok(Self { segment, file, _place: place })
    }

    fn address(&self) -> *mut Segment {
        core::ptr::from_ref(self.segment).cast_mut()
    }
}

/// The optimizer that has it.
static OPTIMIZER: AtomicI32 = AtomicI32::new(0);

/// A conversation with the optimizer: closed when it drops.
pub struct Connection {
    socket: sys::Descriptor,
    session: u64,
    pub segment: &'static Segment,
}

/// Connects, and enrols this process if this optimizer does not know it yet.
pub fn connect() -> sys::Result<Connection> {
    let (socket, optimizer) = sys::connect(settings::socket())?;
    match segment() {
        Some(segment) if OPTIMIZER.load(Acquire) == optimizer => Connection::over(socket, segment),
        Some(segment) => enrol(socket, optimizer, segment, 0),
        None => {
            // First of all: a child that is forked from here on must not take this process's segment for its own.
            if !owner::establish() {
                return Err(sys::Error::ENOMEM);
            }
            let new = New::create(core::ptr::null())?;
            let connection = Connection::over(socket, new.segment)?;
            connection.introduce(&new.file, 0)?;
            OPTIMIZER.store(optimizer, Release);
            match SEGMENT.compare_exchange(core::ptr::null_mut(), new.address(), AcqRel, Acquire) {
                Ok(_) => Ok(connection),
                // Another thread enrolled in the meantime; the optimizer sees one more reader without mappings.
                // SAFETY: the winner's segment, as in `segment`.
                Err(theirs) => Ok(Connection { segment: unsafe { &*theirs }, ..connection }),
            }
        }
    }
}

/// Enrols this process with a new segment that describes the same mappings as the old one.
fn enrol(socket: sys::Descriptor, optimizer: i32, old: &Segment, parent: u64) -> sys::Result<Connection> {
    let new = New::create(old)?;
    for (from, to) in old.mappings.iter().zip(&new.segment.mappings) {
        to.address.store(from.address.load(Relaxed), Relaxed);
        to.length.store(from.length.load(Relaxed), Relaxed);
        to.offset.store(from.offset.load(Relaxed), Relaxed);
        to.method.store(from.method.load(Relaxed), Relaxed);
        to.counted.store(from.generation.load(Relaxed), Relaxed);
        to.generation.store(from.generation.load(Relaxed), Release);
    }
    let connection = Connection::over(socket, new.segment)?;
    connection.introduce(&new.file, parent)?;
    OPTIMIZER.store(optimizer, Release);
    SEGMENT.store(new.address(), Release);
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
    let Some(inherited) = segment() else { return Ok(None) };
    SEGMENT.store(core::ptr::null_mut(), Release);
    place::reset_after_fork();
    let (socket, optimizer) = sys::connect(settings::socket())?;
    enrol(socket, optimizer, inherited, token(inherited)).map(Some)
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
    match segment() {
        Some(old) if OPTIMIZER.load(Acquire) != optimizer => match enrol(socket, optimizer, old, 0) {
            Ok(connection) => Listener::Another(connection),
            Err(_) => Listener::Nobody,
        },
        _ => Listener::Ours,
    }
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
