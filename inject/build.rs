//! Link options of the shared library.

use std::env;

fn main() {
    // Bound at load: resolving a symbol in signal context would enter the dynamic loader.
    println!("cargo:rustc-link-arg=-Wl,-z,now");
    // Stays loaded while its handler is installed, whatever the program closes.
    println!("cargo:rustc-link-arg=-Wl,-z,nodelete");
    // The ends of the tables of functions to look up (`next.rs`) and of looks at the program (`peek.rs`) are nobody else's.
    println!("cargo:rustc-link-arg=-Wl,-z,start-stop-visibility=hidden");
    // Our functions call each other, and not one of a library in front of ours that would not be called without us.
    println!("cargo:rustc-link-arg=-Wl,-Bsymbolic-functions");
    // Our functions are found in this table by their names (`symbols.rs`), whichever the linker makes by itself.
    println!("cargo:rustc-link-arg=-Wl,--hash-style=gnu");

    if env::var_os("CARGO_FEATURE_PRELOAD").is_some() {
        // Nothing of what a compiler puts around a library for its constructors: there is one, which the loader finds by itself.
        println!("cargo:rustc-link-arg=-nostartfiles");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
