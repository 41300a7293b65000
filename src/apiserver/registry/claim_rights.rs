//! Who may write which part of a ResourceClaim's status beside what `resourceclaims/status` allows
//! (`pkg/registry/resource`, `AuthorizedForBinding`, `AuthorizedForDeviceStatus`): what it is given and for
//! whom is the scheduler's to say, how a device is doing that of its driver.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Weak;

use serde_json::Value;

use super::Registry;
use super::store::Part;
use super::update::Update;
use crate::authorizer::{Authorizer, Decision, forbidden};
use crate::request::RequestInfo;
use apimachinery::field_error::FieldErrors;
use apimachinery::user::UserInfo;
use apis::kind::Kind;
use apis::tree::{at, items, text, texts};
use apis::validation::equal;

const GATE: &str = "DRAResourceClaimGranularStatusAuthorization";
const DEVICES_GATE: &str = "DRAResourceClaimDeviceStatus";
/// A service account's token of a pod says with this on which node that runs.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

impl Registry {
    /// Whoever decides what users may do; the first that is given stays, as long as its owner keeps it.
    pub fn set_authorizer(&self, authorizer: Weak<dyn Authorizer>) {
        // There is one apiserver over a registry.
        let _ = self.0.authorizer.set(authorizer);
    }

    /// What of an update of a claim's status its user may not write.
    pub(super) async fn claim_rights(
        &self,
        update: &Update<'_>,
        kind: &Kind,
        new: &Value,
        old: &Value,
    ) -> FieldErrors {
        let mut errors = FieldErrors::default();
        let is_claim = &*kind.group_version.group == "resource.k8s.io" && &*kind.plural == "resourceclaims";
        if update.part != Part::Status || !is_claim || !self.gates().enabled(GATE) {
            return errors;
        }
        // Without an apiserver there is nobody to ask, and nobody who asks.
        let Some(authorizer) = self.0.authorizer.get().and_then(Weak::upgrade) else { return errors };
        let rights = ClaimRights { authorizer: &*authorizer, user: &update.ctx.user, info: &update.ctx.info };
        rights.check_binding(new, old, &mut errors).await;
        let is_allocated = !at(new, "status.allocation").is_null();
        if is_allocated && self.gates().enabled(DEVICES_GATE) {
            rights.check_devices(new, old, &mut errors).await;
        }
        errors
    }
}

/// Who asks for what, and who decides.
struct ClaimRights<'a> {
    authorizer: &'a dyn Authorizer,
    user: &'a UserInfo,
    info: &'a RequestInfo,
}

