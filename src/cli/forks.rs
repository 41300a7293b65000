//! The forks of a cluster that have names, and where they are (`/kubarium/v1/forks`). A fork has forks of its
//! own.

use std::collections::VecDeque;

use serde::Deserialize;

use super::connection::Context;
use super::{Failure, block_on};

/// The handle of them all; below it each has its own.
pub(crate) const FORKS: &str = "/kubarium/v1/forks";

/// A fork.
#[derive(Clone, Deserialize)]
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

/// A fork, and whose it is.
pub(crate) struct FoundFork {
    /// The fork.
    pub fork: ListedFork,
    /// How to talk to it.
    pub context: Context,
    /// Which cluster or fork it is a fork of.
    pub parent: String,
    /// How to talk to that.
    pub parent_context: Context,
}

/// The forks of a cluster, and behind them the forks of these, each asked when it is its turn.
pub(crate) struct AllForks {
    found: VecDeque<FoundFork>,
    /// Whose forks nobody has asked for yet.
    to_ask: VecDeque<(String, Context)>,
}

impl AllForks {
    /// Those of the cluster, or the fork, that is called and talked to like this.
    pub(crate) fn of(name: &str, context: &Context) -> Result<AllForks, Failure> {
        Ok(AllForks { found: listed(name, context)?.into(), to_ask: VecDeque::new() })
    }
}

impl Iterator for AllForks {
    type Item = FoundFork;

    fn next(&mut self) -> Option<FoundFork> {
        while self.found.is_empty() {
            let (name, context) = self.to_ask.pop_front()?;
            // One that has ended meanwhile has none.
            self.found.extend(listed(&name, &context).unwrap_or_default());
        }
        let found = self.found.pop_front()?;
        self.to_ask.push_back((found.fork.name.clone(), found.context.clone()));
        Some(found)
    }
}

/// A fork has its parent's authority and administrator, at an address of its own.
fn listed(parent: &str, context: &Context) -> Result<Vec<FoundFork>, Failure> {
    let ListedForks { forks } = read(&block_on(context.get(FORKS))?)?;
    let found = forks.into_iter().map(|fork| FoundFork {
        context: context.at(&fork.server),
        fork,
        parent: parent.to_owned(),
        parent_context: context.clone(),
    });
    Ok(found.collect())
}

/// An answer of these handles.
pub(crate) fn read<T: serde::de::DeserializeOwned>(answer: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(answer)
        .map_err(|error| Failure::new("the cluster's answer is not understood", error))
}
