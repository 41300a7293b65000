//! kubectl's current context, as kubectl itself finds it: in the files of `$KUBECONFIG`, else in
//! `~/.kube/config`; where files say different things, the first counts.

use std::path::{Path, PathBuf};

use serde_yaml::{Mapping, Value};

use super::credentials::Credentials;
use super::file;
use crate::cli::Failure;

/// What kubectl talks to.
#[derive(Default)]
pub(crate) struct CurrentContext {
    /// The server's address, if the context has one.
    pub server: Option<String>,
    /// Where unqualified names are looked for, if the context says so.
    pub namespace: Option<String>,
}

/// kubectl's current context. A file that cannot be read counts for nothing.
pub(crate) fn read() -> Option<CurrentContext> {
    of(&configs())
}

/// What the user of kubectl's current context shows the server at this address; none if the context is about
/// another one.
pub(crate) fn credentials_at(server: &str) -> Result<Option<Credentials>, Failure> {
    credentials_in(&files(), server)
}

/// The file that a new context goes to: the first of `$KUBECONFIG`, else `~/.kube/config`.
pub(crate) fn users_file() -> Result<PathBuf, Failure> {
    let none = Failure("HOME is not set; say where to write with --kubeconfig FILE".into());
    users_files().into_iter().next().ok_or(none)
}

/// The namespace of a file's context, if it names one.
pub(crate) fn namespace_of(config: &Mapping, context: &str) -> Option<String> {
    let namespace = context_in(config, context)?["namespace"].as_str()?;
    Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty())
}

/// The address of the server of a file's context, if it has one.
pub(crate) fn server_in(config: &Mapping, context: &str) -> Option<String> {
    let cluster = context_in(config, context)?["cluster"].as_str()?;
    named(config, "clusters", cluster)?["cluster"]["server"].as_str().map(str::to_owned)
}

/// The name of a file's current context, if it has one.
pub(crate) fn name_in(config: &Mapping) -> Option<&str> {
    config.get("current-context")?.as_str().filter(|name| !name.is_empty())
}

/// A context of a file.
pub(crate) fn context_in<'a>(config: &'a Mapping, name: &str) -> Option<&'a Value> {
    named(config, "contexts", name).map(|entry| &entry["context"])
}

/// Whether one of kubectl's files has a context of this name.
pub(crate) fn is_known_elsewhere(name: &str) -> bool {
    configs().iter().any(|config| context_in(config, name).is_some())
}

fn of(configs: &[Mapping]) -> Option<CurrentContext> {
    let name = configs.iter().find_map(name_in)?;
    let context = configs.iter().find_map(|config| context_in(config, name))?;
    let cluster = context["cluster"].as_str().unwrap_or_default();
    let cluster = configs.iter().find_map(|config| named(config, "clusters", cluster));
    let server = cluster.and_then(|entry| entry["cluster"]["server"].as_str()).map(str::to_owned);
    let namespace = configs.iter().find_map(|config| namespace_of(config, name));
    Some(CurrentContext { server, namespace })
}

/// A context whose user is nowhere is anonymous.
fn credentials_in(files: &[(PathBuf, Mapping)], server: &str) -> Result<Option<Credentials>, Failure> {
    let configs: Vec<Mapping> = files.iter().map(|(_, config)| config.clone()).collect();
    if of(&configs).and_then(|current| current.server).as_deref() != Some(server) {
        return Ok(None);
    }
    let context = configs.iter().find_map(name_in).unwrap_or_default();
    let user = configs.iter().find_map(|config| context_in(config, context)?["user"].as_str());
    let user = user.unwrap_or_default();
    let entry = |(path, config): &(PathBuf, Mapping)| {
        let entry = named(config, "users", user)?;
        Some(Credentials::of(&entry["user"], path.parent().unwrap_or(Path::new(""))))
    };
    let credentials = files.iter().find_map(entry).unwrap_or_else(|| Ok(Credentials::default()));
    credentials.map(Some).map_err(|Failure(why)| {
        Failure(format!("user {user:?} of kubectl's current context {context:?}: {why}"))
    })
}

fn named<'a>(config: &'a Mapping, section: &str, name: &str) -> Option<&'a Value> {
    let entries = config.get(section)?.as_sequence()?;
    entries.iter().find(|entry| entry["name"].as_str() == Some(name))
}

fn configs() -> Vec<Mapping> {
    files().into_iter().map(|(_, config)| config).collect()
}

fn files() -> Vec<(PathBuf, Mapping)> {
    let read = |path: PathBuf| file::read(&path).ok().map(|config| (path, config));
    users_files().into_iter().filter_map(read).collect()
}

/// Where kubectl looks for contexts.
pub(crate) fn users_files() -> Vec<PathBuf> {
    let listed = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let files: Vec<PathBuf> =
        std::env::split_paths(&listed).filter(|path| !path.as_os_str().is_empty()).collect();
    if !files.is_empty() {
        return files;
    }
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    home.map(|home| PathBuf::from(home).join(".kube").join("config")).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_file_that_says_something_counts() {
        let texts = [
            "contexts: [{name: dev, context: {cluster: c, namespace: team}}]",
            "{current-context: dev, contexts: [{name: dev, context: {cluster: x}}]}",
            "{current-context: other, clusters: [{name: c, cluster: {server: 'https://one'}}]}",
        ];
        let configs = texts.map(|text| serde_yaml::from_str(text).unwrap());
        let current = of(&configs).unwrap();
        assert_eq!(current.server.as_deref(), Some("https://one"));
        assert_eq!(current.namespace.as_deref(), Some("team"));
        assert!(of(&configs[..1]).is_none(), "no context is current");
    }

    #[test]
    fn the_user_counts_at_the_server_of_the_context_alone() {
        let texts = [
            "{current-context: dev, contexts: [{name: dev, context: {cluster: c, user: joe}}]}",
            "{clusters: [{name: c, cluster: {server: 'https://one'}}], users: [{name: joe, user: {token: a}}]}",
        ];
        let files = texts.map(|text| (PathBuf::from("/k"), serde_yaml::from_str(text).unwrap()));
        let shown = |files: &[(PathBuf, Mapping)], server| {
            let credentials = credentials_in(files, server).map_err(|Failure(why)| why)?;
            Ok::<_, String>(credentials.map(|shown| shown.headers.len()))
        };
        assert_eq!(shown(&files, "https://one"), Ok(Some(1)));
        assert_eq!(shown(&files, "https://two"), Ok(None));
        let elsewhere = texts[1].replace("joe", "jane").replace("{token: a}", "{exec: {}}");
        let files =
            [texts[0], &elsewhere].map(|text| (PathBuf::from("/k"), serde_yaml::from_str(text).unwrap()));
        assert_eq!(shown(&files, "https://one"), Ok(Some(0)), "nobody knows him");
        let helped = elsewhere.replace("jane", "joe");
        let files =
            [texts[0], &helped].map(|text| (PathBuf::from("/k"), serde_yaml::from_str(text).unwrap()));
        let why = shown(&files, "https://one").unwrap_err();
        assert!(
            why.starts_with("user \"joe\" of kubectl's current context \"dev\": it logs in by exec"),
            "{why}"
        );
    }
}
