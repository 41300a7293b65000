//! Regular expressions that scripts bring with them.

use crate::interpreter::player::Player;

/// A compiled pattern is no bigger, and making one is counted as so many bytes of text.
const MAX_PATTERN_BYTES: usize = 1 << 18;

/// `[[ text =~ pattern ]]`
pub(super) fn is_match(player: &mut Player<'_>, pattern: String, text: &str) -> bool {
    player.handle(text.len());
    compiled(player, pattern).is_some_and(|pattern| pattern.is_match(text))
}

/// The pattern that was looked for last is at hand.
pub(super) fn compiled(player: &mut Player<'_>, pattern: String) -> Option<regex::Regex> {
    if let Some((_, last)) = player.last_pattern.as_ref().filter(|(last, _)| *last == pattern) {
        return Some(last.clone());
    }
    player.handle(MAX_PATTERN_BYTES);
    let regex = regex::RegexBuilder::new(&pattern).size_limit(MAX_PATTERN_BYTES).build().ok()?;
    player.last_pattern = Some((pattern, regex.clone()));
    Some(regex)
}
