//! Who owns whom (`GraphBuilder`). Changed only by what informers tell; read by the workers.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::Arc;

use sync::{Mutex, MutexGuard};

use super::graph_node::{GraphNode, GraphUid, ObjectIdentity, blocks, described, is_untied, named};
use super::graph_nodes::GraphNodes;
use apimachinery::object::{Object, OwnerReference};
use apis::kind::Kind;
use apis::scheme::Scheme;

/// Upstream's `absentOwnerCache` holds as many; beyond it the oldest is forgotten, and asked for again.
const ABSENT_OWNERS: usize = 500;

/// All objects and the edges between them. Bound: one node an object, and one for each owner that some object
/// names.
#[derive(Default)]
pub(super) struct Graph(Mutex<GraphState>);

/// Whom a change makes look.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Todo {
    /// Objects that may have to go.
    pub attempt_to_delete: Vec<GraphUid>,
    /// Owners that let their dependents go.
    pub attempt_to_orphan: Vec<GraphUid>,
}

#[derive(Default)]
struct GraphState {
    nodes: GraphNodes,
    absent: HashSet<String>,
    absent_order: VecDeque<String>,
}

impl Graph {
    /// An object was added or changed.
    pub(super) fn observe(&self, kind: &Arc<Kind>, object: &Arc<Object>, scheme: &Scheme) -> Todo {
        let mut todo = Todo::default();
        let mut state = self.lock();
        if is_untied(object) && state.nodes.refresh(kind, object) {
            return todo;
        }
        let uid = &object.metadata.uid;
        let new = GraphNode::of(kind, object);
        let old = state.nodes.remove(uid);
        if let Some(old) = old.as_ref().filter(|old| old.is_virtual) {
            // Those who described another have named a wrong owner.
            let (_, others) = state.partition(&old.dependents, uid, &new.identity);
            todo.attempt_to_delete.extend(others);
        }
        let old_owners = old.as_ref().filter(|old| !old.is_virtual).map(|old| old.owners.clone());
        state.change_owners(uid, &new, &old_owners.unwrap_or_default(), scheme, &mut todo);
        let was_orphaning = old.as_ref().is_some_and(|old| old.is_orphaning);
        let was_deleting_dependents = old.as_ref().is_some_and(|old| old.is_deleting_dependents);
        let dependents = old.map(|old| old.dependents).unwrap_or_default();
        if new.is_orphaning && !was_orphaning {
            todo.attempt_to_orphan.push(uid.clone());
        } else if new.is_deleting_dependents && !was_deleting_dependents {
            todo.attempt_to_delete.extend(dependents.iter().cloned());
            todo.attempt_to_delete.push(uid.clone());
        }
        state.nodes.put((kind, object), GraphNode { dependents, ..new });
        todo
    }

    /// An object is gone: its dependents may have to go, and owners that waited for it may be done.
    pub(super) fn remove(&self, uid: &str) -> Todo {
        let mut todo = Todo::default();
        let mut state = self.lock();
        let Some(node) = state.nodes.remove(uid) else { return todo };
        if !node.dependents.is_empty() {
            state.note_absent(&node.identity, uid);
        }
        todo.attempt_to_delete.extend(node.dependents);
        for owner in &node.owners {
            let Some(waiting) = state.unlink(&owner.uid, uid) else { continue };
            if waiting {
                todo.attempt_to_delete.push(owner.uid.clone());
            }
        }
        todo
    }

    /// The apiserver has no object of this uid where `identity` says (a virtual delete event). Dependents
    /// that mean another place are not concerned: an owner that nobody has told of is then asked for there.
    pub(super) fn lose(&self, uid: &str, identity: &ObjectIdentity, scheme: &Scheme) -> Todo {
        let mut state = self.lock();
        let Some(node) = state.nodes.get(uid) else { return Todo::default() };
        let (meant, others) = state.partition(&node.dependents, uid, identity);
        let is_elsewhere = if node.is_virtual {
            !others.is_empty()
        } else {
            node.identity.coordinates(uid) != identity.coordinates(uid)
        };
        if !is_elsewhere {
            drop(state);
            return self.remove(uid);
        }
        if !meant.is_empty() {
            state.note_absent(identity, uid);
        }
        state.look_elsewhere(uid, &others, scheme);
        Todo { attempt_to_delete: meant, ..Todo::default() }
    }

