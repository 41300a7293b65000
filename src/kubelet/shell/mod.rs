//! The shell that simulated containers speak, so that `sh -c 'cat /etc/config/key; sleep 30; exit 1'`
//! does just that: `lexer` makes words, `parser` commands of them, and `player` plays those.
//!
//! Lists, pipes, redirections, `if`, `while`, `until`, `for`, `case`, groups, variables, command
//! substitution and sums are understood, with the commands of `commands`. Whatever else stands in a
//! script makes the whole script unknown, which is better than half of it being played.

use super::bounds::{Fault, MAX_DEPTH, MAX_WORD_BYTES};

mod lexer;
mod parser;

/// A script that is understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    pub(super) list: List,
    /// How deeply its commands are nested.
    depth: usize,
}

/// Why a script is not played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unplayable {
    /// It has what is not known here, and might do anything.
    Unknown,
    /// No shell would play it, or it is over a bound.
    Faulty(Fault),
}

impl Unplayable {
    /// Of a script within another: where it ends is not always seen, so that what looks like an error in it
    /// need not be one.
    fn within(self) -> Unplayable {
        match self {
            Unplayable::Faulty(Fault::Syntax(_)) => Unplayable::Unknown,
            other => other,
        }
    }
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
        /// Its condition always holds, and nothing in it leads out.
        is_endless: bool,
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
    /// Reads a script; an error when anything in it is not understood.
    ///
    /// # Errors
    /// Why it is not played.
    pub fn parse(text: &str) -> Result<Script, Unplayable> {
        Script::parse_at(text, 0)
    }

    /// Reads a script that stands `level` substitutions deep. What comes before an error tells whether the
    /// rest is of a language that is not known here.
    fn parse_at(text: &str, level: usize) -> Result<Script, Unplayable> {
        if text.len() > MAX_WORD_BYTES {
            return Err(Unplayable::Faulty(Fault::TooLong));
        }
        if level > MAX_DEPTH {
            return Err(Unplayable::Faulty(Fault::Depth));
        }
        let mut tokens = Vec::new();
        let read = lexer::tokens(text, level, &mut tokens);
        match (read, parser::parse(&tokens)) {
            (Err(Unplayable::Faulty(Fault::Depth)), _) => Err(Unplayable::Faulty(Fault::Depth)),
            (Ok(()), Ok((list, depth))) => Ok(Script { list, depth }),
            (_, Err(Unplayable::Unknown)) => Err(Unplayable::Unknown),
            (Err(why), _) | (_, Err(why)) => Err(why),
        }
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

    /// A program with its arguments, as no shell sees them.
    ///
    /// # Errors
    /// Unknown when the program is.
    pub fn of_command(words: &[String]) -> Result<Script, Unplayable> {
        let (program, rest) = words.split_first().ok_or(Unplayable::Unknown)?;
        let quoted = |word: &String| vec![Part::Text(word.clone(), true)];
        let arguments: Vec<Word> = rest.iter().map(quoted).collect();
        if !super::commands::is_understood(program, &arguments) {
            return Err(Unplayable::Unknown);
        }
        if words.iter().any(|word| word.len() > MAX_WORD_BYTES) {
            return Err(Unplayable::Faulty(Fault::TooLong));
        }
        let words = words.iter().map(quoted).collect();
        let command = Command { action: Action::Simple(vec![], words), redirects: vec![] };
        let node = Node { when: When::Always, is_negated: false, commands: vec![command] };
        Ok(Script { list: vec![node], depth: 1 })
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
            let name = words.first().and_then(|word| plain(word)).unwrap_or_default();
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

/// `true` and `:`
fn always_holds(condition: &List) -> bool {
    let is_true = |word: &Word| matches!(plain(word), Some("true" | ":"));
    match condition.as_slice() {
        [node] => match node.commands.as_slice() {
            [Command { action: Action::Simple(_, words), .. }] => words.len() == 1 && is_true(&words[0]),
            _ => false,
        },
        _ => false,
    }
}

fn has_way_out(body: &List) -> bool {
    any_command(body, &|name, _| matches!(name, "exit" | "break" | "set" | "exec"))
}

/// The text of a word that is nothing but text.
pub(super) fn plain(word: &[Part]) -> Option<&str> {
    match word {
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
            assert!(Script::parse(script).is_ok(), "{script}");
        }
        let unknown = [
            "nginx",
            "exec nginx -g 'daemon off;'",
            "nohup exec $PROGRAM",
            "sleep 1 &",
            "test -e /x && wget /x",
            "cat <<EOF\nit's\nEOF",
            "f() { echo a; }",
            "$PROGRAM a",
            "nginx; echo 'open",
            "a=(b c); echo it's",
            "echo $'it\\'s'",
            "echo $(case a in a) echo b;; esac)",
            "for x; do echo; done",
        ];
        for script in unknown {
            assert_eq!(Script::parse(script), Err(Unplayable::Unknown), "{script}");
        }
    }

    #[test]
    fn what_no_shell_reads_is_told() {
        let faults = [
            ("while true; do echo", "unexpected end of file (expecting \"done\")"),
            ("echo 'open", "unterminated quoted string"),
            ("true && ", "unexpected end of file"),
            ("if true; then echo", "unexpected end of file (expecting \"fi\")"),
            ("if true; echo; fi", "unexpected \"fi\" (expecting \"then\")"),
            ("done", "unexpected \"done\""),
            ("echo a)", "unexpected \")\""),
            ("(echo a", "unexpected end of file (expecting \")\")"),
            ("{ echo a", "unexpected end of file (expecting \"}\")"),
            ("| cat", "unexpected \"|\""),
            ("case a in a) echo", "unexpected end of file"),
        ];
        for (script, what) in faults {
            let fault = Unplayable::Faulty(Fault::Syntax(what.into()));
            assert_eq!(Script::parse(script), Err(fault), "{script}");
        }
    }

    /// However something is nested, all of it or bit by bit.
    #[test]
    fn what_is_nested_too_deeply_is_not_read() {
        let nested = |open: &str, inner: &str, close: &str, depth: usize| {
            format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
        };
        let braced = |depth: usize| format!("echo {}", nested("${a:-", "b", "}", depth));
        let forms: [(&str, &str, &str); 7] = [
            ("(", "echo a", ")"),
            ("{ ", "echo a", "; }"),
            ("if true; then ", "echo a", "; fi"),
            ("while true; do ", "echo a", "; done"),
            ("case a in a) ", "echo a", ";; esac"),
            ("echo $(", "echo a", ")"),
            ("( echo $( ", "echo a", ") )"),
        ];
        for (open, inner, close) in forms {
            assert!(Script::parse(&nested(open, inner, close, 20)).is_ok(), "{open}");
            let too_deep = Script::parse(&nested(open, inner, close, MAX_DEPTH + 1));
            assert_eq!(too_deep, Err(Unplayable::Faulty(Fault::Depth)), "{open}");
            let far_too_deep = Script::parse(&nested(open, inner, close, 5000));
            assert_eq!(far_too_deep, Err(Unplayable::Faulty(Fault::Depth)), "{open}");
        }
        assert!(Script::parse(&braced(20)).is_ok());
        assert_eq!(Script::parse(&braced(5000)), Err(Unplayable::Faulty(Fault::Depth)));
        let long = format!("echo {}", "a".repeat(MAX_WORD_BYTES));
        assert_eq!(Script::parse(&long), Err(Unplayable::Faulty(Fault::TooLong)));
    }
}
