//! Files of variables, as containers leave them for others (`pkg/kubelet/util/env`, `ParseEnv`): a small part
//! of what a shell reads. Each value stands in single quotes and may go over lines.

/// A file that cannot be read so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MalformedFile;

/// The value of a variable; nothing when the file does not set it.
///
/// # Errors
/// A line before it that is none.
pub(super) fn value_of(text: &str, key: &str) -> Result<Option<String>, MalformedFile> {
    let mut rest = text;
    while !rest.is_empty() {
        let line = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        if line.is_empty() {
            return Ok(None);
        }
        if line.starts_with('#') {
            rest = after_line(line);
            continue;
        }
        let (name, value, left) = assignment(line)?;
        if name == key {
            return Ok(Some(value.to_owned()));
        }
        rest = left;
    }
    Ok(None)
}

/// A name, its value, and what follows on the next line.
fn assignment(text: &str) -> Result<(&str, &str, &str), MalformedFile> {
    let line = text.lines().next().unwrap_or_default();
    let (name, _) = line.split_once('=').ok_or(MalformedFile)?;
    if name.is_empty() || name.contains([' ', '\t']) {
        return Err(MalformedFile);
    }
    let value = &text[name.len() + 1..];
    if value.is_empty() || value.starts_with([' ', '\t', '\r', '\n']) {
        return Ok((name, "", after_line(value)));
    }
    let quoted = value.strip_prefix('\'').ok_or(MalformedFile)?;
    let (value, left) = quoted.split_once('\'').ok_or(MalformedFile)?;
    let comment = left.lines().next().unwrap_or_default().trim();
    if !comment.is_empty() && !comment.starts_with('#') {
        return Err(MalformedFile);
    }
    Ok((name, value, after_line(left)))
}

fn after_line(text: &str) -> &str {
    text.split_once('\n').map_or("", |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_in_single_quotes() {
        let text = "# of the database\n\n  HOST='db' # in here\nLONG='a\nb'\nNONE=\nLATER='x # y'\n";
        let value = |key| value_of(text, key).unwrap();
        assert_eq!(value("HOST").as_deref(), Some("db"));
        assert_eq!(value("LONG").as_deref(), Some("a\nb"));
        assert_eq!(value("NONE").as_deref(), Some(""));
        assert_eq!(value("LATER").as_deref(), Some("x # y"));
        assert_eq!(value("ABSENT"), None);
    }

    #[test]
    fn what_is_no_assignment_is_refused() {
        for text in ["A", "A = 'x'", "='x'", "A=x", "A='x", "A='x'y", "A=\"x\""] {
            assert_eq!(value_of(text, "A"), Err(MalformedFile), "{text}");
        }
        // What comes behind it is not looked at.
        assert_eq!(value_of("A='x'\nB", "A"), Ok(Some("x".into())));
    }
}
