//! What is started: an image, and the words of a command line.

/// The process that a container is to run, as whoever starts it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Invocation<'a> {
    /// The image's name; its own command is run where no other is given.
    pub image: &'a str,
    /// What is run instead of the image's entry point. `$(NAME)` is filled in from the variables.
    pub command: &'a [String],
    /// Its arguments, in which `$(NAME)` is filled in, too.
    pub args: &'a [String],
    /// Whether somebody may type into it.
    pub stdin: bool,
    /// The signal that it is stopped with, as `SIGUSR1`; SIGTERM when none is named.
    pub stop_signal: Option<&'a str>,
}

impl<'a> Invocation<'a> {
    /// A command line in an image.
    pub fn new(image: &'a str, command: &'a [String], args: &'a [String]) -> Invocation<'a> {
        Invocation { image, command, args, ..Invocation::default() }
    }

    /// All words of its command line.
    pub fn words(&self) -> impl Iterator<Item = &'a String> {
        self.command.iter().chain(self.args)
    }
}
