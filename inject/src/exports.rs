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

/// What the dynamic section says of these tables (elf(5)).
fn tables() -> [usize; 3] {
    let (begin, mut entry, mut found) = ((&raw const BEGIN).addr(), &raw const DYNAMIC, [0; 3]);
    loop {
        // SAFETY: the linker's name for the dynamic section, which an entry with the tag 0 ends.
        let [tag, value] = unsafe { *entry };
        let table = match tag {
            0 => return found,
            NAMES => &mut found[0],
            SYMBOLS => &mut found[1],
            HASH => &mut found[2],
            _ => &mut 0,
        };
        // Some loaders have added to it where the library is.
        *table = if value < begin { begin + value } else { value };
        // SAFETY: this entry is not the last one.
        entry = unsafe { entry.add(1) };
    }
}

/// What the linker's table finds a name by (`_dl_new_hash`, elf/dl-new-hash.h in glibc).
pub const fn hash(name: &CStr) -> u32 {
    let (name, mut hash, mut at) = (name.to_bytes(), 5381u32, 0);
    while at < name.len() {
        hash = hash.wrapping_mul(33).wrapping_add(name[at] as u32);
        at += 1;
    }
    hash
}

/// The function that we export under this name.
pub fn of(name: &CStr) -> Option<NonNull<c_void>> {
    let (_, value) = find(hash(name)).filter(|(found, _)| *found == name)?;
    NonNull::new((&raw const BEGIN).addr().wrapping_add(value) as *mut c_void)
}

/// The name of the function that we export under a name with this hash.
pub fn name_of(wanted: u32) -> Option<&'static CStr> {
    find(wanted).map(|(name, _)| name)
}

/// Our symbol with this hash: its name, and where it is, from our library's beginning.
#[inline(never)] // One copy is enough for both.
fn find(wanted: u32) -> Option<(&'static CStr, usize)> {
    // SAFETY: the tables that the linker has made (`--hash-style=gnu`), in their documented form: four words, the filter of twice
    // the third, as many buckets as the first says, and the hashes of all symbols from the second on, the last of each bucket odd.
    unsafe {
        let [names, symbols, hashes] = tables();
        let (names, symbols, words) = (names as *const c_char, symbols as *const libc::Elf64_Sym, hashes as *const u32);
        let [buckets, first, filter] = [0, 1, 2].map(|at| *words.add(at));
        let bucket = words.add(4 + 2 * filter as usize);
        let hashes = bucket.add(buckets as usize);
        let mut at = *bucket.add(wanted.checked_rem(buckets)? as usize);
        while at >= first {
            let found = *hashes.add((at - first) as usize);
            let symbol = symbols.add(at as usize);
            let name = CStr::from_ptr(names.add((*symbol).st_name as usize));
            if found | 1 == wanted | 1 && hash(name) == wanted {
                return Some((name, (*symbol).st_value as usize));
            }
            if found & 1 != 0 {
                break;
            }
            at += 1;
        }
    }
    None
}
