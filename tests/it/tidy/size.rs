//! Sizes: files say what they are and stay small, functions too. A ratchet holds what is larger, to the line.

use regex::Regex;

use super::source::Source;
use super::tables::{LONG_FILES, LONG_FUNCTIONS, MAX_COLUMNS, MAX_FILE_LINES, MAX_FUNCTION_LINES};

#[test]
fn files_say_what_they_are_and_stay_small() {
    let mut wrong = Vec::new();
    for source in Source::all() {
        if !source.text.starts_with("//! ") {
            wrong.push(format!("{}: the first line does not say what it is", source.path));
        }
        let lines = source.text.lines().count();
        let bound = ratchet(LONG_FILES, &source.path).unwrap_or(MAX_FILE_LINES);
        if lines > bound {
            wrong.push(format!("{}: {lines} lines, at most {bound}", source.path));
        }
        // A text may be too long to break; everything else has no excuse.
        let is_text = |line: &str| line.contains('"') || line.ends_with('\\');
        let is_wide = |line: &str| line.chars().count() > MAX_COLUMNS && !is_text(line);
        let wide = source.text.lines().enumerate().filter(|(_, line)| is_wide(line));
        wrong.extend(wide.map(|(at, _)| format!("{}:{}: over {MAX_COLUMNS} columns", source.path, at + 1)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn functions_stay_small() {
    let mut wrong = Vec::new();
    for (name, lines) in functions() {
        let bound = ratchet(LONG_FUNCTIONS, &name).unwrap_or(MAX_FUNCTION_LINES);
        if lines > bound {
            wrong.push(format!("{name}: {lines} lines, at most {bound}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `FILE:NAME` of every function, with its lines.
fn functions() -> impl Iterator<Item = (String, usize)> {
    let head = Regex::new(r"^(\s*)(?:pub(?:\([a-z]+\))? )?(?:const )?(?:async )?fn (\w+)").unwrap();
    Source::all().iter().flat_map(move |source| {
        let lines: Vec<&str> = source.text.lines().collect();
        let length = |start: usize, indent: &str| {
            let close = format!("{indent}}}");
            // A trait only declares it.
            let opens = lines[start..].iter().find(|line| line.ends_with(['{', '}', ';']))?;
            if opens.ends_with(';') {
                return None;
            }
            lines[start..].iter().position(|line| *line == close).map(|length| length + 1)
        };
        let function = |(start, line): (usize, &&str)| {
            let found = head.captures(line)?;
            Some((format!("{}:{}", source.path, &found[2]), length(start, &found[1])?))
        };
        lines.iter().enumerate().filter_map(function).collect::<Vec<_>>()
    })
}

#[test]
fn the_ratchets_are_tight() {
    for (name, bound) in LONG_FILES {
        let source = Source::all().iter().find(|source| source.path == *name);
        let lines = source.map_or(0, |source| source.text.lines().count());
        assert!(lines == *bound && lines > MAX_FILE_LINES, "{name} has {lines} lines: tighten LONG_FILES");
    }
    for (name, bound) in LONG_FUNCTIONS {
        let lines = functions().find(|(function, _)| function == name).map_or(0, |(_, lines)| lines);
        assert!(
            lines == *bound && lines > MAX_FUNCTION_LINES,
            "{name} has {lines} lines: tighten LONG_FUNCTIONS"
        );
    }
}

fn ratchet(list: &[(&str, usize)], name: &str) -> Option<usize> {
    list.iter().find(|(known, _)| *known == name).map(|(_, bound)| *bound)
}
