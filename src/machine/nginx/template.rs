//! Templates of nginx's configuration: its image makes files of them when it starts, with the variables of
//! the container in them.

use crate::file_system::Tree;
use crate::surroundings::Surroundings;

const TEMPLATES: &str = "/etc/nginx/templates/";
const MADE: &str = "/etc/nginx/conf.d/";
const END: &str = ".template";

/// Where the files come to be that are made of templates.
pub(super) fn paths(tree: &Tree) -> Vec<String> {
    let made = |path: &String| {
        let name = path.strip_prefix(TEMPLATES)?.strip_suffix(END)?;
        Some(format!("{MADE}{name}"))
    };
    tree.keys().filter_map(made).collect()
}

/// The file that is made of a template; nothing where there is none.
pub(super) fn made(path: &str, tree: &Tree, around: Option<&Surroundings>) -> Option<String> {
    let template = tree.get(&format!("{TEMPLATES}{}{END}", path.strip_prefix(MADE)?))?;
    let variables = &around?.variables;
    Some(filled(&template.text(), |name| variables.get(name).map(String::as_str)))
}

/// Only the variables that there are: others are nginx's own.
fn filled<'a>(text: &str, value: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        filled.push_str(before);
        let is_braced = after.starts_with('{');
        let start = after.get(usize::from(is_braced)..).unwrap_or_default();
        let is_part = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
        let end = start.find(|letter| !is_part(letter)).unwrap_or(start.len());
        let (name, behind) = start.split_at(end);
        let behind = if is_braced { behind.strip_prefix('}') } else { Some(behind) };
        match (value(name), behind) {
            (Some(value), Some(behind)) => {
                filled.push_str(value);
                rest = behind;
            }
            _ => {
                filled.push('$');
                rest = after;
            }
        }
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_there_are_are_filled_in() {
        let value = |name: &str| (name == "PORT").then_some("81");
        assert_eq!(filled("listen ${PORT}; $PORT; $host ${x} $", value), "listen 81; 81; $host ${x} $");
    }
}
