//! Parts of volumes that containers mount by a `subPath` (`pkg/volume/util/subpath`): links in a volume are
//! followed there, and never out of it.

use super::config_error::ContainerConfigError;
use super::host_files::{Files, WrittenFiles};
use machine::file_system::{self, MAX_LINKS};

/// Where a link leads that does not stay in its volume: a path of the node, as far as that is known.
struct Outside(Option<String>);

/// The part of a volume that `sub_path` leads to.
///
/// # Errors
/// It leads out of it: the message of `CreateContainerConfigError`.
pub(super) fn resolved(
    sub_path: &str,
    (volume, files_of): (&str, &WrittenFiles),
    (mount, container): (&str, &str),
) -> Result<String, ContainerConfigError> {
    if sub_path.is_empty() {
        return Ok(String::new());
    }
    let folder = files_of.folder_on_node(volume);
    follow(sub_path, &files_of.files(volume), folder.as_deref()).map_err(|Outside(path)| {
        // What is not there the kubelet wants to make, and what is there to mount.
        let is_there = path.is_none_or(|path| files_of.is_on_node(&path));
        let failed = if is_there { "prepare subPath" } else { "create subPath directory" };
        format!("failed to {failed} for volumeMount {mount:?} of container {container:?}").into()
    })
}

/// `folder` is where the volume is on its node, if it is a folder of that.
fn follow(sub_path: &str, files: &Files, folder: Option<&str>) -> Result<String, Outside> {
    let mut path = sub_path.trim_matches('/').to_owned();
    for _ in 0..MAX_LINKS {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        let link = ends.into_iter().find_map(|end| Some((end, files.get(&path[..end])?.target()?)));
        let Some((end, target)) = link else { return Ok(path) };
        let rest = &path[end..];
        let above = path[..end].rsplit_once('/').map_or("", |(above, _)| above);
        path = if target.starts_with('/') {
            within(&file_system::absolute("/", &format!("{target}{rest}")), folder)?
        } else {
            climbed(above, &format!("{target}{rest}"))?
        };
    }
    Ok(path)
}

/// The path in the volume of a path of its node.
fn within(path: &str, folder: Option<&str>) -> Result<String, Outside> {
    match folder.filter(|folder| file_system::is_within(folder, path)) {
        Some(folder) => Ok(path[folder.trim_end_matches('/').len()..].trim_start_matches('/').to_owned()),
        None => Err(Outside(Some(path.to_owned()))),
    }
}

/// A path from a folder of the volume, without climbing out of that.
fn climbed(above: &str, path: &str) -> Result<String, Outside> {
    let mut parts: Vec<&str> = above.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        if part != ".." {
            parts.push(part);
        } else if parts.pop().is_none() {
            return Err(Outside(None));
        }
    }
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::file_system::{File, Left};

    fn written(volume: &str, links: &[(&str, &str)]) -> WrittenFiles {
        let mut written = WrittenFiles::new();
        let left = |(path, to): &(&str, &str)| Left {
            volume: volume.into(),
            path: (*path).into(),
            file: Some(File::link(to)),
        };
        written.keep(links.iter().map(left).collect());
        written
    }

    #[test]
    fn links_are_followed_within_their_volume() {
        let links = [("a", "b"), ("b", "c/d"), ("c/d/up", "../e"), ("same", "."), ("round", "round")];
        for (sub_path, wanted) in
            [("a", "c/d"), ("a/up/f", "c/e/f"), ("none/x", "none/x"), ("same", ""), ("round", "round")]
        {
            let found = resolved(sub_path, ("v", &written("v", &links)), ("v", "c"));
            assert_eq!(found, Ok(wanted.to_owned()), "{sub_path}");
        }
        let of_node = written("/data", &[("a", "/data/b"), ("c", "/database")]);
        assert_eq!(resolved("a/x", ("/data", &of_node), ("v", "c")), Ok("b/x".into()));
        assert!(resolved("c", ("/data", &of_node), ("v", "c")).is_err());
    }

    #[test]
    fn links_out_of_a_volume_are_refused() {
        let links = [("bin", "/bin"), ("none", "/doesnotexist"), ("up", "../"), ("deep/up", "../../x")];
        let prepare = "failed to prepare subPath for volumeMount \"m\" of container \"c\"";
        let create = "failed to create subPath directory for volumeMount \"m\" of container \"c\"";
        for (sub_path, why) in [("bin", prepare), ("none", create), ("up", prepare), ("deep/up/y", prepare)] {
            let found = resolved(sub_path, ("v", &written("v", &links)), ("m", "c"));
            assert_eq!(found.unwrap_err(), why, "{sub_path}");
        }
    }
}