    /// What is known of an object.
    pub(super) fn get(&self, uid: &str) -> Option<GraphNode> {
        self.lock().nodes.get(uid)
    }

    /// The dependents for which `uid` waits: those that say so in their reference (`blockingDependents`).
    pub(super) fn blocking_dependents(&self, uid: &str) -> Vec<(GraphUid, GraphNode)> {
        self.dependents(uid).into_iter().filter(|(_, node)| blocks(&node.owners, uid)).collect()
    }

    /// All dependents of `uid`.
    pub(super) fn dependents(&self, uid: &str) -> Vec<(GraphUid, GraphNode)> {
        let state = self.lock();
        let Some(node) = state.nodes.tied(uid) else { return vec![] };
        let found = node.dependents.iter().filter_map(|uid| Some((uid.clone(), state.nodes.get(uid)?)));
        found.collect()
    }

    /// Whether an owner is known not to exist where an object in `namespace` says.
    pub(super) fn is_absent(&self, owner: &OwnerReference, namespace: &str) -> bool {
        let state = self.lock();
        ["", namespace].iter().any(|namespace| state.absent.contains(&described(owner, namespace)))
    }

    /// The apiserver does not have this owner there; no object gets its uid again.
    pub(super) fn note_absent(&self, identity: &ObjectIdentity, uid: &str) {
        self.lock().note_absent(identity, uid);
    }

    /// Whether an owner is known to be in another namespace, where objects in `namespace` cannot refer to it.
    pub(super) fn is_out_of_reach(&self, owner: &OwnerReference, namespace: &str) -> bool {
        let state = self.lock();
        let node = state.nodes.get(&owner.uid).filter(|node| !node.is_virtual);
        node.is_some_and(|node| !node.identity.is_reachable_from(namespace))
    }

    fn lock(&self) -> MutexGuard<'_, GraphState> {
        self.0.lock()
    }
}

impl GraphState {
    fn change_owners(
        &mut self,
        uid: &str,
        new: &GraphNode,
        old_owners: &[OwnerReference],
        scheme: &Scheme,
        todo: &mut Todo,
    ) {
        if new.owners == old_owners {
            return;
        }
        for owner in old_owners {
            let (before, now) = (named(old_owners, &owner.uid), named(&new.owners, &owner.uid));
            let is_unblocked = blocks(before, &owner.uid) && !blocks(now, &owner.uid);
            let is_removed = now.is_empty();
            if is_removed {
                self.unlink(&owner.uid, uid);
            }
            if is_unblocked && self.nodes.tied(&owner.uid).is_some_and(|owner| owner.is_deleting_dependents) {
                todo.attempt_to_delete.push(owner.uid.clone());
            }
        }
        for owner in new.owners.iter().filter(|owner| owner.uid != uid) {
            let is_known = self.nodes.has(&owner.uid);
            let node = self.nodes.tie(&owner.uid, || Some(GraphNode::named_by(new, owner, scheme)));
            let Some(node) = node else { continue };
            node.dependents.insert(uid.to_owned());
            if !is_known {
                // Nobody has told of it yet; if nobody ever does, it is absent.
                todo.attempt_to_delete.push(owner.uid.clone());
            } else if !node.identity.is_meant_by(owner, &new.identity.namespace) {
                todo.attempt_to_delete.push(uid.to_owned());
            }
            if node.is_deleting_dependents {
                todo.attempt_to_delete.push(uid.to_owned());
            }
        }
        debug_assert!(new.owners.iter().all(|owner| self.knows(owner, uid)), "owners know who names them");
    }

    /// Whether the node of an owner knows of a dependent; nothing depends on itself.
    fn knows(&self, owner: &OwnerReference, dependent: &str) -> bool {
        let node = self.nodes.tied(&owner.uid);
        owner.uid == dependent || node.is_some_and(|node| node.dependents.contains(dependent))
    }

