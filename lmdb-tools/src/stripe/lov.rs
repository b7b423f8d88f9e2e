//! Lustre's layout of a file, from its extended attribute `lustre.lov`.
//!
//! The structures are those of lustre_user.h: `lov_user_md_v1`, `lov_user_md_v3` (the same with a pool's name), and
//! `lov_comp_md_v1`, a composite of them (progressive file layouts, mirrors). Read as little-endian.

use std::fmt;

use serde::Serialize;

use crate::size::Bytes;

const V1: u32 = 0x0BD1_0BD0;
const V3: u32 = 0x0BD3_0BD0;
/// V1 or V3 with particular targets asked for; its structure is that of V3.
const SPECIFIC: u32 = 0x0BD5_0BD0;
const COMPOSITE: u32 = 0x0BD6_0BD0;
const FOREIGN: u32 = 0x0BD7_0BD0;

/// `sizeof(struct lov_comp_md_v1)` and of its entries.
const COMPOSITE_HEADER: usize = 32;
const COMPOSITE_ENTRY: usize = 48;
/// `lmm_stripe_count` of a default that means all targets.
const ALL_TARGETS: u16 = 0xFFFF;
/// `lmm_pattern` of a component that has no stripes: its data is on the metadata target (`LOV_PATTERN_MDT`).
const ON_METADATA_TARGET: u32 = 0x100;

/// Why the attribute cannot be understood.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    #[error("the layout attribute ends after {0} bytes, in the middle of a structure")]
    Short(usize),
    #[error("the layout attribute has the unknown type {0:#010x}")]
    Unknown(u32),
    #[error("the file's data is kept outside Lustre (a foreign layout), which has no stripes")]
    Foreign,
    #[error("a component of the layout is itself composite")]
    Nested,
}

/// How a file lies on the targets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Layout {
    /// In the order of the attribute; a plain file has one, from 0 to the end.
    pub components: Vec<Component>,
    /// The attribute is of the composite kind, so the file system has progressive layouts.
    pub composite: bool,
    /// How many times the file is there as a whole, each time with components of its own.
    pub mirrors: u32,
}

/// One extent of a file with its own striping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Component {
    /// In bytes of the file; `end` is `u64::MAX` where it is the file's end.
    pub start: u64,
    pub end: u64,
    /// In bytes.
    pub stripe_size: u32,
    /// In targets; -1 means all.
    pub stripe_count: i32,
    pub pool: Option<String>,
    /// Kept on the metadata target (Data-on-MDT): size and count of stripes mean nothing.
    pub on_metadata_target: bool,
}

impl Layout {
    /// Reads the value of the attribute.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let attribute = Fields(bytes);
        if attribute.u32(0)? != COMPOSITE {
            return Ok(Self { components: vec![plain(attribute, 0, u64::MAX)?], composite: false, mirrors: 1 });
        }
        let count = usize::from(attribute.u16(14)?);
        let components = (0..count).map(|index| component(attribute, COMPOSITE_HEADER + index * COMPOSITE_ENTRY));
        // `lcm_mirror_count` is one less than there are.
        let mirrors = u32::from(attribute.u16(16)?) + 1;
        Ok(Self { components: components.collect::<Result<_, _>>()?, composite: true, mirrors })
    }

    /// The component that holds most of a file of `size` bytes.
    pub fn main(&self, size: u64) -> Option<&Component> {
        self.components.iter().max_by_key(|part| part.end.min(size).saturating_sub(part.start))
    }
}

/// `struct lov_comp_md_entry_v1`: id, flags, extent (start, end), offset and size of the component's own layout ...
fn component(attribute: Fields<'_>, entry: usize) -> Result<Component, Error> {
    let (start, end) = (attribute.u64(entry + 8)?, attribute.u64(entry + 16)?);
    let (offset, size) = (attribute.u32(entry + 24)? as usize, attribute.u32(entry + 28)? as usize);
    let end_of_blob = offset.checked_add(size).filter(|&end| end <= attribute.0.len());
    let blob = end_of_blob.and_then(|end| attribute.0.get(offset..end)).ok_or(Error::Short(attribute.0.len()))?;
    plain(Fields(blob), start, end)
}

/// `struct lov_user_md_v1`: magic, pattern, object id (16 bytes), stripe size, stripe count (16 bits), generation; then in
/// V3 the pool's name.
fn plain(layout: Fields<'_>, start: u64, end: u64) -> Result<Component, Error> {
    let magic = layout.u32(0)?;
    let pool = match magic {
        V1 => None,
        V3 | SPECIFIC => layout.text(32, 16)?,
        COMPOSITE => return Err(Error::Nested),
        FOREIGN => return Err(Error::Foreign),
        unknown => return Err(Error::Unknown(unknown)),
    };
    let stripe_count = match layout.u16(28)? {
        ALL_TARGETS => -1,
        count => i32::from(count),
    };
    let on_metadata_target = layout.u32(4)? & ON_METADATA_TARGET != 0;
    Ok(Component { start, end, stripe_size: layout.u32(24)?, stripe_count, pool, on_metadata_target })
}

/// Little-endian fields at offsets.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes<const N: usize>(self, at: usize) -> Result<[u8; N], Error> {
        let end = at.checked_add(N).ok_or(Error::Short(self.0.len()))?;
        self.0.get(at..end).and_then(|bytes| bytes.try_into().ok()).ok_or(Error::Short(self.0.len()))
    }

    fn u16(self, at: usize) -> Result<u16, Error> {
        self.bytes(at).map(u16::from_le_bytes)
    }

    fn u32(self, at: usize) -> Result<u32, Error> {
        self.bytes(at).map(u32::from_le_bytes)
    }

    fn u64(self, at: usize) -> Result<u64, Error> {
        self.bytes(at).map(u64::from_le_bytes)
    }

    /// Up to `length` bytes of text, ended by a zero; none where empty.
    fn text(self, at: usize, length: usize) -> Result<Option<String>, Error> {
        let bytes = self.0.get(at..at + length).ok_or(Error::Short(self.0.len()))?;
        let bytes = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
        Ok((!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes).into_owned()))
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.on_metadata_target {
            return f.write_str("on the metadata target");
        }
        write!(f, "stripes of {} over ", Bytes(self.stripe_size.into()))?;
        match self.stripe_count {
            -1 => f.write_str("all targets"),
            1 => f.write_str("1 target"),
            count => write!(f, "{count} targets"),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
