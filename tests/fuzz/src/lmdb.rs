//! What reads files: LMDB's, Lustre's, Caffe's, and our own record maps.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use precache_lmdb_tools::lmdb::map_format::{Item, Reader, Writer};
use precache_lmdb_tools::lmdb::{Location, ReaderTable};
use precache_lmdb_tools::stripe::lov::Layout;
use precache_lmdb_tools::stripe::{caffe, prototxt::Message};

/// The first look at a data file.
pub fn meta(bytes: &[u8]) {
    let (_file, path) = file_of(bytes);
    let location = Location::of(&path).unwrap();
    match location.check() {
        Ok(()) => assert!(bytes.len() >= 512, "two pages"),
        Err(error) => assert!(error.to_string().contains(path.to_str().unwrap()), "{error}"),
    }
    if let Some((length, counted)) = location.shortfall() {
        assert!(length == bytes.len() as u64 && length < counted);
    }
}

/// The reader table of a lock file that somebody has open, so that it counts.
pub fn lock(bytes: &[u8]) {
    let (_file, path) = file_of(bytes);
    let somebody = File::open(&path).unwrap();
    let first_byte = libc::flock {
        l_type: libc::F_RDLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 1,
        l_pid: 0,
    };
    fcntl(&somebody, FcntlArg::F_OFD_SETLK(&first_byte)).unwrap();
    if let Ok(table) = ReaderTable::read(&path) {
        assert!(table.used as u64 <= table.slots && table.slots <= bytes.len() as u64 / 64);
    }
}

/// A record map: what can be read survives being written and read again.
pub fn map(bytes: &[u8]) {
    let read = |bytes: &[u8]| {
        let reader = Reader::new(bytes).ok()?;
        let header = reader.header;
        Some((header, reader.collect::<Result<Vec<_>, _>>().ok()?))
    };
    let Some((header, items)) = read(bytes) else { return };
    let mut writer = Writer::new(Vec::new(), header).unwrap();
    for item in &items {
        match item {
            Item::Database { name, dupsort, integer_keys } => writer.database(name, *dupsort, *integer_keys),
            Item::Record { key, offset, length } => writer.record(key, *offset, *length),
        }
        .unwrap();
    }
    assert!(read(&writer.finish().unwrap()) == Some((header, items)));
}

/// Lustre's layout attribute.
pub fn lov(bytes: &[u8]) {
    if let Ok(layout) = Layout::parse(bytes) {
        let _ = layout.main(1 << 30).map(ToString::to_string);
    }
}

/// A description of a network.
pub fn prototxt(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = Message::parse(&text);
    if let Ok(layers) = caffe::data_layers(&text) {
        assert!(layers.iter().all(|layer| layer.batch_size > 0));
        let _ = caffe::choose(&layers, None, Some("train_lmdb"));
        assert!(caffe::choose(&layers, Some(&layers[0].name), None).is_ok());
    }
}

/// A file in memory, and a path that leads to it for as long as it is open.
pub fn file_of(bytes: &[u8]) -> (File, PathBuf) {
    let mut file = File::from(memfd_create("fuzz", MFdFlags::MFD_CLOEXEC).unwrap());
    file.write_all(bytes).unwrap();
    let path = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
    (file, path)
}
