//! Memory that a system call is given: to be read, or to be filled.

mod lists;
mod messages;

use self::lists::{add_list, each_of_list, parts_of, place_of};
pub use self::messages::{do_messages_lie_elsewhere, does_message_lie_elsewhere};
use self::messages::{header_of, place_of_message};
use crate::doing::Doing;
use crate::extent::Extent;
use crate::handler::disposition;
use crate::{peek, registry};
use core::cell::Cell;
use core::ffi::{c_char, c_uint, c_void};
use precache_contract::PAGE;

/// The longest list that the kernel takes (IOV_MAX, readv(2)): a longer one it refuses without a look at it.
pub const LONGEST: usize = 1024;

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
            Kind::Messages(..) | Kind::Strings(..) => !registry::is_empty() && self.is_any_armed(),
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
                        one(place_of_message(message));
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

// Nearly every list goes through this or the next one, so what these are given goes in registers: a kind of buffers that is looked
// up in memory takes longer than the look itself.
#[inline(never)] // One copy is enough for all who ask.
fn may_list_be_armed(list: *const libc::iovec, count: usize) -> bool {
    let may_be = |(address, length)| may_be_armed(address, length);
    !is_nothing_closed() && (may_be(place_of((list, count))) || parts_of(list, count).any(may_be))
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
    registry::overlaps(start, end) && (may_list_be_armed(own.0, own.1) || may_list_be_armed(other.0, other.1))
}

#[inline(always)]
fn range(address: *const c_void, length: usize) -> (usize, usize) {
    (address as usize, (address as usize).saturating_add(length))
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
