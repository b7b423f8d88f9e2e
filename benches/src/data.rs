//! The data that is read: made once, kept complete or not at all.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use crate::bench::Bench;

/// A folder with an LMDB of about this size.
pub fn lmdb(bench: &Bench, size: u64) -> anyhow::Result<PathBuf> {
    make(bench, &format!("lmdb-{}M", size >> 20), |folder| {
        let mut maker = Command::new(bench.programs.path("make-lmdb"));
        maker.arg(folder).args(["--size", &size.to_string()]).stdout(Stdio::null());
        let status = maker.status().context("cannot start make-lmdb")?;
        ensure!(status.success(), "make-lmdb failed with {status}: is there room for {} MiB?", size >> 20);
        File::open(folder.join("data.mdb"))?.sync_all()?;
        Ok(())
    })
}

/// A folder with a file, `data.mdb` although it is none, of so many bytes.
pub fn flat(bench: &Bench, size: u64) -> anyhow::Result<PathBuf> {
    make(bench, &format!("flat-{}K", size >> 10), |folder| {
        fs::create_dir_all(folder)?;
        let mut maker = Command::new(bench.programs.path("make-lmdb"));
        maker.arg("--flat").arg(folder.join("data.mdb")).args(["--size", &size.to_string()]).stdout(Stdio::null());
        let status = maker.status().context("cannot start make-lmdb")?;
        ensure!(status.success(), "make-lmdb failed with {status}");
        File::open(folder.join("data.mdb"))?.sync_all()?;
        Ok(())
    })
}

/// A folder with a file, `vast`, of this length that takes no room.
pub fn sparse(bench: &Bench, length: u64) -> anyhow::Result<PathBuf> {
    make(bench, &format!("sparse-{}G", length >> 30), |folder| {
        fs::create_dir_all(folder)?;
        File::create(folder.join("vast"))?
            .set_len(length)
            .with_context(|| format!("the file system of {} has no such long files", folder.display()))
    })
}

/// Makes the folder under another name first: what was interrupted is not taken for complete.
fn make(bench: &Bench, name: &str, fill: impl FnOnce(&Path) -> anyhow::Result<()>) -> anyhow::Result<PathBuf> {
    let folder = bench.scratch().join(name);
    if !folder.exists() {
        eprintln!("making {}", folder.display());
        let partial = bench.scratch().join(format!("{name}.part"));
        if partial.exists() {
            fs::remove_dir_all(&partial)?;
        }
        fill(&partial)?;
        fs::rename(&partial, &folder)?;
    }
    Ok(folder)
}
