//! Making this process and its mappings known to the optimizer. Nothing here waits for it.

use crate::fork_gate::Shut;
use crate::handler::attachment;
use crate::place::{self, Claim};
use crate::registry::{self, Held};
use crate::{owner, settings, sys};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering::*};
use precache_contract::VERSION;
use precache_contract::enrolment::{Enrolment, Kind, LockNote};
use precache_contract::segment::{Refusal, Segment, Watch};
use precache_contract::uninjected::Uninjected;

/// The segment of this process; null before the first data file is mapped.
#[cfg_attr(not(test), unsafe(link_section = ".bss.trip"))]
static SEGMENT: AtomicPtr<Segment> = AtomicPtr::new(core::ptr::null_mut());

pub fn segment() -> Option<&'static Segment> {
    // SAFETY: points to a place at which some segment of this process lies for as long as that lives (`place`); the contents
    // are atomics, for which every value is valid.
    unsafe { SEGMENT.load(Acquire).as_ref() }
}

/// In a forked child that the optimizer has not heard of: the segment of the nearest ancestor that it has. Null elsewhere.
static HERITAGE: AtomicPtr<Segment> = AtomicPtr::new(core::ptr::null_mut());

/// This process is counted there.
static COUNTED: AtomicBool = AtomicBool::new(false);

fn heritage() -> Option<&'static Segment> {
    // SAFETY: mapped in the ancestor at one of the places, and so in this process; a segment of its own comes to lie at the
    // place after it, and ends its heritage.
    unsafe { HERITAGE.load(Acquire).as_ref() }
}

/// In a forked child: nothing that it does may count as its parent's.
pub fn reset_after_fork() {
    place::reset_after_fork();
    COUNTED.store(false, Relaxed);
    let inherited = SEGMENT.swap(core::ptr::null_mut(), AcqRel);
    if !inherited.is_null() {
        HERITAGE.store(inherited, Release);
    }
}

/// Counts this process where the optimizer will see it, until it hears of it.
pub fn count_unserved() {
    if let Some(heritage) = heritage()
        && !COUNTED.swap(true, AcqRel)
        && !cfg!(feature = "sabotage-unserved-children-forgotten")
    {
        heritage.counters.unserved.fetch_add(1, Relaxed);
    }
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
    /// The process has just been enrolled as forked from another, from which the optimizer knows the files.
    pub is_heirs: bool,
}

/// Whether what this process does is done in its own name.
pub fn may_enrol() -> sys::Result<()> {
    // A child that comes past the gate during a claim must know that it is one.
    if !owner::is_established() {
        return Err(sys::Error::ENOMEM);
    }
    if owner::is_guest() {
        return Err(sys::Error::EPERM);
    }
    Ok(())
}

/// How many milliseconds one waits for another thread, which enrols the process: that takes microseconds, or longer without a
/// processor. Less than a fork waits for whoever connects.
const PATIENCE: u32 = 500;

/// Connects, and enrols this process if this optimizer does not know it yet. Shut also for handlers of the program's, which may
/// map, too, or never return. Not for signal context.
pub fn connect(_shut: &Shut) -> sys::Result<Connection> {
    let (socket, optimizer) = sys::connect(settings::socket())?;
    may_enrol()?;
    let known = || segment().filter(|_| OPTIMIZER.load(Acquire) == optimizer);
    let mut pauses = sys::Pauses::default();
    let claim = loop {
        let mut claim = None;
        // Once more behind the claim: the other thread may have had it in between.
        let segment = known().or_else(|| {
            claim = Claim::take();
            claim.as_ref().and_then(|_| known())
        });
        match (segment, claim) {
            (Some(segment), _) => return Connection::over(socket, segment, false),
            (None, Some(claim)) => break claim,
            (None, None) if pauses.next_within(PATIENCE) => {}
            (None, None) => return Err(sys::Error::EBUSY),
        }
    };
    let connection = enrol(socket, optimizer, &claim)?;
    attachment::announce_all(&connection);
    Ok(connection)
}

