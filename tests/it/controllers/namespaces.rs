//! Namespaces get what they start with, and are emptied before they go.

use kubarium::apis::apps::deployment::DEPLOYMENTS;
use kubarium::apis::core::config_map::CONFIG_MAPS;
use kubarium::apis::core::namespace::NAMESPACES;
use kubarium::apis::core::service_account::SERVICE_ACCOUNTS;
use serde_json::json;

use super::support::{Fixture, NAMESPACE, condition, deployment};

#[tokio::test]
async fn a_namespace_has_an_account_and_the_authority() {
    let fixture = Fixture::start().await;
    let config_map = fixture.exists(&CONFIG_MAPS, "kube-root-ca.crt").await;
    assert!(config_map["data"]["ca.crt"].is_string());
    fixture.patch(&CONFIG_MAPS, "kube-root-ca.crt", json!({"data": {"ca.crt": "forged"}})).await;
    let mended = || async {
        let config_map = fixture.get(&CONFIG_MAPS, "kube-root-ca.crt").await?;
        (config_map["data"]["ca.crt"] != "forged").then_some(())
    };
    fixture.eventually("the authority is put right", mended).await;
    fixture.delete(&SERVICE_ACCOUNTS, "default", "Background").await;
    fixture.exists(&SERVICE_ACCOUNTS, "default").await;
}

#[tokio::test]
async fn a_namespace_goes_when_all_in_it_has_gone() {
    let fixture = Fixture::start().await;
    fixture.create(&DEPLOYMENTS, NAMESPACE, deployment("web", 2, "nginx", json!({}))).await;
    fixture.rolled_out("web").await;
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/wait"]}});
    fixture.create(&CONFIG_MAPS, NAMESPACE, held).await;
    fixture.delete(&NAMESPACES, NAMESPACE, "Background").await;
    let waits = || async {
        fixture.run_pods("").await;
        let namespace = fixture.get(&NAMESPACES, NAMESPACE).await?;
        let finalizers = condition(&namespace, "NamespaceFinalizersRemaining");
        (finalizers["reason"] == "SomeFinalizersRemain").then_some(namespace.clone())
    };
    let namespace = fixture.eventually("it waits for the finalizer", waits).await;
    assert_eq!(namespace["status"]["phase"], "Terminating");
    assert_eq!(
        condition(&namespace, "NamespaceContentRemaining")["message"],
        "Some resources are remaining: configmaps. has 1 resource instances"
    );
    assert!(fixture.list(&DEPLOYMENTS, "").await.is_empty());
    fixture.patch(&CONFIG_MAPS, "held", json!({"metadata": {"finalizers": null}})).await;
    fixture.gone(&NAMESPACES, NAMESPACE).await;
}

#[tokio::test]
async fn a_server_that_does_not_answer_keeps_a_namespace_and_is_named() {
    let clock = kubarium::Clock::stepped("2026-01-01T00:00:00Z".parse().unwrap());
    let cluster = kubarium::Cluster::start(kubarium::Config::new().nodes(1).clock(clock)).await.unwrap();
    let client = cluster.client();
    let spec = json!({"group": "absent.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10,
        "service": {"namespace": "default", "name": "absent"}, "insecureSkipTLSVerify": true});
    let service = json!({"metadata": {"name": "v1.absent.example.com"}, "spec": spec});
    let services = &kubarium::apis::apiregistration::api_service::API_SERVICES;
    client.create(services, "", service).await.unwrap();
    client.create(&NAMESPACES, "", json!({"metadata": {"name": "going"}})).await.unwrap();
    cluster.settled().await.unwrap();
    client.delete(&NAMESPACES, "", "going", &kubarium::DeleteOptions::default()).await.unwrap();
    cluster.pass(std::time::Duration::from_secs(5)).await.unwrap();
    let going = client.get(&NAMESPACES, "", "going").await.unwrap().to_value();
    let conditions = going["status"]["conditions"].as_array().unwrap();
    let failure = conditions.iter().find(|one| one["type"] == "NamespaceDeletionDiscoveryFailure").unwrap();
    let message = "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: \
                   absent.example.com/v1: stale GroupVersion discovery: absent.example.com/v1";
    assert_eq!((&failure["status"], &failure["reason"]), (&json!("True"), &json!("DiscoveryFailed")));
    assert_eq!(failure["message"], message);
    client.delete(services, "", "v1.absent.example.com", &kubarium::DeleteOptions::default()).await.unwrap();
    cluster.pass(std::time::Duration::from_secs(60)).await.unwrap();
    assert!(client.get(&NAMESPACES, "", "going").await.is_err_and(|status| status.is_not_found()));
    cluster.stop().await;
}
