//! How many pods there should be: the sizes of what controls them (`getExpectedScale`).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::controller::Reconcile;
use apimachinery::gvk::GroupVersion;
use apimachinery::object::{Object, OwnerReference};
use apis::apps::deployment::DEPLOYMENTS;
use apis::apps::replica_set::REPLICA_SETS;
use apis::apps::stateful_set::STATEFUL_SETS;
use apis::core::replication_controller::REPLICATION_CONTROLLERS;
use apis::kind::{Builtin, Kind, Subresource};
use apis::scheme::Scheme;
use client_go::component::ComponentContext;
use client_go::lister::Lister;

golang::text_error! {
    /// Why nobody knows how many pods there should be; in upstream's words.
    pub(super) struct NoScale;
}

/// The kinds whose sizes are known without asking; a ReplicaSet's is its deployment's.
static SCALED: [&Builtin; 4] = [&REPLICA_SETS, &DEPLOYMENTS, &STATEFUL_SETS, &REPLICATION_CONTROLLERS];

/// What knows sizes.
pub(super) struct Scales {
    known: Vec<(&'static Builtin, Lister)>,
    /// The other kinds that have a size: it is asked for.
    scheme: Arc<Scheme>,
}

/// The size of what controls pods, by its uid.
type ControllerSize = (String, i64);

impl Scales {
    pub(super) fn new(ctx: &ComponentContext, scheme: Arc<Scheme>) -> Scales {
        let known = SCALED.iter().map(|kind| (*kind, ctx.informers.informer(kind).lister())).collect();
        Scales { known, scheme }
    }

    /// The kinds whose changes are heard.
    pub(super) fn watched() -> [&'static Builtin; 4] {
        SCALED
    }

    /// The sum of the sizes, and the pods that nobody controls.
    pub(super) async fn expected(
        &self,
        ctx: &Reconcile,
        pods: &[Arc<Object>],
    ) -> Result<(i64, Vec<String>), NoScale> {
        let mut sizes = BTreeMap::new();
        let mut unmanaged = Vec::new();
        for pod in pods {
            let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
            let Some(owner) = pod.controller() else {
                unmanaged.push(name.clone());
                continue;
            };
            if sizes.contains_key(&owner.uid) {
                continue;
            }
            let size = match self.known(namespace, owner) {
                Some(size) => Some(size),
                None => self.asked(ctx, namespace, owner).await?,
            };
            let (uid, replicas) = size.ok_or_else(|| format!("found no controllers for pod {name:?}"))?;
            sizes.insert(uid, replicas);
        }
        Ok((sizes.values().sum(), unmanaged))
    }

    fn known(&self, namespace: &str, owner: &OwnerReference) -> Option<ControllerSize> {
        let is_kind = |kind: &Builtin| *kind.kind == *owner.kind && kind.api_version() == owner.api_version;
        let (kind, lister) = self.known.iter().find(|(kind, _)| is_kind(kind))?;
        let object = lister.get(namespace, &owner.name).filter(|it| it.metadata.uid == owner.uid)?;
        if let Some(deployment) = object.controller().filter(|_| *kind.kind == *REPLICA_SETS.kind)
            && let Some(size) = self.known(namespace, deployment)
        {
            return Some(size);
        }
        Some((owner.uid.clone(), object.to_value()["spec"]["replicas"].as_i64().unwrap_or(1)))
    }

    /// `getScaleController`: none when it is gone, or is another of its name.
    async fn asked(
        &self,
        ctx: &Reconcile,
        namespace: &str,
        owner: &OwnerReference,
    ) -> Result<Option<ControllerSize>, String> {
        let kind = self.kind(owner)?;
        if !kind.has(Subresource::Scale) {
            return Err(format!("{} does not implement the scale subresource", kind.group_resource()));
        }
        match ctx.client.get_subresource(&kind, namespace, &owner.name, "scale").await {
            Ok(scale) if scale["metadata"]["uid"] != *owner.uid => Ok(None),
            Ok(scale) => Ok(Some((owner.uid.clone(), scale["spec"]["replicas"].as_i64().unwrap_or(0)))),
            Err(status) if status.is_not_found() => Ok(None),
            Err(status) => Err(status.message),
        }
    }

    fn kind(&self, owner: &OwnerReference) -> Result<Arc<Kind>, String> {
        let (kind, version) = (&owner.kind, &owner.api_version);
        let parsed = GroupVersion::parse(version)
            .ok_or_else(|| format!("unexpected GroupVersion string: {version}"))?;
        let found = self.scheme.kind(&parsed, kind);
        found.ok_or_else(|| format!("no matches for kind {kind:?} in version {version:?}"))
    }
}
