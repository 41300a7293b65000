//! Manifests: files and folders of YAML, read before anything starts and applied through the API as `kubectl
//! apply` does.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use apimachinery::gvk::GroupVersion;
use apimachinery::options::PatchType;
use apimachinery::status::Status;
use apimachinery::yaml::{self, YamlError};
use apis::kind::Kind;
use apis::scheme::Scheme;
use client_go::client::Client;

/// The annotation in which `kubectl apply` remembers what it was given.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// `kubectl apply`'s field manager.
const MANAGER: &str = "kubectl-client-side-apply";
/// How much of what is no object an error shows.
const SHOWN_CHARACTERS: usize = 200;
/// What a file in a folder must end in to be a manifest (kubectl's `FileExtensions`).
const EXTENSIONS: [&str; 3] = ["json", "yaml", "yml"];

/// Why a manifest was not applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[error("{origin}: {problem}")]
pub struct Error {
    /// The file.
    pub origin: String,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a manifest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file.
    #[error("cannot read it: {0}")]
    Io(#[from] std::io::Error),
    /// Its text.
    #[error("it is not YAML: {0}")]
    Yaml(#[from] YamlError),
    /// A document that is no object of a kind that is served, or a folder without manifests.
    #[error("{0}")]
    NoObject(String),
    /// The server's answer.
    #[error("{0}")]
    Refused(#[from] Status),
}

impl Error {
    /// Of a file.
    pub fn new(origin: &Path, problem: impl Into<Problem>) -> Error {
        Error { origin: origin.display().to_string(), problem: problem.into() }
    }
}

/// The objects of one text, and where it is from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The file, for errors.
    pub origin: String,
    /// In the order of the text; of lists, the items.
    pub objects: Vec<Value>,
}

impl Manifest {
    /// Reads a text. What is no object at all is found here; what no server takes is found by the server.
    ///
    /// # Errors
    /// A text that is not YAML, or a document without `apiVersion` or `kind`.
    pub fn parse(origin: &Path, text: &str) -> Result<Manifest, Error> {
        let objects = documents(text).map_err(|error| Error::new(origin, error))?;
        for object in &objects {
            check_type(object).map_err(|why| Error::new(origin, Problem::NoObject(why)))?;
        }
        Ok(Manifest { origin: origin.display().to_string(), objects })
    }

    /// Reads a file, or the `.json`, `.yaml` and `.yml` files of a folder in the order of their names; those
    /// of its sub-folders only when it is `recursive`, as kubectl.
    ///
    /// # Errors
    /// The first thing that is wrong; a folder in which there is no manifest is wrong, too.
    pub fn read(path: &Path, recursive: bool) -> Result<Vec<Manifest>, Error> {
        let read = |file: PathBuf| {
            let text = std::fs::read_to_string(&file).map_err(|error| Error::new(&file, error))?;
            Manifest::parse(&file, &text)
        };
        files(path, recursive)?.into_iter().map(read).collect()
    }
}

/// Applies the objects of a manifest one after the other, and tells of each what was done, as kubectl does.
///
/// # Errors
/// The first thing that goes wrong; what was applied before stays.
pub async fn apply(
    client: &Client,
    scheme: &Scheme,
    manifest: &Manifest,
    mut tell: impl FnMut(&str),
) -> Result<(), Error> {
    let origin = Path::new(&manifest.origin);
    for object in &manifest.objects {
        let kind = kind_of(scheme, object).map_err(|why| Error::new(origin, Problem::NoObject(why)))?;
        let done = apply_object(client, &kind, object.clone()).await;
        tell(&done.map_err(|status| Error::new(origin, status))?);
    }
    Ok(())
}

fn kind_of(scheme: &Scheme, object: &Value) -> Result<std::sync::Arc<Kind>, String> {
    let text = |name: &str| object[name].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let found = GroupVersion::parse(api_version).and_then(|version| scheme.kind(&version, kind));
    found.ok_or_else(|| format!("no matches for kind {kind:?} in version {api_version:?}"))
}

async fn apply_object(client: &Client, kind: &Kind, mut object: Value) -> Result<String, Status> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let namespace = namespace_of(kind, &object);
    let shown = format!("{}/{name}", kind.group_resource());
    remember(&mut object);
    match client.create_strictly(kind, &namespace, &object, MANAGER).await {
        Ok(_) => Ok(format!("{shown} created")),
        Err(status) if status.is_already_exists() => {
            let patch_type = if kind.is_custom { PatchType::Merge } else { PatchType::StrategicMerge };
            client.patch_strictly(kind, [&namespace, &name], patch_type, &object, MANAGER).await?;
            Ok(format!("{shown} configured"))
        }
        Err(status) => Err(status),
    }
}

fn namespace_of(kind: &Kind, object: &Value) -> String {
    match object["metadata"]["namespace"].as_str() {
        _ if !kind.namespaced => String::new(),
        Some(namespace) => namespace.to_owned(),
        None => "default".to_owned(),
    }
}

/// So that a later `kubectl apply` of the same file knows what it may take away.
fn remember(object: &mut Value) {
    if !object["metadata"].is_object() {
        return;
    }
    if !object["metadata"]["annotations"].is_object() {
        object["metadata"]["annotations"] = json!({});
    }
    let text = format!("{object}\n");
    object["metadata"]["annotations"][LAST_APPLIED] = text.into();
}

/// The objects of a text: documents, and the items of lists among them.
fn documents(text: &str) -> Result<Vec<Value>, YamlError> {
    let mut objects = Vec::new();
    for mut value in yaml::documents(text)? {
        match value.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => objects.extend(items),
            _ if value.is_null() => {}
            _ => objects.push(value),
        }
    }
    Ok(objects)
}

