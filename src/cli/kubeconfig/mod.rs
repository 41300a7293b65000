//! The kubeconfig: a file of its own, or a context among the user's others that is taken out again.
//!
//! Beside each context of ours stands which contexts were current before it (`previous`), so that whoever is
//! stopped last, and in whatever order, gives the user's own context back.

pub(crate) mod credentials;
pub(crate) mod current;

mod file;
mod previous;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_yaml::{Mapping, Value};

use super::Failure;
use crate::cluster::Access;
use file::{edit, empty};

/// Where a context was written.
pub(crate) struct WrittenContext {
    /// The file.
    pub path: PathBuf,
    name: String,
    own_file: bool,
}

/// Writes the context `name`: to `own` alone if given, else among the user's other contexts, as the current
/// one.
pub(crate) fn write(name: &str, own: Option<&Path>, access: &Access) -> Result<WrittenContext, Failure> {
    let path = own.map_or_else(current::users_file, |path| Ok(path.to_owned()))?;
    // A file that holds more than this context is somebody's: nothing of it may be lost.
    let own_file = own.is_some() && (!path.exists() || previous::is_alone(&file::read(&path)?, name));
    edit(&path, own_file, |config| {
        previous::refuse_a_users_own(config, name, &path)?;
        let displaced = previous::displaced(config, name);
        merge(config, name, access);
        previous::remember(config, name, &displaced);
        Ok(())
    })?;
    Ok(WrittenContext { path, name: name.into(), own_file })
}

/// Refuses to write where a context of this name is that is not ours, before there is anything to write.
pub(crate) fn refuse_a_users_own(name: &str, own: Option<&Path>) -> Result<(), Failure> {
    let path = own.map_or_else(current::users_file, |path| Ok(path.to_owned()))?;
    previous::refuse_a_users_own(&file::read(&path)?, name, &path)
}

impl WrittenContext {
    /// Takes the context out again; the one that was current before is current again, unless the user chose
    /// another meanwhile.
    pub(crate) fn remove(self) -> Result<(), Failure> {
        take_out(&self.path, &self.name, self.own_file)
    }
}

/// Takes out the context of a name if it is about this server: whoever has the name by now keeps it. Whether
/// there was one.
pub(crate) fn clean_at(path: &Path, name: &str, own_file: bool, server: &str) -> Result<bool, Failure> {
    if !path.exists() || current::server_in(&file::read(path)?, name) != Some(server.into()) {
        return Ok(false);
    }
    clean(path, name, own_file)
}

/// Takes out what a killed cluster left: its context, or the file that holds nothing else. Whether there was
/// anything.
pub(crate) fn clean(path: &Path, name: &str, own_file: bool) -> Result<bool, Failure> {
    if !path.exists() || !previous::is_ours(&file::read(path)?, name) {
        return Ok(false);
    }
    take_out(path, name, own_file)?;
    Ok(true)
}

/// The context alone, or with it the file that holds nothing else.
fn take_out(path: &Path, name: &str, own_file: bool) -> Result<(), Failure> {
    let is_alone = || file::read(path).is_ok_and(|config| previous::is_alone(&config, name));
    if own_file && is_alone() { remove_file(path) } else { remove(path, name) }
}

/// The namespace of a context, if its file names one.
pub(crate) fn namespace_of(path: &Path, name: &str) -> Option<String> {
    current::namespace_of(&file::read(path).ok()?, name)
}

/// A whole kubeconfig with the one context.
pub(crate) fn document(name: &str, access: &Access) -> String {
    let mut config = empty();
    merge(&mut config, name, access);
    serde_yaml::to_string(&Value::Mapping(config)).unwrap_or_default()
}

fn remove_file(path: &Path) -> Result<(), Failure> {
    fs::remove_file(path).or_else(|error| match error.kind() {
        ErrorKind::NotFound => Ok(()),
        _ => Err(Failure::new(format!("cannot remove {}", path.display()), error)),
    })
}

fn remove(path: &Path, name: &str) -> Result<(), Failure> {
    edit(path, false, |config| {
        let before = previous::restored(config, name);
        for section in ["clusters", "users", "contexts"] {
            if let Some(Value::Sequence(entries)) = config.get_mut(section) {
                entries.retain(|entry| entry["name"].as_str() != Some(name));
            }
        }
        if current::name_in(config) == Some(name) {
            config.insert("current-context".into(), before.unwrap_or_default().into());
        }
        Ok(())
    })
}