/// Enrols this process with a new segment, which describes all its mappings.
fn enrol(socket: sys::Descriptor, optimizer: i32, claim: &Claim) -> sys::Result<Connection> {
    let old = segment();
    let heritage = heritage().filter(|_| old.is_none());
    let (segment, file) = create(claim, old.or(heritage))?;
    registry::each(|held| describe(segment, &held));
    let connection = Connection::over(socket, segment, heritage.is_some())?;
    connection.introduce(&file, heritage.map_or(0, token))?;
    SEGMENT.store(core::ptr::from_ref(segment).cast_mut(), Release);
    OPTIMIZER.store(optimizer, Release);
    if let Some(heritage) = heritage {
        HERITAGE.store(core::ptr::null_mut(), Release);
        if COUNTED.swap(false, AcqRel) {
            heritage.counters.unserved.fetch_sub(1, Relaxed);
        }
    }
    Ok(connection)
}

impl Connection {
    fn over(socket: sys::Descriptor, segment: &'static Segment, is_heirs: bool) -> sys::Result<Self> {
        let session = settings::get().ok_or(sys::Error::EINVAL)?.session;
        Ok(Self { socket, session, segment, is_heirs })
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

/// Counts it where the optimizer sees it: in an ancestor, if it has not heard of this process.
pub fn count(why: Refusal) {
    if let Some(segment) = segment().or(heritage()) {
        segment.counters.refuse(why);
    }
}

/// Tells whoever listens why a file that was mapped is not accelerated, if this process cannot be enrolled.
pub fn refuse(why: Refusal, file: c_int, _shut: &Shut) {
    count(why);
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
    let _shut = Shut::begin();
    if let Some(datagram) = LockNote::write(&mut text, settings.session, private, path)
        && let Ok((socket, _)) = sys::connect(settings::socket())
    {
        let _ = sys::send(&socket, datagram, None);
    }
}

/// Tells the optimizer that this program is executed without the library. In a child of vfork, too; elsewhere no fork may come
/// meanwhile.
pub fn report_uninjected(why: Uninjected, program: c_int) {
    let Some(settings) = settings::get() else { return };
    if let Ok((socket, _)) = sys::connect(settings::socket()) {
        let datagram = Enrolment::new(Kind::Uninjected, settings.session, 0, 0, why as u32);
        let _ = sys::send(&socket, &datagram.to_bytes(), Some(program));
    }
}

/// Who listens at the optimizer's socket.
pub enum Listener {
    /// The optimizer that has our segment; or there is nothing that it should have.
    Ours,
    /// One to which this process has just been handed over; its mappings are still to be announced.
    Another(Connection),
    /// None, or none that hears us.
    Nobody,
}

/// Looks who listens, and enrols this process where it is not known. The old segment stays mapped: other threads may be at
/// work with it. Signal context.
pub fn find_listener() -> Listener {
    if segment().or(heritage()).is_none() {
        return Listener::Ours;
    }
    let (socket, optimizer) = match sys::connect(settings::socket()) {
        Ok(found) => found,
        // Many others are before us: it is there, and has our segment or will be asked again.
        Err(sys::Error::EAGAIN) if segment().is_some() => return Listener::Ours,
        Err(_) => return Listener::Nobody,
    };
    // Another thread is seeing to it.
    let Some(claim) = Claim::take() else { return Listener::Ours };
    if segment().is_some() && OPTIMIZER.load(Acquire) == optimizer {
        return Listener::Ours;
    }
    enrol(socket, optimizer, &claim).map_or(Listener::Nobody, Listener::Another)
}

#[inline(never)] // Of the loop over all of them, it would be unrolled.
fn clear(watch: &Watch) {
    watch.clear();
}

/// Fills in the mapping's slot of the segment.
pub fn describe(segment: &Segment, held: &Held) {
    let Some(shared) = segment.mappings.get(held.slot()) else { return };
    shared.address.store(held.start() as u64, Relaxed);
    shared.length.store(held.length() as u64, Relaxed);
    shared.offset.store(held.offset(), Relaxed);
    shared.method.store(held.method(), Relaxed);
    shared.counted.store(held.generation(), Relaxed);
    shared.trips.store(0, Relaxed);
    shared.advice.store(0, Relaxed);
    shared.populated.store(0, Relaxed);
    shared.gain.store(0, Relaxed);
    shared.presence.clear();
    shared.letting_go.met.store(shared.letting_go.asked.load(Relaxed), Relaxed);
    shared.distance.store(0, Relaxed);
    shared.watches.iter().for_each(clear);
    // What nobody will tell need not be waited for in small steps.
    let expected = usize::from(settings::nobody_fetches());
    shared.watches.iter().take(expected).for_each(Watch::expect_nothing);
    shared.watched.store(expected as u32, Release);
    shared.generation.store(held.generation(), Release);
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
