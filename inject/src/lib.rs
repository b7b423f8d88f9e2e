//! The library inside the reader: checkpoints, their SIGSEGV handler and the interposed calls.
