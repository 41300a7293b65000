//! Names of files that a pattern stands for: `/etc/config/*.yaml`.

use std::collections::BTreeSet;

use super::pattern;
use super::player::Player;

/// Whether a word has anything in it that is more than a text.
pub(super) fn is_pattern(text: &str) -> bool {
    let mut is_escaped = false;
    let last_end = text.rfind(']').unwrap_or(0);
    text.char_indices().any(|(at, c)| {
        // A bracket that nothing closes is one: `[ -f x ]`.
        let is_set = c == '[' && at < last_end;
        let is_one = !is_escaped && (matches!(c, '*' | '?') || is_set);
        is_escaped = c == '\\' && !is_escaped;
        is_one
    })
}

impl Player<'_> {
    /// All names that match, in their order; none when there is none. Names with a dot before them have to be
    /// asked for.
    pub(super) fn names_like(&mut self, pattern: &str) -> Vec<String> {
        let is_absolute = pattern.starts_with('/');
        let base = if is_absolute { String::new() } else { self.folder.trim_end_matches('/').to_owned() };
        let wanted: Vec<&str> = pattern.split('/').filter(|piece| !piece.is_empty()).collect();
        let files = self.files();
        let mut found = BTreeSet::new();
        for (path, file) in &files {
            let Some(rest) = path.strip_prefix(&base).filter(|rest| rest.starts_with('/')) else { continue };
            let names: Vec<&str> = rest.split('/').filter(|name| !name.is_empty()).collect();
            let is_deep_enough = names.len() >= wanted.len();
            let is_folder = names.len() > wanted.len() || file.is_folder;
            if !is_deep_enough || pattern.ends_with('/') && !is_folder || !self.handle(path.len() * 2) {
                continue;
            }
            if wanted.iter().zip(&names).all(|(pattern, name)| self.is_like(pattern, name)) {
                let name = names[..wanted.len()].join("/");
                let name = if is_absolute { format!("/{name}") } else { name };
                found.insert(if pattern.ends_with('/') { name + "/" } else { name });
            }
        }
        found.into_iter().collect()
    }

    /// `~` and what follows.
    pub(super) fn home(&self) -> String {
        let home = self.variables.get("HOME").cloned();
        home.unwrap_or_else(|| if self.around.user == 0 { "/root".into() } else { "/".into() })
    }

    /// It costs what it takes to read the pattern, and what is compared.
    fn is_like(&mut self, pattern: &str, name: &str) -> bool {
        let may_be = !name.starts_with('.') || pattern.starts_with('.');
        if !may_be || !self.handle(pattern.len()) {
            return false;
        }
        let (is_like, compared) = pattern::compare(pattern, name);
        self.handle(compared) && is_like
    }
}
