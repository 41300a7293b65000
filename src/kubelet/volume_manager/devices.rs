//! The devices that a pod claims (`pkg/kubelet/cm/dra`): before its containers start they are prepared, each
//! by its driver. Drivers are simulated, and have nothing to do but to say that they are done, or what is
//! wrong.

use super::device_variables;
use super::sources::{Found, PreparedDevice};
use apimachinery::object::Object;
use apis::resource::resource_claim::RESOURCE_CLAIMS;
use apis::tree::{annotation, is_set, items, text};
use apis::views::pod::Pod;
use client_go::client::Client;
use serde_json::Value;

/// On a ResourceClaim: its driver cannot prepare it, and this is what it says.
const PREPARE_ERROR: &str = "kubarium.dev/prepare-error";

/// A claim of a pod: what the pod calls it, and its name as soon as there is one. A claim that was not needed
/// has an empty name.
pub(crate) type DeviceClaim = (String, Option<String>);

/// The claims of a pod, those for extended resources last.
pub(crate) fn claims_of(pod: &Pod) -> Vec<DeviceClaim> {
    let claims = pod.spec.resource_claims.iter();
    let named =
        claims.map(|claim| (claim.name.clone(), claim.claim_name(&pod.status.resource_claim_statuses)));
    let extended = pod.status.extended_resource_claim_status.as_deref();
    let extended = extended.map(|status| text(status, "resourceClaimName").to_owned());
    named.chain(extended.map(|name| (String::new(), Some(name)))).collect()
}

/// Prepares all claims of a pod.
pub(super) async fn prepare(client: &Client, pod: (&str, &str, &str), claims: &[DeviceClaim]) -> Found {
    let mut devices = Vec::new();
    for (of, claim) in claims {
        let (namespace, name, _) = pod;
        let prepared = match claim.as_deref() {
            None => Err(format!("pod \"{namespace}/{name}\": ResourceClaim of {of:?} not created yet")),
            Some("") => Ok(vec![]),
            Some(claim) => match client.get(&RESOURCE_CLAIMS, namespace, claim).await {
                Ok(claim) => prepare_one(&claim, pod).map(|()| devices_of(&claim, of)),
                Err(status) => Err(format!("fetch ResourceClaim {claim}: {}", status.message)),
            },
        };
        match prepared {
            Ok(prepared) => devices.extend(prepared),
            Err(why) => {
                let why = format!("Failed to prepare dynamic resources: prepare dynamic resources: {why}");
                return Found::Missing(why);
            }
        }
    }
    Found::Prepared(devices.into())
}

fn devices_of(claim: &Object, of: &str) -> Vec<PreparedDevice> {
    let tree = claim.to_value();
    let device = |result: &Value| PreparedDevice {
        claim: of.to_owned(),
        request: text(result, "request").to_owned(),
        id: ["driver", "pool", "device"].map(|field| text(result, field).to_owned()),
        variables: device_variables::of_result(&tree, result),
    };
    items(&tree, "status.allocation.devices.results").iter().map(device).collect()
}

fn prepare_one(claim: &Object, (_, pod, uid): (&str, &str, &str)) -> Result<(), String> {
    let (tree, name) = (claim.to_value(), &claim.metadata.name);
    if !items(&tree, "status.reservedFor").iter().any(|user| text(user, "uid") == uid) {
        let claim_uid = &claim.metadata.uid;
        return Err(format!("pod {pod} ({uid}) is not allowed to use ResourceClaim {name} ({claim_uid})"));
    }
    if !is_set(&tree, "status.allocation") {
        return Err(format!("ResourceClaim {name}: not allocated"));
    }
    match annotation(&tree, PREPARE_ERROR) {
        "" => Ok(()),
        fault => Err(format!("NodePrepareResources failed for ResourceClaim {name}: {fault}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn claims_are_named_by_the_pod_or_by_its_status() {
        let pod: Pod = serde_json::from_value(json!({
            "spec": {"resourceClaims": [{"name": "a", "resourceClaimName": "there"},
                {"name": "b", "resourceClaimTemplateName": "t"}, {"name": "c", "resourceClaimTemplateName": "t"}]},
            "status": {"resourceClaimStatuses": [{"name": "b", "resourceClaimName": "made"}],
                "extendedResourceClaimStatus": {"resourceClaimName": "extended"}},
        }))
        .unwrap();
        let claim = |of: &str, name: Option<&str>| (of.to_owned(), name.map(str::to_owned));
        let expected = [
            claim("a", Some("there")),
            claim("b", Some("made")),
            claim("c", None),
            claim("", Some("extended")),
        ];
        assert_eq!(claims_of(&pod), expected);
    }

    #[test]
    fn a_claim_is_prepared_for_whom_it_is_reserved() {
        let claim = |annotations: Value, status: Value| {
            let metadata = json!({"name": "gpu", "uid": "7", "annotations": annotations});
            Object::from_value(&json!({"metadata": metadata, "status": status}), vec![]).unwrap()
        };
        let prepare = |claim: Object| prepare_one(&claim, ("ns", "p", "u"));
        let reserved =
            json!({"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}], "allocation": {}});
        assert_eq!(prepare(claim(json!({}), reserved.clone())), Ok(()));
        let why = prepare(claim(json!({}), json!({"allocation": {}}))).unwrap_err();
        assert_eq!(why, "pod p (u) is not allowed to use ResourceClaim gpu (7)");
        let why = prepare(claim(json!({PREPARE_ERROR: "no such device"}), reserved)).unwrap_err();
        assert_eq!(why, "NodePrepareResources failed for ResourceClaim gpu: no such device");
    }
}
