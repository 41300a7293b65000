//! A CustomResourceDefinition as the server reads it (`apiextensions.k8s.io/v1`).

use serde::Deserialize;
use serde_json::Value;

use apimachinery::object::nullable;

/// The whole definition.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CustomResourceDefinition {
    /// What is wanted.
    pub spec: Spec,
    /// What is.
    pub status: Status,
}

/// `spec`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// As `stable.example.com`.
    pub group: String,
    /// What the kind is to be called.
    pub names: Names,
    /// `Cluster` or `Namespaced`.
    pub scope: String,
    /// Every version.
    #[serde(deserialize_with = "nullable")]
    pub versions: Vec<Version>,
    /// How versions become each other.
    #[serde(deserialize_with = "nullable")]
    pub conversion: Conversion,
    /// Of old; must be false.
    #[serde(deserialize_with = "nullable")]
    pub preserve_unknown_fields: bool,
}

/// What a kind is called.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Names {
    /// As `crontabs`.
    pub plural: String,
    /// As `crontab`.
    #[serde(deserialize_with = "nullable")]
    pub singular: String,
    /// As `ct`.
    #[serde(deserialize_with = "nullable")]
    pub short_names: Vec<String>,
    /// As `CronTab`.
    pub kind: String,
    /// As `CronTabList`.
    #[serde(deserialize_with = "nullable")]
    pub list_kind: String,
    /// As `all`.
    #[serde(deserialize_with = "nullable")]
    pub categories: Vec<String>,
}

/// One version.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Version {
    /// As `v1`.
    pub name: String,
    /// Whether there are paths for it.
    pub served: bool,
    /// Whether objects are kept in it.
    pub storage: bool,
    /// Whether clients are warned.
    #[serde(deserialize_with = "nullable")]
    pub deprecated: bool,
    /// What they are warned with.
    pub deprecation_warning: Option<String>,
    /// What its objects look like.
    #[serde(deserialize_with = "nullable")]
    pub schema: Validation,
    /// `status` and `scale`.
    #[serde(deserialize_with = "nullable")]
    pub subresources: Subresources,
    /// Of `kubectl get`.
    #[serde(deserialize_with = "nullable")]
    pub additional_printer_columns: Vec<PrinterColumn>,
    /// For field selectors.
    #[serde(deserialize_with = "nullable")]
    pub selectable_fields: Vec<SelectableField>,
}

/// `schema`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Validation {
    /// OpenAPI, as JSON; null where there is none.
    #[serde(rename = "openAPIV3Schema")]
    pub schema: Value,
}

/// What hangs below an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Subresources {
    /// There when it is no null.
    pub status: Option<Value>,
    /// There when it is no null.
    pub scale: Option<Scale>,
}

/// Where the parts of a Scale are.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Scale {
    /// As `.spec.replicas`.
    pub spec_replicas_path: String,
    /// As `.status.replicas`.
    pub status_replicas_path: String,
    /// As `.status.labelSelector`.
    pub label_selector_path: Option<String>,
}

/// One column.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PrinterColumn {
    /// The heading.
    pub name: String,
    /// `integer`, `number`, `string`, `boolean`, `date`.
    #[serde(rename = "type")]
    pub column_type: String,
    /// OpenAPI's.
    #[serde(deserialize_with = "nullable")]
    pub format: String,
    /// For people.
    #[serde(deserialize_with = "nullable")]
    pub description: String,
    /// Greater than 0: only `-o wide`.
    #[serde(deserialize_with = "nullable")]
    pub priority: i32,
    /// As `.spec.replicas`.
    pub json_path: String,
}

/// One selectable field.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SelectableField {
    /// As `.spec.color`.
    pub json_path: String,
}

/// `conversion`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Conversion {
    /// `None` or `Webhook`.
    pub strategy: String,
    /// As it was written; null without a webhook.
    pub webhook: Value,
}

/// `status`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// What the kind is called.
    #[serde(deserialize_with = "nullable")]
    pub accepted_names: Names,
    /// As JSON.
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<Value>,
    /// Versions in which objects may be kept.
    #[serde(deserialize_with = "nullable")]
    pub stored_versions: Vec<String>,
}

impl CustomResourceDefinition {
    /// Reads a definition; one that is none is empty.
    pub fn read(tree: &Value) -> CustomResourceDefinition {
        CustomResourceDefinition::deserialize(tree).unwrap_or_default()
    }

    /// Whether a condition is true.
    pub fn is(&self, condition: &str) -> bool {
        let held = |found: &&Value| found["type"] == condition && found["status"] == "True";
        self.status.conditions.iter().any(|found| held(&found))
    }

    /// The version in which objects are kept.
    pub fn storage_version(&self) -> Option<&Version> {
        self.spec.versions.iter().find(|version| version.storage)
    }
}
