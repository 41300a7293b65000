//! What a script is made of, once it is read.

use std::sync::Arc;

use crate::bounds::ScriptFault;

/// A script that is understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    pub(crate) list: CommandList,
    /// How deeply its commands are nested.
    pub(crate) depth: usize,
}

/// Why a script is not played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unplayable {
    /// It has what is not known here, and might do anything.
    Unknown,
    /// No shell would play it, or it is over a bound.
    Faulty(ScriptFault),
}

impl Unplayable {
    /// Of a script within another: where it ends is not always seen, so that what looks like an error in it
    /// need not be one.
    pub(crate) fn within(self) -> Unplayable {
        match self {
            Unplayable::Faulty(ScriptFault::Syntax(_)) => Unplayable::Unknown,
            other => other,
        }
    }
}

pub(crate) type CommandList = Vec<PipelineNode>;

/// A pipeline, and what it depends on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PipelineNode {
    pub(crate) when: When,
    /// `! command`
    pub(crate) is_negated: bool,
    /// `command &`
    pub(crate) is_background: bool,
    /// One, unless there are pipes.
    pub(crate) commands: Vec<ShellCommand>,
}

/// Whether it runs, given how the last one ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum When {
    Always,
    IfSucceeded,
    IfFailed,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ShellCommand {
    pub(crate) action: ShellAction,
    pub(crate) redirects: Vec<Redirect>,
    /// The line of the script that it begins in, from 1.
    pub(crate) line: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ShellAction {
    /// Assignments, then words: a program and its arguments.
    Simple(Vec<(String, Word)>, Vec<Word>),
    Group(CommandList),
    /// A group that keeps its variables for itself.
    Subshell(CommandList),
    /// The first whose condition holds; the last one's may be empty, and always does.
    If(Vec<(CommandList, CommandList)>),
    While {
        condition: CommandList,
        wanted: bool,
        body: CommandList,
        /// Its condition always holds, and nothing in it leads out.
        is_endless: bool,
    },
    For(String, Vec<Word>, CommandList),
    /// `for ((first; while; then))`
    Count([Word; 3], CommandList),
    /// `[[ ... ]]`
    Conditional(Vec<Word>),
    /// `((sum))`
    Sum(Word),
    Case(Word, Vec<(Vec<Word>, CommandList)>),
    /// A function: its name, and what it does.
    Function(String, Arc<ShellCommand>),
}

/// `2>/dev/null`
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Redirect {
    pub(crate) descriptor: u8,
    pub(crate) target: Target,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Target {
    Write(Word),
    Append(Word),
    Read(Word),
    /// `<<< word`
    Text(Word),
    /// `<< END`: the lines up to that.
    Here(Word),
    /// `2>&1`
    Descriptor(u8),
    /// `2>&-`
    Closed,
    /// `2>&$x`: a number, or a file.
    Anything(Word),
}

/// What `${NAME...}` does with a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ValueOperation {
    /// `:-`, `%%`, `/`, `length`, ...
    pub(crate) operator: &'static str,
    /// What stands behind it.
    pub(crate) word: Word,
    /// With what is replaced, or how many letters are taken.
    pub(crate) other: Option<Word>,
}

pub(crate) type Word = Vec<ShellWordPart>;

/// A part of a word.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ShellWordPart {
    /// As it stands; whether it was quoted.
    Text(String, bool),
    /// `$NAME`, `${NAME}`, `${NAME:-default}`: the name, what is done with the value, whether it is quoted.
    Variable(String, Option<Box<ValueOperation>>, bool),
    /// `$(command)`
    Output(Script, bool),
    /// `$((sum))`
    Sum(Word),
}

impl Script {
    /// Whether any of its commands satisfies `wanted`, which is given a program's name and its arguments
    /// as far as they are plain.
    pub(crate) fn any_command(&self, wanted: &dyn Fn(&str, &[Word]) -> bool) -> bool {
        any_command(&self.list, wanted)
    }
}

fn any_command(list: &CommandList, wanted: &dyn Fn(&str, &[Word]) -> bool) -> bool {
    list.iter().any(|node| node.commands.iter().any(|command| command_has(command, wanted)))
}

fn command_has(command: &ShellCommand, wanted: &dyn Fn(&str, &[Word]) -> bool) -> bool {
    let in_word = |word: &Word| {
        word.iter().any(|part| matches!(part, ShellWordPart::Output(s, _) if s.any_command(wanted)))
    };
    match &command.action {
        ShellAction::Simple(assignments, words) => {
            let name = words.first().and_then(|word| plain(word)).unwrap_or_default();
            wanted(name, words)
                || words.iter().any(in_word)
                || assignments.iter().any(|(_, word)| in_word(word))
        }
        ShellAction::Group(list) | ShellAction::Subshell(list) => any_command(list, wanted),
        ShellAction::If(branches) => branches
            .iter()
            .any(|(condition, body)| any_command(condition, wanted) || any_command(body, wanted)),
        ShellAction::While { condition, body, .. } => {
            any_command(condition, wanted) || any_command(body, wanted)
        }
        ShellAction::For(_, words, body) => words.iter().any(in_word) || any_command(body, wanted),
        ShellAction::Count(_, body) => any_command(body, wanted),
        ShellAction::Conditional(words) => wanted("[[", words) || words.iter().any(in_word),
        ShellAction::Sum(word) => in_word(word),
        ShellAction::Case(_, arms) => arms.iter().any(|(_, body)| any_command(body, wanted)),
        ShellAction::Function(_, body) => command_has(body, wanted),
    }
}

/// `true` and `:`
pub(crate) fn always_holds(condition: &CommandList) -> bool {
    let is_true = |word: &Word| matches!(plain(word), Some("true" | ":"));
    match condition.as_slice() {
        [node] => match node.commands.as_slice() {
            [ShellCommand { action: ShellAction::Simple(_, words), .. }] => {
                words.len() == 1 && is_true(&words[0])
            }
            _ => false,
        },
        _ => false,
    }
}

pub(crate) fn has_way_out(body: &CommandList) -> bool {
    any_command(body, &|name, _| matches!(name, "exit" | "break" | "set" | "exec" | "return"))
}

/// The text of a word that is nothing but text.
pub(crate) fn plain(word: &[ShellWordPart]) -> Option<&str> {
    match word {
        [ShellWordPart::Text(text, _)] => Some(text),
        _ => None,
    }
}

/// Whether a variable may be called so.
pub(crate) fn is_name(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(is_letter)
}
