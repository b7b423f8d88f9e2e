//! Runs programs that map large files at page-cache speed on slow storage.

pub mod cli;
pub mod link;
pub mod options;
pub mod report;
pub mod supervisor;
