//! Manifests: files and folders of YAML, applied through the API as `kubectl apply` does.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::apimachinery::gvk::GroupVersion;
use crate::apimachinery::options::PatchType;
use crate::apimachinery::status::Status;
use crate::apis::kind::Kind;
use crate::apis::scheme::Scheme;
use crate::client_go::client::Client;

/// The annotation in which `kubectl apply` remembers what it was given.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Why a manifest was not applied.
#[derive(Debug, thiserror::Error)]
#[error("{origin}: {problem}")]
pub struct Error {
    /// The file.
    pub origin: String,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a manifest.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The file.
    #[error("cannot read it: {0}")]
    Io(#[from] std::io::Error),
    /// Its text.
    #[error("it is not YAML: {0}")]
    Yaml(#[from] serde_yaml::Error),
    /// A document that is no object of a kind that is served.
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

/// Applies a file, or the `.yaml`, `.yml` and `.json` files of a folder in the order of their names. Says
/// what it did, an object a line, as kubectl does.
///
/// # Errors
/// The first thing that goes wrong; what was applied before stays.
pub async fn apply(client: &Client, scheme: &Scheme, path: &Path) -> Result<Vec<String>, Error> {
    let mut lines = Vec::new();
    for file in files(path)? {
        let text = std::fs::read_to_string(&file).map_err(|error| Error::new(&file, error))?;
        lines.extend(apply_text(client, scheme, &file, &text).await?);
    }
    Ok(lines)
}

/// Applies the documents of one text; `origin` is for errors.
async fn apply_text(
    client: &Client,
    scheme: &Scheme,
    origin: &Path,
    text: &str,
) -> Result<Vec<String>, Error> {
    let mut lines = Vec::new();
    for object in documents(text).map_err(|error| Error::new(origin, error))? {
        let kind = kind_of(scheme, &object).map_err(|why| Error::new(origin, Problem::NoObject(why)))?;
        let done = apply_object(client, &kind, object).await;
        lines.push(done.map_err(|status| Error::new(origin, status))?);
    }
    Ok(lines)
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
    match client.create(kind, &namespace, object.clone()).await {
        Ok(_) => Ok(format!("{shown} created")),
        Err(status) if status.is_already_exists() => {
            let patch_type = if kind.is_custom { PatchType::Merge } else { PatchType::StrategicMerge };
            client.patch(kind, &namespace, &name, patch_type, &object).await?;
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
fn documents(text: &str) -> Result<Vec<Value>, serde_yaml::Error> {
    let mut objects = Vec::new();
    for document in serde_yaml::Deserializer::from_str(text) {
        let mut value = Value::deserialize(document)?;
        match value.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => objects.extend(items),
            _ if value.is_null() => {}
            _ => objects.push(value),
        }
    }
    Ok(objects)
}

fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |error| Error::new(path, error);
    if !std::fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let is_manifest = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        path.is_file() && matches!(extension, Some("yaml" | "yml" | "json"))
    };
    let entries = std::fs::read_dir(path).map_err(failed)?;
    let mut files: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_manifest).collect();
    files.sort();
    Ok(files)
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
}
