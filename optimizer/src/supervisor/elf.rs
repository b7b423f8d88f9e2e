//! What an ELF file tells about taking a library that is not its own.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;

use object::elf::{DT_NEEDED, DT_PREINIT_ARRAY, EM_AARCH64, EM_X86_64, FileHeader64, Machine};
use object::elf::{SHT_DYNSYM, SHT_SYMTAB, SectionType};
use object::read::elf::{FileHeader, ProgramHeader, SectionTable, Sym};
use object::{Endianness, ReadCache, ReadRef};

pub const MAGIC: [u8; 4] = object::elf::ELFMAG;

/// The first thing that speaks against it, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elf {
    OtherMachine,
    Static,
    OtherLibc,
    Sanitizer,
    Ordinary,
}

const OUR_MACHINE: Machine = if cfg!(target_arch = "aarch64") { EM_AARCH64 } else { EM_X86_64 };

/// Of the sanitizers, those whose runtime wants to be first.
const SANITIZERS: [&str; 5] = ["asan", "hwasan", "lsan", "msan", "tsan"];

/// Fails where the kernel or the loader would not make sense of the file either.
pub fn inspect(file: &File) -> object::Result<Elf> {
    // Reads what is asked for: a program may lie on slow storage, and its debug information is large.
    let data = &ReadCache::new(file);
    let Ok(header) = FileHeader64::<Endianness>::parse(data) else {
        return Ok(Elf::OtherMachine);
    };
    let endian = header.endian()?;
    if header.e_machine(endian) != OUR_MACHINE {
        return Ok(Elf::OtherMachine);
    }
    let mut interpreter = None;
    for segment in header.program_headers(endian, data)? {
        interpreter = interpreter.or(segment.interpreter(endian, data)?);
    }
    let sections = header.sections(endian, data)?;
    match interpreter {
        None => Ok(Elf::Static),
        Some(loader) if is_foreign(loader) || is_older(loader) => Ok(Elf::OtherLibc),
        Some(_) if is_sanitizer_build(&sections, endian, data)? => Ok(Elf::Sanitizer),
        Some(_) => Ok(Elf::Ordinary),
    }
}

/// Whether this is the loader of another C library than GNU's: musl's, uClibc's, Android's.
fn is_foreign(loader: &[u8]) -> bool {
    let name = loader.rsplit(|&byte| byte == b'/').next().unwrap_or(loader);
    name.starts_with(b"ld-musl") || name.starts_with(b"linker") || name.windows(6).any(|part| part == b"uClibc")
}

/// Whether a loader that is not this machine's lacks the version of the GNU C library that the injected library needs.
fn is_older(loader: &[u8]) -> bool {
    const HERE: &[u8] =
        if cfg!(target_arch = "aarch64") { b"/lib/ld-linux-aarch64.so.1" } else { b"/lib64/ld-linux-x86-64.so.2" };
    const VERSION: &[u8] = b"\0GLIBC_2.34\0";
    // Without it exec says what is wrong.
    let file = || std::fs::read(OsStr::from_bytes(loader)).ok();
    loader != HERE && file().is_some_and(|file| !file.windows(VERSION.len()).any(|part| part == VERSION))
}

fn is_sanitizer_build<'d, R: ReadRef<'d>>(
    sections: &SectionTable<'d, FileHeader64<Endianness>, R>,
    endian: Endianness,
    data: R,
) -> object::Result<bool> {
    let dynamic = sections.dynamic_table(endian, data)?;
    let mut has_preinit = false;
    for entry in dynamic.iter() {
        has_preinit |= entry.tag == DT_PREINIT_ARRAY;
        if entry.tag == DT_NEEDED && is_runtime(dynamic.string(entry)?) {
            return Ok(true);
        }
    }
    let defines_runtime = |table: SectionType| -> object::Result<bool> {
        let symbols = sections.symbols(endian, data, table)?;
        Ok(symbols.iter().any(|symbol| {
            !symbol.is_undefined(endian) && symbol.name(endian, symbols.strings()).is_ok_and(is_initializer)
        }))
    };
    // A runtime within the program starts from .preinit_array, so that the large table of all symbols matters for few.
    // In a stripped program it is not found; such a runtime also starts where it is not the first.
    Ok(defines_runtime(SHT_DYNSYM)? || has_preinit && defines_runtime(SHT_SYMTAB)?)
}

/// `libasan.so.8` of GCC, `libclang_rt.asan-x86_64.so` of LLVM.
pub fn is_runtime(library: &[u8]) -> bool {
    let name = String::from_utf8_lossy(library);
    let Some(name) = name.strip_prefix("libclang_rt.").or(name.strip_prefix("lib")) else {
        return false;
    };
    SANITIZERS
        .iter()
        .any(|sanitizer| name.strip_prefix(sanitizer).is_some_and(|rest| rest.starts_with(['.', '-', '_'])))
}

/// `__asan_init` and its like.
fn is_initializer(symbol: &[u8]) -> bool {
    str::from_utf8(symbol)
        .ok()
        .and_then(|name| name.strip_prefix("__")?.strip_suffix("_init"))
        .is_some_and(|name| SANITIZERS.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_c_libraries_are_known_by_their_loaders() {
        for loader in ["/lib/ld-musl-x86_64.so.1", "/lib/ld64-uClibc.so.0", "/system/bin/linker64"] {
            assert!(is_foreign(loader.as_bytes()), "{loader}");
        }
        for loader in ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/gnu/store/musl/ld-2.35.so"] {
            assert!(!is_foreign(loader.as_bytes()), "{loader}");
        }
    }

    #[test]
    fn older_c_libraries_are_known_by_what_their_loaders_lack() {
        let folder = tempfile::tempdir().unwrap();
        for (content, older) in [("\0GLIBC_2.3.4\0GLIBC_PRIVATE\0", true), ("\0GLIBC_2.3.4\0GLIBC_2.34\0", false)] {
            let loader = folder.path().join("ld.so");
            std::fs::write(&loader, content).unwrap();
            assert_eq!(is_older(loader.as_os_str().as_bytes()), older);
        }
        assert!(!is_older(b"/lib64/ld-linux-x86-64.so.2"));
        assert!(!is_older(folder.path().join("none").as_os_str().as_bytes()));
    }

    #[test]
    fn runtimes_are_known_by_name() {
        for library in ["libasan.so.8", "libtsan.so.2", "libclang_rt.asan-x86_64.so", "libclang_rt.hwasan.so"] {
            assert!(is_runtime(library.as_bytes()), "{library}");
        }
        for library in ["libc.so.6", "libubsan.so.1", "libasantiago.so", "libsane.so.1"] {
            assert!(!is_runtime(library.as_bytes()), "{library}");
        }
        assert!(is_initializer(b"__tsan_init"));
        assert!(!is_initializer(b"__ubsan_init"));
    }
}
