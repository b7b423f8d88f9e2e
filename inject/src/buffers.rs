//! Memory that a system call is given: to be read, or to be filled.

use crate::doing::Doing;
use crate::extent::{Around, Extent};
use crate::handler::disposition;
use crate::{peek, registry};
use core::cell::Cell;
use core::ffi::{c_char, c_uint, c_void};
use core::mem::offset_of;
use precache_contract::PAGE;

/// The longest list that the kernel takes (IOV_MAX, readv(2)): a longer one it refuses without a look at it.
pub const LONGEST: usize = 1024;

/// The longest address that the kernel takes or gives (`move_addr_to_kernel` in net/socket.c).
const LONGEST_NAME: usize = size_of::<libc::sockaddr_storage>();

/// The longest path, in bytes, with its end.
pub const PATH_MAX: usize = libc::PATH_MAX as usize;

/// Where a program's memory can lie (`vm.mmap_min_addr`; 47 bits on x86-64).
const LOWEST: usize = 64 << 10;
const HIGHEST: usize = 1 << 47;

/// The longest string that a program is executed with (MAX_ARG_STRLEN, execve(2)), as it is in the kernel: 32 pages.
pub const STRING_MAX: usize = 32 * PAGE as usize;

/// The words that a call is given, as integers: no call takes more (syscall(2)).
pub type Words = [usize; 6];

/// How far what a word points to is taken to go: as far as extended attributes and their lists (XATTR_SIZE_MAX,
/// XATTR_LIST_MAX). Paths are shorter (PATH_MAX), and what ioctl(2) encodes (14 bits); `docs/limitations.md` names what is
/// longer.
const REACH: usize = 64 << 10;

/// All buffers of one call, as the program names them: they are looked at when they are asked for. Of what is not there, and of
/// what comes after it, the kernel takes nothing, and nothing is looked at.
#[derive(Clone, Copy)]
pub struct Buffers(Kind);

#[derive(Clone, Copy)]
enum Kind {
    /// Address and length.
    One(*const c_void, usize),
    /// Address, and the most bytes that may follow.
    From(*const c_void, usize),
    /// So many strings.
    Strings(*const *const c_char, usize),
    List(*const libc::iovec, usize),
    Lists([(*const libc::iovec, usize); 2]),
    /// Each with the address that it goes to or comes from, and its control data.
    Messages(*const libc::mmsghdr, usize),
    Words(*const Words),
}

impl Buffers {
    pub const NONE: Self = Self(Kind::One(core::ptr::null(), 0));

    #[inline(always)]
    pub fn one(address: *const c_void, length: usize) -> Self {
        Self(Kind::One(address, length))
    }

    /// What begins at the address, and ends nobody knows where before that many bytes. It is armed if its first byte is: what
    /// lies below an armed mapping is mostly somebody else's (a thread's stack), and is not to be taken for a part of it.
    #[inline(always)]
    pub fn from(address: *const c_void, most: usize) -> Self {
        Self(Kind::From(address, most))
    }

    /// Strings that a program is executed with.
    pub fn strings(list: *const *const c_char, count: usize) -> Self {
        Self(Kind::Strings(list, count))
    }

    /// Of the count the kernel takes 32 bits (`import_iovec`).
    #[inline(always)]
    pub fn list(list: *const libc::iovec, count: usize) -> Self {
        Self(Kind::List(list, count as u32 as usize))
    }

    /// A list of this process's, and one that is another's as far as the kernel knows, of whose count it takes all.
    #[inline(always)]
    pub fn lists(own: (*const libc::iovec, usize), other: (*const libc::iovec, usize)) -> Self {
        Self(Kind::Lists([(own.0, own.1 as u32 as usize), other]))
    }

    #[inline(always)]
    pub fn message(message: *const libc::msghdr) -> Self {
        const _: () = assert!(offset_of!(libc::mmsghdr, msg_hdr) == 0);
        Self(Kind::Messages(message.cast(), 1))
    }

    /// To be filled, as recvmmsg(2) demands.
    #[inline(always)]
    pub fn messages(messages: *const libc::mmsghdr, count: c_uint) -> Self {
        Self(Kind::Messages(messages, count as usize))
    }

