//! The same faults by HTTP and by the command line.

use std::process::Output;
use std::time::Duration;

use serde_json::{Value, json};

use super::{bare, map, operator};
use crate::handles::ask;
use crate::support::{Kubectl, Up, kubectls, texts};
use kubarium::kinds::CONFIG_MAPS;
use kubarium::{Cluster, Components, Config, Fault};

#[tokio::test]
async fn faults_over_http_are_added_listed_and_removed_and_bad_ones_refused() {
    let cluster = bare().await;
    let path = "/kubarium/v1/faults";
    let rule = json!({"users": ["operator"], "verbs": ["write"], "answer": {"code": 503}});
    let (code, added) = ask(&cluster, "", "POST", path, rule.clone()).await;
    assert_eq!((code, &added["name"]), (200, &json!("fault-1")));
    let error = operator(&cluster).create(&CONFIG_MAPS, "default", map("a")).await.unwrap_err();
    assert_eq!(&*error.reason, "ServiceUnavailable");
    let (_, listed) = ask(&cluster, "", "GET", path, Value::Null).await;
    assert_eq!((&listed["faults"][0]["hits"], &listed["faults"][0]["verbs"]), (&json!(1), &json!(["write"])));
    let mut named = rule.clone();
    named["name"] = json!("fault-1");
    let refused = [
        (named, 409, "there is a fault \"fault-1\" already"),
        (json!({"answer": {"code": 200}}), 400, "400 to 599"),
        (json!({"answr": {"code": 500}}), 400, "unknown field `answr`"),
        (json!({}), 400, "nothing would happen"),
        (json!({"verbs": ["frob"], "answer": {"code": 500}}), 400, "no request has the verb \"frob\""),
        (json!({"resources": ["Pods"], "answer": {"code": 500}}), 400, "did you mean pods?"),
        (json!({"stop": "kube-proxy"}), 400, "no component is named \"kube-proxy\""),
    ];
    for (rule, code, words) in refused {
        let (answered, status) = ask(&cluster, "", "POST", path, rule).await;
        assert_eq!(answered, code, "{status}");
        assert!(status["message"].as_str().unwrap().contains(words), "{status}");
    }
    let shown = listed["faults"][0].clone();
    assert_eq!(ask(&cluster, "", "DELETE", "/kubarium/v1/faults/fault-1", Value::Null).await.0, 200);
    let (code, again) = ask(&cluster, "", "POST", path, shown).await;
    assert_eq!(
        (code, &again["verbs"], &again["hits"]),
        (200, &json!(["write"]), &json!(0)),
        "as it was listed"
    );
    assert_eq!(ask(&cluster, "", "DELETE", "/kubarium/v1/faults/fault-1", Value::Null).await.0, 200);
    assert_eq!(ask(&cluster, "", "GET", "/kubarium/v1/faults/fault-1", Value::Null).await.0, 404);
    for number in 0..256 {
        let rule = json!({"name": format!("f{number}"), "answer": {"code": 500}, "users": ["nobody"]});
        assert_eq!(ask(&cluster, "", "POST", path, rule).await.0, 200);
    }
    let (code, status) = ask(&cluster, "", "POST", path, rule).await;
    assert!(code == 409 && status["message"].as_str().unwrap().contains("256 faults already"), "{status}");
    cluster.stop().await;
}

/// It may come later.
#[tokio::test]
async fn that_there_is_no_such_webhook_yet_is_said() {
    let cluster = bare().await;
    let rule = json!({"silentWebhooks": ["none.example.com"]});
    let (code, added) = ask(&cluster, "", "POST", "/kubarium/v1/faults", rule).await;
    assert_eq!((code, &added["warning"]), (200, &json!("there is no webhook none.example.com yet")));
    cluster.stop().await;
}

/// The path of a create names no object, and its refusal does.
#[tokio::test]
async fn what_exists_already_is_named_after_the_body() {
    let cluster = bare().await;
    cluster.faults().add(Fault::answer(409).verb("create").resource("configmaps")).unwrap();
    let path = "/api/v1/namespaces/default/configmaps";
    let (code, status) = ask(&cluster, "", "POST", path, map("taken")).await;
    assert_eq!((code, &status["details"]["name"]), (409, &json!("taken")));
    assert_eq!(status["message"], "configmaps \"taken\" already exists");
    let refused = operator(&cluster).create(&CONFIG_MAPS, "default", map("other")).await.unwrap_err();
    assert_eq!(refused.message, "configmaps \"other\" already exists");
    cluster.stop().await;
}