    /// Whether the owner waits for its dependents; none where it is not known.
    fn unlink(&mut self, owner: &str, dependent: &str) -> Option<bool> {
        let node = self.nodes.tie(owner, || None)?;
        node.dependents.remove(dependent);
        let waits = node.is_deleting_dependents;
        debug_assert!(
            !node.is_virtual || node.owners.is_empty(),
            "nobody has told whom a virtual node names"
        );
        if node.is_virtual && node.dependents.is_empty() {
            self.nodes.remove(owner);
        }
        Some(waits)
    }

    /// Those dependents of `uid` that mean what is at `identity`, and those that mean another.
    fn partition(
        &self,
        dependents: &BTreeSet<GraphUid>,
        uid: &str,
        identity: &ObjectIdentity,
    ) -> (Vec<GraphUid>, Vec<GraphUid>) {
        let means = |dependent: &&GraphUid| {
            let Some(node) = self.nodes.tied(dependent) else { return true };
            named(&node.owners, uid).iter().all(|owner| identity.is_meant_by(owner, &node.identity.namespace))
        };
        let (meant, others): (Vec<&GraphUid>, Vec<&GraphUid>) = dependents.iter().partition(means);
        (meant.into_iter().cloned().collect(), others.into_iter().cloned().collect())
    }

    /// An owner that is not where it was looked for is looked for where one of `others` says.
    fn look_elsewhere(&mut self, uid: &str, others: &[GraphUid], scheme: &Scheme) {
        let place = others.iter().find_map(|other| {
            let dependent = self.nodes.tied(other)?;
            let owner = named(&dependent.owners, uid).first()?;
            Some(GraphNode::named_by(dependent, owner, scheme).identity)
        });
        if let (Some(place), Some(node)) = (place, self.nodes.tie(uid, || None))
            && node.is_virtual
        {
            node.identity = place;
        }
    }

    fn note_absent(&mut self, identity: &ObjectIdentity, uid: &str) {
        let Some(absent) = identity.coordinates(uid) else { return };
        if !self.absent.insert(absent.clone()) {
            return;
        }
        self.absent_order.push_back(absent);
        if self.absent_order.len() > ABSENT_OWNERS {
            let oldest = self.absent_order.pop_front().unwrap_or_default();
            self.absent.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::graph_node::{FOREGROUND, ORPHAN};
    use super::*;
    use apis::core::config_map::CONFIG_MAPS;
    use serde_json::{Value, json};

    fn object(uid: &str, owners: &[&str], change: Value) -> Object {
        let reference = |uid: &&str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": uid, "uid": uid, "blockOwnerDeletion": true});
        let references: Vec<Value> = owners.iter().map(reference).collect();
        let mut metadata = json!({"name": uid, "namespace": "a", "uid": uid, "ownerReferences": references});
        for (key, value) in change.as_object().into_iter().flatten() {
            metadata[key] = value.clone();
        }
        Object::from_value(&json!({"metadata": metadata}), vec![]).unwrap()
    }

    fn reference(uid: &str) -> OwnerReference {
        object("child", &[uid], json!({})).metadata.owner_references.remove(0)
    }

    fn observe(graph: &Graph, uid: &str, owners: &[&str], change: Value) -> Todo {
        graph.observe(&CONFIG_MAPS, &Arc::new(object(uid, owners, change)), &Scheme::of(&[&CONFIG_MAPS]))
    }

    fn deleting(finalizer: &str) -> Value {
        json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [finalizer]})
    }

    #[test]
    fn references_to_an_owner_are_found_among_many() {
        let graph = Graph::default();
        observe(&graph, "d", &["c", "a", "b", "a"], json!({}));
        let owners = graph.get("d").unwrap().owners;
        let count = |uid: &str| named(&owners, uid).len();
        assert_eq!([count("a"), count("b"), count("c"), count("0"), count("z")], [2, 1, 1, 0, 0]);
    }

