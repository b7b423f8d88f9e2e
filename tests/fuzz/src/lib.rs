//! What is fuzzed: each target takes bytes as they may come out of a file, or from another process, and must return,
//! whatever they are.
//!
//! The walk of a whole database is in the fuzzer alone (`walk.rs`): it takes another process.

pub mod datagrams;
pub mod input;
pub mod lmdb;
pub mod mutation;
pub mod segment;
pub mod trips;

pub type Target = fn(&[u8]);

/// By the names of their corpora.
pub const TARGETS: [(&str, Target); 8] = [
    ("meta", lmdb::meta),
    ("lock", lmdb::lock),
    ("map", lmdb::map),
    ("lov", lmdb::lov),
    ("prototxt", lmdb::prototxt),
    ("datagrams", datagrams::datagrams),
    ("segment", segment::segment),
    ("trips", trips::trips),
];
