//! The kubeconfig: a file of its own, or a context among the user's others that is taken out again.
//!
//! Files are edited as trees, so that what we do not know stays. Written whole, 0600, under client-go's own
//! lock file (`FILE.lock`).

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_yaml::{Mapping, Value};

use super::Failure;
use crate::cluster::Access;
use crate::files::write_private;

/// Where a context was written, and what it displaced.
pub struct Written {
    /// The file.
    pub path: PathBuf,
    name: String,
    previous: Option<String>,
    own_file: bool,
}

/// Writes the context `name`: to `own` alone if given, else among the user's other contexts, as the current
/// one.
pub fn write(name: &str, own: Option<&Path>, access: &Access) -> Result<Written, Failure> {
    let path = own.map_or_else(users_file, |path| Ok(path.to_owned()))?;
    let own_file = own.is_some();
    let previous = edit(&path, own_file, |config| {
        let previous = config.get("current-context").and_then(Value::as_str).map(str::to_owned);
        merge(config, name, access);
        previous
    })?;
    let previous = previous.filter(|previous| previous != name && !previous.is_empty());
    Ok(Written { path, name: name.into(), previous, own_file })
}

impl Written {
    /// Takes the context out again; the one that was current before is current again, unless the user chose
    /// another meanwhile.
    pub fn remove(self) -> Result<(), Failure> {
        if !self.own_file {
            return remove(&self.path, &self.name, self.previous.as_deref());
        }
        fs::remove_file(&self.path).or_else(|error| match error.kind() {
            ErrorKind::NotFound => Ok(()),
            _ => Err(Failure::new(format!("cannot remove {}", self.path.display()), error)),
        })
    }
}

/// A whole kubeconfig with the one context.
pub fn document(name: &str, access: &Access) -> String {
    let mut config = empty();
    merge(&mut config, name, access);
    serde_yaml::to_string(&Value::Mapping(config)).unwrap_or_default()
}

fn remove(path: &Path, name: &str, previous: Option<&str>) -> Result<(), Failure> {
    edit(path, false, |config| {
        for section in ["clusters", "users", "contexts"] {
            if let Some(Value::Sequence(entries)) = config.get_mut(section) {
                entries.retain(|entry| entry["name"].as_str() != Some(name));
            }
        }
        if config.get("current-context").and_then(Value::as_str) == Some(name) {
            config.insert("current-context".into(), previous.unwrap_or_default().into());
        }
    })
}

/// kubectl's choice: the first file of `$KUBECONFIG`, else `~/.kube/config`.
fn users_file() -> Result<PathBuf, Failure> {
    let listed = std::env::var_os("KUBECONFIG").unwrap_or_default();
    if let Some(first) = std::env::split_paths(&listed).find(|path| !path.as_os_str().is_empty()) {
        return Ok(first);
    }
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    let home = home.ok_or(Failure("HOME is not set; say where to write with --kubeconfig FILE".into()))?;
    Ok(PathBuf::from(home).join(".kube").join("config"))
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

fn empty() -> Mapping {
    Mapping::from_iter([
        ("apiVersion".into(), "v1".into()),
        ("kind".into(), "Config".into()),
        ("preferences".into(), Value::Mapping(Mapping::new())),
    ])
}

fn edit<T>(path: &Path, anew: bool, change: impl FnOnce(&mut Mapping) -> T) -> Result<T, Failure> {
    let failed = |error: std::io::Error| {
        let what = format!("cannot write the kubeconfig {}", path.display());
        Failure::new(what, format!("{error}; choose another with --kubeconfig"))
    };
    let _lock = Lock::take(path).map_err(failed)?;
    let mut config = if anew { empty() } else { read(path)? };
    let answer = change(&mut config);
    let text = serde_yaml::to_string(&Value::Mapping(config)).unwrap_or_default();
    // Through a link to the file behind it, so that the link stays.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    write_private(&target, text.as_bytes()).map_err(failed)?;
    Ok(answer)
}

fn read(path: &Path) -> Result<Mapping, Failure> {
    let shown = path.display();
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::new(format!("cannot read the kubeconfig {shown}"), error)),
    };
    match serde_yaml::from_str(&text) {
        Ok(Value::Null) => Ok(empty()),
        Ok(Value::Mapping(config)) => Ok(config),
        Ok(_) => {
            Err(Failure(format!("the kubeconfig {shown} is not a mapping; choose another with --kubeconfig")))
        }
        Err(error) => Err(Failure::new(format!("the kubeconfig {shown} is not YAML"), error)),
    }
}

/// client-go's lock: a file that exists while somebody edits.
struct Lock(PathBuf);

impl Lock {
    fn take(path: &Path) -> std::io::Result<Lock> {
        let lock = PathBuf::from(format!("{}.lock", path.display()));
        if let Some(folder) = lock.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        match fs::OpenOptions::new().write(true).create_new(true).open(&lock) {
            Ok(_) => Ok(Lock(lock)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let text =
                    format!("{} exists: somebody is editing it (or died so: remove it)", lock.display());
                Err(std::io::Error::new(ErrorKind::AlreadyExists, text))
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
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
        edit(&path, false, |config| merge(config, "kubarium", &access())).unwrap();
        let written = fs::read_to_string(&path).unwrap();
        assert!(written.contains("https://127.0.0.1:1") && written.contains("mine"), "{written}");
        assert!(written.contains("current-context: kubarium"));
        remove(&path, "kubarium", Some("work")).unwrap();
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
        fs::write(&path, "contexts: [{name: old}]").unwrap();
        let written = write("kubarium", Some(&path), &access()).unwrap();
        assert!(!fs::read_to_string(&path).unwrap().contains("old"));
        written.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_is_no_kubeconfig_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        fs::write(&path, "- a list").unwrap();
        assert!(edit(&path, false, |_| ()).unwrap_err().0.contains("is not a mapping"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "- a list");
    }
}
