//! Flags: what they are when nobody says them, and what they may be.

use clap::{Args, Command};

/// The options of a room when nobody says anything.
pub fn defaults<T: Args>() -> T {
    let command = T::augment_args(Command::new("defaults").no_binary_name(true));
    let matches = command.get_matches_from(Vec::<String>::new());
    T::from_arg_matches(&matches).expect("a flag is optional or has a default")
}

/// The similar names when there are some, else all of them.
pub fn choices(all: &str, wanted: &str, names: &[&str]) -> String {
    match nearest(wanted, names).as_slice() {
        [] => format!("{all} {}", names.join(", ")),
        near => format!("did you mean {}? {all} {}", near.join(" or "), names.join(", ")),
    }
}

/// Names that a slip of the hand makes of `wanted`: other capitals, a letter or two, a part left out.
pub fn nearest<'a>(wanted: &str, names: &[&'a str]) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    if let Some(same) = names.iter().find(|name| name.to_lowercase() == wanted) {
        return vec![same];
    }
    let is_near = |name: &&&str| {
        let name = name.to_lowercase();
        let is_part = wanted.len() > 3 && (name.contains(&wanted) || wanted.contains(&name));
        is_part || distance(&wanted, &name) <= (wanted.chars().count() / 4).min(3)
    };
    names.iter().filter(is_near).take(3).copied().collect()
}

/// How many letters must be put in, taken out or changed (Levenshtein).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, letter) in left.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, other) in right.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Args, Debug, PartialEq)]
    struct Options {
        #[arg(long, default_value_t = 7)]
        number: u32,
        #[arg(long)]
        file: Option<String>,
        #[arg(long, value_delimiter = ',')]
        list: Vec<String>,
        #[arg(skip)]
        other: bool,
    }

    #[test]
    fn what_nobody_says_is_the_default_of_each_flag() {
        assert_eq!(defaults::<Options>(), Options { number: 7, file: None, list: vec![], other: false });
    }

    #[test]
    fn similar_names_are_found() {
        assert_eq!([distance("", "abc"), distance("kitten", "sitting"), distance("a", "a")], [3, 3, 0]);
        let names = ["LimitRanger", "PodSecurity", "Priority", "ResourceQuota"];
        assert_eq!(nearest("limitranger", &names), ["LimitRanger"]);
        assert_eq!(nearest("rbac", &["ABAC", "RBAC"]), ["RBAC"]);
        assert_eq!(nearest("PodSecurty", &names), ["PodSecurity"]);
        assert_eq!(nearest("Quota", &names), ["ResourceQuota"]);
        assert_eq!(nearest("X", &names), [""; 0]);
    }
}
