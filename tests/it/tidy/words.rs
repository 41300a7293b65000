//! Words that have one home.

use regex::Regex;

use super::source::Source;
use super::tables::WORDS;

#[test]
fn words_stay_in_their_homes() {
    let mut wrong = Vec::new();
    for (pattern, why, homes) in WORDS {
        let pattern = Regex::new(pattern).unwrap();
        let strangers = |source: &&Source| !homes.iter().any(|home| source.path.starts_with(home));
        for source in Source::all().iter().filter(strangers) {
            for (number, line) in source.code().filter(|(_, line)| pattern.is_match(line)) {
                wrong.push(format!("{}:{number}: {why}: {}", source.path, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_home_has_its_word() {
    for (pattern, why, homes) in WORDS {
        let pattern = Regex::new(pattern).unwrap();
        for home in *homes {
            let mut files = Source::all().iter().filter(|source| source.path.starts_with(home));
            let is_used = files.any(|source| source.code().any(|(_, line)| pattern.is_match(line)));
            assert!(is_used, "{home} has no need of `{pattern}` ({why}): take it off WORDS");
        }
    }
}