/// kubectl's words for what is no object.
fn check_type(object: &Value) -> Result<(), String> {
    for (member, name) in [("kind", "Kind"), ("apiVersion", "apiVersion")] {
        if object[member].as_str().is_none_or(str::is_empty) {
            let shown: String = object.to_string().chars().take(SHOWN_CHARACTERS).collect();
            return Err(format!("Object '{name}' is missing in '{shown}'"));
        }
    }
    Ok(())
}

fn files(path: &Path, recursive: bool) -> Result<Vec<PathBuf>, Error> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::new(path, Problem::NoObject("there is no such file or folder".into()))
        }
        _ => Error::new(path, error),
    };
    if !std::fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    collect(path, recursive, &mut found).map_err(failed)?;
    if !found.is_empty() {
        return Ok(found);
    }
    let mut below = Vec::new();
    collect(path, true, &mut below).map_err(failed)?;
    let hint = match below.as_slice() {
        [] => String::new(),
        [first, ..] => format!("; {} is below it: -R looks into sub-folders", first.display()),
    };
    let text =
        format!("there is no manifest in this folder (a file that ends in .json, .yaml or .yml){hint}");
    Err(Error::new(path, Problem::NoObject(text)))
}

/// As Go's `filepath.Walk`: by name, folders among files, links to folders not followed.
fn collect(folder: &Path, recursive: bool, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let entries: std::io::Result<Vec<_>> = std::fs::read_dir(folder)?.collect();
    let mut entries = entries?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if recursive {
                collect(&path, recursive, found)?;
            }
            continue;
        }
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_file() && extension.is_some_and(|extension| EXTENSIONS.contains(&extension)) {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_empty_documents_are_taken_apart() {
        let text = "---\n---\nkind: A\n---\nkind: List\nitems:\n- kind: B\n- kind: C\n";
        let kinds: Vec<Value> =
            documents(text).unwrap().into_iter().map(|object| object["kind"].clone()).collect();
        assert_eq!(kinds, ["A", "B", "C"]);
        assert!(documents("a: [").is_err());
    }

    #[test]
    fn what_was_given_is_remembered() {
        let mut object = json!({"kind": "A", "metadata": {"name": "a"}});
        remember(&mut object);
        let text = object["metadata"]["annotations"][LAST_APPLIED].as_str().unwrap();
        let remembered: Value = serde_json::from_str(text).unwrap();
        assert_eq!(remembered["metadata"]["name"], "a");
    }

    #[test]
    fn what_is_no_object_is_told_in_kubectls_words() {
        let wrong = |text: &str| Manifest::parse(Path::new("x.yaml"), text).unwrap_err().to_string();
        assert_eq!(wrong("a: 1"), "x.yaml: Object 'Kind' is missing in '{\"a\":1}'");
        assert_eq!(wrong("kind: Pod"), "x.yaml: Object 'apiVersion' is missing in '{\"kind\":\"Pod\"}'");
        assert_eq!(wrong("words"), "x.yaml: Object 'Kind' is missing in '\"words\"'");
        assert!(wrong("a: [").starts_with("x.yaml: it is not YAML: "));
        let long = format!("text: {}", "x".repeat(10_000));
        assert!(wrong(&long).len() < SHOWN_CHARACTERS + 100, "of a long text only the beginning is shown");
    }

    #[test]
    fn folders_are_read_by_name_and_sub_folders_when_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "apiVersion: v1\nkind: ConfigMap\n").unwrap();
        };
        let names = |recursive| {
            let read = Manifest::read(folder.path(), recursive).map_err(|error| error.to_string())?;
            let name = |manifest: Manifest| {
                let path = PathBuf::from(manifest.origin);
                path.strip_prefix(folder.path()).unwrap().display().to_string()
            };
            Ok::<_, String>(read.into_iter().map(name).collect::<Vec<_>>())
        };
        let empty = names(true).unwrap_err();
        assert!(
            empty.ends_with("there is no manifest in this folder (a file that ends in .json, .yaml or .yml)")
        );
        write("b/c.yaml");
        write("b/notes.txt");
        let shallow = names(false).unwrap_err();
        assert!(shallow.contains("b/c.yaml is below it: -R looks into sub-folders"), "{shallow}");
        write("a.json");
        write("z.yml");
        assert_eq!(names(false).unwrap(), ["a.json", "z.yml"]);
        assert_eq!(names(true).unwrap(), ["a.json", "b/c.yaml", "z.yml"]);
        let missing = Manifest::read(&folder.path().join("none"), true).unwrap_err().to_string();
        assert!(missing.ends_with("none: there is no such file or folder"), "{missing}");
    }
}