#[test]
fn the_command_line_says_the_same() {
    let up = Up::start_with(&["--nodes", "1"]);
    let fault =
        |line: &str| -> Output { up.kubarium(&format!("fault {line}").split(' ').collect::<Vec<_>>()) };
    let kubectl = Kubectl::new(&kubectls().pop().unwrap(), &up);
    let (out, err) = texts(&fault("add slow --resource configmaps --verb create --answer 409"));
    assert_eq!((out.trim(), err.as_str()), ("added slow", ""));
    let (_, err) = texts(&kubectl.run("create configmap a"));
    assert!(err.contains("already exists"), "{err}");
    let (out, _) = texts(&fault("list"));
    assert!(out.contains("slow") && out.contains(r#""answer":{"code":409}"#), "{out}");
    let (_, err) = texts(&fault("add --answer 200"));
    assert!(err.contains("400 to 599"), "{err}");
    let (listed, _) = texts(&fault("list -o json"));
    let file = up.file("faults.json", &listed);
    let (_, err) = texts(&fault("add --resource flubbers --answer 500"));
    assert!(err.contains("the cluster serves no \"flubbers\""), "{err}");
    let (out, _) = texts(&fault("rm slow"));
    assert!(out.contains("removed slow, which has hit 1"), "{out}");
    let (out, err) = texts(&fault(&format!("add -f {file}")));
    assert_eq!((out.trim(), err.as_str()), ("added slow", ""));
    texts(&fault("rm slow"));
    // Bytes that end too early, and connections that end before anything has come.
    for (flags, words) in [("--cut-after 5", "unexpected EOF"), ("--cut", "EOF"), ("--partition", "EOF")] {
        texts(&fault(&format!("add x --resource nodes {flags}")));
        let (out, err) = texts(&kubectl.run("get --raw /api/v1/nodes"));
        assert!(err.contains(words) || err.contains("INTERNAL_ERROR"), "{flags}: {out}{err}");
        texts(&fault("rm --all"));
    }
    let (out, _) = texts(&fault("list"));
    assert!(out.contains("There are no faults"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_may_be_an_object_where_that_was_asked_for() {
    let faults = "/apis/faults.kubarium.dev/v1alpha1/faults";
    let bare = bare().await;
    assert_eq!(ask(&bare, "", "GET", faults, Value::Null).await.0, 404, "only there");
    bare.stop().await;
    let config = Config::new().nodes(0).components(Components::NONE).fault_objects(true);
    let cluster = Cluster::start(config).await.unwrap();
    let fault = |name: &str, spec: Value| {
        let metadata = json!({"name": name});
        json!({"apiVersion": "faults.kubarium.dev/v1alpha1", "kind": "Fault", "metadata": metadata, "spec": spec})
    };
    let rule = json!({"users": ["operator"], "answer": {"code": 503}});
    while ask(&cluster, "", "POST", faults, fault("broken", rule.clone())).await.0 == 404 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let code = async || operator(&cluster).get(&CONFIG_MAPS, "default", "a").await.unwrap_err().code;
    while code().await != 503 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    ask(&cluster, "", "POST", faults, fault("bad", json!({"answer": {"code": 200}}))).await;
    loop {
        let (_, bad) = ask(&cluster, "", "GET", &format!("{faults}/bad"), Value::Null).await;
        if bad["status"]["active"] == false {
            assert!(bad["status"]["message"].as_str().unwrap().contains("400 to 599"), "{bad}");
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (code_of, status) = ask(&cluster, "", "POST", faults, fault("worse", json!({"answer": "no"}))).await;
    assert_eq!(code_of, 422, "{status}");
    let (_, left) = ask(&cluster, "", "DELETE", "/kubarium/v1/faults", Value::Null).await;
    assert_eq!(left["faults"][0]["name"], "object.broken", "it goes with its object");
    assert_eq!(code().await, 503);
    ask(&cluster, "", "DELETE", &format!("{faults}/broken"), Value::Null).await;
    while code().await != 404 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    cluster.stop().await;
}
