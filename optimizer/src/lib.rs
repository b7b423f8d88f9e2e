//! Runs programs that map large files at page-cache speed on slow storage.
