//! Headers and bodies of requests: kept when somebody asks for it, told to who may read the objects.

use kubarium::Cluster;
use serde_json::{Value, json};

use super::{ask, bare, create};

const KEPT: &str = "/kubarium/v1/exchanges";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const FLOWZ: &str = "/flowz?resource=deployments&namespace=default&name=web";

async fn get(cluster: &Cluster, user: &str, path: &str) -> Value {
    let (code, told) = ask(cluster, user, "GET", path, Value::Null).await;
    assert_eq!(code, 200, "{told}");
    told
}

/// Lets jane do what a rule says, and waits until that is known.
async fn allow(cluster: &Cluster, name: &str, rules: Value, path: &str) {
    create(cluster, "clusterroles", json!({"metadata": {"name": name}, "rules": rules})).await;
    let group = "rbac.authorization.k8s.io";
    let role = json!({"apiGroup": group, "kind": "ClusterRole", "name": name});
    let subjects = json!([{"apiGroup": group, "kind": "User", "name": "jane"}]);
    create(
        cluster,
        "clusterrolebindings",
        json!({"metadata": {"name": name}, "roleRef": role, "subjects": subjects}),
    )
    .await;
    while ask(cluster, "jane", "GET", path, Value::Null).await.0 == 403 {
        tokio::task::yield_now().await;
    }
}

/// A deployment that is made and scaled.
async fn scaled(cluster: &Cluster) {
    let made = super::settle::web(1);
    assert_eq!(ask(cluster, "", "POST", DEPLOYMENTS, made.clone()).await.0, 201);
    let mut scaled = made;
    scaled["spec"]["replicas"] = json!(3);
    assert_eq!(ask(cluster, "", "PUT", &format!("{DEPLOYMENTS}/web"), scaled).await.0, 200);
}

#[tokio::test]
async fn nothing_is_kept_unless_somebody_asks() {
    let cluster = Cluster::start(bare()).await.unwrap();
    scaled(&cluster).await;
    let told = get(&cluster, "", KEPT).await;
    assert_eq!((&told["exchanges"], &told["isKept"]), (&json!([]), &json!(false)));
    // Who follows and wants them has them kept, until they go.
    let followed = http::Request::builder().uri("/kubarium/v1/flow?since=now&follow=true&bodies=true");
    let follower = followed.body(axum::body::Body::empty()).unwrap();
    let following = tower::ServiceExt::oneshot(cluster.service(), follower).await.unwrap();
    assert_eq!(get(&cluster, "", KEPT).await["isKept"], true);
    let map = json!({"metadata": {"name": "a"}, "data": {"key": "value"}});
    let maps = "/api/v1/namespaces/default/configmaps";
    assert_eq!(ask(&cluster, "", "POST", maps, map).await.0, 201);
    drop(following);
    let told = get(&cluster, "", KEPT).await;
    assert_eq!(told["isKept"], false);
    let [one] = &told["exchanges"].as_array().unwrap()[..] else { panic!("{told}") };
    assert_eq!((&one["line"], &one["response"]["code"]), (&json!(format!("POST {maps}")), &json!(201)));
    assert!(one["request"]["body"]["text"].as_str().unwrap().contains("\"key\":\"value\""), "{one}");
    assert!(one["response"]["body"]["text"].as_str().unwrap().contains("\"uid\""), "{one}");
    let (code, refused) = ask(&cluster, "", "GET", &format!("{KEPT}?step=x"), Value::Null).await;
    assert!(code == 400 && refused["message"].as_str().unwrap().contains("\"x\""), "{refused}");
    cluster.stop().await;
}

#[tokio::test]
async fn values_and_bodies_are_for_who_may_read_the_object() {
    let cluster = Cluster::start(bare().keep_bodies(true)).await.unwrap();
    let pages = json!([{
        "nonResourceURLs": ["/flowz", KEPT, "/kubarium/v1/flow"], "verbs": ["get"],
    }]);
    allow(&cluster, "pages", pages, KEPT).await;
    scaled(&cluster).await;
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"password": "hunter2"}});
    assert_eq!(ask(&cluster, "", "POST", "/api/v1/namespaces/default/secrets", secret).await.0, 201);
    let mut wrong = super::settle::web(1);
    wrong["spec"]["template"]["spec"]["restartPolicy"] = json!("hunter2");
    assert_eq!(ask(&cluster, "", "PUT", &format!("{DEPLOYMENTS}/web"), wrong).await.0, 422);
    let seen = async |user: &str| {
        let story = get(&cluster, user, FLOWZ).await.to_string();
        let record = get(&cluster, user, "/kubarium/v1/flow").await.to_string();
        [story, record]
    };
    for text in seen("").await {
        assert!(text.contains("\"to\":\"3\"") || text.contains("\\\"to\\\":\\\"3\\\""), "{text}");
        assert!(text.contains("hunter2"), "what is wrong with it");
    }
    for text in seen("jane").await {
        assert!(text.contains("spec.replicas"), "that it changed is told");
        assert!(!text.contains("\"to\":\"3\"") && !text.contains("\\\"to\\\":\\\"3\\\""), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    let withheld = get(&cluster, "jane", KEPT).await;
    assert_eq!(withheld["exchanges"], json!([]), "{withheld}");
    assert!(withheld["withheld"].as_u64().unwrap() >= 3, "{withheld}");
    let all = get(&cluster, "", KEPT).await.to_string();
    assert!(all.contains(&format!("POST {DEPLOYMENTS}")) && !all.contains("password"), "{all}");
    let readers = json!([{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]}]);
    allow(&cluster, "readers", readers, &format!("{DEPLOYMENTS}/web")).await;
    let told = get(&cluster, "jane", KEPT).await.to_string();
    assert!(told.contains(&format!("POST {DEPLOYMENTS}")) && !told.contains("clusterroles"), "{told}");
    assert!(seen("jane").await.iter().all(|text| text.contains("hunter2")));
    cluster.stop().await;
}
