//! The kinds that CustomResourceDefinitions make, for controllers in a process of their own: quotas, garbage
//! and namespaces are of all kinds (upstream's discovery client, asked again and again).

use std::collections::BTreeMap;
use std::sync::Arc;

use apimachinery::object::Object;
use apis::apiextensions::custom_resource_definition::CUSTOM_RESOURCE_DEFINITIONS;
use apis::apiextensions::kinds;
use apis::apiextensions::view::CustomResourceDefinition;
use apis::kind::Kind;
use apis::scheme::Scheme;
use client_go::component::ComponentContext;
use client_go::shared_informer::{Deleted, ResourceEventHandler};
use serde_json::Value;
use sync::Mutex;

/// Puts what is established into the scheme, until the context is stopped.
pub(super) fn follow(context: &ComponentContext, scheme: &Arc<Scheme>) {
    let follower = CustomKinds { scheme: scheme.clone(), known: Mutex::default() };
    context.handle(&CUSTOM_RESOURCE_DEFINITIONS, follower);
    context.start_informers();
}

struct CustomKinds {
    scheme: Arc<Scheme>,
    /// By name. Bound: one for each definition.
    known: Mutex<BTreeMap<String, KnownKinds>>,
}

/// What one definition has made, and from what.
#[derive(Default)]
struct KnownKinds {
    made_from: Value,
    served: Vec<Arc<Kind>>,
}

impl CustomKinds {
    fn changed(&self, object: &Object) {
        let tree = object.to_value();
        let crd = CustomResourceDefinition::read(&tree);
        let made_from = if crd.is("Established") {
            serde_json::json!([object.metadata.uid, tree["spec"], tree["status"]["acceptedNames"]])
        } else {
            Value::Null
        };
        let mut known = self.known.lock();
        let known = known.entry(object.metadata.name.clone()).or_default();
        if known.made_from == made_from {
            return;
        }
        let served = if made_from.is_null() { Vec::new() } else { kinds::served(object, &crd).served };
        let before = std::mem::replace(known, KnownKinds { made_from, served: served.clone() });
        self.replace(&before.served, &served);
    }

    fn replace(&self, before: &[Arc<Kind>], now: &[Arc<Kind>]) {
        let same = |left: &Kind, right: &Kind| {
            left.group_version == right.group_version && left.plural == right.plural
        };
        let gone = before.iter().filter(|old| !now.iter().any(|new| same(new, old)));
        gone.for_each(|old| self.scheme.unregister(&old.group_version, &old.plural));
        now.iter().for_each(|kind| self.scheme.register(kind.clone()));
    }
}

impl ResourceEventHandler for CustomKinds {
    fn on_add(&self, new: &Arc<Object>, _is_initial_list: bool) {
        self.changed(new);
    }

    fn on_update(&self, _old: &Arc<Object>, new: &Arc<Object>) {
        self.changed(new);
    }

    fn on_delete(&self, last: &Deleted) {
        let gone = self.known.lock().remove(&last.last().metadata.name);
        self.replace(&gone.unwrap_or_default().served, &[]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn definition(established: &str, versions: &[&str]) -> Arc<Object> {
        let names =
            json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"});
        let version = |name: &&str| {
            json!({"name": name, "served": true, "storage": *name == versions[0],
                "schema": {"openAPIV3Schema": {"type": "object"}}})
        };
        let versions: Vec<_> = versions.iter().map(version).collect();
        let tree = json!({
            "metadata": {"name": "widgets.example.com", "uid": "u"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions},
            "status": {"acceptedNames": names, "storedVersions": [],
                "conditions": [{"type": "Established", "status": established}]},
        });
        Arc::new(Object::from_value(&tree, vec![]).unwrap())
    }

    #[test]
    fn kinds_come_and_go_with_their_definitions() {
        let scheme = Arc::new(Scheme::builtin());
        let follower = CustomKinds { scheme: scheme.clone(), known: Mutex::default() };
        let has = |version: &str| scheme.resource("example.com", version, "widgets").is_some();
        follower.on_add(&definition("False", &["v1"]), true);
        assert!(!has("v1"), "it is not established");
        follower.on_add(&definition("True", &["v1"]), false);
        assert!(has("v1"));
        let generation = scheme.generation();
        follower.on_add(&definition("True", &["v1"]), false);
        assert_eq!(scheme.generation(), generation, "nothing is new");
        follower.on_add(&definition("True", &["v2"]), false);
        assert!(has("v2") && !has("v1"));
        follower.on_delete(&Deleted::Object(definition("True", &["v2"])));
        assert!(!has("v2"));
    }
}
