//! The binary record map: where every record of a database lies, in a few bytes each.
//!
//! ```text
//! file     = "PCLMAP\x00\x01" version section* 0x00 records
//! version  = page-size file-size transaction                     all three varints
//! section  = 0x01 name-length name flags record* 0x00            the unnamed database has length 0; flags: bit 0
//!                                                                duplicates, bit 1 integer keys
//! record   = 1+shared rest-length rest gap length                shared: bytes that the key has in common with the one
//!                                                                before it in the section (empty before the first)
//! records  = number of records in all sections, a varint         a map without it was cut off
//! ```
//! Numbers are varints: 7 bits to a byte, lowest first, the top bit set on all bytes but the last. `gap` is the distance
//! from the end of the previous value (0 at first; not reset by a section) to the first byte of this one, zigzag-coded
//! (0, -1, 1, -2 ...). Offsets and lengths are bytes in the data file.

use std::io::{self, BufRead, Read, Write};

const MAGIC: &[u8; 8] = b"PCLMAP\x00\x01";
const END: u64 = 0;
const SECTION: u64 = 1;
const DUPSORT: u64 = 1;
const INTEGER_KEYS: u64 = 2;
/// Longer than any key or name of liblmdb: a larger length means damage, and is not allocated.
const LONGEST: u64 = 1 << 16;

/// What the map was made from, so that a changed database can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub page_size: u64,
    pub file_size: u64,
    pub transaction: u64,
}

/// One step of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// The records that follow are of this database; the unnamed one has no name.
    Database {
        name: String,
        dupsort: bool,
        integer_keys: bool,
    },
    Record {
        key: Vec<u8>,
        offset: u64,
        length: u64,
    },
}

/// Why a map cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "not a record map of this version: it does not begin with PCLMAP 0 1; make it anew with `lmdb map --binary`"
    )]
    Foreign,
    #[error("the record map is damaged or cut off: {0}; make it anew with `lmdb map --binary`")]
    Damaged(&'static str),
    #[error("cannot read the record map: {0}")]
    Io(#[from] io::Error),
}

/// Writes a map, record by record.
pub struct Writer<W> {
    out: W,
    key: Vec<u8>,
    last_end: u64,
    in_section: bool,
    records: u64,
}

impl<W: Write> Writer<W> {
    pub fn new(mut out: W, header: Header) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        for number in [header.page_size, header.file_size, header.transaction] {
            put(&mut out, number)?;
        }
        Ok(Self { out, key: Vec::new(), last_end: 0, in_section: false, records: 0 })
    }

    pub fn database(&mut self, name: &str, dupsort: bool, integer_keys: bool) -> io::Result<()> {
        self.end_section()?;
        put(&mut self.out, SECTION)?;
        put(&mut self.out, name.len() as u64)?;
        self.out.write_all(name.as_bytes())?;
        self.key.clear();
        self.in_section = true;
        put(&mut self.out, u64::from(dupsort) * DUPSORT + u64::from(integer_keys) * INTEGER_KEYS)
    }

    /// Adds a record to the database named last.
    pub fn record(&mut self, key: &[u8], offset: u64, length: u64) -> io::Result<()> {
        let shared = self.key.iter().zip(key).take_while(|(a, b)| a == b).count();
        put(&mut self.out, 1 + shared as u64)?;
        put(&mut self.out, (key.len() - shared) as u64)?;
        self.out.write_all(&key[shared..])?;
        self.key.truncate(shared);
        self.key.extend_from_slice(&key[shared..]);
        put(&mut self.out, zigzag(offset.wrapping_sub(self.last_end) as i64))?;
        put(&mut self.out, length)?;
        self.last_end = offset + length;
        self.records += 1;
        Ok(())
    }

    /// Ends the map and hands back what it was written to.
    pub fn finish(mut self) -> io::Result<W> {
        self.end_section()?;
        put(&mut self.out, END)?;
        put(&mut self.out, self.records)?;
        Ok(self.out)
    }

    fn end_section(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.in_section) { put(&mut self.out, END) } else { Ok(()) }
    }
}

