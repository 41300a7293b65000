//! The shell that simulated containers speak, so that `sh -c 'cat /etc/config/key; sleep 30; exit 1'`
//! does just that: `lexer` makes words, `parser` commands of them, and `player` plays those.
//!
//! Lists, pipes, redirections, `if`, `while`, `until`, `for`, `case`, groups, variables, command
//! substitution and sums are understood, with the commands of `commands`. Whatever else stands in a
//! script makes the whole script unknown, which is better than half of it being played.

mod lexer;
mod parser;

/// A script that is understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    pub(super) list: List,
}

pub(super) type List = Vec<Node>;

/// A pipeline, and what it depends on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) when: When,
    /// `! command`
    pub(super) is_negated: bool,
    /// One, unless there are pipes.
    pub(super) commands: Vec<Command>,
}

/// Whether it runs, given how the last one ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum When {
    Always,
    IfSucceeded,
    IfFailed,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Command {
    pub(super) action: Action,
    pub(super) redirects: Vec<Redirect>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    /// Assignments, then words: a program and its arguments.
    Simple(Vec<(String, Word)>, Vec<Word>),
    Group(List),
    /// A group that keeps its variables for itself.
    Subshell(List),
    /// The first whose condition holds; the last one's may be empty, and always does.
    If(Vec<(List, List)>),
    While {
        condition: List,
        wanted: bool,
        body: List,
    },
    For(String, Vec<Word>, List),
    Case(Word, Vec<(Vec<Word>, List)>),
}

/// `2>/dev/null`
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Redirect {
    pub(super) descriptor: u8,
    pub(super) target: Target,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Target {
    Write(Word),
    Append(Word),
    Read(Word),
    /// `<<< word`
    Text(Word),
    /// `2>&1`
    Descriptor(u8),
}

pub(super) type Word = Vec<Part>;

/// A part of a word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    /// As it stands; whether it was quoted.
    Text(String, bool),
    /// `$NAME`, `${NAME}`, `${NAME:-default}`: the name, the operator with its word, whether it is
    /// quoted.
    Variable(String, Option<(String, Word)>, bool),
    /// `$(command)`
    Output(Script, bool),
    /// `$((sum))`
    Sum(String),
}

impl Script {
    /// Reads a script; nothing when anything in it is not understood.
    pub fn parse(text: &str) -> Option<Script> {
        Some(Script { list: parser::parse(&lexer::tokens(text)?)? })
    }

    /// Whether a script that is not understood so far ends within a quotation or a compound command.
    pub(super) fn goes_on(text: &str) -> bool {
        let mut open = 0i64;
        for word in text.split(|c: char| c.is_whitespace() || c == ';') {
            match word {
                "if" | "while" | "until" | "for" | "case" | "{" => open += 1,
                "fi" | "done" | "esac" | "}" => open -= 1,
                _ => {}
            }
        }
        let is_quoted = ['\'', '"'].iter().any(|quote| text.matches(*quote).count() % 2 == 1);
        open > 0 || is_quoted || ["\\", "|", "&&"].iter().any(|end| text.trim_end().ends_with(end))
    }

    /// A program with its arguments, as no shell sees them; nothing when the program is not known.
    pub fn of_command(words: &[String]) -> Option<Script> {
        let program = words.first()?;
        if !super::commands::is_known(program) {
            return None;
        }
        let words = words.iter().map(|word| vec![Part::Text(word.clone(), true)]).collect();
        let command = Command { action: Action::Simple(vec![], words), redirects: vec![] };
        Some(Script { list: vec![Node { when: When::Always, is_negated: false, commands: vec![command] }] })
    }

    /// Whether any of its commands satisfies `wanted`, which is given a program's name and its arguments
    /// as far as they are plain.
    pub(super) fn any_command(&self, wanted: &dyn Fn(&str, &[Word]) -> bool) -> bool {
        any_command(&self.list, wanted)
    }
}

fn any_command(list: &List, wanted: &dyn Fn(&str, &[Word]) -> bool) -> bool {
    let in_word =
        |word: &Word| word.iter().any(|part| matches!(part, Part::Output(s, _) if s.any_command(wanted)));
    let holds = |command: &Command| match &command.action {
        Action::Simple(assignments, words) => {
            let name = words.first().and_then(plain).unwrap_or_default();
            wanted(name, words)
                || words.iter().any(in_word)
                || assignments.iter().any(|(_, word)| in_word(word))
        }
        Action::Group(list) | Action::Subshell(list) => any_command(list, wanted),
        Action::If(branches) => branches
            .iter()
            .any(|(condition, body)| any_command(condition, wanted) || any_command(body, wanted)),
        Action::While { condition, body, .. } => any_command(condition, wanted) || any_command(body, wanted),
        Action::For(_, words, body) => words.iter().any(in_word) || any_command(body, wanted),
        Action::Case(_, arms) => arms.iter().any(|(_, body)| any_command(body, wanted)),
    };
    list.iter().any(|node| node.commands.iter().any(holds))
}

/// The text of a word that is nothing but text.
pub(super) fn plain(word: &Word) -> Option<&str> {
    match word.as_slice() {
        [Part::Text(text, _)] => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_makes_the_script_unknown() {
        let known = [
            "echo hello",
            "echo 'a | b' && sleep 3600",
            "while true; do echo hi; sleep 1; done",
            "i=0; while true; do echo \"$i: $(date)\"; i=$((i+1)); sleep 1; done",
            "for x in 1 2 3\ndo\n  echo $x\ndone\nexit 3",
            "if [ $(expr ${JOB_COMPLETION_INDEX} % 2) -ne 0 ]; then exit 1 ; else exit 0 ; fi",
            "if [[ -r /data/foo ]] ; then exit 0 ; else touch /data/foo ; exit 1 ; fi",
            "while ! test -e /tmp/x; do sleep 1; done; echo done",
            "until [ -f /go ]\ndo\nsleep 1\ndone",
            "exit $(( $RANDOM / 16384 ))",
            "echo a > /tmp/x; cat < /tmp/x | grep a >> /tmp/y 2>&1",
            "echo `date` # a comment",
            "echo $(cat /x) ${Y:-z}",
            "case $1 in a|b) echo ab;; *) exit 1 ;; esac",
            "(cd /tmp; echo {a}) && { echo b; } || echo c",
            "echo done",
            "",
        ];
        for script in known {
            assert!(Script::parse(script).is_some(), "{script}");
        }
        let unknown = [
            "nginx",
            "while true; do echo",
            "echo 'open",
            "sleep 1 &",
            "a && ",
            "if true; then echo",
            "if true; echo; fi",
            "test -e /x && wget /x",
            "cat <<EOF\na\nEOF",
            "f() { echo a; }",
            "$PROGRAM a",
            "done",
        ];
        for script in unknown {
            assert!(Script::parse(script).is_none(), "{script}");
        }
    }
}
