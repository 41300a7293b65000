//! Reset fields: what a path of the API cannot write, so that nobody comes to own it by trying
//! (`rest.ResetFieldsStrategy`).

use super::compare::Comparison;
use super::path::PathElement;
use super::set::{Set, SetNode};

/// What a request cannot write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResetFields {
    /// These fields and what is below them.
    Excluded(Set),
    /// Everything but what one of these paths leads to; None stands for any element
    /// (`fieldpath.IncludeMatcherFilter`).
    AllBut(Vec<Vec<Option<PathElement>>>),
}

impl Default for ResetFields {
    fn default() -> Self {
        ResetFields::Excluded(Set::default())
    }
}

impl ResetFields {
    /// These fields, as names between dots.
    pub fn excluding(fields: &[&str]) -> ResetFields {
        let paths: Vec<_> = fields.iter().map(|field| super::path::path_of(field)).collect();
        ResetFields::Excluded(Set::of(&paths))
    }

    /// Everything but these, as names between dots; `*` stands for any element.
    pub fn all_but(fields: &[&str]) -> ResetFields {
        let element = |name: &str| (name != "*").then(|| PathElement::field(name));
        ResetFields::AllBut(fields.iter().map(|field| field.split('.').map(element).collect()).collect())
    }

    /// What is left of a set.
    pub(super) fn filter(&self, set: Set) -> Set {
        match self {
            ResetFields::Excluded(fields) => set.without_whole(fields),
            ResetFields::AllBut(patterns) => {
                let patterns: Vec<&[Option<PathElement>]> = patterns.iter().map(Vec::as_slice).collect();
                included(&set, &patterns)
            }
        }
    }

    pub(super) fn filter_comparison(&self, comparison: Comparison) -> Comparison {
        comparison.map(|set| self.filter(set))
    }
}

/// `FilterIncludeMatches`: the ways to what is included are included, too.
fn included(set: &Set, patterns: &[&[Option<PathElement>]]) -> Set {
    let mut left = Set::default();
    for node in &set.nodes {
        let rests: Vec<&[Option<PathElement>]> = patterns
            .iter()
            .filter_map(|pattern| match pattern.split_first() {
                None => Some(&[][..]),
                Some((Some(wanted), _)) if *wanted != node.element => None,
                Some((_, rest)) => Some(rest),
            })
            .collect();
        if rests.is_empty() {
            continue;
        }
        let is_all = rests.iter().any(|rest| rest.is_empty());
        let children = if is_all { node.children.clone() } else { included(&node.children, &rests) };
        left.push(SetNode { element: node.element.clone(), member: node.member, children });
    }
    left
}
