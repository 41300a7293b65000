//! What an autoscaler scales, by its `scale` subresource, or as a cache shows what that would say.

use std::sync::Arc;

use serde_json::Value;

use super::metrics_error::MetricsError;
use crate::controller::Reconcile;
use apimachinery::gvk::GroupVersion;
use apimachinery::labels::LabelSelector;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apis::apps::deployment::DEPLOYMENTS;
use apis::apps::replica_set::REPLICA_SETS;
use apis::apps::stateful_set::STATEFUL_SETS;
use apis::kind::{Builtin, Kind, Subresource};
use apis::scheme::Scheme;
use apis::tree::text;
use apis::views::deployment::Deployment;
use apis::views::horizontal_pod_autoscaler::CrossVersionObjectReference;
use apis::views::replica_set::ReplicaSet;
use apis::views::stateful_set::StatefulSet;
use client_go::component::ComponentContext;
use client_go::lister::Lister;

/// How often a new size is written when others write what is scaled at the same time
/// (`retry.DefaultRetry`).
const ATTEMPTS: usize = 5;

/// What is scaled.
pub(super) struct ScaleTarget {
    kind: Arc<Kind>,
    namespace: String,
    name: String,
    /// How many replicas are wanted.
    pub(super) wanted: i64,
    /// How many replicas there are.
    pub(super) running: i64,
    /// How its pods are chosen; empty when that is not known.
    pub(super) selector: String,
    /// The `autoscaling/v1.Scale`, where that was asked for.
    scale: Option<Value>,
}

/// Where it is looked first: these kinds are watched by their own controllers anyway, and an autoscaler that
/// looks every 15 seconds need not ask the apiserver each time. What is not there is asked for, and so is
/// whatever is written.
pub(super) struct TargetCaches {
    deployments: Lister,
    replica_sets: Lister,
    stateful_sets: Lister,
}

impl TargetCaches {
    /// Those of a component.
    pub(super) fn of(ctx: &ComponentContext) -> TargetCaches {
        let lister = |kind: &Builtin| ctx.informers.informer(kind).lister();
        TargetCaches {
            deployments: lister(&DEPLOYMENTS),
            replica_sets: lister(&REPLICA_SETS),
            stateful_sets: lister(&STATEFUL_SETS),
        }
    }

    /// How many replicas an object wants and has, and which pods are its own.
    fn find(&self, kind: &Arc<Kind>, namespace: &str, name: &str) -> Option<(i64, i64, String)> {
        let known: [(&Builtin, &Lister, ReadScale); 3] = [
            (&DEPLOYMENTS, &self.deployments, |object| {
                let view = object.view::<Deployment>();
                Some((view.spec.replicas.unwrap_or(0), view.status.replicas, shown(&view.spec.selector)?))
            }),
            (&REPLICA_SETS, &self.replica_sets, |object| {
                let view = object.view::<ReplicaSet>();
                Some((view.spec.replicas.unwrap_or(0), view.status.replicas, shown(&view.spec.selector)?))
            }),
            (&STATEFUL_SETS, &self.stateful_sets, |object| {
                let view = object.view::<StatefulSet>();
                Some((view.spec.replicas.unwrap_or(0), view.status.replicas, shown(&view.spec.selector)?))
            }),
        ];
        let (_, lister, read) = known.iter().find(|(own, ..)| own.definition == kind.definition)?;
        read(&*lister.get(namespace, name)?)
    }
}

/// What of an object a Scale would say.
type ReadScale = fn(&Object) -> Option<(i64, i64, String)>;

/// As a Scale says it.
fn shown(selector: &LabelSelector) -> Option<String> {
    selector.selector().ok().map(|selector| selector.to_string())
}

impl ScaleTarget {
    /// `scaleForResourceMappings`
    pub(super) async fn find(
        ctx: &Reconcile,
        (scheme, caches): (&Scheme, &TargetCaches),
        namespace: &str,
        target: &CrossVersionObjectReference,
    ) -> Result<ScaleTarget, MetricsError> {
        let version = GroupVersion::parse(&target.api_version);
        let version = version.ok_or_else(|| {
            format!(
                "invalid API version in scale target reference: unexpected GroupVersion string: {}",
                target.api_version
            )
        })?;
        let kind = scheme.kind(&version, &target.kind).filter(|kind| kind.has(Subresource::Scale));
        let kind = kind.ok_or_else(|| {
            let (kind, group) = (&target.kind, &version.group);
            format!("unable to determine resource for scale target reference: no matches for kind {kind:?} in group {group:?}")
        })?;
        let (namespace, name) = (namespace.to_owned(), target.name.clone());
        if let Some((wanted, running, selector)) = caches.find(&kind, &namespace, &name) {
            return Ok(ScaleTarget { kind, namespace, name, wanted, running, selector, scale: None });
        }
        let scale = ctx.client.get_subresource(&kind, &namespace, &name, "scale").await;
        let scale = scale.map_err(|error| error.to_string())?;
        let number = |part: &str| scale[part]["replicas"].as_i64().unwrap_or(0);
        let (wanted, running) = (number("spec"), number("status"));
        let selector = text(&scale, "status.selector").to_owned();
        Ok(ScaleTarget { kind, namespace, name, wanted, running, selector, scale: Some(scale) })
    }

    /// Writes another size.
    pub(super) async fn resize(self, ctx: &Reconcile, replicas: i64) -> Result<(), Status> {
        let ScaleTarget { kind, namespace, name, mut scale, .. } = self;
        let mut attempt = 1;
        loop {
            let mut wanted = match scale.take() {
                Some(scale) => scale,
                None => ctx.client.get_subresource(&kind, &namespace, &name, "scale").await?,
            };
            wanted["spec"]["replicas"] = replicas.into();
            match ctx.client.update_subresource(&kind, &namespace, &name, "scale", wanted).await {
                Err(error) if error.is_conflict() && attempt < ATTEMPTS => attempt += 1,
                other => return other.map(drop),
            }
        }
    }
}
