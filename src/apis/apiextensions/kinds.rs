//! From an accepted definition to the kinds that are served: one for each served version.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use super::columns::columns;
use super::custom_resource::{CustomResource, CustomStrategy};
use super::view::{CustomResourceDefinition, Version};
use crate::kind::{Kind, Selectable, Subresource};
use apimachinery::object::Object;

/// In discovery's order of custom kinds.
const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// What a definition makes.
#[derive(Default)]
pub struct ServedKinds {
    /// One for each served version.
    pub served: Vec<Arc<Kind>>,
    /// The kind of the storage version, served or not.
    pub storage: Option<Arc<Kind>>,
}

impl ServedKinds {
    /// Every kind; the storage version's may come twice.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.served.iter().chain(&self.storage)
    }
}

/// The kinds of a definition whose names were accepted.
pub fn served(definition: &Object, crd: &CustomResourceDefinition) -> ServedKinds {
    let Some(storage) = crd.storage_version() else { return ServedKinds::default() };
    let stored = Arc::new(kind(definition, crd, storage, None));
    let of = |version: &Version| {
        if version.storage {
            stored.clone()
        } else {
            Arc::new(kind(definition, crd, version, Some(stored.clone())))
        }
    };
    let served = crd.spec.versions.iter().filter(|version| version.served).map(of).collect();
    ServedKinds { served, storage: Some(stored) }
}

fn kind(
    definition: &Object,
    crd: &CustomResourceDefinition,
    version: &Version,
    storage: Option<Arc<Kind>>,
) -> Kind {
    let (spec, names) = (&crd.spec, &crd.status.accepted_names);
    let mut kind = Kind::builtin(
        &spec.group,
        &version.name,
        &names.kind,
        &names.plural,
        &published_name(&spec.group, &version.name),
    );
    let custom = Arc::new(CustomResource {
        gvk: kind.gvk(),
        definition: (definition.metadata.name.clone(), definition.metadata.uid.clone()),
        schema: version.schema.schema.to_string().into(),
        scale: version.subresources.scale.clone(),
        terminating: AtomicBool::new(crd.is("Terminating")),
        storage,
        webhook: (spec.conversion.strategy == "Webhook").then(|| Arc::new(spec.conversion.webhook.clone())),
        oldest_version: crd.status.stored_versions.first().unwrap_or(&version.name).clone(),
        deprecation_warning: deprecation_warning(crd, version),
        structural: OnceLock::new(),
        typed: OnceLock::new(),
    });
    kind.list_kind = names.list_kind.as_str().into();
    kind.singular = names.singular.as_str().into();
    kind.short_names = names.short_names.iter().map(|name| name.as_str().into()).collect();
    kind.categories = names.categories.iter().map(|name| name.as_str().into()).collect();
    kind.namespaced = spec.scope == "Namespaced";
    kind.verbs = VERBS.iter().map(|verb| (*verb).into()).collect();
    kind.subresources = subresources(version);
    kind.selectable = selectable(version);
    (kind.columns, kind.cells) = columns(&version.additional_printer_columns);
    kind.counts_generation = true;
    kind.status_resets = &["metadata", "spec"];
    kind.is_custom = true;
    kind.strategy = Arc::new(CustomStrategy(custom.clone()));
    kind.custom = Some(custom);
    kind
}

fn subresources(version: &Version) -> Vec<Subresource> {
    let status = version.subresources.status.as_ref().map(|_| Subresource::Status);
    let scale = version.subresources.scale.as_ref().map(|_| Subresource::Scale);
    status.into_iter().chain(scale).collect()
}

fn selectable(version: &Version) -> Vec<Selectable> {
    let field = |path: &str| {
        let path = path.trim_start_matches('.');
        Selectable { name: path.into(), path: path.into(), default: "".into(), or: None }
    };
    version.selectable_fields.iter().map(|own| field(&own.json_path)).collect()
}

/// The name in OpenAPI before the kind: `com.example.stable.v1`.
fn published_name(group: &str, version: &str) -> String {
    let reversed: Vec<&str> = group.split('.').rev().collect();
    format!("{}.{version}", reversed.join("."))
}

fn deprecation_warning(crd: &CustomResourceDefinition, version: &Version) -> Option<String> {
    if !version.deprecated {
        return None;
    }
    let default = || {
        let (group, kind) = (&crd.spec.group, &crd.status.accepted_names.kind);
        let mut text = format!("{group}/{} {kind} is deprecated", version.name);
        let newer = newer_version(crd, version);
        if let Some(newer) = newer {
            text += &format!("; use {group}/{newer} {kind}");
        }
        text
    };
    Some(version.deprecation_warning.clone().unwrap_or_else(default))
}

/// The best version that is served, not deprecated and above `version`.
fn newer_version<'a>(crd: &'a CustomResourceDefinition, version: &Version) -> Option<&'a str> {
    use apimachinery::gvk::kube_aware_rank as rank;
    let better =
        |other: &&Version| other.served && !other.deprecated && rank(&other.name) > rank(&version.name);
    let best = crd.spec.versions.iter().filter(better).max_by_key(|other| rank(&other.name));
    best.map(|other| other.name.as_str())
}

/// The names that are accepted, as `status.acceptedNames` holds them.
pub fn accepted_names(names: &super::view::Names) -> Value {
    let mut tree = json!({"plural": names.plural, "kind": names.kind});
    let texts = [("singular", &names.singular), ("listKind", &names.list_kind)];
    for (field, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        tree[field] = json!(text);
    }
    let lists = [("shortNames", &names.short_names), ("categories", &names.categories)];
    for (field, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        tree[field] = json!(list);
    }
    tree
}
