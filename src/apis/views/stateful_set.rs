//! StatefulSet, as its controller reads it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::meta::Metadata;
use apimachinery::int_or_string::IntOrString;
use apimachinery::labels::LabelSelector;
use apimachinery::object::nullable;

/// `apps/v1.StatefulSet`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct StatefulSet {
    /// The metadata, of which readers need the annotations.
    pub metadata: Metadata,
    /// The desired state, from whoever wrote the object.
    pub spec: StatefulSetSpec,
    /// The observed state, from whoever acts on the object.
    pub status: StatefulSetStatus,
}

/// `apps/v1.StatefulSetSpec`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatefulSetSpec {
    /// How many pods; the server defaults it to 1.
    pub replicas: Option<i64>,
    /// Which pods.
    pub selector: LabelSelector,
    /// What a pod is made from, as it stands.
    #[serde(deserialize_with = "nullable")]
    pub template: Arc<Value>,
    /// What the claims of each pod are made from, as they stand.
    #[serde(deserialize_with = "nullable")]
    pub volume_claim_templates: Vec<Value>,
    /// The service that names the pods: their subdomain.
    pub service_name: String,
    /// `OrderedReady` or `Parallel`.
    pub pod_management_policy: String,
    /// How one revision follows another.
    pub update_strategy: StatefulSetUpdateStrategy,
    /// How many old revisions are kept.
    pub revision_history_limit: Option<i64>,
    /// Seconds that a pod must have been ready to count as available.
    pub min_ready_seconds: i64,
    /// What becomes of the claims.
    pub persistent_volume_claim_retention_policy: Option<RetentionPolicy>,
    /// How the pods are numbered.
    pub ordinals: Option<Ordinals>,
}

/// `apps/v1.StatefulSetUpdateStrategy`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatefulSetUpdateStrategy {
    /// `RollingUpdate` or `OnDelete`.
    #[serde(rename = "type")]
    pub strategy_type: String,
    /// Only beside `RollingUpdate`.
    pub rolling_update: Option<RollingUpdateStatefulSetStrategy>,
}

/// `apps/v1.RollingUpdateStatefulSetStrategy`
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RollingUpdateStatefulSetStrategy {
    /// Pods below this one, counted from the first, stay as they are.
    pub partition: i64,
    /// How many may be missing at a time; 1 when it is not set.
    pub max_unavailable: Option<IntOrString>,
}

/// `apps/v1.StatefulSetPersistentVolumeClaimRetentionPolicy`: `Retain` or `Delete`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RetentionPolicy {
    /// When the set is deleted.
    pub when_deleted: String,
    /// When the set shrinks.
    pub when_scaled: String,
}

/// `apps/v1.StatefulSetOrdinals`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Ordinals {
    /// The number of the first pod.
    pub start: i64,
}

/// `apps/v1.StatefulSetStatus`, without the conditions, which nobody sets.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatefulSetStatus {
    /// The generation that all this speaks of.
    pub observed_generation: i64,
    /// Pods that are there.
    pub replicas: i64,
    /// Those that are ready.
    pub ready_replicas: i64,
    /// Those of the current revision.
    pub current_replicas: i64,
    /// Those of the update revision.
    pub updated_replicas: i64,
    /// Those that have been ready for `minReadySeconds`.
    pub available_replicas: i64,
    /// The name of the revision that the set comes from.
    pub current_revision: String,
    /// The name of the revision that the set goes to.
    pub update_revision: String,
    /// How often the hash of a template met the revision of another.
    pub collision_count: Option<i64>,
}

impl StatefulSet {
    /// The desired number of pods.
    pub fn replicas(&self) -> i64 {
        self.spec.replicas.unwrap_or(1).max(0)
    }

    /// The number of the first pod.
    pub fn start(&self) -> i64 {
        self.spec.ordinals.as_ref().map_or(0, |ordinals| ordinals.start)
    }

    /// Whether a pod of this number is wanted.
    pub fn wants(&self, ordinal: i64) -> bool {
        (self.start()..self.start() + self.replicas()).contains(&ordinal)
    }

    /// Whether pods come and go one after the other.
    pub fn is_monotonic(&self) -> bool {
        self.spec.pod_management_policy != "Parallel"
    }

    /// Whether pods are replaced when the template changes.
    pub fn is_rolling_update(&self) -> bool {
        self.spec.update_strategy.strategy_type == "RollingUpdate"
    }

    /// Whether claims go when the set is deleted.
    pub fn deletes_claims(&self) -> bool {
        self.retention(|policy| &policy.when_deleted)
    }

    /// Whether claims go when the set shrinks.
    pub fn deletes_claims_when_scaled(&self) -> bool {
        self.retention(|policy| &policy.when_scaled)
    }

    fn retention(&self, when: fn(&RetentionPolicy) -> &String) -> bool {
        self.spec.persistent_volume_claim_retention_policy.as_ref().is_some_and(|it| when(it) == "Delete")
    }
}
