//! What a checkout of Kubernetes has, and what of it is missing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::go::Packages;

/// Why a table could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    /// The checkout is a part of one: the table is left alone.
    #[error("the checkout has no {0}")]
    Missing(String),
    /// A file that cannot be read or written, or is not what it should be.
    #[error("{path}: {what}")]
    Bad {
        /// Which file.
        path: String,
        /// What is wrong with it.
        what: String,
    },
}

impl Problem {
    pub(crate) fn io(path: &Path, error: &dyn std::error::Error) -> Problem {
        Problem::Bad { path: path.display().to_string(), what: error.to_string() }
    }

    pub(crate) fn bad(path: impl Into<String>, what: impl Into<String>) -> Problem {
        Problem::Bad { path: path.into(), what: what.into() }
    }
}

/// A checkout, whole or in part, and the tree whose tables are made.
pub(crate) struct Checkout {
    folder: PathBuf,
    tree: PathBuf,
    /// Go's types, of those packages whose types are published.
    pub packages: Packages,
}

impl Checkout {
    /// What is in a folder; Go's types are read package by package, when a table asks for them.
    ///
    /// # Errors
    /// A folder that is none.
    pub(crate) fn open(folder: &Path, tree: &Path) -> Result<Checkout, Problem> {
        if !folder.is_dir() {
            return Err(Problem::bad(folder.display().to_string(), "is no folder"));
        }
        let checkout = Checkout { folder: folder.into(), tree: tree.into(), packages: Packages::new(folder) };
        Ok(checkout)
    }

    /// A file of the checkout.
    ///
    /// # Errors
    /// [`Problem::Missing`] when the checkout does not have it.
    pub(crate) fn text(&self, path: &str) -> Result<String, Problem> {
        read_if_there(&self.folder.join(path))?.ok_or_else(|| Problem::Missing(path.into()))
    }

    /// The same file, as JSON.
    ///
    /// # Errors
    /// As [`Checkout::text`], and what is no JSON.
    pub(crate) fn json(&self, path: &str) -> Result<Value, Problem> {
        serde_json::from_str(&self.text(path)?).map_err(|error| Problem::bad(path, error.to_string()))
    }

    /// The names of the files in a folder of the checkout, sorted.
    ///
    /// # Errors
    /// [`Problem::Missing`] when the checkout does not have it.
    pub(crate) fn names(&self, path: &str) -> Result<Vec<String>, Problem> {
        let entries = fs::read_dir(self.folder.join(path)).map_err(|_| Problem::Missing(path.into()))?;
        let names: BTreeSet<String> = entries
            .filter_map(Result::ok)
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        Ok(names.into_iter().collect())
    }

    /// A file of our own tree, such as a table that another is made from.
    ///
    /// # Errors
    /// One that is not there.
    pub(crate) fn own(&self, path: &str) -> Result<String, Problem> {
        let path = self.tree.join(path);
        read_if_there(&path)?.ok_or_else(|| Problem::bad(path.display().to_string(), "is not there"))
    }
}

/// # Errors
/// A file that is there and cannot be read.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<String>, Problem> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Problem::io(path, &error)),
    }
}

/// # Errors
/// A file that cannot be written.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Problem> {
    fs::write(path, text).map_err(|error| Problem::io(path, &error))
}
