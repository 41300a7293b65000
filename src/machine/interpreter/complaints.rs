//! What a shell says of a mistake, in its own words.

use super::dialect::Dialect;
use super::player::Player;

impl Player<'_> {
    /// A mistake as this shell says it, with the line that it is in.
    pub(crate) fn says_shell(&self, what: &str) -> String {
        let Player { name, line, .. } = self;
        match self.dialect {
            Dialect::Ash => format!("{name}: {what}\n"),
            Dialect::Dash => format!("{name}: {line}: {what}\n"),
            Dialect::Bash if self.is_interactive => format!("{name}: {what}\n"),
            Dialect::Bash => format!("{name}: line {line}: {what}\n"),
        }
    }

    /// There is no such program.
    pub(crate) fn miss(&mut self, program: &str) {
        let what = match (self.dialect, program.contains('/')) {
            (Dialect::Bash, true) => "No such file or directory",
            (Dialect::Bash, false) => "command not found",
            _ => "not found",
        };
        let said = self.says_shell(&format!("{program}: {what}"));
        self.complain(&said);
        self.status = 127;
    }

    /// A mistake that ends the shell.
    pub(crate) fn give_up(&mut self, what: &str, code: i32) {
        let said = self.says_shell(what);
        self.complain(&said);
        self.status = code;
        self.abort.get_or_insert(code);
    }
}
