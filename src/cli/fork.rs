//! `kubarium fork`: a second cluster with the same past, and a context for it.

use std::path::PathBuf;

use clap::Args;
use http::Method;
use serde::Deserialize;
use serde_json::json;

use super::asked::encoded;
use super::choice::ForksParent;
use super::connection::Context;
use super::fork_contexts::{self, ForkContext};
use super::forks::{AllForks, FORKS, FoundFork, read};
use super::kubeconfig::WrittenContext;
use super::{Failure, choice, kubeconfig, say, state};
use crate::cluster::Access;

/// Make a second cluster with the same past, which goes its own way from there.
///
/// It lives in the process of its parent, in memory, and ends with it. The parent's credentials are good
/// there, too. A fork is forked by its name: kubarium fork --name FORK.
#[derive(Args)]
pub struct Fork {
    /// The fork's name and its context in the kubeconfig; else fork-1 and on, of a fork named a a-1 and on.
    #[arg(value_name = "FORK")]
    pub fork: Option<String>,
    /// The name of the cluster, or of a fork of it; else the only cluster that runs, or that of kubectl's
    /// current context.
    #[arg(long, env = "KUBARIUM_NAME", value_name = "NAME")]
    pub name: Option<String>,
    /// Go back to this resourceVersion: what was written later never happened.
    #[arg(long, value_name = "RESOURCE_VERSION")]
    pub at: Option<u64>,
    /// Write a kubeconfig of its own here, instead of a context among yours.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// List the forks of the cluster, and theirs.
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
        let mut parent = choice::parent(self.name.as_deref())?;
        parent.context = parent.context.for_the_user()?;
        match &self.fork {
            _ if self.list => list(&parent),
            Some(fork) if self.delete => self.delete(&parent, fork),
            _ => self.make(&parent),
        }
    }

    fn make(&self, parent @ ForksParent { root, context, .. }: &ForksParent) -> Result<(), Failure> {
        let name = self.name_for_one_of(parent)?;
        if let Some(fork) = &name {
            kubeconfig::refuse_a_users_own(fork, self.kubeconfig.as_deref())?;
        }
        let at = self.at.map(|at| at.to_string());
        let wanted = json!({"name": name, "resourceVersion": at}).to_string();
        let answer = super::block_on(context.ask(Method::POST, FORKS, wanted.into()))?;
        let made: MadeFork = read(&answer)?;
        let access = Context::parse(&made.kubeconfig, "the answer", &made.name)?.access;
        let written = match self.write(&made, &root.name, &access) {
            Ok(written) => written,
            Err(failure) => {
                // Nobody could reach it by kubectl: it is not left behind.
                end(context, &made.name)?;
                return Err(failure);
            }
        };
        let MadeFork { name, server, resource_version, .. } = made;
        say(format!("fork {name:?} of {:?} at resourceVersion {resource_version}: {server}", parent.name));
        say(format!("kubeconfig {} (context {name:?})", written.path.display()));
        Ok(())
    }

    /// The name that was given, else the first that no other has; else the cluster chooses.
    fn name_for_one_of(
        &self,
        ForksParent { root, name: parent, .. }: &ForksParent,
    ) -> Result<Option<String>, Failure> {
        // Asked in the cluster's own name: who may make forks, the parent decides.
        let of_root = Context::load(&root.kubeconfig, &root.name)?;
        let others: Vec<FoundFork> = AllForks::of(&root.name, &of_root)?.collect();
        let has_it = |name: &str| others.iter().find(|other| other.fork.name == name);
        let Some(fork) = &self.fork else {
            let is_of_root = root.name == *parent;
            // The cluster knows the forks of its forks by no name.
            if is_of_root && others.iter().all(|other| other.parent == root.name) {
                return Ok(None);
            }
            let stem = if is_of_root { "fork" } else { parent };
            let folder = state::folder()?;
            let is_free = |name: &String| has_it(name).is_none() && !state::is_running(&folder, name);
            return Ok((1..).map(|number| format!("{stem}-{number}")).find(is_free));
        };
        refuse(fork, parent)?;
        match has_it(fork) {
            None => Ok(Some(fork.clone())),
            Some(other) => Err(Failure(format!(
                "there is a fork {fork:?} of {:?} already; choose another name",
                other.parent
            ))),
        }
    }

    fn write(&self, made: &MadeFork, root: &str, access: &Access) -> Result<WrittenContext, Failure> {
        let path = self.file()?;
        let context = ForkContext {
            name: made.name.clone(),
            server: made.server.clone(),
            kubeconfig: std::path::absolute(&path).unwrap_or(path),
            own_kubeconfig: self.kubeconfig.is_some(),
        };
        context.remember(root)?;
        kubeconfig::write(&made.name, self.kubeconfig.as_deref(), access)
    }

    /// Where the context goes.
    fn file(&self) -> Result<PathBuf, Failure> {
        self.kubeconfig.clone().map_or_else(kubeconfig::current::users_file, Ok)
    }

    /// Its own forks end with it.
    fn delete(&self, ForksParent { root, name, context }: &ForksParent, fork: &str) -> Result<(), Failure> {
        let Some(found) = AllForks::of(name, context)?.find(|found| found.fork.name == fork) else {
            return Err(Failure(format!(
                "there is no fork {fork:?} of {name:?}; kubarium fork --list lists all"
            )));
        };
        let with_it: Vec<FoundFork> = AllForks::of(fork, &found.context).into_iter().flatten().collect();
        end(&found.parent_context, fork)?;
        // The newest first: so what was current before them is current again.
        for FoundFork { fork, .. } in with_it.iter().rev() {
            fork_contexts::clean(&root.name, &fork.name)?;
        }
        fork_contexts::clean(&root.name, fork)?;
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

fn list(ForksParent { name, context, .. }: &ForksParent) -> Result<(), Failure> {
    let mut forks = AllForks::of(name, context)?.peekable();
    if forks.peek().is_none() {
        say("There is no fork; make one with: kubarium fork");
    }
    for FoundFork { fork, parent, .. } in forks {
        let of = if parent == *name { String::new() } else { format!("  (of {parent})") };
        say(format!("{}  {}{of}", fork.name, fork.server));
    }
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
