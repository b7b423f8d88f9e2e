//! Finds the built programs, mounts slow storage and runs readers for the tests.
