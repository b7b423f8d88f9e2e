//! Lines on stderr, which is the program's too: few, marked as ours, and never in the program's way.

use std::io::{self, Write};

/// Writes in one piece, so that it stays one line between those of the program.
pub fn line(text: &str) {
    // Nobody is left to tell that stderr is closed or full, and the program must not suffer from it.
    let _ = io::stderr().write_all(format!("precache-run: {text}\n").as_bytes());
}
