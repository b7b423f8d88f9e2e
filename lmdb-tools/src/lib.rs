//! What LMDB needs on shared storage: stripe advice, lock file replicas, record maps.
