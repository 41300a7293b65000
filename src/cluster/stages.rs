//! Stages of the user's: the YAML files of a folder. Those of `kubarium.dev` are for the simulated kubelets,
//! beside the built-in ones; objects of kwok's kinds, as its Stages, are created.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::manifests::{Error, Problem};
use apimachinery::yaml;
use kubelet::container_runtime::stages::{BadStages, StageSet};
use stages::GROUP;

/// The built-in stages and those of `folder`, in the order of the files' names.
///
/// # Errors
/// What is wrong with which file, for a person.
pub(super) fn load(folder: Option<&Path>) -> Result<StageSet, BadStages> {
    let Some(folder) = folder else { return Ok(StageSet::builtin()) };
    let mut texts = Vec::new();
    for (file, text) in files(folder)? {
        let documents = documents(&file, &text)?;
        if !documents.iter().any(is_of_kwok) {
            texts.push(text);
            continue;
        }
        texts.extend(documents.iter().filter(|document| !is_of_kwok(document)).map(yaml::to_string));
    }
    StageSet::with(&texts).map_err(|error| format!("the stages in {}: {error}", folder.display()).into())
}

/// The objects of `folder` that are kwok's, and their files.
///
/// # Errors
/// What cannot be read.
pub(super) fn of_kwok(folder: Option<&Path>) -> Result<Vec<(PathBuf, Value)>, Error> {
    let Some(folder) = folder else { return Ok(Vec::new()) };
    let failed = |why: String| Error::new(folder, Problem::NoObject(why));
    let mut found = Vec::new();
    for (file, text) in files(folder).map_err(failed)? {
        let objects = documents(&file, &text).map_err(failed)?.into_iter().filter(is_of_kwok);
        found.extend(objects.map(|object| (file.clone(), object)));
    }
    Ok(found)
}

fn is_of_kwok(document: &Value) -> bool {
    let group = document["apiVersion"].as_str().and_then(|version| version.split_once('/'));
    group.is_some_and(|(group, _)| group == GROUP)
}

fn documents(file: &Path, text: &str) -> Result<Vec<Value>, String> {
    yaml::documents(text).map_err(|error| format!("{}: {error}", file.display()))
}

/// The YAML files of a folder, and what is in them.
fn files(folder: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let failed = |error: std::io::Error| format!("cannot read the stages in {}: {error}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml" || extension == "yml"));
    files.sort();
    let read = |file: PathBuf| Ok((file.clone(), std::fs::read_to_string(&file).map_err(failed)?));
    files.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_folder_the_yaml_files_are_read_and_kwoks_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let stage = "apiVersion: kubarium.dev/v1alpha1\nkind: Stage\nmetadata: {name: mine}\n\
                     spec: {step: Run, selector: {images: [nginx]}, next: stay}\n";
        let of_kwoks = format!("apiVersion: {GROUP}/v1alpha1\nkind: Stage\nmetadata: {{name: theirs}}\n");
        std::fs::write(folder.path().join("mine.yaml"), format!("{stage}---\n{of_kwoks}")).unwrap();
        std::fs::write(folder.path().join("README"), "not a stage").unwrap();
        load(Some(folder.path())).unwrap();
        let theirs = of_kwok(Some(folder.path())).unwrap();
        let names: Vec<&Value> = theirs.iter().map(|(_, stage)| &stage["metadata"]["name"]).collect();
        assert_eq!(names, ["theirs"]);
        let why = load(Some(&folder.path().join("missing"))).unwrap_err();
        assert!(why.starts_with("cannot read the stages in "), "{why}");
        std::fs::write(folder.path().join("other.yml"), "step: Fly").unwrap();
        assert!(load(Some(folder.path())).is_err());
    }
}
