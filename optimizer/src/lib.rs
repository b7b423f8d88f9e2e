//! Runs programs that map large files at page-cache speed on slow storage.

pub mod cli;
pub mod engine;
pub mod link;
pub mod memory;
pub mod options;
pub mod policy;
mod process;
pub mod progress;
pub mod report;
pub mod service;
pub mod supervisor;