    /// The same to be sent: of more the kernel sends so many (sendmmsg(2)).
    #[inline(always)]
    pub fn sent_messages(messages: *const libc::mmsghdr, count: c_uint) -> Self {
        Self(Kind::Messages(messages, (count as usize).min(LONGEST)))
    }

    /// What the words of a call point to, of whatever kind they are: none that is no address is the address of armed memory.
    /// As [from](Self::from) each of them.
    ///
    /// # Safety
    /// They must be there for as long as this is used.
    #[inline(always)]
    pub unsafe fn words(words: *const Words) -> Self {
        Self(Kind::Words(words))
    }

    /// Whether any of them may lie in an armed mapping: all that most calls ask.
    #[inline(always)]
    pub fn may_be_armed(self) -> bool {
        match self.0 {
            Kind::One(address, length) => may_be_armed(address, length),
            Kind::List(list, count) => may_list_be_armed(list, count),
            Kind::Lists([own, other]) => may_lists_be_armed(own, other),
            Kind::From(address, _) => may_be_armed(address, 1),
            Kind::Words(_) if cfg!(feature = "sabotage-words-not-looked-at") => false,
            // SAFETY: the promise that they were made with.
            Kind::Words(words) => may_words_be_armed(unsafe { &*words }),
            Kind::Messages(messages, count) => may_messages_be_armed(messages, count),
            Kind::Strings(..) => !registry::is_empty() && self.is_any_armed(),
        }
    }

    fn is_any_armed(self) -> bool {
        let is_armed = Cell::new(false);
        self.each_armed(Doing::by(&|_| is_armed.set(true)));
        is_armed.get()
    }

    /// Calls `visit` with start and end of each that may lie in an armed mapping.
    #[inline(never)] // One copy is enough for all who ask.
    pub fn each_armed(self, visit: Doing<(usize, usize), ()>) {
        // Of `most` bytes, if one of the first `length` may.
        let look = |address: *const c_void, length: usize, most: usize| {
            let (start, end) = range(address, length);
            if start < end && registry::overlaps(start, end) {
                visit.with((start, start.saturating_add(most)));
            }
        };
        let one = |(address, length): (*const c_void, usize)| look(address, length, length);
        match self.0 {
            Kind::One(address, length) => look(address, length, length),
            Kind::From(address, most) => look(address, 1, most),
            // SAFETY: the promise that they were made with.
            Kind::Words(words) => unsafe { *words }.iter().for_each(|&word| look(word as *const c_void, 1, REACH)),
            // What is reached through a pointer.
            _ if is_nothing_closed() => {}
            Kind::Strings(list, count) => {
                let string = |index| peek::word(list.wrapping_add(index).addr());
                (0..count).map_while(string).for_each(|string| look(string as *const c_void, 1, STRING_MAX));
            }
            Kind::List(list, count) => each_of_list((list, count), &one),
            Kind::Lists(lists) => lists.iter().for_each(|&list| each_of_list(list, &one)),
            Kind::Messages(messages, count) => {
                let messages = (0..count).map(|index| messages.wrapping_add(index));
                messages.map_while(|message| Some((message, header_of(message.cast())?))).for_each(
                    |(message, header)| {
                        one(place_of_messages(message, 1));
                        header.each(&one);
                    },
                );
            }
        }
    }
}

#[inline(always)]
fn may_be_armed(address: *const c_void, length: usize) -> bool {
    let (start, end) = range(address, length);
    registry::overlaps(start, end)
}

#[inline(never)] // One copy is enough for all who ask.
fn may_words_be_armed(words: &Words) -> bool {
    words.iter().any(|&word| may_be_armed(word as *const c_void, 1))
}

/// Whether no buffer need be looked for, nor may be: where a fault would not call our handler.
#[inline(always)]
pub fn is_nothing_closed() -> bool {
    registry::is_empty() | !disposition::is_in_place()
}

// Nearly every list, and every message that is alone, goes through this or one of the next two, so what these are given goes in
// registers: a kind of buffers that is looked up in memory takes longer than the look itself.
#[inline(never)] // One copy is enough for all who ask.
fn may_list_be_armed(list: *const libc::iovec, count: usize) -> bool {
    let may_be = |(address, length)| may_be_armed(address, length);
    !is_nothing_closed() && (may_be(place_of((list, count))) || parts_of(list, count).any(may_be))
}

