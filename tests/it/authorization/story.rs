//! `kubarium trace`: who allowed a write, what changed it, and who said no.

use kubarium::apis::core::pod::PODS;
use kubarium::apis::core::service_account::SERVICE_ACCOUNTS;

use super::*;

#[tokio::test]
async fn each_link_of_the_chain_says_what_it_did() {
    let cluster = start().await;
    let client = cluster.client();
    client.create(&SERVICE_ACCOUNTS, "team", json!({"metadata": {"name": "default"}})).await.unwrap();
    bind(&client, "jane", "edit").await;
    until_allowed(&client, "jane", &[], "create pods team").await;
    let jane = client.acting_as(UserInfo::authenticated("jane", &[]));
    let pod = |image: &str| json!({"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": image}]}});
    jane.create(&PODS, "team", pod("nginx")).await.unwrap();
    jane.create(&PODS, "team", pod("nginx")).await.unwrap_err();
    let john = client.acting_as(UserInfo::authenticated("john", &[]));
    john.delete(&PODS, "team", "web", &Default::default()).await.unwrap_err();
    let trace = cluster.flow().trace("pods", "team", "web").render();
    // Times and numbers differ from run to run.
    let told = trace.lines().skip(1).map(|line| line.split(" <- ").next().unwrap());
    let told = told.map(|line| line.split_once("kube-apiserver").unwrap().1.trim());
    let told = told.collect::<Vec<_>>().join("\n");
    for part in [
        "authenticated as jane",
        "RBAC: allowed by RoleBinding \"jane/team\" of ClusterRole \"edit\" to User \"jane\"",
        "ServiceAccount changed spec.containers, spec.serviceAccount, spec.serviceAccountName, spec.volumes",
        "DefaultTolerationSeconds changed spec.tolerations",
        "validated\ncreated pods team/web at",
        "answered 201",
        "refused with 409: pods \"web\" already exists",
        "not authorized (Node: no opinion; RBAC: no opinion)\nrefused with 403: pods \"web\" is forbidden: \
         User \"john\" cannot delete resource \"pods\" in API group \"\" in the namespace \"team\"",
    ] {
        assert!(told.contains(part), "{part:?} is not in\n{told}\n{trace}");
    }
}
