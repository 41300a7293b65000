//! ControllerRevision, as the controllers read it that keep one per template.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::meta::Metadata;
use apimachinery::object::nullable;

/// `apps/v1.ControllerRevision`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ControllerRevision {
    /// The metadata, of which readers need the annotations.
    pub metadata: Metadata,
    /// What was, as a patch that brings it back.
    #[serde(deserialize_with = "nullable")]
    pub data: Arc<Value>,
    /// The newest has the highest.
    pub revision: i64,
}
