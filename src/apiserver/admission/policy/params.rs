//! Parameters: the objects that a binding hands to its policy (`policy/generic.CollectParams`).

use std::sync::Arc;

use serde_json::Value;

use super::binding::ParamRef;
use crate::registry::Registry;
use apimachinery::gvk::GroupVersion;
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::selectable::Predicate;
use apis::kind::Kind;
use apis::scheme::Scheme;
use apis::tree::{at, is_set, text};

golang::text_error! {
    /// Parameters that a policy wants and that nobody can give; in upstream's words.
    pub(super) struct BadParams;
}

/// `paramKind` of a policy.
pub(super) struct ParamKind {
    api_version: String,
    kind: String,
}

impl ParamKind {
    /// Of a policy's spec.
    pub(super) fn of(spec: &Value) -> Option<ParamKind> {
        is_set(spec, "paramKind").then(|| {
            let tree = at(spec, "paramKind");
            ParamKind { api_version: text(tree, "apiVersion").into(), kind: text(tree, "kind").into() }
        })
    }

    /// The kind, if it is served.
    ///
    /// # Errors
    /// Upstream's words for one that is not.
    pub(super) fn find(&self, scheme: &Scheme) -> Result<Arc<Kind>, BadParams> {
        let version = GroupVersion::parse(&self.api_version);
        let found = version.as_ref().and_then(|version| scheme.kind(version, &self.kind));
        found.ok_or_else(|| {
            let shown = version.map_or(self.kind.clone(), |version| version.kind(&self.kind).to_string());
            format!("failed to find resource referenced by paramKind: '{shown}'").into()
        })
    }
}

/// The parameters of a binding, one evaluation for each; none of them is one without.
///
/// # Errors
/// What is wrong with the reference, or that nothing is there.
pub(super) async fn collect(
    registry: &Registry,
    kind: Option<&Arc<Kind>>,
    param_ref: Option<&ParamRef>,
    namespace: &str,
) -> Result<Vec<Option<Value>>, BadParams> {
    let (Some(kind), Some(param_ref)) = (kind, param_ref) else { return Ok(vec![None]) };
    registry.bootstrap(kind).await.map_err(|status| status.message)?;
    let namespace = match (kind.namespaced, param_ref.namespace.as_str(), namespace) {
        (false, "", _) => "",
        (false, _, _) => {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".into());
        }
        (true, "", "") => {
            let why =
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
            return Err(why.into());
        }
        (true, "", namespace) | (true, namespace, _) => namespace,
    };
    let found = match &param_ref.selector {
        None => match registry.get(kind, namespace, &param_ref.name, None).await {
            Ok(object) => vec![object],
            Err(status) if status.is_not_found() => vec![],
            Err(status) => return Err(status.message.into()),
        },
        Some(selector) => {
            let labels = selector.clone().map_err(String::from)?;
            let predicate = Predicate { labels, ..Predicate::default() };
            let options = ListOptions { predicate, ..ListOptions::default() };
            let list = registry.list(kind, namespace, &options).await;
            list.map_err(|status| status.message)?.items.to_vec()
        }
    };
    if found.is_empty() && param_ref.denies_when_missing {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".into());
    }
    Ok(found.iter().map(|object| Some(with_type(kind, object))).collect())
}

fn with_type(kind: &Kind, object: &Object) -> Value {
    let mut tree = object.to_value();
    tree["apiVersion"] = kind.api_version().into();
    tree["kind"] = (&*kind.kind).into();
    tree
}
