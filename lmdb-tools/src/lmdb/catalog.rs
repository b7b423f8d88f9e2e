//! All the trees of an environment: the unnamed one, whose records may be the roots of named ones.

use std::ffi::CString;

use serde::Serialize;

use super::env::{MAIN, Stat};
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
            self.fetching(main.stat.tree_pages(), |fetcher| {
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
        let mut tree_pages = 0;
        for name in &names {
            tree_pages += self.database(name)?.1.stat.tree_pages();
        }
        self.fetching(tree_pages, |fetcher| {
            for name in &names {
                let (named, database) = self.database(name)?;
                self.walk(named.tree, fetcher, |record| visit(&database, record))?;
                databases.push(database);
            }
            Ok::<_, E>(())
        })?;
        Ok(databases)
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
