//! `test`, `[` and `[[`.

use crate::interpreter::player::Player;

/// What `test` asks: of alternatives one, and of what is joined all.
pub(crate) fn holds(player: &mut Player<'_>, words: &[&str]) -> bool {
    let joined = |words: &[&str]| -> Vec<Vec<String>> {
        let parts = words.split(|word| matches!(*word, "-a" | "&&"));
        parts.map(|part| part.iter().map(ToString::to_string).collect()).collect()
    };
    let alternatives: Vec<_> = words.split(|word| matches!(*word, "-o" | "||")).map(joined).collect();
    alternatives.iter().any(|all| {
        all.iter().all(|words| is_so(player, &words.iter().map(String::as_str).collect::<Vec<_>>()))
    })
}

fn is_so(player: &mut Player<'_>, words: &[&str]) -> bool {
    let negations = words.iter().take_while(|word| **word == "!").count();
    let file = |path: &str| player.file(path);
    let is_so = match &words[negations..] {
        [] => false,
        ["-z", value] => value.is_empty(),
        ["-n", value] | [value] => !value.is_empty(),
        ["-d", path] => file(path).is_some_and(|file| file.is_folder) || player.is_folder(path),
        ["-f", path] => file(path).is_some_and(|file| !file.is_folder),
        ["-s", path] => file(path).is_some_and(|file| !file.content.is_empty()),
        ["-e" | "-r" | "-w" | "-x" | "-L" | "-h", path] => file(path).is_some() || player.is_folder(path),
        [a, operator, b] => compares(a, operator, b),
        _ => false,
    };
    is_so == (negations % 2 == 0)
}

fn compares(a: &str, operator: &str, b: &str) -> bool {
    let [x, y] = [a, b].map(|text| text.trim().parse::<i64>().unwrap_or(0));
    match operator {
        "!=" => a != b,
        "-eq" => x == y,
        "-ne" => x != y,
        "-lt" => x < y,
        "-le" => x <= y,
        "-gt" => x > y,
        "-ge" => x >= y,
        "<" => a < b,
        ">" => a > b,
        _ => a == b,
    }
}
