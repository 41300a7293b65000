//! Who may write which part of a ResourceClaim's status.

use kubarium::apimachinery::options::PatchType;
use kubarium::apimachinery::status::Status;
use kubarium::apimachinery::user::UserInfo;
use kubarium::apis::rbac::role::CLUSTER_ROLES;
use kubarium::apis::rbac::role_binding::CLUSTER_ROLE_BINDINGS;
use kubarium::apis::resource::resource_claim::RESOURCE_CLAIMS;
use kubarium::client_go::client::Client;
use serde_json::{Value, json};

use super::{message, start, until_allowed};

const DRIVER: &str = "gpu.example.com";

async fn allow(client: &Client, user: &str, name: &str, rule: Value) {
    let role = json!({"metadata": {"name": name}, "rules": [rule]});
    client.create(&CLUSTER_ROLES, "", role).await.unwrap();
    let binding = json!({"metadata": {"name": name}, "roleRef": {"kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "User", "name": user}]});
    client.create(&CLUSTER_ROLE_BINDINGS, "", binding).await.unwrap();
}

async fn patch(client: &Client, status: Value) -> Result<(), Status> {
    let patch = json!({"status": status});
    client.patch_status(&RESOURCE_CLAIMS, "team", "c", PatchType::Merge, &patch).await.map(drop)
}

/// Whoever may write the status may not yet write what others decide by
/// (`DRAResourceClaimGranularStatusAuthorization`).
#[tokio::test]
async fn what_a_claim_is_given_and_how_its_devices_do_need_rights_of_their_own() {
    let cluster = start().await;
    let admin = cluster.client();
    let request = json!({"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}});
    let claim = json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}});
    admin.create(&RESOURCE_CLAIMS, "team", claim).await.unwrap();
    let result = json!({"request": "r", "driver": DRIVER, "pool": "p", "device": "d"});
    let given = json!({"allocation": {"devices": {"results": [result]}}});
    let user = admin.acting_as(UserInfo::authenticated("driver", &[]));
    let group = json!(["resource.k8s.io"]);
    let status =
        json!({"apiGroups": group, "resources": ["resourceclaims/status"], "verbs": ["patch", "update"]});
    allow(&admin, "driver", "status", status).await;
    until_allowed(&admin, "driver", &[], "patch resourceclaims.resource.k8s.io/status team c").await;

    let refused = message(patch(&user, given.clone()).await);
    let why = "status.allocation: Forbidden: changing status.allocation or status.reservedFor requires \
        resource=\"resourceclaims/binding\", verb=\"patch\" permission: resourceclaims.resource.k8s.io is \
        forbidden: User \"driver\" cannot patch resource \"resourceclaims/binding\" in API group \
        \"resource.k8s.io\" at the cluster scope";
    assert_eq!(refused, format!("ResourceClaim.resource.k8s.io \"c\" is invalid: {why}"));
    patch(&admin, given.clone()).await.unwrap();
    // What is the same as before needs nothing.
    patch(&user, given).await.unwrap();

    let device =
        |data: i64| json!({"devices": [{"driver": DRIVER, "pool": "p", "device": "d", "data": {"x": data}}]});
    let refused = message(patch(&user, device(1)).await);
    let why = "status.devices: Forbidden: changing status.devices requires resource=\"resourceclaims/driver\", \
        verb=\"[arbitrary-node:patch]\" permission: resourceclaims.resource.k8s.io \"gpu.example.com\" is \
        forbidden: User \"driver\" cannot arbitrary-node:patch resource \"resourceclaims/driver\" in API group \
        \"resource.k8s.io\" in the namespace \"team\"";
    assert_eq!(refused, format!("ResourceClaim.resource.k8s.io \"c\" is invalid: {why}"));
    let own = json!({"apiGroups": group, "resources": ["resourceclaims/driver"],
        "verbs": ["arbitrary-node:patch"], "resourceNames": [DRIVER]});
    allow(&admin, "driver", "driver", own).await;
    let may = "arbitrary-node:patch resourceclaims.resource.k8s.io/driver team gpu.example.com";
    until_allowed(&admin, "driver", &[], may).await;
    patch(&user, device(1)).await.unwrap();
    patch(&user, json!({"devices": null})).await.unwrap();
}
