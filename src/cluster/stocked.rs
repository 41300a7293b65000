//! `Stock`: all objects of a cluster at one resourceVersion, as the API tells them.

use std::collections::BTreeMap;

use serde_json::Value;

/// Where an object is: API version, kind, namespace (empty: none), name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ObjectPlace {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// The objects, each with `apiVersion` and `kind`.
pub(super) type Stock = BTreeMap<ObjectPlace, Value>;
