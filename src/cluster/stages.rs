//! Stages of the user's: the YAML files of a folder, beside the built-in ones.

use std::path::Path;

use kubelet::container_runtime::stages::StageSet;

/// The built-in stages and those of `folder`, in the order of the files' names.
///
/// # Errors
/// What is wrong with which file, for a person.
pub(super) fn load(folder: Option<&Path>) -> Result<StageSet, String> {
    let Some(folder) = folder else { return Ok(StageSet::builtin()) };
    let failed = |error: std::io::Error| format!("cannot read the stages in {}: {error}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml" || extension == "yml"));
    files.sort();
    let texts: Result<Vec<String>, _> = files.iter().map(std::fs::read_to_string).collect();
    StageSet::with(&texts.map_err(failed)?)
        .map_err(|error| format!("the stages in {}: {error}", folder.display()))
}
