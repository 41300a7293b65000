//! The shell that simulated containers speak, so that `sh -c 'cat /etc/config/key; sleep 30; exit 1'`
//! does just that: `lexer` makes words, `parser` commands of them, and the interpreter plays those.
//!
//! Lists, pipes, redirections and here-documents, `if`, `while`, `until`, `for`, `case`, `[[`, groups,
//! functions, the background, variables with all that may be done to them, command substitution and sums are
//! understood. What else of a language stands in a script (arrays, processes as files, `select`) makes the
//! whole script unknown, which is better than half of it being played.
//!
//! Which programs there are whoever has a script read says. In an image of which everything is known a
//! program that there is not is `not found`, with 127, and the script goes on. Of other images nobody knows
//! what they have, and such a script is most often how a server is started (`prepare && exec my-server`): it
//! is not played, and its container just runs.
//!
//! The grammar is our own, after a look at `brush-parser` 0.4 and `yash-syntax` 0.21, which know all of
//! bash and of POSIX. Built from nothing, with what they stand on, they take 51 and 29 seconds of processor
//! time for 75 and 48 crates, on a machine where a newcomer is to have running pods within five minutes;
//! this folder has 1,700 lines where the second's parser and the first have some 14,500. Neither has a
//! bound on how deeply what it reads is nested, which is how a bomb ends the process that is the whole
//! cluster; the trees of `yash-syntax` hold `Rc`s, so that they cannot go from thread to thread; and
//! neither tells a script that is wrong from one that is of a language not played, by which a container
//! ends here or just runs.

mod syntax;

mod braces;
mod lexer;
mod nesting;
mod parser;

use std::cell::Cell;
use std::collections::BTreeSet;

use lexer::Nesting;

use crate::bounds::{MAX_DEPTH, MAX_WORD_BYTES, ScriptFault};
pub(crate) use parser::assignment;
pub(crate) use syntax::{
    CommandList, PipelineNode, Redirect, ShellAction, ShellCommand, ShellWordPart, Target, ValueOperation,
    When, Word, plain,
};
pub use syntax::{Script, Unplayable};

/// How a script is read.
#[derive(Clone, Copy)]
pub(crate) struct ScriptReading {
    /// Whether a program with these arguments is one that is played; without, any may be named, and whoever
    /// plays says what is not there.
    pub(crate) knows: Option<fn(&str, &[Word]) -> bool>,
    /// `{a,b}` is two words.
    pub(crate) has_braces: bool,
}

/// Whether a text that follows a line (`<<END`) has no end yet.
fn is_within_here_text(text: &str) -> bool {
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let mut rest = line;
        while let Some((_, after)) = rest.split_once("<<") {
            rest = after.trim_start_matches('<');
            if rest.len() < after.len() {
                continue;
            }
            let is_indented = after.starts_with('-');
            let word = after.trim_start_matches('-').trim_start();
            let length =
                word.find(|c: char| c.is_whitespace() || ";&|<>()".contains(c)).unwrap_or(word.len());
            let end = word[..length].replace(['\'', '"', '\\'], "");
            let is_end = |own: &str| (if is_indented { own.trim_start_matches('\t') } else { own }) == end;
            if !end.is_empty() && !lines.by_ref().any(is_end) {
                return true;
            }
        }
    }
    false
}

impl Script {
    /// Reads a script; an error when anything in it is not understood.
    ///
    /// # Errors
    /// Why it is not played.
    pub(crate) fn parse(text: &str, reading: ScriptReading) -> Result<Script, Unplayable> {
        let made = Cell::new(braces::MAX_MADE_BYTES);
        let braces = reading.has_braces.then_some(&made);
        Script::parse_at(text, 0, reading.knows, &functions(text), braces)
    }

    /// Reads a script that stands `level` substitutions deep. What comes before an error tells whether the
    /// rest is of a language that is not known here.
    fn parse_at(
        text: &str,
        level: usize,
        knows: Option<fn(&str, &[Word]) -> bool>,
        functions: &BTreeSet<String>,
        braces: Option<&Cell<usize>>,
    ) -> Result<Script, Unplayable> {
        if text.len() > MAX_WORD_BYTES {
            return Err(Unplayable::Faulty(ScriptFault::TooLong));
        }
        if level > MAX_DEPTH {
            return Err(Unplayable::Faulty(ScriptFault::Depth));
        }
        let mut tokens = Vec::new();
        let read_inner = |text: &str, level| Script::parse_at(text, level, knows, functions, braces);
        let nesting = Nesting { level, braces, read: &read_inner };
        let read = lexer::tokens(text, nesting, &mut tokens);
        match (read, parser::parse(&tokens, knows, functions)) {
            (Err(Unplayable::Faulty(ScriptFault::Depth)), _) => Err(Unplayable::Faulty(ScriptFault::Depth)),
            (Ok(()), Ok((list, depth))) => Ok(Script { list, depth }),
            (_, Err(Unplayable::Unknown)) => Err(Unplayable::Unknown),
            (Err(why), _) | (_, Err(why)) => Err(why),
        }
    }