/// Reads a map: an iterator over its databases and records.
pub struct Reader<R> {
    input: R,
    pub header: Header,
    key: Vec<u8>,
    last_end: u64,
    state: State,
    records: u64,
}

#[derive(PartialEq)]
enum State {
    BetweenSections,
    InSection,
    Over,
}

impl<R: BufRead> Reader<R> {
    /// # Errors
    /// When it is no map, or its beginning is missing.
    pub fn new(mut input: R) -> Result<Self, Error> {
        let mut magic = [0; MAGIC.len()];
        if input.read_exact(&mut magic).is_err() || &magic != MAGIC {
            return Err(Error::Foreign);
        }
        let header =
            Header { page_size: take(&mut input)?, file_size: take(&mut input)?, transaction: take(&mut input)? };
        Ok(Self { input, header, key: Vec::new(), last_end: 0, state: State::BetweenSections, records: 0 })
    }

    fn step(&mut self) -> Result<Option<Item>, Error> {
        while self.state != State::Over {
            let tag = take(&mut self.input)?;
            match (&self.state, tag) {
                (State::InSection, END) => self.state = State::BetweenSections,
                (State::InSection, tag) => return self.record(tag - 1).map(Some),
                (_, SECTION) => return self.database().map(Some),
                (_, END) if take(&mut self.input)? == self.records => self.state = State::Over,
                (_, END) => return Err(Error::Damaged("the number of records is not that of its end")),
                _ => return Err(Error::Damaged("neither a section nor the end where one should be")),
            }
        }
        Ok(None)
    }

    fn database(&mut self) -> Result<Item, Error> {
        let name = self.bytes()?;
        let name = String::from_utf8(name).map_err(|_| Error::Damaged("a name is not text"))?;
        let flags = take(&mut self.input)?;
        self.key.clear();
        self.state = State::InSection;
        Ok(Item::Database { name, dupsort: flags & DUPSORT != 0, integer_keys: flags & INTEGER_KEYS != 0 })
    }

    fn record(&mut self, shared: u64) -> Result<Item, Error> {
        if shared > self.key.len() as u64 {
            return Err(Error::Damaged("a key shares more with the one before it than that has"));
        }
        self.key.truncate(shared as usize);
        let rest = self.bytes()?;
        self.key.extend(rest);
        if self.key.len() as u64 > LONGEST {
            return Err(Error::Damaged("a name or key is longer than any can be"));
        }
        let gap = unzigzag(take(&mut self.input)?);
        let length = take(&mut self.input)?;
        let offset = self.last_end.checked_add_signed(gap).ok_or(Error::Damaged("an offset is negative"))?;
        self.last_end = offset.checked_add(length).ok_or(Error::Damaged("a record ends beyond any file"))?;
        self.records += 1;
        Ok(Item::Record { key: self.key.clone(), offset, length })
    }

    fn bytes(&mut self) -> Result<Vec<u8>, Error> {
        let length = take(&mut self.input)?;
        if length > LONGEST {
            return Err(Error::Damaged("a name or key is longer than any can be"));
        }
        let mut bytes = Vec::new();
        match (&mut self.input).take(length).read_to_end(&mut bytes)? as u64 {
            read if read == length => Ok(bytes),
            _ => Err(Error::Damaged("it ends inside a name or key")),
        }
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Item, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.state = State::Over;
        }
        step.transpose()
    }
}

fn put(out: &mut impl Write, mut number: u64) -> io::Result<()> {
    let mut bytes = [0; 10];
    let mut length = 0;
    while number >= 0x80 {
        bytes[length] = number as u8 | 0x80;
        number >>= 7;
        length += 1;
    }
    bytes[length] = number as u8;
    out.write_all(&bytes[..=length])
}

fn take(input: &mut impl Read) -> Result<u64, Error> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let mut byte = [0];
        input.read_exact(&mut byte).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Error::Damaged("it ends inside a number"),
            _ => Error::Io(error),
        })?;
        let bits = u64::from(byte[0] & 0x7F);
        if shift == 63 && bits > 1 {
            break;
        }
        number |= bits << shift;
        if byte[0] < 0x80 {
            return Ok(number);
        }
    }
    Err(Error::Damaged("a number has more than 64 bits"))
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests;
