//! `kubarium completion SHELL`

use clap::{Args, CommandFactory};

use super::{Arguments, Failure};

/// Print a shell completion script.
#[derive(Args)]
pub struct Completion {
    /// For which shell.
    pub shell: clap_complete::Shell,
}

impl Completion {
    /// Prints it.
    pub fn run(self) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "kubarium", &mut script);
        super::say(String::from_utf8_lossy(&script).trim_end());
        Ok(())
    }
}