    /// Whether a script that is not understood so far ends within a quotation or a compound command.
    pub(crate) fn goes_on(text: &str) -> bool {
        let mut open = 0i64;
        for word in text.split(|c: char| c.is_whitespace() || c == ';') {
            match word {
                "if" | "while" | "until" | "for" | "case" | "{" => open += 1,
                "fi" | "done" | "esac" | "}" => open -= 1,
                _ => {}
            }
        }
        let is_quoted = ['\'', '"'].iter().any(|quote| text.matches(*quote).count() % 2 == 1);
        let is_joined = ["\\", "|", "&&"].iter().any(|end| text.trim_end().ends_with(end));
        open > 0 || is_quoted || is_joined || is_within_here_text(text)
    }

    /// A program with its arguments, as no shell sees them.
    ///
    /// # Errors
    /// Unknown when the program is.
    pub(crate) fn of_command(
        words: &[String],
        knows: fn(&str, &[Word]) -> bool,
    ) -> Result<Script, Unplayable> {
        let (program, rest) = words.split_first().ok_or(Unplayable::Unknown)?;
        let quoted = |word: &String| vec![ShellWordPart::Text(word.clone(), true)];
        let arguments: Vec<Word> = rest.iter().map(quoted).collect();
        if !knows(program, &arguments) {
            return Err(Unplayable::Unknown);
        }
        if words.iter().any(|word| word.len() > MAX_WORD_BYTES) {
            return Err(Unplayable::Faulty(ScriptFault::TooLong));
        }
        let words = words.iter().map(quoted).collect();
        let command = ShellCommand { action: ShellAction::Simple(vec![], words), redirects: vec![], line: 1 };
        let (when, commands) = (When::Always, vec![command]);
        let node = PipelineNode { when, is_negated: false, is_background: false, commands };
        Ok(Script { list: vec![node], depth: 1 })
    }
}

/// The names of what a script defines: those before a pair of parentheses.
fn functions(text: &str) -> BTreeSet<String> {
    if text.len() > MAX_WORD_BYTES {
        return BTreeSet::new();
    }
    let before = text.match_indices("()").map(|(at, _)| text[..at].trim_end_matches(' '));
    let is_end = |c: char| c.is_whitespace() || ";&|(){}".contains(c);
    let name = |text: &str| text[text.rfind(is_end).map_or(0, |at| at + 1)..].to_owned();
    before.map(name).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::read_script;

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
            "sleep 1 & wait",
            "cat <<EOF > /tmp/x\nit's $HOME \"x\"\nEOF\necho done",
            "f() { echo $1; }; g () (\n  f a\n)\necho $(g)",
            "for x; do echo; done",
            "true && sleep 1 &",
            "echo $'it\\'s'",
            "echo $(case a in a) echo b;; esac)",
            "if [[ -f /x && ( $a == b* || ! -d /y ) ]]; then echo; fi",
            "for ((i = 0; i < 3; i++)); do echo $i; done; ((i++)) || true",
            "function f { echo; }; exec 3>&1 4</x 2>&-; echo ${x##*/} ${y//a/b} ${#z} ${n:-1} ${m:1:2}",
            "",
        ];
        for script in known {
            assert!(read_script(script).is_ok(), "{script}");
        }
        let unknown = [
            "nginx",
            "exec nginx -g 'daemon off;'",
            "nohup exec $PROGRAM",
            "test -e /x && rsync /x",
            "cat <<EOF\nit's",
            "f() { rsync a; }",
            "$PROGRAM a",
            "nginx; echo 'open",
            "a=(b c); echo it's",
            "diff <(echo a) /x",
        ];
        for script in unknown {
            assert_eq!(read_script(script), Err(Unplayable::Unknown), "{script}");
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
            let fault = Unplayable::Faulty(ScriptFault::Syntax(what.into()));
            assert_eq!(read_script(script), Err(fault), "{script}");
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
            assert!(read_script(&nested(open, inner, close, 20)).is_ok(), "{open}");
            let too_deep = read_script(&nested(open, inner, close, MAX_DEPTH + 1));
            assert_eq!(too_deep, Err(Unplayable::Faulty(ScriptFault::Depth)), "{open}");
            let far_too_deep = read_script(&nested(open, inner, close, 5000));
            assert_eq!(far_too_deep, Err(Unplayable::Faulty(ScriptFault::Depth)), "{open}");
        }
        assert!(read_script(&braced(20)).is_ok());
        assert_eq!(read_script(&braced(5000)), Err(Unplayable::Faulty(ScriptFault::Depth)));
        let long = format!("echo {}", "a".repeat(MAX_WORD_BYTES));
        assert_eq!(read_script(&long), Err(Unplayable::Faulty(ScriptFault::TooLong)));
    }
}
