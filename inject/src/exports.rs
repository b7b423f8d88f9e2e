//! Our own functions by their names, from this library's symbol table. The loader is not asked: it would note that the library
//! depends on what it finds, which then is never unloaded, and allocate where it finds nothing.

use core::ffi::{CStr, c_char, c_void};
use core::ptr::NonNull;

unsafe extern "C" {
    #[link_name = "__ehdr_start"]
    static BEGIN: u8;
    #[link_name = "_DYNAMIC"]
    static DYNAMIC: [usize; 2];
}

const NAMES: usize = 5;
const SYMBOLS: usize = 6;
const HASH: usize = 0x6fff_fef5;

/// This library's symbols: where their names, they themselves and the hashes of their names lie.
pub struct Exports {
    names: *const c_char,
    symbols: *const libc::Elf64_Sym,
    hashes: *const u32,
}

impl Exports {
    /// Where the dynamic section says that they are (elf(5)).
    pub fn of_this_library() -> Self {
        let (begin, mut entry) = ((&raw const BEGIN).addr(), &raw const DYNAMIC);
        let [mut names, mut symbols, mut hashes, mut other] = [0; 4];
        loop {
            // SAFETY: the linker's name for the dynamic section, which an entry with the tag 0 ends.
            let [tag, value] = unsafe { *entry };
            let table = match tag {
                0 => break,
                NAMES => &mut names,
                SYMBOLS => &mut symbols,
                HASH => &mut hashes,
                _ => &mut other,
            };
            // Some loaders have added to it where the library is.
            *table = if value < begin { begin + value } else { value };
            // SAFETY: this entry is not the last one.
            entry = unsafe { entry.add(1) };
        }
        Self { names: names as *const _, symbols: symbols as *const _, hashes: hashes as *const _ }
    }

    /// The function that we export under this name, which has this hash.
    pub fn function(&self, name: &CStr, hash: u32) -> Option<NonNull<c_void>> {
        let symbol = self.find(hash)?;
        // SAFETY: where a symbol says that its name lies is a C string.
        let is_it = unsafe { CStr::from_ptr(self.names.add(symbol.st_name as usize)) } == name;
        NonNull::new((&raw const BEGIN).addr().wrapping_add(symbol.st_value as usize) as *mut c_void).filter(|_| is_it)
    }

    /// The name of the function that we export under a name with this hash: a C string.
    pub fn name(&self, hash: u32) -> Option<*const c_char> {
        // SAFETY: so far from their beginning, its name lies among the names.
        self.find(hash).map(|symbol| unsafe { self.names.add(symbol.st_name as usize) })
    }

    /// Our symbol with this hash, or with one that differs in the last bit alone: of our names no two do.
    #[inline(never)] // One copy is enough for both.
    fn find(&self, hash: u32) -> Option<&'static libc::Elf64_Sym> {
        // SAFETY: the tables that the linker has made (`--hash-style=gnu`), in their documented form: four words, the filter of
        // twice the third, as many buckets as the first says, and the hashes of all symbols from the second on, the last of each
        // bucket odd.
        unsafe {
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
