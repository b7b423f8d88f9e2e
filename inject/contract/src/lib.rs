//! What the injected library and the optimizer agree on: shared memory, messages, version.
