//! What is measured: the paper's figures, bars and peers.
