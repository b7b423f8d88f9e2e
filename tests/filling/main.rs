//! What is fetched, by whom, and what happens when fetching goes wrong: on slow storage that counts.

mod amounts;
mod engines;
mod failures;
mod hints;
mod memory;
mod optimizer;
mod patterns;
mod populate;
mod queue;