#[inline(never)] // As above.
fn may_messages_be_armed(messages: *const libc::mmsghdr, count: usize) -> bool {
    if is_nothing_closed() {
        return false;
    }
    let place = place_of_messages(messages, count);
    let headers = (0..count).map_while(|index| header_of(messages.wrapping_add(index).cast()));
    let could = headers.fold(false, |could, header| could | header.could_be_armed());
    (could || may_be_armed(place.0, place.1)) && is_any_part_armed(Buffers(Kind::Messages(messages, count)))
}

#[inline(never)] // As above.
fn may_lists_be_armed(own: (*const libc::iovec, usize), other: (*const libc::iovec, usize)) -> bool {
    if is_nothing_closed() {
        return false;
    }
    // As one first, for they may lie close together.
    let mut both = Extent::NONE;
    add_list(&mut both, own);
    add_list(&mut both, other);
    let (start, end) = both.range();
    registry::overlaps(start, end)
        && (does_extent_overlap(own) || does_extent_overlap(other))
        && is_any_part_armed(Buffers(Kind::Lists([own, other])))
}

// What the kernel reads to find the buffers, and writes besides them, may be armed as well, where the program has a private mapping of
// its own. The look at it opens it, and another thread's trip may close it again: it is kept open, too.

/// Where a list lies; nowhere if the kernel refuses it for its length.
#[inline(always)]
fn place_of((list, count): (*const libc::iovec, usize)) -> (*const c_void, usize) {
    (list.cast(), if count > LONGEST { 0 } else { count * size_of::<libc::iovec>() })
}

/// Where so many messages lie, with the length that the kernel writes to each: what follows a message that is alone, and has none,
/// counts as it.
#[inline(always)]
fn place_of_messages(messages: *const libc::mmsghdr, count: usize) -> (*const c_void, usize) {
    if cfg!(feature = "sabotage-lists-not-kept-open") {
        return (messages.cast(), 0);
    }
    (messages.cast(), count * size_of::<libc::mmsghdr>())
}

/// Whether several messages and their lists lie together where nothing is armed, and so does all that they point to, as what one loop
/// has filled in mostly does. Where that is not so, or not to be told, each is to be looked at. A message takes as long as its
/// instructions are many: nothing is compared before the end.
#[inline(always)]
pub fn do_messages_lie_elsewhere(messages: *const libc::mmsghdr, count: usize) -> bool {
    if is_nothing_closed() {
        return true;
    }
    let behind = messages.wrapping_add(count);
    let (mut lists, mut all) = (Around::new(behind.addr()), Extent::of_buffers_up_to(LONGEST_NAME));
    lists.add(messages.addr());
    let mut message = messages;
    while message != behind {
        let Some(header) = header_of(message.cast()) else { break };
        lists.add(header.parts.0.addr());
        all.add_unless_null(header.name.0.addr(), 0);
        all.add_unless_null(header.control.0.addr(), header.control.1);
        add_list(&mut all, header.parts);
        message = message.wrapping_add(1);
    }
    let (start, end) = all.range();
    let is_one_between = || {
        // Few are looked at here: a call takes as long as all of this.
        if registry::are_few() { !registry::is_among_few(start, end) } else { !registry::overlaps(start, end) }
    };
    (!registry::could_overlap(start, end) || is_one_between()) && {
        let (start, end) = lists.range(LONGEST * size_of::<libc::iovec>());
        !registry::overlaps(start, end)
    }
}

/// Adds the buffers of a list. One that is not there, which the kernel refuses as a whole, takes the end to that of all memory, and
/// ends the list.
#[inline(always)]
fn add_list(extent: &mut Extent, (list, count): (*const libc::iovec, usize)) {
    let part = |index| {
        // SAFETY: as for a message.
        unsafe { peek::pair_or_ones(list.wrapping_add(index).addr()) }
    };
    if count.wrapping_sub(1) < LONGEST {
        // Mostly it is one.
        let (address, length) = part(0);
        extent.add(address, length);
        for (address, length) in (1..count).map(part) {
            extent.add(address, length);
            if address & length == usize::MAX {
                break;
            }
        }
    }
}

