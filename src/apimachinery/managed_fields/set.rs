//! `Set`: the fields that somebody owns, as a tree (`fieldpath.Set`).
//!
//! Invariant: the nodes of a set are sorted by their element, each element once, and every node is a member
//! or has members below it. So two sets are equal if and only if they own the same fields.

use std::cmp::Ordering;

use super::atom::SchemaType;
use super::path::{Path, PathElement};

/// A set of fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    pub(super) nodes: Vec<SetNode>,
}

/// One field, or the way to some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SetNode {
    pub(super) element: PathElement,
    /// The field itself is in the set.
    pub(super) member: bool,
    /// The fields below it.
    pub(super) children: Set,
}

impl Set {
    /// A set of these fields.
    pub fn of(paths: &[Path]) -> Set {
        let mut set = Set::default();
        paths.iter().for_each(|path| set.insert(path));
        set
    }

    /// Whether it owns nothing.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many fields it owns.
    pub fn len(&self) -> usize {
        self.nodes.iter().map(|node| usize::from(node.member) + node.children.len()).sum()
    }

    /// Adds a field; not the fields on the way to it. Nobody owns a whole object, so an empty path is
    /// nothing.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else { return };
        let at = match self.nodes.binary_search_by(|node| node.element.cmp(first)) {
            Ok(at) => at,
            Err(at) => {
                self.nodes.insert(at, SetNode::way(first.clone(), Set::default()));
                at
            }
        };
        if rest.is_empty() { self.nodes[at].member = true } else { self.nodes[at].children.insert(rest) }
    }

    /// Whether a field is in it.
    pub fn has(&self, path: &[PathElement]) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        let Some(node) = self.node(first) else { return false };
        if rest.is_empty() { node.member } else { node.children.has(rest) }
    }

    /// What is in either.
    pub fn union(&self, other: &Set) -> Set {
        self.clone().with(other.clone())
    }

    /// What is in either; nothing is copied.
    pub(super) fn with(self, other: Set) -> Set {
        if self.is_empty() || other.is_empty() {
            return if self.is_empty() { other } else { self };
        }
        let mut joined = Set { nodes: Vec::with_capacity(self.nodes.len().max(other.nodes.len())) };
        let mut others = other.nodes.into_iter().peekable();
        for mut node in self.nodes {
            while let Some(before) = others.next_if(|other| other.element < node.element) {
                joined.nodes.push(before);
            }
            if let Some(same) = others.next_if(|other| other.element == node.element) {
                node.member |= same.member;
                node.children = node.children.with(same.children);
            }
            joined.nodes.push(node);
        }
        joined.nodes.extend(others);
        joined
    }

    /// What is in both.
    pub fn intersection(&self, other: &Set) -> Set {
        let mut shared = Set::default();
        for node in &self.nodes {
            let Some(right) = other.node(&node.element) else { continue };
            let children = node.children.intersection(&right.children);
            let member = node.member && right.member;
            if member || !children.is_empty() {
                shared.nodes.push(SetNode { element: node.element.clone(), member, children });
            }
        }
        shared
    }

    /// What is in this and not in the other; a field goes without the fields below it.
    pub fn difference(&self, other: &Set) -> Set {
        self.clone().without(other)
    }

    /// What is in this and not in the other; nothing is copied.
    pub(super) fn without(mut self, other: &Set) -> Set {
        self.nodes.retain_mut(|node| {
            let Some(right) = other.node(&node.element) else { return true };
            node.member &= !right.member;
            node.children = std::mem::take(&mut node.children).without(&right.children);
            node.member || !node.children.is_empty()
        });
        self
    }

    /// What is in this and not in the other; a field goes with all fields below it.
    pub fn recursive_difference(&self, other: &Set) -> Set {
        self.clone().without_whole(other)
    }

    /// What is in this and not in the other, of a set that is given away: nothing is copied.
    pub(super) fn without_whole(mut self, other: &Set) -> Set {
        self.nodes.retain_mut(|node| {
            let Some(right) = other.node(&node.element) else { return true };
            if right.member {
                return false;
            }
            node.children = std::mem::take(&mut node.children).without_whole(&right.children);
            node.member || !node.children.is_empty()
        });
        self
    }

    /// With the named fields on the way to its own: a set of `a.b.c` also owns `a`, but not `a.b` where that
    /// is a key of a map (`EnsureNamedFieldsAreMembers`).
    pub(super) fn with_named_fields(&self, kind: Option<SchemaType>) -> Set {
        let atom = kind.map(SchemaType::atom);
        let nodes = self.nodes.iter().map(|node| {
            let map = atom.as_ref().and_then(|atom| atom.map);
            let below = match &node.element {
                PathElement::Field(name) => map.and_then(|map| map.child(name)),
                PathElement::Key(_) => atom.as_ref().and_then(|atom| atom.list).map(|list| list.element),
                _ => None,
            };
            let is_named = match &node.element {
                PathElement::Field(name) => map.is_some_and(|map| map.declares(name)),
                _ => false,
            };
            SetNode {
                element: node.element.clone(),
                member: node.member || is_named && !node.children.is_empty(),
                children: node.children.with_named_fields(below),
            }
        });
        Set { nodes: nodes.collect() }
    }

    pub(super) fn node(&self, element: &PathElement) -> Option<&SetNode> {
        self.find(|node| node.element.cmp(element))
    }

    /// A named field, of which a set may have tens of thousands.
    pub(super) fn field(&self, name: &str) -> Option<&SetNode> {
        self.find(|node| match &node.element {
            PathElement::Field(own) => (**own).cmp(name),
            // Fields come first.
            _ => Ordering::Greater,
        })
    }

    fn find(&self, compare: impl FnMut(&SetNode) -> Ordering) -> Option<&SetNode> {
        self.nodes.binary_search_by(compare).ok().map(|at| &self.nodes[at])
    }

    /// Every field, those of a level before those below it.
    pub fn paths(&self) -> Vec<Path> {
        let mut all = Vec::new();
        self.collect(&mut Vec::new(), &mut all);
        all
    }

    fn collect(&self, prefix: &mut Path, all: &mut Vec<Path>) {
        for node in self.nodes.iter().filter(|node| node.member) {
            prefix.push(node.element.clone());
            all.push(prefix.clone());
            prefix.pop();
        }
        for node in self.nodes.iter().filter(|node| !node.children.is_empty()) {
            prefix.push(node.element.clone());
            node.children.collect(prefix, all);
            prefix.pop();
        }
    }

    /// Puts a node behind all others; its element is greater. One that owns nothing is left out.
    pub(super) fn push(&mut self, node: SetNode) {
        if node.member || !node.children.is_empty() {
            self.nodes.push(node);
        }
    }
}

impl SetNode {
    /// A field.
    pub(super) fn leaf(element: PathElement) -> SetNode {
        SetNode { element, member: true, children: Set::default() }
    }

    /// The way to fields.
    pub(super) fn way(element: PathElement, children: Set) -> SetNode {
        SetNode { element, member: false, children }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_among_many_is_found_in_few_steps() {
        let leaf = |at: usize| SetNode::leaf(PathElement::field(&format!("{at:05}")));
        let set =
            Set { nodes: (0..50_000).map(leaf).chain([SetNode::leaf(PathElement::Index(0))]).collect() };
        let wanted = PathElement::field("49321");
        let mut steps = 0;
        let found = set.find(|node| {
            steps += 1;
            node.element.cmp(&wanted)
        });
        assert_eq!(found, set.field("49321"));
        assert!(found.is_some() && steps < 20, "{steps} steps");
        assert_eq!(set.field("50000"), None);
    }
}
