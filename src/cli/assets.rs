//! `kubarium assets`: a folder with the programs that envtest starts, which are all this one but for kubectl.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use clap::Args;

use super::outcome::{Failure, say};
use super::stand_in::program::{ETCD, KUBE_APISERVER, log};
use super::state;

const KUBECTL: &str = "kubectl";

/// Print a folder with kube-apiserver, etcd and kubectl, for KUBEBUILDER_ASSETS.
///
/// The first two are links to this program, which is a bare apiserver when it is called by those names;
/// kubectl is the one on PATH. KUBARIUM_COMPONENTS=all, or a list, starts what else a cluster has.
#[derive(Args)]
pub struct Assets {
    /// The folder; one beside the records of running clusters when not given.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

impl Assets {
    /// Makes the links and prints where they are.
    pub fn run(self) -> Result<(), Failure> {
        let own = std::env::current_exe().map_err(|error| Failure::new("cannot find this program", error))?;
        let folder = match self.dir {
            Some(dir) => dir,
            None => default_folder(&own)?,
        };
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        let failed = |error| Failure::new(format!("cannot write to {}", folder.display()), error);
        fs::create_dir_all(&folder).map_err(failed)?;
        for name in [KUBE_APISERVER, ETCD] {
            link(&own, &folder.join(name)).map_err(failed)?;
        }
        match kubectl(&folder) {
            Some(found) => link(&found, &folder.join(KUBECTL)).map_err(failed)?,
            None => log(
                "no kubectl is on PATH, so there is none in the folder: only suites that run kubectl need it",
            ),
        }
        say(folder.to_string_lossy());
        Ok(())
    }
}

/// Each program has its own: two builds beside each other do not change what the other's suites start.
fn default_folder(own: &Path) -> Result<PathBuf, Failure> {
    let name: String = own.to_string_lossy().chars().map(|c| if c == '/' { '-' } else { c }).collect();
    Ok(state::folder()?.join("assets").join(name.trim_start_matches('-')))
}

/// Whoever looks meanwhile finds the old one or the new one, never none.
fn link(target: &Path, path: &Path) -> io::Result<()> {
    if fs::read_link(path).is_ok_and(|found| found == target) {
        return Ok(());
    }
    let new = path.with_extension(format!("new-{}", std::process::id()));
    let _ = fs::remove_file(&new);
    symlink(target, &new)?;
    fs::rename(&new, path)
}

/// The first on PATH that is not one of ours.
fn kubectl(folder: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut found =
        std::env::split_paths(&path).filter(|entry| entry != folder).map(|entry| entry.join(KUBECTL));
    found.find(|program| program.is_absolute() && program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_made_once_and_follows_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("etcd");
        for target in ["/a", "/a", "/b"] {
            link(Path::new(target), &path).unwrap();
            assert_eq!(fs::read_link(&path).unwrap(), Path::new(target));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    }
}