/// Whether something armed lies in a list's extent, if not in one of its buffers.
#[inline(never)] // One copy is enough for both lists.
fn does_extent_overlap(list: (*const libc::iovec, usize)) -> bool {
    let mut extent = Extent::NONE;
    add_list(&mut extent, list);
    let (start, end) = extent.range();
    registry::overlaps(start, end)
}

#[inline(never)] // What few messages need must not weigh on the others.
fn is_any_part_armed(buffers: Buffers) -> bool {
    buffers.is_any_armed()
}

#[inline(always)]
fn range(address: *const c_void, length: usize) -> (usize, usize) {
    (address as usize, (address as usize).saturating_add(length))
}

fn each_of_list(list: (*const libc::iovec, usize), visit: &impl Fn((*const c_void, usize))) {
    if !cfg!(feature = "sabotage-lists-not-kept-open") {
        visit(place_of(list));
    }
    parts_of(list.0, list.1).for_each(visit);
}

/// What a message points to.
struct Header {
    name: (*const c_void, usize),
    parts: (*const libc::iovec, usize),
    control: (*const c_void, usize),
}

impl Header {
    /// Whether any of it could lie in an armed mapping.
    #[inline(always)]
    fn could_be_armed(self) -> bool {
        let could_be = |(address, length)| {
            let (start, end) = range(address, length);
            registry::could_overlap(start, end)
        };
        let place = place_of(self.parts);
        let mut is_near = could_be(self.name) || could_be(self.control) || may_be_armed(place.0, place.1);
        let (mut lowest, mut highest) = (usize::MAX, 0);
        // A call for each part takes as long as all of this.
        for (address, length) in parts_of(self.parts.0, self.parts.1) {
            let (start, end) = range(address, length);
            is_near |= registry::is_among_few(start, end);
            (lowest, highest) = (lowest.min(start), highest.max(end));
        }
        is_near || !registry::are_few() && registry::could_overlap(lowest, highest)
    }

    fn each(self, visit: &impl Fn((*const c_void, usize))) {
        visit(self.name);
        visit(self.control);
        each_of_list(self.parts, visit);
    }
}

/// `None`: it is not there.
#[inline(always)]
fn header_of(message: *const libc::msghdr) -> Option<Header> {
    const _: () = assert!(offset_of!(libc::msghdr, msg_iov) == 16 && offset_of!(libc::msghdr, msg_controllen) == 40);
    // SAFETY: our handler is in place ([`is_nothing_closed`]).
    let [name, parts, count, control, control_length] = unsafe { peek::message(message.addr()) }?;
    Some(Header {
        name: (name as *const c_void, LONGEST_NAME),
        parts: (parts as *const libc::iovec, count),
        control: (control as *const c_void, control_length),
    })
}

/// The buffers of a list; none of one that the kernel refuses for its length.
#[inline(always)]
fn parts_of(list: *const libc::iovec, count: usize) -> impl Iterator<Item = (*const c_void, usize)> {
    let taken = if count > LONGEST { 0 } else { count };
    // SAFETY: as for a message.
    let part = move |index: usize| unsafe { peek::pair(list.wrapping_add(index).addr()) };
    (0..taken).map_while(part).map(|(address, length)| (address as *const c_void, length))
}

/// At whatever address: the kernel takes them so, and processors read them so (x86-64, arm64).
#[repr(C, packed)]
pub struct Unaligned<T>(pub T);

/// What a program passes as so many of something. None at what is plainly no address: the call answers that with EFAULT.
///
/// # Safety
/// `parts` must be null or point to `count` of them, as the call that it is for demands.
#[inline]
pub unsafe fn slice<'a, T>(parts: *const T, count: usize) -> &'a [Unaligned<T>] {
    if (parts as usize).wrapping_sub(LOWEST) >= HIGHEST - LOWEST {
        return &[];
    }
    // SAFETY: the caller's promise; a packed value is aligned anywhere.
    unsafe { core::slice::from_raw_parts(parts.cast(), count) }
}
