//! kubectl's current context, as kubectl itself finds it: in the files of `$KUBECONFIG`, else in
//! `~/.kube/config`; where files say different things, the first counts.

use std::path::PathBuf;

use serde_yaml::{Mapping, Value};

use super::file;
use crate::cli::Failure;

/// What kubectl talks to.
#[derive(Default)]
pub(crate) struct Current {
    /// The server's address, if the context has one.
    pub server: Option<String>,
    /// Where unqualified names are looked for, if the context says so.
    pub namespace: Option<String>,
}

/// kubectl's current context. A file that cannot be read counts for nothing.
pub(crate) fn read() -> Option<Current> {
    of(&configs())
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

fn of(configs: &[Mapping]) -> Option<Current> {
    let name = configs.iter().find_map(name_in)?;
    let context = configs.iter().find_map(|config| context_in(config, name))?;
    let cluster = context["cluster"].as_str().unwrap_or_default();
    let cluster = configs.iter().find_map(|config| named(config, "clusters", cluster));
    let server = cluster.and_then(|entry| entry["cluster"]["server"].as_str()).map(str::to_owned);
    let namespace = configs.iter().find_map(|config| namespace_of(config, name));
    Some(Current { server, namespace })
}

fn named<'a>(config: &'a Mapping, section: &str, name: &str) -> Option<&'a Value> {
    let entries = config.get(section)?.as_sequence()?;
    entries.iter().find(|entry| entry["name"].as_str() == Some(name))
}

fn configs() -> Vec<Mapping> {
    users_files().iter().filter_map(|path| file::read(path).ok()).collect()
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
}
