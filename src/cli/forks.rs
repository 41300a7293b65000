//! The forks of a cluster that have names, and where they are (`/kubarium/v1/forks`).

use serde::Deserialize;

use super::connection::Context;
use super::{Failure, block_on};

/// The handle of them all; below it each has its own.
pub(crate) const FORKS: &str = "/kubarium/v1/forks";

/// A fork.
#[derive(Deserialize)]
pub(crate) struct ListedFork {
    /// Its name, and usually that of its context.
    pub name: String,
    /// Its address.
    pub server: String,
}

#[derive(Deserialize)]
struct ListedForks {
    forks: Vec<ListedFork>,
}

/// Those of the cluster that is talked to like this.
pub(crate) fn listed(context: &Context) -> Result<Vec<ListedFork>, Failure> {
    read(&block_on(context.get(FORKS))?).map(|ListedForks { forks }| forks)
}

/// An answer of these handles.
pub(crate) fn read<T: serde::de::DeserializeOwned>(answer: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(answer)
        .map_err(|error| Failure::new("the cluster's answer is not understood", error))
}
