//! Lease, as node lifecycle and leader election read it.

use serde::Deserialize;

use apimachinery::time::Time;

/// `coordination.k8s.io/v1.Lease`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Lease {
    /// Who holds it, and since when.
    pub spec: LeaseSpec,
}

/// `coordination.k8s.io/v1.LeaseSpec`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaseSpec {
    /// Who holds it.
    pub holder_identity: String,
    /// Seconds after `renewTime` for which it is held.
    pub lease_duration_seconds: Option<i64>,
    /// The last sign of life.
    pub renew_time: Option<Time>,
}
