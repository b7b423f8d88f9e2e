//! All the trees of an environment: the unnamed one, whose records may be the roots of named ones.

use std::ffi::CString;

use serde::Serialize;

use super::env::{FREE, MAIN, Stat};
use super::walk::Record;
use super::{Env, Error};

/// Bytes of the record from which a named tree hangs (mdb.c, `sizeof(MDB_db)` on 64 bits).
const ROOT_RECORD: u64 = 48;

/// One database of an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Database {
    /// None for the unnamed one.
    pub name: Option<String>,
    #[serde(flatten)]
    pub stat: Stat,
}

impl Env {
    /// Visits every record of every database, or of the one called `only`: the unnamed database first, the named ones
    /// in the order of their names. Records that are the roots of named databases are not visited.
    ///
    /// # Errors
    /// As [`Env::walk`]; and when nothing is called `only`.
    pub fn walk_databases<E: From<Error>>(
        &self,
        only: Option<&str>,
        mut visit: impl FnMut(&Database, Record<'_>) -> Result<(), E>,
    ) -> Result<Vec<Database>, E> {
        let mut databases = Vec::new();
        let mut names = Vec::new();
        if let Some(name) = only {
            names.extend(CString::new(name).ok());
        } else {
            let main = Database { name: None, stat: self.stat(MAIN)? };
            self.fetching(self.pages_to_visit(&[main.stat], &[])?, |fetcher| {
                self.walk(MAIN, fetcher, |record| match self.root_of(&record)? {
                    Some(name) => {
                        names.push(name);
                        Ok(())
                    }
                    None => visit(&main, record),
                })
            })?;
            databases.push(main);
        }
        let stats = self.stats(&names)?;
        let mut others = vec![self.stat(MAIN)?];
        if only.is_some() && stats.iter().any(|stat| stat.dupsort) {
            let all = self.names()?.into_iter().filter(|name| Some(&**name) != only);
            let all: Vec<_> = all.filter_map(|name| CString::new(name).ok()).collect();
            others.extend(self.stats(&all)?);
        }
        self.fetching(self.pages_to_visit(&stats, &others)?, |fetcher| {
            for name in &names {
                let (named, database) = self.database(name)?;
                self.walk(named.tree, fetcher, |record| visit(&database, record))?;
                databases.push(database);
            }
            Ok::<_, E>(())
        })?;
        Ok(databases)
    }

    fn stats(&self, names: &[CString]) -> Result<Vec<Stat>, Error> {
        names.iter().map(|name| Ok(self.database(name)?.1.stat)).collect()
    }

    /// Pages that a walk of the trees `walked` touches. The statistics leave out the trees in which duplicates lie: where
    /// there may be some, they are what is left of the file when all other trees are taken away.
    fn pages_to_visit(&self, walked: &[Stat], others: &[Stat]) -> Result<u64, Error> {
        let counted: u64 = walked.iter().map(Stat::tree_pages).sum();
        if !walked.iter().any(|stat| stat.dupsort) {
            return Ok(counted);
        }
        let free = self.stat(FREE)?;
        let known = walked.iter().chain(others).chain([&free]).map(|stat| stat.tree_pages() + stat.overflow_pages);
        Ok(counted + (self.used / self.page_size).saturating_sub(known.sum()))
    }

    fn database(&self, name: &CString) -> Result<(super::env::Named<'_>, Database), Error> {
        let text = name.to_string_lossy().into_owned();
        let Some(named) = self.named(name)? else {
            let known = self.names()?.join(", ");
            let known = if known.is_empty() { "none".to_owned() } else { known };
            return Err(Error::NoSuchName { path: self.location().path.clone(), name: text, known });
        };
        let stat = self.stat(named.tree)?;
        Ok((named, Database { name: Some(text), stat }))
    }

    /// The names of the named databases.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        self.fetching(self.stat(MAIN)?.tree_pages(), |fetcher| {
            self.walk(MAIN, fetcher, |record| {
                names.extend(self.root_of(&record)?.map(|name| name.to_string_lossy().into_owned()));
                Ok::<_, Error>(())
            })
        })?;
        Ok(names)
    }

    /// The name of the database whose root this record of the unnamed database is. liblmdb can tell by a flag of the
    /// record, once it has the right length.
    fn root_of(&self, record: &Record<'_>) -> Result<Option<CString>, Error> {
        if record.length != ROOT_RECORD {
            return Ok(None);
        }
        // liblmdb takes names as C strings: a key with a zero byte inside cannot be one.
        let Ok(name) = CString::new(record.key) else { return Ok(None) };
        Ok(self.named(&name)?.map(|_| name))
    }
}
