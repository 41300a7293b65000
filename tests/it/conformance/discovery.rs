//! The rows that walk the discovery documents.

use http::header::ACCEPT;
use serde_json::Value;

use super::*;
use crate::apiserver::Server;

/// Row: discovery - the preferred version of every group
/// Row: discovery - every group, its version and a resource of it
#[tokio::test]
async fn every_group_is_found_where_discovery_says() {
    let cluster = TestCluster::start(None, "discovery").await.expect("nothing but the apiserver is needed");
    let server = Server::over(cluster.service());
    let groups = server.get("/apis").await["groups"].as_array().unwrap().clone();
    for (group, version, resource) in RESOURCES {
        if !group.is_empty() {
            let listed = groups.iter().find(|listed| listed["name"] == *group);
            let listed = listed.unwrap_or_else(|| panic!("no group {group}"));
            let versions = listed["versions"].as_array().unwrap();
            assert!(versions.iter().any(|listed| listed["version"] == *version), "{group}/{version}");
        }
        let path =
            if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        let list = server.get(&path).await;
        assert_eq!(list["kind"], "APIResourceList");
        let resources = list["resources"].as_array().unwrap();
        assert!(resources.iter().any(|listed| listed["name"] == *resource), "{path} has no {resource}");
    }
    for listed in &groups {
        let name = listed["name"].as_str().unwrap();
        // With the slash that such tests put at the end.
        let group = server.get(&format!("/apis/{name}/")).await;
        let preferred = &group["preferredVersion"];
        assert!(group["versions"].as_array().unwrap().contains(preferred), "{name}: {group}");
        assert_eq!(preferred, &listed["preferredVersion"]);
        let version = preferred["groupVersion"].as_str().unwrap();
        assert_eq!(server.get(&format!("/apis/{version}")).await["groupVersion"], version);
    }
    cluster.stop().await;
}

const RESOURCES: &[(&str, &str, &str)] = &[
    ("", "v1", "namespaces"),
    ("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations"),
    ("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
    ("apiregistration.k8s.io", "v1", "apiservices"),
    ("apps", "v1", "deployments"),
    ("authentication.k8s.io", "v1", "tokenreviews"),
    ("authorization.k8s.io", "v1", "selfsubjectaccessreviews"),
    ("autoscaling", "v1", "horizontalpodautoscalers"),
    ("autoscaling", "v2", "horizontalpodautoscalers"),
    ("batch", "v1", "jobs"),
    ("certificates.k8s.io", "v1", "certificatesigningrequests"),
    ("coordination.k8s.io", "v1", "leases"),
    ("discovery.k8s.io", "v1", "endpointslices"),
    ("events.k8s.io", "v1", "events"),
    ("flowcontrol.apiserver.k8s.io", "v1", "flowschemas"),
    ("networking.k8s.io", "v1", "ingresses"),
    ("node.k8s.io", "v1", "runtimeclasses"),
    ("policy", "v1", "poddisruptionbudgets"),
    ("rbac.authorization.k8s.io", "v1", "clusterroles"),
    ("resource.k8s.io", "v1", "resourceclaims"),
    ("scheduling.k8s.io", "v1", "priorityclasses"),
    ("storage.k8s.io", "v1", "csinodes"),
];

/// What client-go's typed clients say that they accept when they are told to send protobuf.
#[tokio::test]
async fn clients_that_prefer_protobuf_are_answered_in_it() {
    let cluster = TestCluster::start(None, "discovery").await.expect("nothing but the apiserver is needed");
    let server = Server::over(cluster.service());
    for accept in [
        "application/vnd.kubernetes.protobuf, */*",
        "application/vnd.kubernetes.protobuf,application/json",
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
         application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
    ] {
        let line = "GET /api/v1/namespaces";
        let answer = server.call_with(line, &[(ACCEPT.as_str(), accept)], "").await;
        assert_eq!(answer.code, 200, "{accept}: {}", answer.text);
        assert_eq!(answer.headers["content-type"], "application/vnd.kubernetes.protobuf");
        assert!(answer.bytes.starts_with(b"k8s\0") && answer.text.contains("kube-system"));
    }
    assert_eq!(server.call("GET /apis/apps/v1/", &Value::Null).await.code, 200);
    cluster.stop().await;
}
