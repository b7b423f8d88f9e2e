//! What all measurements share: settings, programs, and a folder for data that is gone at the end.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;

use crate::data;
use crate::options::{Options, Settings};
use crate::pairs::Count;
use crate::programs::Programs;
use crate::storage::{Kind, Storage};

pub struct Bench {
    pub settings: Settings,
    pub programs: Programs,
    scratch: Scratch,
}

impl Bench {
    pub fn prepare(options: &Options) -> anyhow::Result<Self> {
        let settings = options.resolve();
        let scratch = Scratch::new(&settings)?;
        let programs = Programs::find(&scratch.folder, settings.as_user.as_deref())?;
        Ok(Self { settings, programs, scratch })
    }

    pub fn scratch(&self) -> &Path {
        &self.scratch.folder
    }

    pub fn size(&self) -> u64 {
        self.settings.size.expect("defaults are filled in")
    }

    /// So many pairs for a row, unless it takes too long.
    pub fn count(&self, most: u32) -> Count {
        Count { most, patience: Duration::from_secs(self.settings.row_seconds.expect("defaults are filled in")) }
    }

    /// The storage to measure on, as asked for; slow storage is left out, with a word, where it cannot be mounted.
    pub fn storages(&self) -> Vec<Kind> {
        let asked = |kind: &Kind| self.settings.storage.is_empty() || self.settings.storage.contains(kind);
        let kinds = Kind::ALL.into_iter().filter(asked);
        kinds.filter(|kind| !kind.is_slow() || Storage::can_mount()).collect()
    }

    /// Storage of this kind that holds an LMDB of this size.
    pub fn storage(&self, kind: Kind, size: u64) -> anyhow::Result<Storage> {
        let source = data::lmdb(self, size)?;
        Storage::attach(self, kind, &source)
    }

    /// The size of the LMDB for this storage.
    pub fn size_for(&self, kind: Kind) -> u64 {
        match kind {
            Kind::RemoteHdd => self.settings.hdd_size.expect("defaults are filled in"),
            Kind::Local | Kind::RemoteSsd => self.size(),
        }
    }
}

/// The folder for data.
struct Scratch {
    folder: PathBuf,
    keep: bool,
}

impl Scratch {
    fn new(settings: &Settings) -> anyhow::Result<Self> {
        let folder = settings.scratch.as_deref().context("defaults are filled in")?;
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}: choose a --scratch", folder.display()))?;
        let scratch = Self { folder: folder.canonicalize()?, keep: settings.keep };
        // Another user may have to read there.
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.keep
            && let Err(error) = fs::remove_dir_all(&self.folder)
        {
            eprintln!("{} is left behind ({error}): remove it", self.folder.display());
        }
    }
}
