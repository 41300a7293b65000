//! What `up -f` names: files, folders, or the standard input, read before anything starts.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::Failure;
use crate::cluster::manifests::Manifest;

/// The standard input, as kubectl calls it.
const STANDARD_INPUT: &str = "-";

/// Reads everything that is to be applied.
pub(crate) fn read(names: &[PathBuf], recursive: bool) -> Result<Vec<Manifest>, Failure> {
    if names.iter().filter(|name| is_standard_input(name)).count() > 1 {
        return Err(Failure("-f -: the standard input can be read only once".into()));
    }
    let mut manifests = Vec::new();
    for name in names {
        manifests.extend(read_one(name, recursive)?);
    }
    let is_empty = manifests.iter().all(|manifest| manifest.objects.is_empty());
    if is_empty && !names.is_empty() {
        let names: Vec<String> = names.iter().map(|name| name.display().to_string()).collect();
        return Err(Failure(format!("-f {}: there is no object to apply in it", names.join(","))));
    }
    Ok(manifests)
}

fn read_one(name: &Path, recursive: bool) -> Result<Vec<Manifest>, Failure> {
    let shown = name.display();
    if ["http://", "https://"].iter().any(|scheme| shown.to_string().starts_with(scheme)) {
        let instead = format!("curl -sSfL {shown} | kubarium up -f -");
        return Err(Failure(format!("-f {shown}: a URL is not fetched; fetch it yourself: {instead}")));
    }
    if !is_standard_input(name) {
        return Manifest::read(name, recursive).map_err(|error| Failure::new("-f", error));
    }
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    read.map_err(|error| Failure::new("-f -: cannot read the standard input", error))?;
    let manifest = Manifest::parse(Path::new("standard input"), &text);
    Ok(vec![manifest.map_err(|error| Failure::new("-f -", error))?])
}

fn is_standard_input(name: &Path) -> bool {
    name == Path::new(STANDARD_INPUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(names: &[&str]) -> String {
        let names: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
        read(&names, false).unwrap_err().0
    }

    #[test]
    fn what_cannot_be_read_is_told_with_what_to_do() {
        assert!(refused(&["-", "-"]).contains("only once"));
        let url = refused(&["https://example.com/a.yaml"]);
        assert!(url.contains("curl -sSfL https://example.com/a.yaml | kubarium up -f -"), "{url}");
        assert!(refused(&["nowhere.yaml"]).contains("nowhere.yaml: there is no such file or folder"));
        assert!(read(&[], false).unwrap().is_empty());
    }

    #[test]
    fn a_file_without_objects_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        std::fs::write(&path, "---\n# nothing\n").unwrap();
        assert!(refused(&[path.to_str().unwrap()]).contains("no object to apply"));
    }
}
