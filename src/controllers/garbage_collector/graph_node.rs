//! One object as the graph knows it, and what owner references say of others.

use std::collections::BTreeSet;
use std::sync::Arc;

use apimachinery::gvk::GroupVersion;
use apimachinery::object::{Object, OwnerReference};
pub(super) use apis::finalizers::{FOREGROUND, ORPHAN};
use apis::kind::Kind;
use apis::scheme::Scheme;

/// An object's uid.
pub(super) type GraphUid = String;

/// Where an object is.
#[derive(Clone, Debug)]
pub(super) struct ObjectIdentity {
    /// None where the kind that an owner reference names is not served.
    pub kind: Option<Arc<Kind>>,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// An object as the graph knows it.
#[derive(Clone, Debug)]
pub(super) struct GraphNode {
    /// Where it is.
    pub identity: ObjectIdentity,
    /// Who named it as an owner.
    pub dependents: BTreeSet<GraphUid>,
    /// Whom it names as owners, by uid: an object may name tens of thousands, and each is looked up.
    pub owners: Vec<OwnerReference>,
    /// Deletion has begun.
    pub is_being_deleted: bool,
    /// It waits for its dependents to be deleted.
    pub is_deleting_dependents: bool,
    /// It was only named by a dependent; no informer has told of it.
    pub is_virtual: bool,
    /// It has [`ORPHAN`] and deletion has begun.
    pub is_orphaning: bool,
}

/// Whether an object has no owners and stays; it may be the owner of others.
pub(super) fn is_untied(object: &Object) -> bool {
    object.metadata.owner_references.is_empty() && !object.is_deleting()
}

/// Whether an owner in foreground deletion waits for the object with these owners.
pub(super) fn blocks(owners: &[OwnerReference], uid: &str) -> bool {
    owners.iter().any(|owner| owner.uid == uid && owner.block_owner_deletion == Some(true))
}

/// The references to an owner among those of a [`GraphNode`].
pub(super) fn named<'a>(owners: &'a [OwnerReference], uid: &str) -> &'a [OwnerReference] {
    let first = owners.partition_point(|owner| *owner.uid < *uid);
    let count = owners[first..].partition_point(|owner| *owner.uid == *uid);
    &owners[first..first + count]
}

/// All that tells owners apart. A uid alone does not: who names an owner may err in the rest, and then
/// means another, which is not there. The version does not matter.
fn coordinates(group: &str, kind: &str, namespace: &str, name: &str, uid: &str) -> String {
    format!("{group}/{kind}/{namespace}/{name}/{uid}")
}

pub(super) fn described(owner: &OwnerReference, namespace: &str) -> String {
    coordinates(group_of(owner), &owner.kind, namespace, &owner.name, &owner.uid)
}

fn group_of(owner: &OwnerReference) -> &str {
    owner.api_version.split_once('/').map_or("", |(group, _)| group)
}

impl ObjectIdentity {
    pub(super) fn coordinates(&self, uid: &str) -> Option<String> {
        let kind = self.kind.as_ref()?;
        Some(coordinates(&kind.group_version.group, &kind.kind, &self.namespace, &self.name, uid))
    }

    pub(super) fn is_reachable_from(&self, namespace: &str) -> bool {
        self.namespace.is_empty() || self.namespace == namespace
    }

    /// Whether an object in `namespace` that names this owner means what is here.
    pub(super) fn is_meant_by(&self, owner: &OwnerReference, namespace: &str) -> bool {
        let wanted = described(owner, &self.namespace);
        self.is_reachable_from(namespace) && self.coordinates(&owner.uid) == Some(wanted)
    }

    /// Of an object of a kind.
    pub(super) fn of(kind: &Arc<Kind>, object: &Object) -> ObjectIdentity {
        let (namespace, name) = (object.metadata.namespace.clone(), object.metadata.name.clone());
        ObjectIdentity { kind: Some(kind.clone()), namespace, name }
    }
}

impl GraphNode {
    pub(super) fn of(kind: &Arc<Kind>, object: &Object) -> GraphNode {
        let metadata = &object.metadata;
        let has =
            |finalizer: &str| object.is_deleting() && metadata.finalizers.iter().any(|it| it == finalizer);
        let mut owners = metadata.owner_references.clone();
        owners.sort_by(|left, right| left.uid.cmp(&right.uid));
        GraphNode {
            identity: ObjectIdentity::of(kind, object),
            dependents: BTreeSet::new(),
            owners,
            is_being_deleted: object.is_deleting(),
            is_deleting_dependents: has(FOREGROUND),
            is_virtual: false,
            is_orphaning: has(ORPHAN),
        }
    }

    /// Neither owns nor is owned, and stays: all that is known of it is in the object.
    pub(super) fn is_plain(&self) -> bool {
        self.owners.is_empty() && self.dependents.is_empty() && !self.is_virtual && !self.is_being_deleted
    }

    pub(super) fn named_by(dependent: &GraphNode, owner: &OwnerReference, scheme: &Scheme) -> GraphNode {
        let version = GroupVersion::parse(&owner.api_version);
        let kind = version.and_then(|version| scheme.kind(&version, &owner.kind));
        let is_namespaced = kind.as_ref().is_some_and(|kind| kind.namespaced);
        let namespace = if is_namespaced { dependent.identity.namespace.clone() } else { String::new() };
        GraphNode {
            identity: ObjectIdentity { kind, namespace, name: owner.name.clone() },
            dependents: BTreeSet::new(),
            owners: vec![],
            is_being_deleted: false,
            is_deleting_dependents: false,
            is_virtual: true,
            is_orphaning: false,
        }
    }
}
