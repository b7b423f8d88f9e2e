use std::io;
use std::path::PathBuf;

/// Why replicas cannot be made, found or removed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Database(#[from] crate::lmdb::Error),

    #[error("{path}: {error}")]
    Io { path: PathBuf, error: io::Error },

    #[error(
        "{path}: open for writing in process {pid} ({command}): readers with lock files of their own would not protect the \
         pages that they read from being reused by that writer, and would see garbage. Stop it first"
    )]
    Writer { path: PathBuf, pid: i32, command: String },

    #[error(
        "{path}: cannot know whether anybody writes it: {why}. Readers with lock files of their own do not protect the pages \
         that they read: a writer would reuse them, and readers would see garbage. If you know that nobody writes it, say \
         --assume-read-only"
    )]
    CannotKnow { path: PathBuf, why: String },

    #[error("{path}: already there, and not a replica that this program made; choose another OUT, or move it away")]
    InTheWay { path: PathBuf },

    #[error(
        "{path}: a replica of {other}, not of {data}; `lockfile remove` the old replicas first, or choose another OUT"
    )]
    OfAnother { path: PathBuf, other: PathBuf, data: PathBuf },

    #[error(
        "{out}: no replica for rank {rank} here ({known} there are); `lockfile replicate DB {out} -n {wanted}` makes it"
    )]
    NoSuchRank { out: PathBuf, rank: u32, known: usize, wanted: u32 },

    #[error("{path}: a replica that lacks its {}; `lockfile remove` the replicas and make them anew", what.display())]
    Incomplete { path: PathBuf, what: PathBuf },

    #[error(
        "{path}: belongs to user {owner}, and you may not read and write it, as readers must: choose another OUT, or have that \
         user `lockfile remove` the replicas"
    )]
    NotUsable { path: PathBuf, owner: u32 },

    #[error(
        "{path}: belongs to user {owner}, who is neither you nor root nor the owner of the database, and could lead readers \
         anywhere: choose another OUT"
    )]
    Stranger { path: PathBuf, owner: u32 },

    #[error("{path}: a file, and OUT must be a directory, or the path of one to be made")]
    OutIsAFile { path: PathBuf },

    #[error("{path}: nothing in it was made by replicate; give the OUT that replicate was given")]
    NotOut { path: PathBuf },

    #[error("{path}: a reader has it open; stop that first")]
    InUse { path: PathBuf },

    #[error("{path}: holds more than replicate made ({what}); look at it and delete it yourself")]
    Foreign { path: PathBuf, what: String },
}

impl Error {
    /// For `map_err`: names the file that an operation failed on.
    pub(super) fn at(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::Io { path, error }
    }
}
