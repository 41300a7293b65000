//! Where a program is that somebody names: a file, or one that the image is taken to bring, of which nobody
//! has seen the bytes.

use super::player::Player;
use crate::image_programs::{FOLDERS, is_missing};
use crate::programs;
use crate::programs::names::base_name;
use crate::surroundings::USUAL_PATH;

impl Player<'_> {
    /// Whether a program that is played stands there: what `command -v` tells is a file that may be run.
    pub(crate) fn is_program(&self, path: &str) -> bool {
        let is_there = |(folder, name): (&str, &str)| FOLDERS.contains(&folder) && programs::is_known(name);
        let is_file = path.rsplit_once('/').is_some_and(is_there);
        is_file && self.own_file(path).is_none() && self.has_image_program(path)
    }

    /// Whether there is a program of this name or at this path.
    pub(crate) fn has_program(&self, program: &str) -> bool {
        self.around.declared.contains_key(base_name(program))
            || self.program_file(program).is_some()
            || self.has_image_program(program)
    }

    /// Whether a program is one that is played, wherever there is one.
    pub(crate) fn plays(&self, program: &str) -> bool {
        programs::is_known(program)
    }

    /// Whether its image brings the program, and it is played. What another root has (`chroot`) nobody knows.
    pub(crate) fn has_image_program(&self, program: &str) -> bool {
        let is_there = || self.roots.is_entered || !is_missing(&self.around.image, program);
        programs::is_known(program) && (programs::is_builtin(program) || is_there())
    }

    /// The file that is run for a word: the one at that path, or the first one of that name in a folder of
    /// `PATH`.
    pub(crate) fn program_file(&self, program: &str) -> Option<String> {
        if program.contains('/') {
            return self.file(program).filter(|file| !file.is_folder).map(|_| program.to_owned());
        }
        if program.is_empty() || programs::is_builtin(program) {
            return None;
        }
        let path = self.variables.get("PATH").map_or(USUAL_PATH, String::as_str);
        let mut places = path.split(':').map(|folder| format!("{}/{program}", folder.trim_end_matches('/')));
        places.find(|place| self.file(place).is_some_and(|file| !file.is_folder && file.mode & 0o111 != 0))
    }
}
