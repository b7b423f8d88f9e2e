//! Memory that a system call is given: to be read, or to be filled.

use crate::{registry, sys};
use core::ffi::{c_char, c_uint, c_void};
use precache_contract::PAGE;

/// The longest list that the kernel takes (IOV_MAX, readv(2)): a longer one it refuses without a look at it.
const LONGEST: usize = 1024;

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

/// All buffers of one call, as the program names them: they are looked at when they are asked for.
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
    /// With the address that it goes to or comes from, and its control data.
    Message(*const libc::msghdr),
    Messages(*const libc::mmsghdr, usize),
    Words(*const Words),
}

impl Buffers {
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
    ///
    /// # Safety
    /// As [`slice`], for as long as this is used; so below.
    pub unsafe fn strings(list: *const *const c_char, count: usize) -> Self {
        Self(Kind::Strings(list, count))
    }

    /// Of the count the kernel takes 32 bits (`import_iovec`).
    ///
    /// # Safety
    /// As above.
    #[inline(always)]
    pub unsafe fn list(list: *const libc::iovec, count: usize) -> Self {
        Self(Kind::List(list, count as u32 as usize))
    }

    /// A list of this process's, and one that is another's as far as the kernel knows, of whose count it takes all.
    ///
    /// # Safety
    /// For both lists.
    #[inline(always)]
    pub unsafe fn lists(own: (*const libc::iovec, usize), other: (*const libc::iovec, usize)) -> Self {
        Self(Kind::Lists([(own.0, own.1 as u32 as usize), other]))
    }

    /// # Safety
    /// Null or a message, as sendmsg(2) demands.
    #[inline(always)]
    pub unsafe fn message(message: *const libc::msghdr) -> Self {
        Self(Kind::Message(message))
    }

    /// # Safety
    /// Null or so many messages, as recvmmsg(2) demands.
    #[inline(always)]
    pub unsafe fn messages(messages: *const libc::mmsghdr, count: c_uint) -> Self {
        Self(Kind::Messages(messages, count as usize))
    }

    /// The same to be sent: of more the kernel sends so many (sendmmsg(2)).
    ///
    /// # Safety
    /// As above.
    #[inline(always)]
    pub unsafe fn sent_messages(messages: *const libc::mmsghdr, count: c_uint) -> Self {
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
        // SAFETY: the promises that they were made with.
        unsafe {
            match self.0 {
                Kind::One(address, length) => may_be_armed(address, length),
                Kind::List(list, count) => may_list_be_armed(list, count),
                Kind::Lists([one, other]) => may_list_be_armed(one.0, one.1) || may_list_be_armed(other.0, other.1),
                Kind::Message(message) => may_message_be_armed(message),
                Kind::From(address, _) => may_be_armed(address, 1),
                Kind::Words(_) if cfg!(feature = "sabotage-words-not-looked-at") => false,
                Kind::Words(words) => (*words).iter().any(|&word| may_be_armed(word as *const c_void, 1)),
                Kind::Strings(..) | Kind::Messages(..) => !registry::is_empty() && self.is_any_armed(),
            }
        }
    }

    fn is_any_armed(self) -> bool {
        let mut is_armed = false;
        self.each_armed(&mut |_, _| is_armed = true);
        is_armed
    }