fn merge(config: &mut Mapping, name: &str, access: &Access) {
    let encoded = |pem: &str| Value::from(STANDARD.encode(pem));
    let mut cluster = Mapping::from_iter([("server".into(), access.server.as_str().into())]);
    let mut user = Mapping::new();
    if let Some(pem) = &access.authority_pem {
        cluster.insert("certificate-authority-data".into(), encoded(pem));
    }
    if let Some(identity) = &access.identity {
        user.insert("client-certificate-data".into(), encoded(&identity.certificate_pem));
        user.insert("client-key-data".into(), encoded(&identity.key_pem));
    }
    let context = Mapping::from_iter([("cluster".into(), name.into()), ("user".into(), name.into())]);
    put(config, "clusters", "cluster", name, cluster);
    put(config, "users", "user", name, user);
    put(config, "contexts", "context", name, context);
    config.insert("current-context".into(), name.into());
}

fn put(config: &mut Mapping, section: &str, key: &str, name: &str, content: Mapping) {
    let entry = Mapping::from_iter([(key.into(), Value::Mapping(content)), ("name".into(), name.into())]);
    let list = config.entry(section.into()).or_insert(Value::Null);
    if !list.is_sequence() {
        *list = Value::Sequence(vec![]);
    }
    if let Value::Sequence(list) = list {
        list.retain(|other| other["name"].as_str() != Some(name));
        list.push(Value::Mapping(entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        Access { server: "https://127.0.0.1:1".into(), authority_pem: Some("CA".into()), identity: None }
    }

    #[test]
    fn a_context_comes_and_goes_among_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        let users = "current-context: work\ncontexts:\n- name: work\n  context: {user: me}\nmine: [1]\n";
        fs::write(&path, users).unwrap();
        edit(&path, false, |config| {
            let displaced = previous::displaced(config, "kubarium");
            merge(config, "kubarium", &access());
            previous::remember(config, "kubarium", &displaced);
            Ok(())
        })
        .unwrap();
        let written = fs::read_to_string(&path).unwrap();
        assert!(written.contains("https://127.0.0.1:1") && written.contains("mine"), "{written}");
        assert!(written.contains("current-context: kubarium"));
        remove(&path, "kubarium").unwrap();
        let left: Value = serde_yaml::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(left["current-context"], "work");
        assert_eq!(left["contexts"].as_sequence().unwrap().len(), 1);
        assert_eq!(left["clusters"].as_sequence().unwrap().len(), 0);
        assert_eq!(left["mine"][0], 1);
    }

    #[test]
    fn a_file_of_its_own_holds_one_context_and_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("own");
        fs::write(&path, "contexts: [{name: kubarium}]").unwrap();
        let written = write("kubarium", Some(&path), &access()).unwrap();
        written.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_is_somebodys_keeps_what_it_holds() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("own");
        fs::write(&path, "contexts: [{name: prod, context: {user: me}}]\ncurrent-context: prod\n").unwrap();
        let written = write("kubarium", Some(&path), &access()).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("prod") && text.contains("current-context: kubarium"), "{text}");
        written.remove().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("current-context: prod") && !text.contains("kubarium"), "{text}");
    }

    #[test]
    fn what_a_killed_cluster_left_is_taken_out_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("own");
        write("kubarium", Some(&path), &access()).unwrap();
        assert!(!clean(&path, "other", true).unwrap() && path.exists());
        fs::write(&path, "contexts: [{name: kubarium, context: {user: me}}]").unwrap();
        assert!(!clean(&path, "kubarium", true).unwrap() && path.exists(), "this one is somebody's own");
        write("kubarium", Some(&path), &access()).unwrap();
        assert!(clean(&path, "kubarium", true).unwrap() && !path.exists());
        assert!(!clean(&path, "kubarium", true).unwrap());
    }

    #[test]
    fn a_context_is_taken_out_at_its_server_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("own");
        write("fork", Some(&path), &access()).unwrap();
        assert!(!clean_at(&path, "fork", true, "https://127.0.0.1:2").unwrap() && path.exists());
        assert!(!clean_at(&path, "other", true, "https://127.0.0.1:1").unwrap() && path.exists());
        assert!(clean_at(&path, "fork", true, "https://127.0.0.1:1").unwrap() && !path.exists());
        assert!(!clean_at(&path, "fork", true, "https://127.0.0.1:1").unwrap());
    }
}
