//! Ordinary programs under precache, with both ways of protecting pages: nobody can tell from what they do.

mod demos;
mod library;
mod private_lock;
mod programs;
mod python;
mod selection;
mod sparse;
mod strange_optimizers;
mod strange_readers;
