//! Which cluster is meant: the one that is named, else the only one, else that of kubectl's current context.
//! A fork that has a port is a cluster, too.

use super::Failure;
use super::connection::Context;
use super::forks::{AllForks, FoundFork, ListedFork};
use super::kubeconfig::current::{self, CurrentContext};
use super::state::{self, Record};

/// A running cluster, or a fork of one by its name or as kubectl's current context, and how to talk to it: in
/// the name of whom kubectl asks it, else as its administrator.
pub(crate) fn reached(name: Option<&str>) -> Result<(Record, Context), Failure> {
    let (record, context) = administered(name)?;
    Ok((record, context.for_the_user()?))
}

/// Such a cluster, and how its administrator talks to it.
pub(crate) fn administered(name: Option<&str>) -> Result<(Record, Context), Failure> {
    let running = state::clusters()?.running;
    if let Some((root, found)) = fork_that_is_meant(&running, name) {
        let ListedFork { name, server } = found.fork;
        return Ok((Record { name, server, ..root }, found.context));
    }
    let record = match name {
        Some(name) => named(running, name)?,
        None => only_or_current(running, current::read)?,
    };
    let context = Context::load(&record.kubeconfig, &record.name)?;
    Ok((record, context))
}

/// Whose forks are meant.
pub(crate) struct ForksParent {
    /// The cluster in whose process all of them live.
    pub root: Record,
    /// It, or a fork of it.
    pub name: String,
    /// How its administrator talks to it.
    pub context: Context,
}

/// A cluster or a fork that is named; else the cluster, whichever of its forks kubectl talks to: who makes
/// one fork after the other makes them of the same.
pub(crate) fn parent(name: Option<&str>) -> Result<ForksParent, Failure> {
    let running = state::clusters()?.running;
    let root = match (fork_that_is_meant(&running, name), name) {
        (Some((root, FoundFork { fork, context, .. })), Some(_)) => {
            return Ok(ForksParent { root, name: fork.name, context });
        }
        (Some((root, _)), None) => root,
        (None, Some(name)) => named(running, name)?,
        (None, None) => only_or_current(running, current::read)?,
    };
    let context = Context::load(&root.kubeconfig, &root.name)?;
    Ok(ForksParent { name: root.name.clone(), root, context })
}

/// The cluster of which a fork has this name.
pub(crate) fn parent_of_fork(running: &[Record], name: &str) -> Option<Record> {
    let has_it = |root: &&Record| fork_of(root, |fork| fork.name == name).is_some();
    running.iter().find(has_it).cloned()
}

/// A fork, and the cluster in whose process it lives.
fn fork_that_is_meant(running: &[Record], name: Option<&str>) -> Option<(Record, FoundFork)> {
    let forks = |is_meant: &dyn Fn(&ListedFork) -> bool| {
        running.iter().find_map(|root| Some((root.clone(), fork_of(root, is_meant)?)))
    };
    if let Some(name) = name {
        let is_running = running.iter().any(|record| record.name == name);
        return if is_running { None } else { forks(&|fork| fork.name == name) };
    }
    let server = current::read()?.server?;
    let is_running = running.iter().any(|record| record.server == server);
    if is_running { None } else { forks(&|fork| fork.server == server) }
}

/// Of the cluster, or of a fork of it. A cluster that does not answer has none.
fn fork_of(root: &Record, is_meant: impl Fn(&ListedFork) -> bool) -> Option<FoundFork> {
    let context = Context::load(&root.kubeconfig, &root.name).ok()?;
    AllForks::of(&root.name, &context).ok()?.find(|found| is_meant(&found.fork))
}

/// A running cluster.
pub(crate) fn running(name: Option<&str>) -> Result<Record, Failure> {
    let running = state::clusters()?.running;
    match name {
        Some(name) => named(running, name),
        None => only_or_current(running, current::read),
    }
}

fn named(running: Vec<Record>, name: &str) -> Result<Record, Failure> {
    state::check_name(name)?;
    let others = list(&running);
    let found = running.into_iter().find(|record| record.name == name);
    found.ok_or_else(|| Failure(format!("no cluster named {name:?} is running; {others}")))
}

/// The only one, or the one that kubectl talks to.
pub(crate) fn only_or_current(
    mut running: Vec<Record>,
    current: impl FnOnce() -> Option<CurrentContext>,
) -> Result<Record, Failure> {
    if running.len() == 1 {
        return Ok(running.remove(0));
    }
    let others = list(&running);
    if running.is_empty() {
        return Err(Failure(format!("no cluster is running; {others}")));
    }
    let server = current().and_then(|current| current.server);
    let is_meant = |record: &Record| server.as_ref() == Some(&record.server);
    let found = running.into_iter().find(is_meant);
    found.ok_or_else(|| {
        Failure(format!("several clusters run, and kubectl's current context is none of them; {others}"))
    })
}

/// What to do instead.
fn list(running: &[Record]) -> String {
    let names: Vec<&str> = running.iter().map(|record| &*record.name).collect();
    match names.as_slice() {
        [] => "start one with: kubarium up".into(),
        [only] => format!("{only} is: --name {only}"),
        [first, ..] => format!("say which of {} with --name, as --name {first}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str) -> Record {
        let text = format!(
            r#"{{"name": "{name}", "pid": 1, "server": "https://{name}", "nodes": 1, "kubeconfig": "/k"}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn chosen(names: &[&str], server: Option<&str>) -> Result<String, String> {
        let server = server.map(|server| format!("https://{server}"));
        let current = move || Some(CurrentContext { server, namespace: None });
        let running = names.iter().map(|name| record(name)).collect();
        only_or_current(running, current).map(|record| record.name).map_err(|Failure(why)| why)
    }

    #[test]
    fn the_only_one_or_that_of_the_current_context() {
        assert_eq!(chosen(&["a"], Some("prod")), Ok("a".into()));
        assert_eq!(chosen(&["a", "b"], Some("b")), Ok("b".into()));
        assert!(chosen(&[], None).unwrap_err().contains("start one with: kubarium up"));
        for server in [None, Some("prod")] {
            let why = chosen(&["a", "b"], server).unwrap_err();
            assert!(why.contains("say which of a, b with --name, as --name a"), "{why}");
        }
    }

    #[test]
    fn a_name_that_does_not_run_tells_those_that_do() {
        let why = |running: &[&str]| {
            let running = running.iter().map(|name| record(name)).collect();
            named(running, "c").unwrap_err().0
        };
        assert_eq!(why(&[]), "no cluster named \"c\" is running; start one with: kubarium up");
        assert_eq!(why(&["a"]), "no cluster named \"c\" is running; a is: --name a");
        assert!(why(&["a", "b"]).contains("of a, b with"));
    }
}
