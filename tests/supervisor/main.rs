//! The supervisor seen from both sides: the program must not notice it, nor who started it.

mod children;
mod descriptors;
mod ending;
mod environment;
mod input;
mod library;
mod namespaces;
mod process;
mod reports;
mod signals;
mod stage;
mod strangers;
mod targets;
mod terminal;
mod tools;
