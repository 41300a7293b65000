//! One hand for words and idioms: what is counted here may only become less.

use std::collections::BTreeMap;

use regex::Regex;

use super::source::Source;
use super::tables::{IDIOMS, MAX_REPEATED_TYPE_NAMES};

/// So many names fewer may stand for several types than are listed, before the number has to be tightened.
const SLACK: usize = 3;

#[test]
fn idioms_that_tire_only_become_fewer() {
    let mut wrong = Vec::new();
    for (pattern, why, bound) in IDIOMS {
        let pattern = Regex::new(&format!("(?m){pattern}")).unwrap();
        let found =
            |source: &'static Source| pattern.find_iter(&source.text).map(move |found| (source, found));
        let found: Vec<_> = Source::all().iter().flat_map(found).collect();
        let count = found.len();
        if count > *bound {
            let places = found.iter().map(|(source, found)| place(source, found.end()));
            let places = places.collect::<Vec<_>>().join(", ");
            wrong.push(format!("{why}: {count}, listed {bound} (`{pattern}`): {places}"));
        } else if count < *bound {
            wrong.push(format!("{why}: {count}, listed {bound} (`{pattern}`)"));
        }
    }
    assert!(wrong.is_empty(), "write it otherwise, or tighten IDIOMS:\n{}", wrong.join("\n"));
}

/// `FILE:LINE`
fn place(source: &Source, at: usize) -> String {
    format!("{}:{}", source.path, source.text[..at].lines().count())
}

#[test]
fn type_names_become_more_unlike() {
    let declared = Regex::new(r"^(?:pub(?:\([a-z ]+\))? )?(?:struct|enum|trait|type) (\w+)").unwrap();
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for source in Source::all().iter().filter(|source| !source.is_test()) {
        for name in source.text.lines().filter_map(|line| declared.captures(line)) {
            *names.entry(name.get(1).unwrap().as_str()).or_default() += 1;
        }
    }
    let mut repeated: Vec<(&str, usize)> = names.into_iter().filter(|(_, count)| *count > 1).collect();
    repeated.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let worst = &repeated[..repeated.len().min(12)];
    let count = repeated.len();
    let is_tight = count <= MAX_REPEATED_TYPE_NAMES && count + SLACK >= MAX_REPEATED_TYPE_NAMES;
    assert!(
        is_tight,
        "{count} names of several types, listed {MAX_REPEATED_TYPE_NAMES}: choose others, or set MAX_REPEATED_TYPE_NAMES; the worst are {worst:?}"
    );
}
