//! Readers with the access patterns of deep learning, a dataset maker and a throttled file system.
//!
//! The programs are in `src/bin/` and `src/slowfs/`; here is what they share.

pub mod checksum;
pub mod datum;
pub mod quantity;
pub mod random;
pub mod timing;
