//! Sets that were written under another schema (`typed.ReconcileFieldSetWithSchema`): a list or map that has
//! become atomic is owned whole.

use super::atom::{Form, SchemaType};
use super::path::PathElement;
use super::set::{Set, SetNode};

/// The set as it is under this schema; None where it is that already.
pub(super) fn reconcile(kind: SchemaType, set: &Set) -> Option<Set> {
    let reconciled = visit(kind, set);
    (reconciled != *set).then_some(reconciled)
}

fn visit(kind: SchemaType, set: &Set) -> Set {
    let atom = kind.atom();
    let mut reconciled = Set::default();
    for node in &set.nodes {
        let below = match (atom.form(None), &node.element) {
            (Form::Map(map), _) if map.is_deduced() => None,
            (Form::Map(map), PathElement::Field(name)) => map.child(name),
            (Form::List(list), _) => Some(list.element),
            _ => None,
        };
        let Some(below) = below.filter(|_| !node.children.is_empty()) else {
            reconciled.push(node.clone());
            continue;
        };
        reconciled.push(if becomes_whole(below) {
            SetNode::leaf(node.element.clone())
        } else {
            SetNode { children: visit(below, &node.children), ..node.clone() }
        });
    }
    reconciled
}

/// Nobody can own what is below it any more. What is open may always be of another form.
fn becomes_whole(kind: SchemaType) -> bool {
    match kind.atom().form(None) {
        Form::Map(map) => map.is_atomic && !map.is_deduced(),
        Form::List(list) => list.is_atomic,
        Form::Scalar(_) => false,
    }
}