    /// Calls `visit` with start and end of each that may lie in an armed mapping.
    #[inline(never)] // One copy is enough for all who ask.
    pub fn each_armed(self, visit: &mut dyn FnMut(usize, usize)) {
        // Of `most` bytes, if one of the first `length` may.
        let mut look = |address: *const c_void, length: usize, most: usize| {
            let (start, end) = range(address, length);
            if start < end && registry::overlaps(start, end) {
                visit(start, start.saturating_add(most));
            }
        };
        let mut one = |address: *const c_void, length: usize| look(address, length, length);
        // SAFETY: the promises that they were made with.
        unsafe {
            match self.0 {
                Kind::One(address, length) => look(address, length, length),
                Kind::From(address, most) => look(address, 1, most),
                Kind::Words(words) => (*words).iter().for_each(|&word| look(word as *const c_void, 1, REACH)),
                Kind::Strings(list, count) => {
                    slice(list, count).iter().for_each(|string| look(string.0.cast(), 1, STRING_MAX));
                }
                Kind::List(list, count) => each_of_list(list, count, &mut one),
                Kind::Lists(lists) => lists.iter().for_each(|&(list, count)| each_of_list(list, count, &mut one)),
                Kind::Message(message) => {
                    slice(message, 1).iter().for_each(|message| each_of_message(message.0, &mut one))
                }
                Kind::Messages(messages, count) => {
                    // What is closed by us trips when it is read.
                    let is_there = |at: usize| registry::is_within_one(at, at + 1) || sys::can_access(at, false);
                    for (index, message) in slice(messages, count).iter().enumerate() {
                        let first = (&raw const *message).addr();
                        let mut ends = [first, first + size_of::<libc::msghdr>() - 1].into_iter();
                        // Of a very long list the kernel may never come to the end, which need not be there then.
                        if index >= LONGEST && !ends.all(is_there) {
                            break;
                        }
                        each_of_message(message.0.msg_hdr, &mut one);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn may_be_armed(address: *const c_void, length: usize) -> bool {
    let (start, end) = range(address, length);
    registry::overlaps(start, end)
}

// Nearly every list and message goes through this or `may_message_be_armed`, so what these are given goes in registers, and
// what calls others is apart from them: saved registers, and a kind of buffers that is looked up in memory, take longer than
// the look itself.
#[inline(never)] // One copy is enough for all who ask.
unsafe fn may_list_be_armed(list: *const libc::iovec, count: usize) -> bool {
    // SAFETY: what `list` promises.
    let mut parts = unsafe { parts_of(list, count) }.iter();
    while let Some(part) = parts.next() {
        let (start, end) = range(part.0.iov_base, part.0.iov_len);
        if registry::could_overlap(start, end) {
            let rest = parts.as_slice();
            return if rest.is_empty() { registry::does_overlap(start, end) } else { may_any_be_armed(part, rest) };
        }
    }
    false
}

#[inline(never)]
fn may_any_be_armed(part: &Unaligned<libc::iovec>, rest: &[Unaligned<libc::iovec>]) -> bool {
    let is_armed = |part: &Unaligned<libc::iovec>| may_be_armed(part.0.iov_base, part.0.iov_len);
    is_armed(part) || rest.iter().any(is_armed)
}

#[inline(never)] // As above.
unsafe fn may_message_be_armed(message: *const libc::msghdr) -> bool {
    // SAFETY: what `message` promises.
    let Some(header) = unsafe { slice(message, 1) }.first() else { return false };
    let header = header.0;
    let is_elsewhere = |address: *const c_void, length: usize| {
        let (start, end) = range(address, length);
        address.is_null() || !registry::could_overlap(start, end)
    };
    if is_elsewhere(header.msg_name, header.msg_namelen as usize)
        && is_elsewhere(header.msg_control, header.msg_controllen)
    {
        // SAFETY: as above.
        unsafe { may_list_be_armed(header.msg_iov, header.msg_iovlen) }
    } else {
        Buffers(Kind::Message(message)).is_any_armed()
    }
}

#[inline(always)]
fn range(address: *const c_void, length: usize) -> (usize, usize) {
    (address as usize, (address as usize).saturating_add(length))
}

unsafe fn each_of_list(list: *const libc::iovec, count: usize, visit: &mut impl FnMut(*const c_void, usize)) {
    // SAFETY: what `list` promises.
    unsafe { parts_of(list, count) }.iter().for_each(|part| visit(part.0.iov_base, part.0.iov_len));
}

unsafe fn each_of_message(message: libc::msghdr, visit: &mut impl FnMut(*const c_void, usize)) {
    visit(message.msg_name, message.msg_namelen as usize);
    visit(message.msg_control, message.msg_controllen);
    // SAFETY: what `message` and `messages` promise.
    unsafe { each_of_list(message.msg_iov, message.msg_iovlen, visit) };
}

/// The buffers of a list; none of one that the kernel refuses, which need not be as long as the program says.
///
/// # Safety
/// As [`slice`], of a list that is not too long.
#[inline(always)]
unsafe fn parts_of<'a>(list: *const libc::iovec, count: usize) -> &'a [Unaligned<libc::iovec>] {
    // SAFETY: the caller's promise.
    if count > LONGEST { &[] } else { unsafe { slice(list, count) } }
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
