//! A library's symbols by their names, from its own table. The loader is not asked: it would note that we depend on what it
//! finds, which then is never unloaded, and allocate where it finds nothing.

use core::ffi::{CStr, c_char};
#[cfg(feature = "preload")]
#[cfg(target_arch = "x86_64")]
use core::{ffi::c_void, ptr::NonNull};

#[cfg(feature = "preload")]
unsafe extern "C" {
    #[link_name = "__ehdr_start"]
    static BEGIN: u8;
    #[link_name = "_DYNAMIC"]
    static DYNAMIC: [usize; 2];
}

const NAMES: usize = 5;
const SYMBOLS: usize = 6;
const HASH: usize = 0x6fff_fef5;
/// The table of before, which Go's own linker makes alone.
const OLD_HASH: usize = 4;

/// A library's symbols: where their names, they themselves and the hashes of their names lie.
pub struct Symbols {
    names: *const c_char,
    symbols: *const libc::Elf64_Sym,
    hashes: *const u32,
    old_hashes: *const u32,
}

impl Symbols {
    /// Where the dynamic section of what is loaded here says that they are (elf(5)).
    ///
    /// # Safety
    /// `entry` must be the first one of that section, which stays loaded.
    pub unsafe fn of(begin: usize, mut entry: *const [usize; 2]) -> Self {
        let [mut names, mut symbols, mut hashes, mut old_hashes, mut other] = [0; 5];
        loop {
            // SAFETY: the caller's promise; an entry with the tag 0 ends it.
            let [tag, value] = unsafe { *entry };
            let table = match tag {
                0 => break,
                NAMES => &mut names,
                SYMBOLS => &mut symbols,
                HASH => &mut hashes,
                OLD_HASH => &mut old_hashes,
                _ => &mut other,
            };
            // Some loaders have added to it where the library is.
            *table = if value < begin { begin.wrapping_add(value) } else { value };
            // SAFETY: this entry is not the last one.
            entry = unsafe { entry.add(1) };
        }
        Self {
            names: names as *const _,
            symbols: symbols as *const _,
            hashes: hashes as *const _,
            old_hashes: old_hashes as *const _,
        }
    }

    /// The symbol of this name, which has this hash, as long as the library stays loaded.
    #[inline(never)] // One copy is enough for both who ask.
    pub fn symbol(&self, name: &CStr, hash: u32) -> Option<&libc::Elf64_Sym> {
        // SAFETY: where a symbol says that its name lies is a C string.
        let is_it =
            |symbol: &libc::Elf64_Sym| unsafe { CStr::from_ptr(self.names.add(symbol.st_name as usize)) } == name;
        if self.hashes.is_null() && !self.old_hashes.is_null() {
            // SAFETY: its second word is how many symbols there are (System V ABI, 5, "Hash Table").
            let all = unsafe { core::slice::from_raw_parts(self.symbols, *self.old_hashes.add(1) as usize) };
            return all.iter().find(|symbol| is_it(symbol));
        }
        self.find(hash).filter(|symbol| is_it(symbol))
    }

    /// The first symbol with this hash, or with one that differs in the last bit alone: of our own names no two do.
    #[inline(never)] // One copy is enough for both.
    fn find(&self, hash: u32) -> Option<&libc::Elf64_Sym> {
        // SAFETY: a table that a linker has made (`--hash-style=gnu`), in its documented form: four words, the filter of
        // twice the third, as many buckets as the first says, and the hashes of all symbols from the second on, the last of each
        // bucket odd.
        unsafe {
            if self.hashes.is_null() {
                return None;
            }
            let [buckets, first, filter] = [0, 1, 2].map(|at| *self.hashes.add(at));
            let bucket = self.hashes.add(4 + 2 * filter as usize);
            let hashes = bucket.add(buckets as usize);
            let mut at = *bucket.add(hash.checked_rem(buckets)? as usize);
            while at >= first {
                let found = *hashes.add((at - first) as usize);
                if found | 1 == hash | 1 {
                    return Some(&*self.symbols.add(at as usize));
                }
                if found & 1 != 0 {
                    break;
                }
                at += 1;
            }
        }
        None
    }
}

/// Those of this library.
#[cfg(feature = "preload")]
impl Symbols {
    /// Those that its dynamic section tells of.
    pub fn of_this_library() -> Self {
        // SAFETY: the linker's name for our dynamic section.
        unsafe { Self::of((&raw const BEGIN).addr(), &raw const DYNAMIC) }
    }

    /// The function that we export under this name, which has this hash: for `interpose::libraries`.
    #[cfg(target_arch = "x86_64")]
    pub fn function(&self, name: &CStr, hash: u32) -> Option<NonNull<c_void>> {
        let symbol = self.symbol(name, hash)?;
        NonNull::new((&raw const BEGIN).addr().wrapping_add(symbol.st_value as usize) as *mut c_void)
    }

    /// The name of the function that we export under a name with this hash: a C string.
    pub fn name(&self, hash: u32) -> Option<*const c_char> {
        // SAFETY: so far from their beginning, its name lies among the names.
        self.find(hash).map(|symbol| unsafe { self.names.add(symbol.st_name as usize) })
    }
}
