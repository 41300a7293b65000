//! The programs that an image is taken to bring, as files: nobody has seen their bytes.

use super::player::Player;
use crate::programs;

/// Where programs are.
const FOLDERS: [&str; 6] = ["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"];

impl Player<'_> {
    /// Whether a program that is played stands there: what `command -v` tells is a file that may be run.
    pub(crate) fn is_program(&self, path: &str) -> bool {
        let is_there = |(folder, name): (&str, &str)| FOLDERS.contains(&folder) && programs::is_known(name);
        self.own_file(path).is_none() && path.rsplit_once('/').is_some_and(is_there)
    }
}