    #[test]
    fn an_owner_that_nobody_told_of_is_looked_for() {
        let graph = Graph::default();
        assert_eq!(observe(&graph, "child", &["parent"], json!({})).attempt_to_delete, ["parent"]);
        assert!(graph.get("parent").unwrap().is_virtual);
        assert_eq!(observe(&graph, "parent", &[], json!({})), Todo::default());
        let parent = graph.get("parent").unwrap();
        assert!(!parent.is_virtual && parent.dependents.contains("child"));
        assert_eq!(graph.remove("parent").attempt_to_delete, ["child"]);
        assert!(graph.is_absent(&reference("parent"), "a") && !graph.is_absent(&reference("parent"), "b"));
    }

    #[test]
    fn who_describes_an_owner_wrongly_is_looked_at() {
        let graph = Graph::default();
        let elsewhere = json!({"namespace": "b"});
        // Named before it is seen, by one who is right and one who is not.
        observe(&graph, "good", &["parent"], json!({}));
        assert_eq!(observe(&graph, "bad", &["parent"], elsewhere.clone()).attempt_to_delete, ["bad"]);
        assert_eq!(observe(&graph, "parent", &[], json!({})).attempt_to_delete, ["bad"]);
        assert!(graph.is_out_of_reach(&reference("parent"), "b"));
        assert!(!graph.is_out_of_reach(&reference("parent"), "a"));
        // Named afterwards.
        assert_eq!(observe(&graph, "late", &["parent"], elsewhere).attempt_to_delete, ["late"]);
        assert_eq!(observe(&graph, "right", &["parent"], json!({})), Todo::default());
    }

    #[test]
    fn an_owner_is_lost_only_to_those_who_meant_it() {
        let graph = Graph::default();
        let scheme = Scheme::of(&[&CONFIG_MAPS]);
        observe(&graph, "bad", &["parent"], json!({"namespace": "b"}));
        observe(&graph, "good", &["parent"], json!({}));
        let wrong = graph.get("parent").unwrap().identity;
        assert_eq!(graph.lose("parent", &wrong, &scheme).attempt_to_delete, ["bad"]);
        assert!(graph.is_absent(&reference("parent"), "b") && !graph.is_absent(&reference("parent"), "a"));
        assert_eq!(graph.get("parent").unwrap().identity.namespace, "a");
        observe(&graph, "parent", &[], json!({}));
        assert_eq!(graph.lose("parent", &wrong, &scheme).attempt_to_delete, ["bad"]);
        assert!(!graph.get("parent").unwrap().is_virtual);
    }

    #[test]
    fn a_foreground_deletion_waits_for_those_that_block_it() {
        let graph = Graph::default();
        observe(&graph, "parent", &[], json!({}));
        observe(&graph, "child", &["parent"], json!({}));
        let todo = observe(&graph, "parent", &[], deleting(FOREGROUND));
        assert_eq!(todo.attempt_to_delete, ["child", "parent"]);
        assert_eq!(graph.blocking_dependents("parent").len(), 1);
        assert_eq!(observe(&graph, "parent", &[], deleting(FOREGROUND)), Todo::default());
        assert_eq!(graph.remove("child").attempt_to_delete, ["parent"]);
        assert!(graph.blocking_dependents("parent").is_empty());
    }

    #[test]
    fn an_orphaning_owner_is_told_once() {
        let graph = Graph::default();
        observe(&graph, "child", &["parent"], json!({}));
        assert_eq!(observe(&graph, "parent", &[], deleting(ORPHAN)).attempt_to_orphan, ["parent"]);
        assert_eq!(observe(&graph, "parent", &[], deleting(ORPHAN)), Todo::default());
        observe(&graph, "child", &[], json!({}));
        assert!(graph.dependents("parent").is_empty());
    }

    #[test]
    fn the_absent_are_forgotten_at_the_bound() {
        let graph = Graph::default();
        let place = |name: &str| ObjectIdentity::of(&CONFIG_MAPS, &object(name, &[], json!({})));
        let note = |name: String| graph.note_absent(&place(&name), &name);
        (0..=ABSENT_OWNERS).for_each(|number| note(number.to_string()));
        assert!(!graph.is_absent(&reference("0"), "a") && graph.is_absent(&reference("1"), "a"));
    }
}
