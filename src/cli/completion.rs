//! `kubarium completion SHELL`

use clap::{Args, Command};

use super::Failure;

/// Print a shell completion script.
#[derive(Args)]
pub struct Completion {
    /// For which shell.
    pub shell: clap_complete::Shell,
}

impl Completion {
    /// Prints the script for the whole command line.
    pub fn run(self, mut kubarium: Command) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut kubarium, "kubarium", &mut script);
        super::say(String::from_utf8_lossy(&script).trim_end());
        Ok(())
    }
}