impl ClaimRights<'_> {
    /// What it is given and for whom needs `resourceclaims/binding`, in the whole cluster.
    async fn check_binding(&self, new: &Value, old: &Value, errors: &mut FieldErrors) {
        let is_same = |path| equal(at(new, path), at(old, path));
        if is_same("status.allocation") && is_same("status.reservedFor") {
            return;
        }
        let verb = &self.info.verb;
        if let Err(why) = self.may(verb, "binding", "", "").await {
            let what = "changing status.allocation or status.reservedFor requires";
            let right = format!("resource=\"resourceclaims/binding\", verb=\"{verb}\" permission");
            errors.forbidden("status.allocation", format!("{what} {right}: {why}"));
        }
    }

    /// What is said of a device needs `resourceclaims/driver` of its driver's name: on the claim's own node
    /// with one verb, from anywhere with another.
    async fn check_devices(&self, new: &Value, old: &Value, errors: &mut FieldErrors) {
        let mut prefixes = vec!["arbitrary-node:"];
        if node_of(new).is_some_and(|node| self.is_on(node)) {
            prefixes.insert(0, "associated-node:");
        }
        let verbs: Vec<String> =
            prefixes.iter().map(|prefix| format!("{prefix}{}", self.info.verb)).collect();
        for driver in changed_drivers(new, old) {
            if let Err(why) = self.may_any(&verbs, driver).await {
                let right = format!("resource=\"resourceclaims/driver\", verb=\"[{}]\"", verbs.join(" "));
                let text = format!("changing status.devices requires {right} permission: {why}");
                errors.forbidden("status.devices", text);
            }
        }
    }

    /// One of the verbs is enough; if none is, the first says why.
    async fn may_any(&self, verbs: &[String], driver: &str) -> Result<(), String> {
        let mut first = Ok(());
        for verb in verbs {
            let may = self.may(verb, "driver", &self.info.namespace, driver).await;
            if may.is_ok() {
                return may;
            }
            first = first.and(may);
        }
        first
    }

    async fn may(&self, verb: &str, subresource: &str, namespace: &str, name: &str) -> Result<(), String> {
        let question = RequestInfo {
            verb: verb.into(),
            subresource: subresource.into(),
            namespace: namespace.into(),
            name: name.into(),
            ..self.info.clone()
        };
        let decision = self.authorizer.authorize(self.user, &question).wait().await;
        let why = match &decision {
            Decision::Allow(_) => return Ok(()),
            Decision::Failed { error, reason, .. } if reason.is_empty() => error.clone(),
            Decision::Failed { error, reason, .. } => format!("{error}: {reason}"),
            Decision::Deny(reason) | Decision::NoOpinion(reason) => reason.clone(),
        };
        Err(forbidden(self.user, &question, &why).message)
    }

    /// Whether it is a service account whose pod runs on this node.
    fn is_on(&self, node: &str) -> bool {
        let is_account = self.user.name.starts_with("system:serviceaccount:");
        is_account && self.user.extra.get(NODE_NAME).is_some_and(|names| names.as_slice() == [node])
    }
}

/// The one node that a claim's devices are on, where it is one.
fn node_of(claim: &Value) -> Option<&str> {
    let [term] = items(claim, "status.allocation.nodeSelector.nodeSelectorTerms") else { return None };
    let [field] = items(term, "matchFields") else { return None };
    let is_by_name = text(field, "key") == "metadata.name" && text(field, "operator") == "In";
    match texts(field, "values")[..] {
        [node] if is_by_name && items(term, "matchExpressions").is_empty() => Some(node),
        _ => None,
    }
}

/// The drivers of whose devices something else is said than before.
fn changed_drivers<'a>(new: &'a Value, old: &'a Value) -> BTreeSet<&'a str> {
    let [new, old] = [new, old].map(|claim| -> BTreeMap<_, _> {
        let devices = items(claim, "status.devices").iter();
        devices
            .map(|one| (["driver", "pool", "device", "shareID"].map(|part| text(one, part)), one))
            .collect()
    });
    let is_same = |key, device| old.get(key).is_some_and(|was| equal(was, device));
    let added = new.iter().filter(|(key, device)| !is_same(*key, device));
    let removed = old.iter().filter(|(key, _)| !new.contains_key(*key));
    added.chain(removed).map(|([driver, ..], _)| *driver).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn drivers_are_asked_about_whose_devices_are_told_of_anew() {
        let device =
            |driver: &str, data: i64| json!({"driver": driver, "pool": "p", "device": "d", "data": data});
        let claim = |devices: Value| json!({"status": {"devices": devices}});
        let old = claim(json!([device("a", 1), device("b", 1), device("c", 1)]));
        let new = claim(json!([device("a", 1), device("b", 2), device("d", 1)]));
        assert_eq!(changed_drivers(&new, &old).into_iter().collect::<Vec<_>>(), ["b", "c", "d"]);
    }

    #[test]
    fn a_claim_is_on_a_node_that_it_names_alone() {
        let claim =
            |term: Value| json!({"status": {"allocation": {"nodeSelector": {"nodeSelectorTerms": [term]}}}});
        let field = json!({"key": "metadata.name", "operator": "In", "values": ["node-1"]});
        assert_eq!(node_of(&claim(json!({"matchFields": [field]}))), Some("node-1"));
        let other = json!({"key": "a", "operator": "Exists"});
        assert_eq!(node_of(&claim(json!({"matchFields": [field], "matchExpressions": [other]}))), None);
        assert_eq!(node_of(&json!({})), None);
    }
}
