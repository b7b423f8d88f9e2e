//! Readers with the access patterns of deep learning, a dataset maker and a throttled file system.
