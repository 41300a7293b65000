//! `kubarium fork`: a second cluster with the same past, and a context for it.

use std::path::PathBuf;

use clap::Args;
use http::Method;
use serde::Deserialize;
use serde_json::json;

use super::asked::encoded;
use super::connection::Context;
use super::fork_contexts::{self, ForkContext};
use super::forks::{self, FORKS, read};
use super::kubeconfig::Written;
use super::state::Record;
use super::{Failure, choice, kubeconfig, say, state};
use crate::cluster::Access;

/// Make a second cluster with the same past, which goes its own way from there.
///
/// It lives in the process of its parent, in memory, and ends with it. The parent's credentials are good
/// there, too.
#[derive(Args)]
pub struct Fork {
    /// The fork's name and its context in the kubeconfig; else fork-1 and on.
    #[arg(value_name = "FORK")]
    pub fork: Option<String>,
    /// The cluster's name; else the only one that runs, or that of kubectl's current context.
    #[arg(long, env = "KUBARIUM_NAME", value_name = "NAME")]
    pub name: Option<String>,
    /// Go back to this resourceVersion: what was written later never happened.
    #[arg(long, value_name = "RESOURCE_VERSION")]
    pub at: Option<u64>,
    /// Write a kubeconfig of its own here, instead of a context among yours.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// List the forks of the cluster.
    #[arg(long, conflicts_with_all = ["fork", "at", "kubeconfig", "delete"])]
    pub list: bool,
    /// End the fork, and take its context out of the kubeconfig.
    #[arg(long, conflicts_with = "at", requires = "fork")]
    pub delete: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MadeFork {
    name: String,
    server: String,
    resource_version: String,
    kubeconfig: String,
}

impl Fork {
    /// Asks the cluster for it.
    pub fn run(self) -> Result<(), Failure> {
        let record =
            choice::running(self.name.as_deref()).map_err(|none| self.of_a_fork().unwrap_or(none))?;
        let context = Context::load(&record.kubeconfig, &record.name)?.for_the_user()?;
        match &self.fork {
            _ if self.list => list(&context),
            Some(fork) if self.delete => self.delete(&context, &record.name, fork),
            _ => self.make(&context, &record),
        }
    }

    fn make(&self, context: &Context, record: &Record) -> Result<(), Failure> {
        if let Some(fork) = &self.fork {
            refuse(fork, &record.name)?;
            kubeconfig::refuse_a_users_own(fork, self.kubeconfig.as_deref())?;
        }
        let at = self.at.map(|at| at.to_string());
        let wanted = json!({"name": self.fork, "resourceVersion": at}).to_string();
        let answer = super::block_on(context.ask(Method::POST, FORKS, wanted.into()))?;
        let made: MadeFork = read(&answer)?;
        let access = Context::parse(&made.kubeconfig, "the answer", &made.name)?.access;
        let written = match self.write(&made, &record.name, &access) {
            Ok(written) => written,
            Err(failure) => {
                // Nobody could reach it by kubectl: it is not left behind.
                end(context, &made.name)?;
                return Err(failure);
            }
        };
        let MadeFork { name, server, resource_version, .. } = made;
        say(format!("fork {name:?} of {:?} at resourceVersion {resource_version}: {server}", record.name));
        say(format!("kubeconfig {} (context {name:?})", written.path.display()));
        Ok(())
    }

    fn write(&self, made: &MadeFork, parent: &str, access: &Access) -> Result<Written, Failure> {
        let path = self.file()?;
        let context = ForkContext {
            name: made.name.clone(),
            server: made.server.clone(),
            kubeconfig: std::path::absolute(&path).unwrap_or(path),
            own_kubeconfig: self.kubeconfig.is_some(),
        };
        context.remember(parent)?;
        kubeconfig::write(&made.name, self.kubeconfig.as_deref(), access)
    }

    /// Where the context goes.
    fn file(&self) -> Result<PathBuf, Failure> {
        self.kubeconfig.clone().map_or_else(kubeconfig::current::users_file, Ok)
    }

    /// Why there is no parent, if it is a fork that was named.
    fn of_a_fork(&self) -> Option<Failure> {
        let named = self.name.as_deref()?;
        let parent = choice::parent_of_fork(&state::clusters().ok()?.running, named)?.name;
        Some(Failure(format!(
            "{named:?} is itself a fork, of {parent:?}: `kubarium fork` is about the forks of {parent}, as \
             --name {parent}; one of a fork is made over HTTP, by POST to its {FORKS}"
        )))
    }

    fn delete(&self, context: &Context, parent: &str, fork: &str) -> Result<(), Failure> {
        end(context, fork)?;
        fork_contexts::clean(parent, fork)?;
        // Whoever made it over HTTP may have written a context, too.
        kubeconfig::clean(&self.file()?, fork, self.kubeconfig.is_some())?;
        say(format!("fork {fork:?} has ended"));
        Ok(())
    }
}

/// A context has one cluster: that of the parent, or of another one, is not overwritten.
fn refuse(fork: &str, parent: &str) -> Result<(), Failure> {
    if fork == parent {
        return Err(Failure(format!("the fork needs another name than its parent {parent:?} has")));
    }
    if state::is_running(&state::folder()?, fork) {
        return Err(Failure(format!(
            "a cluster named {fork:?} is running; choose another name for the fork"
        )));
    }
    Ok(())
}

fn end(context: &Context, fork: &str) -> Result<(), Failure> {
    let path = format!("{FORKS}/{}", encoded(fork));
    super::block_on(context.ask(Method::DELETE, &path, Vec::new())).map(drop)
}

fn list(context: &Context) -> Result<(), Failure> {
    let forks = forks::listed(context)?;
    if forks.is_empty() {
        say("There is no fork; make one with: kubarium fork");
    }
    forks.iter().for_each(|fork| say(format!("{}  {}", fork.name, fork.server)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_is_not_named_as_its_parent() {
        let Failure(why) = refuse("b", "b").unwrap_err();
        assert!(why.contains("another name than its parent \"b\""), "{why}");
        assert!(refuse("no-cluster-has-this-name", "b").is_ok());
    }
}
