//! What an autoscaler scales, by its `scale` subresource.

use std::sync::Arc;

use serde_json::Value;

use super::metrics_error::MetricsError;
use crate::controller::Reconcile;
use apimachinery::gvk::GroupVersion;
use apimachinery::status::Status;
use apis::kind::{Kind, Subresource};
use apis::scheme::Scheme;
use apis::tree::text;
use apis::views::horizontal_pod_autoscaler::CrossVersionObjectReference;

/// How often a new size is written when others write what is scaled at the same time
/// (`retry.DefaultRetry`).
const ATTEMPTS: usize = 5;

/// What is scaled, and its `autoscaling/v1.Scale`.
pub(super) struct ScaleTarget {
    kind: Arc<Kind>,
    namespace: String,
    name: String,
    scale: Value,
}

impl ScaleTarget {
    /// `scaleForResourceMappings`
    pub(super) async fn find(
        ctx: &Reconcile,
        scheme: &Scheme,
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
        let scale = ctx.client.get_subresource(&kind, &namespace, &name, "scale").await;
        Ok(ScaleTarget { scale: scale.map_err(|error| error.to_string())?, kind, namespace, name })
    }

    /// How many replicas are wanted.
    pub(super) fn wanted(&self) -> i64 {
        self.scale["spec"]["replicas"].as_i64().unwrap_or(0)
    }

    /// How many replicas there are.
    pub(super) fn running(&self) -> i64 {
        self.scale["status"]["replicas"].as_i64().unwrap_or(0)
    }

    /// How its pods are chosen; empty when that is not known.
    pub(super) fn selector(&self) -> &str {
        text(&self.scale, "status.selector")
    }

    /// Writes another size.
    pub(super) async fn resize(mut self, ctx: &Reconcile, replicas: i64) -> Result<(), Status> {
        let mut attempt = 1;
        loop {
            self.scale["spec"]["replicas"] = replicas.into();
            let ScaleTarget { kind, namespace, name, scale } = &self;
            let written = ctx.client.update_subresource(kind, namespace, name, "scale", scale.clone()).await;
            match written {
                Err(error) if error.is_conflict() && attempt < ATTEMPTS => attempt += 1,
                other => return other.map(drop),
            }
            self.scale = ctx.client.get_subresource(kind, namespace, name, "scale").await?;
        }
    }
}
