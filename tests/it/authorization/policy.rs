//! The default roles and bindings are stored when somebody first asks for one of their kinds; nobody may see
//! the time before.

use kubarium::apimachinery::options::{DeleteOptions, ListOptions};
use kubarium::apis::core::config_map::CONFIG_MAPS;
use kubarium::apis::kind::Builtin;
use kubarium::apis::rbac::bootstrap_policy::objects;

use super::*;

const KINDS: [&Builtin; 4] = [&ROLES, &CLUSTER_ROLES, &ROLE_BINDINGS, &CLUSTER_ROLE_BINDINGS];

/// What the default roles say of somebody with no role of their own, and of a controller.
async fn decide(client: &Client) -> Vec<Value> {
    let controller = "system:serviceaccount:kube-system:deployment-controller";
    let mut decisions = Vec::new();
    for (user, groups, what) in [
        ("somebody", &[][..], "get /version"),
        ("somebody", &[], "get pods team"),
        ("somebody", &[], "create selfsubjectaccessreviews.authorization.k8s.io"),
        ("system:anonymous", &[], "get /healthz"),
        ("system:anonymous", &[], "get /metrics"),
        ("system:kube-scheduler", &[], "create pods/binding team"),
        (controller, &["system:serviceaccounts"], "delete replicasets.apps team"),
        (controller, &["system:serviceaccounts"], "delete secrets team"),
        ("boss", &["system:masters"], "delete secrets team"),
    ] {
        decisions.push(review(client, user, groups, what).await);
    }
    decisions
}

async fn names(client: &Client, kind: &Kind) -> Vec<String> {
    let list = client.list(kind, "", &ListOptions::default()).await.unwrap();
    list.items.iter().map(|object| object.key()).collect()
}

fn expected_names(kind: &Kind) -> Vec<String> {
    let of_kind = objects().into_iter().filter(|object| object.kind.plural == kind.plural);
    let key = |namespace: &str, name: &str| match namespace {
        "" => name.to_owned(),
        namespace => format!("{namespace}/{name}"),
    };
    let mut names: Vec<String> = of_kind.map(|object| key(object.namespace(), object.name())).collect();
    names.sort();
    names
}

#[tokio::test]
async fn whatever_is_asked_first_all_of_them_are_there() {
    for first in KINDS {
        let cluster = start().await;
        let client = cluster.client();
        let mut events = client.watch(first, "", &ListOptions::default()).await.unwrap();
        let mut seen = Vec::new();
        while seen.len() < expected_names(first).len() {
            let event = events.recv().await.unwrap();
            seen.push(event.object().unwrap().key());
        }
        assert_eq!(seen, expected_names(first));
        for kind in KINDS {
            assert_eq!(names(&client, kind).await, expected_names(kind), "behind {:?}", first.kind);
        }
    }
}

#[tokio::test]
async fn decisions_are_the_same_before_and_after_they_are_stored() {
    let cluster = start().await;
    let client = cluster.client();
    let before = decide(&client).await;
    assert_eq!(before.iter().filter(|status| status["allowed"] == true).count(), 6, "{before:#?}");
    let reason = "RBAC: allowed by ClusterRoleBinding \"system:kube-scheduler\" of ClusterRole \
                  \"system:kube-scheduler\" to User \"system:kube-scheduler\"";
    assert_eq!(before[5]["reason"], reason);
    client.get(&CLUSTER_ROLES, "", "view").await.unwrap();
    assert_eq!(decide(&client).await, before);
    // From now on what is stored counts.
    bind(&client, "late", "view").await;
    until_allowed(&client, "late", &[], "get pods team").await;
    assert_eq!(decide(&client).await, before);
    let basic = "system:public-info-viewer";
    client.delete(&CLUSTER_ROLE_BINDINGS, "", basic, &DeleteOptions::default()).await.unwrap();
    while review(&client, "system:anonymous", &[], "get /healthz").await["allowed"] == true {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn they_look_as_if_somebody_had_sent_them() {
    let cluster = start().await;
    let client = cluster.client();
    let comparable = |mut tree: Value| {
        let metadata = tree["metadata"].as_object_mut().unwrap();
        for own in ["name", "uid", "creationTimestamp", "resourceVersion"] {
            metadata.remove(own).unwrap_or_else(|| panic!("{own} is set"));
        }
        for entry in metadata["managedFields"].as_array_mut().unwrap() {
            ["manager", "time"].iter().for_each(|own| drop(entry.as_object_mut().unwrap().remove(*own)));
        }
        tree
    };
    for object in objects() {
        let (namespace, name) = (object.namespace().to_owned(), object.name().to_owned());
        let made = client.get(object.kind, &namespace, &name).await.unwrap().to_value();
        assert_eq!(made["metadata"]["managedFields"][0]["manager"], "kube-apiserver");
        let mut tree = object.object.clone();
        tree["metadata"]["name"] = "sent".into();
        let sent = client.create(object.kind, &namespace, tree).await.unwrap().to_value();
        let (made, sent) = (comparable(made), comparable(sent));
        let gathers = !made["aggregationRule"].is_null();
        assert!(made == sent || gathers, "{name}: {made:#} is not {sent:#}");
        client.delete(object.kind, &namespace, "sent", &DeleteOptions::default()).await.unwrap();
    }
}

#[tokio::test]
async fn a_restart_brings_back_what_somebody_took_away_and_only_that() {
    let folder = tempfile::tempdir().unwrap();
    let config = || Config::new().data_dir(folder.path());
    // Nobody asks for a role: the next start finds none, and decides all the same.
    let cluster = start_with(config()).await;
    let decisions = decide(&cluster.client()).await;
    cluster.stop().await;

    let restart = || async { Cluster::start(config().components(Components::NONE)).await.unwrap() };
    let cluster = restart().await;
    let client = cluster.client();
    assert_eq!(decide(&client).await, decisions);
    client.create(&CONFIG_MAPS, "team", json!({"metadata": {"name": "other"}})).await.unwrap();
    let uid = client.get(&CLUSTER_ROLES, "", "edit").await.unwrap().metadata.uid.clone();
    let gone = "system:kube-scheduler";
    client.delete(&CLUSTER_ROLES, "", gone, &DeleteOptions::default()).await.unwrap();
    for (name, update) in [("view", "true"), ("admin", "false")] {
        let mut role = client.get(&CLUSTER_ROLES, "", name).await.unwrap().to_value();
        role["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] = update.into();
        role["rules"] = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
        role["aggregationRule"].take();
        client.update(&CLUSTER_ROLES, "", name, role).await.unwrap();
    }
    cluster.stop().await;

    let cluster = restart().await;
    let client = cluster.client();
    assert_eq!(decide(&client).await, decisions);
    for kind in KINDS {
        assert_eq!(names(&client, kind).await, expected_names(kind));
    }
    let role = |name: &'static str| async { client.get(&CLUSTER_ROLES, "", name).await.unwrap() };
    assert_eq!(role("edit").await.metadata.uid, uid);
    assert!(!role("view").await.to_value()["aggregationRule"].is_null());
    assert_eq!(role("admin").await.to_value()["rules"].as_array().unwrap().len(), 1);
    cluster.stop().await;
}
