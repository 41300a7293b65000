//! Admission webhooks: who is asked about what, what they may change and refuse, and what their failures mean.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Answer, CONFIG_MAPS, DEPLOYMENTS, PODS, Server, config_map, deployment, pod};
use crate::support::webhook::{Asked, Reply, Webhook};

const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// A webhook's entry, for everything that happens to config maps.
fn entry(webhook: &Webhook, path: &str, change: Value) -> Value {
    let name = path.trim_start_matches('/').split('/').next().unwrap();
    let mut entry = json!({
        "name": format!("{name}.example.com"),
        "clientConfig": {"url": webhook.url(path), "caBundle": webhook.ca_bundle()},
        "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
        "sideEffects": "None", "admissionReviewVersions": ["v1"],
    });
    for (field, value) in change.as_object().into_iter().flatten() {
        entry[field] = value.clone();
    }
    entry
}

async fn configure(server: &Server, path: &str, name: &str, webhooks: Value) {
    server.create(path, json!({"metadata": {"name": name}, "webhooks": webhooks})).await;
}

fn respond(asked: &Asked, response: Value) -> Reply {
    let mut response = response;
    if response.get("uid").is_none() {
        response["uid"] = asked.body["request"]["uid"].clone();
    }
    Reply::Json(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}))
}

fn patch(asked: &Asked, operations: Value) -> Reply {
    let patch = STANDARD.encode(operations.to_string());
    respond(asked, json!({"allowed": true, "patch": patch, "patchType": "JSONPatch"}))
}

/// Says no, with what the path asks for.
fn judge(asked: &Asked) -> Reply {
    let path = asked.path.split('?').next().unwrap();
    match path {
        "/allow" => respond(asked, json!({"allowed": true})),
        "/deny" => respond(asked, json!({"allowed": false, "status": {"message": "not today"}})),
        "/mute" => respond(asked, json!({"allowed": false})),
        "/teapot" => respond(
            asked,
            json!({"allowed": false, "status": {"code": 418, "reason": "Teapot", "message": "short and stout",
                "details": {"name": "tea"}}}),
        ),
        "/warn" => respond(asked, json!({"allowed": true, "warnings": ["careful"]})),
        "/uid" => respond(asked, json!({"uid": "other", "allowed": true})),
        "/absent" => Reply::Json(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"})),
        "/garbage" => Reply::Raw(200, "garbage".into()),
        "/broken" => Reply::Raw(500, "boom".into()),
        "/huge" => Reply::Raw(200, "x".repeat(4 << 20)),
        "/slow" => Reply::Never,
        "/patched" => respond(asked, json!({"allowed": true, "patch": "W10=", "patchType": "JSONPatch"})),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn refusals_and_failures_read_as_upstreams() {
    let webhook = Webhook::start(judge).await;
    let failing = |path: &str, why: &str| {
        let name = path.trim_start_matches('/');
        format!("Internal error occurred: failed calling webhook \"{name}.example.com\": {why}")
    };
    let post = |path: &str, port: u16| format!("Post \"https://127.0.0.1:{port}{path}?timeout=1s\": ");
    let port = webhook.port;
    let invalid = "received invalid webhook response: ";
    let call = "failed to call webhook: ";
    let cases: Vec<(&str, u16, String)> = vec![
        ("/deny", 400, "admission webhook \"deny.example.com\" denied the request: not today".into()),
        (
            "/mute",
            400,
            "admission webhook \"mute.example.com\" denied the request without explanation".into(),
        ),
        (
            "/teapot",
            418,
            "admission webhook \"teapot.example.com\" denied the request: short and stout".into(),
        ),
        ("/absent", 500, failing("/absent", &format!("{invalid}webhook response was absent"))),
        (
            "/garbage",
            500,
            failing(
                "/garbage",
                &format!(
                    "{call}couldn't get version/kind; json parse error: json: cannot unmarshal string into Go \
                     value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind \
                     string \"json:\\\"kind,omitempty\\\"\" }}"
                ),
            ),
        ),
        (
            "/broken",
            500,
            failing(
                "/broken",
                &format!("{call}an error on the server (\"boom\") has prevented the request from succeeding"),
            ),
        ),
        (
            "/huge",
            500,
            failing(
                "/huge",
                &format!("{call}{}the response is larger than 3145728 bytes", post("/huge", port)),
            ),
        ),
        ("/slow", 500, failing("/slow", &format!("{call}{}context deadline exceeded", post("/slow", port)))),
        (
            "/patched",
            500,
            failing("/patched", &format!("{invalid}validating webhook may not return response.patch")),
        ),
    ];
    let server = Server::start().await;
    for (path, code, message) in cases {
        let name = path.trim_start_matches('/');
        configure(&server, VALIDATING, name, json!([entry(&webhook, path, json!({"timeoutSeconds": 1}))]))
            .await;
        let answer = server.call(&format!("POST {CONFIG_MAPS}"), &config_map("a")).await;
        assert_eq!((answer.code, answer.status().2), (code, message));
        assert_eq!(server.call(&format!("DELETE {VALIDATING}/{name}"), &Value::Null).await.code, 200);
    }
    let refused = server.call(&format!("GET {CONFIG_MAPS}/a"), &Value::Null).await;
    assert_eq!(refused.code, 404);
    // What fails open lets everything through.
    let open = json!({"failurePolicy": "Ignore", "timeoutSeconds": 1});
    let down = json!({"failurePolicy": "Ignore", "name": "down.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/", "caBundle": webhook.ca_bundle()}});
    let webhooks =
        ["/broken", "/slow", "/absent", "/garbage"].map(|path| entry(&webhook, path, open.clone()));
    let webhooks = [webhooks.to_vec(), vec![entry(&webhook, "/allow", down)]].concat();
    configure(&server, VALIDATING, "open", json!(webhooks)).await;
    configure(&server, VALIDATING, "warns", json!([entry(&webhook, "/warn", json!({}))])).await;
    let answer = server.call(&format!("POST {CONFIG_MAPS}"), &config_map("a")).await;
    assert_eq!((answer.code, answer.warnings()), (201, vec!["299 - \"careful\"".to_owned()]));
}

#[tokio::test]
async fn a_review_tells_everything_of_the_request() {
    let webhook = Webhook::start(judge).await;
    let server = Server::start().await;
    let rules =
        json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]);
    let change = json!({"rules": rules, "sideEffects": "NoneOnDryRun"});
    configure(&server, VALIDATING, "all", json!([entry(&webhook, "/allow", change)])).await;
    server.create(&format!("{CONFIG_MAPS}?fieldManager=me&fieldValidation=Strict"), config_map("a")).await;
    let last = || webhook.asked().last().unwrap().body["request"].clone();
    let mut first = last();
    assert!(first["uid"].as_str().is_some_and(|uid| uid.len() == 36));
    for field in ["uid", "creationTimestamp", "managedFields"] {
        first["object"]["metadata"].as_object_mut().unwrap().remove(field);
    }
    first.as_object_mut().unwrap().remove("uid");
    let kind = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    let resource = json!({"group": "", "version": "v1", "resource": "configmaps"});
    assert_eq!(
        first,
        json!({"kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
            "name": "a", "namespace": "default", "operation": "CREATE", "dryRun": false, "oldObject": null,
            "userInfo": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
            "object": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"},
                "metadata": {"name": "a", "namespace": "default"}},
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me",
                "fieldValidation": "Strict"}})
    );
    let answer = server
        .patch(&format!("{CONFIG_MAPS}/a"), "application/merge-patch+json", r#"{"data":{"k":"w"}}"#)
        .await;
    assert_eq!(answer.code, 200, "{}", answer.text);
    let update = last();
    assert_eq!(
        [&update["operation"], &update["object"]["data"]["k"], &update["oldObject"]["data"]["k"]],
        ["UPDATE", "w", "v"]
    );
    assert_eq!(update["options"]["kind"], "UpdateOptions");
    let scale = format!("{DEPLOYMENTS}/web/scale");
    server.create(DEPLOYMENTS, deployment("web")).await;
    let answer = server.patch(&scale, "application/merge-patch+json", r#"{"spec":{"replicas":3}}"#).await;
    assert_eq!(answer.code, 200, "{}", answer.text);
    let scaled = last();
    assert_eq!(
        [&scaled["kind"]["kind"], &scaled["subResource"], &scaled["resource"]["resource"]],
        ["Scale", "scale", "deployments"]
    );
    assert_eq!(scaled["object"]["spec"]["replicas"], 3);
    let options =
        json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "dryRun": ["All"]});
    assert_eq!(server.call(&format!("DELETE {CONFIG_MAPS}/a"), &options).await.code, 200);
    let deleted = last();
    assert_eq!([&deleted["operation"], &deleted["oldObject"]["data"]["k"]], ["DELETE", "w"]);
    assert_eq!((&deleted["object"], &deleted["dryRun"]), (&Value::Null, &json!(true)));
    assert_eq!(deleted["options"]["gracePeriodSeconds"], 0);
    server.create("/api/v1/namespaces", json!({"metadata": {"name": "other"}})).await;
    assert_eq!(last()["namespace"], "other");
    // Configurations themselves are never asked about.
    let asked = webhook.asked().len();
    assert_eq!(server.call(&format!("DELETE {VALIDATING}/all"), &Value::Null).await.code, 200);
    assert_eq!(webhook.asked().len(), asked);
}

#[tokio::test]
async fn only_what_matches_is_asked_about() {
    let webhook = Webhook::start(judge).await;
    let server = Server::start().await;
    server
        .create("/api/v1/namespaces", json!({"metadata": {"name": "prod", "labels": {"env": "prod"}}}))
        .await;
    let in_prod = CONFIG_MAPS.replace("default", "prod");
    let rule = |groups: &str, version: &str, resources: &str| {
        json!([{"operations": ["CREATE"], "apiGroups": [groups], "apiVersions": [version],
            "resources": [resources]}])
    };
    let events = "/apis/events.k8s.io/v1/namespaces/default/events";
    let event = json!({"metadata": {"name": "e"}, "eventTime": "2026-01-02T03:04:05.000000Z", "action": "a",
        "reason": "r", "type": "Normal", "reportingController": "c.example.com/x", "reportingInstance": "i",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p", "apiVersion": "v1"}});
    let labelled = json!({"metadata": {"name": "l", "labels": {"a": "b"}}});
    let cases = [
        (json!({"namespaceSelector": {"matchLabels": {"env": "prod"}}}), CONFIG_MAPS, config_map("x"), false),
        (
            json!({"namespaceSelector": {"matchLabels": {"env": "prod"}}}),
            in_prod.as_str(),
            config_map("x"),
            true,
        ),
        (json!({"objectSelector": {"matchLabels": {"a": "b"}}}), CONFIG_MAPS, config_map("x"), false),
        (json!({"objectSelector": {"matchLabels": {"a": "b"}}}), CONFIG_MAPS, labelled, true),
        (json!({"rules": rule("apps", "v1", "deployments")}), CONFIG_MAPS, config_map("x"), false),
        (json!({"rules": rule("", "v1", "events")}), events, event.clone(), true),
        (json!({"rules": rule("", "v1", "events"), "matchPolicy": "Exact"}), events, event, false),
        (
            json!({"matchConditions": [{"name": "n", "expression": "object.metadata.name == 'y'"}]}),
            CONFIG_MAPS,
            config_map("x"),
            false,
        ),
        (
            json!({"matchConditions": [{"name": "n", "expression": "request.userInfo.username == 'admin'"},
                {"name": "m", "expression": "!('system:nodes' in request.userInfo.groups)"}]}),
            CONFIG_MAPS,
            config_map("x"),
            true,
        ),
    ];
    for (at, (change, path, body, expected)) in cases.into_iter().enumerate() {
        let name = format!("case-{at}");
        configure(&server, VALIDATING, &name, json!([entry(&webhook, "/deny", change.clone())])).await;
        let answer = server.call(&format!("POST {path}?dryRun=All"), &body).await;
        assert_eq!(answer.code == 400, expected, "{change}: {}", answer.text);
        assert!(answer.code == 400 || answer.code == 201, "{change}: {}", answer.text);
        assert_eq!(server.call(&format!("DELETE {VALIDATING}/{name}"), &Value::Null).await.code, 200);
    }
    let change = json!({"matchConditions": [{"name": "n", "expression": "object.spec.x == 1"}]});
    configure(&server, VALIDATING, "errs", json!([entry(&webhook, "/allow", change)])).await;
    let answer = server.call(&format!("POST {CONFIG_MAPS}"), &config_map("x")).await;
    let wanted =
        "configmaps \"x\" is forbidden: expression 'object.spec.x == 1' resulted in error: no such key: spec";
    assert_eq!((answer.code, answer.status().2.as_str()), (403, wanted));
}

#[tokio::test]
async fn what_came_of_asking_is_counted() {
    let webhook = Webhook::start(judge).await;
    let server = Server::start().await;
    let named = |name: &str, path: &str, change: Value| {
        let mut entry = entry(&webhook, path, change);
        entry["name"] = json!(name);
        entry
    };
    let condition = |expression: &str| json!([{"name": "n", "expression": expression}]);
    let hooks = json!([
        named("away.example.com", "/deny", json!({"matchConditions": condition("false")})),
        named(
            "lost.example.com",
            "/deny",
            json!({"matchConditions": condition("object.spec.x == 1"), "failurePolicy": "Ignore"}),
        ),
        named(
            "gone.example.com",
            "/gone",
            json!({"failurePolicy": "Ignore", "clientConfig":
            {"url": "https://127.0.0.1:1/"}})
        ),
        named("no.example.com", "/deny", json!({})),
    ]);
    configure(&server, VALIDATING, "counted", hooks).await;
    assert_eq!(server.call(&format!("POST {CONFIG_MAPS}"), &config_map("x")).await.code, 400);
    let text = server.call("GET /metrics", &Value::Null).await.text;
    let condition = |metric: &str, name: &str, count: u8| {
        let labels =
            format!("kind=\"webhook\",name=\"{name}.example.com\",operation=\"CREATE\",type=\"validating\"");
        format!("apiserver_admission_match_condition_{metric}{{{labels}}} {count}\n")
    };
    let webhook =
        |metric: &str, labels: &str| format!("apiserver_admission_webhook_{metric}{{{labels}}} 1\n");
    for line in [
        condition("exclusions_total", "away", 1),
        condition("evaluation_seconds_count", "away", 1),
        condition("exclusions_total", "lost", 1),
        condition("evaluation_errors_total", "lost", 1),
        webhook("fail_open_count", "name=\"gone.example.com\",type=\"validating\""),
        webhook(
            "rejection_count",
            "error_type=\"no_error\",name=\"no.example.com\",operation=\"CREATE\",rejection_code=\"400\",\
             type=\"validating\"",
        ),
        webhook(
            "request_total",
            "code=\"400\",name=\"no.example.com\",operation=\"CREATE\",rejected=\"true\",type=\"validating\"",
        ),
    ] {
        assert!(text.contains(&line), "{line} is not in\n{text}");
    }
}

#[tokio::test]
async fn mutating_webhooks_change_objects_in_order_and_are_asked_again() {
    let webhook = Webhook::start(|asked| {
        let trail = asked.body["request"]["object"]["data"]["trail"].as_str().unwrap_or("").to_owned();
        let step = |name: &str| {
            patch(asked, json!([{"op": "add", "path": "/data/trail", "value": format!("{trail}{name}")}]))
        };
        match asked.path.split('?').next().unwrap() {
            "/a" if trail.contains('a') => respond(asked, json!({"allowed": true})),
            "/a" => step("a"),
            "/b" => step("b"),
            "/unknown" => patch(asked, json!([{"op": "add", "path": "/nonsense", "value": 1}])),
            "/bad" => patch(asked, json!([{"op": "replace", "path": "/data", "value": 7}])),
            "/pod" => patch(
                asked,
                json!([{"op": "add", "path": "/spec/containers/-", "value": {"name": "side", "image": "car"}}]),
            ),
            other => panic!("{other}"),
        }
    })
    .await;
    let server = Server::start().await;
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    configure(&server, MUTATING, "1", json!([entry(&webhook, "/a", again)])).await;
    configure(&server, MUTATING, "2", json!([entry(&webhook, "/b", json!({}))])).await;
    let created = server.create(CONFIG_MAPS, config_map("a")).await;
    assert_eq!(created["data"]["trail"], "ab");
    let paths: Vec<String> = webhook.asked().iter().map(|asked| asked.path[..2].to_owned()).collect();
    assert_eq!(
        paths,
        ["/a", "/b", "/a"],
        "the first is asked again because the second has changed the object"
    );
    for name in ["1", "2"] {
        assert_eq!(server.call(&format!("DELETE {MUTATING}/{name}"), &Value::Null).await.code, 200);
    }
    // A sidecar is defaulted like any container, and what no kind has is dropped.
    let pods =
        json!([{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]);
    configure(&server, MUTATING, "3", json!([entry(&webhook, "/pod", json!({"rules": pods}))])).await;
    configure(&server, MUTATING, "4", json!([entry(&webhook, "/unknown", json!({}))])).await;
    let created = server.create(PODS, pod("p")).await;
    let sidecar = &created["spec"]["containers"][1];
    assert_eq!([&sidecar["image"], &sidecar["terminationMessagePath"]], ["car", "/dev/termination-log"]);
    assert!(server.create(CONFIG_MAPS, config_map("b")).await.get("nonsense").is_none());
    configure(&server, MUTATING, "5", json!([entry(&webhook, "/bad", json!({}))])).await;
    let answer = server.call(&format!("POST {CONFIG_MAPS}"), &config_map("c")).await;
    assert_eq!(answer.code, 500, "{}", answer.text);
}

#[tokio::test]
async fn a_patch_may_reach_below_the_owners_of_fields() {
    let webhook = Webhook::start(|asked| {
        let owned = "/metadata/managedFields/0/fieldsV1/f:data";
        patch(
            asked,
            json!([{"op": "test", "path": owned, "value": {".": {}, "f:k": {}}},
            {"op": "remove", "path": owned}]),
        )
    })
    .await;
    let server = Server::start().await;
    configure(&server, MUTATING, "1", json!([entry(&webhook, "/owners", json!({}))])).await;
    let made = server.create(CONFIG_MAPS, config_map("x")).await;
    assert_eq!(made["data"]["k"], "v");
    let entries = made["metadata"]["managedFields"].as_array().unwrap();
    assert!(entries.iter().all(|entry| entry["fieldsV1"]["f:data"].is_null()), "{entries:?}");
}

#[tokio::test]
async fn dry_runs_are_kept_from_side_effects() {
    let webhook = Webhook::start(judge).await;
    let server = Server::start().await;
    let mut hook = entry(&webhook, "/allow", json!({"sideEffects": "Some"}));
    let body = json!({"metadata": {"name": "some"}, "webhooks": [hook]});
    let refused = server.call(&format!("POST {VALIDATING}"), &body).await;
    let wanted = "ValidatingWebhookConfiguration.admissionregistration.k8s.io \"some\" is invalid: \
        webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\"";
    assert_eq!((refused.code, refused.status().2.as_str()), (422, wanted));
    hook["sideEffects"] = json!("NoneOnDryRun");
    configure(&server, VALIDATING, "none", json!([hook])).await;
    let answer = server.call(&format!("POST {CONFIG_MAPS}?dryRun=All"), &config_map("a")).await;
    assert_eq!(answer.code, 201);
    assert_eq!(webhook.asked()[0].body["request"]["dryRun"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_creates_at_once_all_pass_through() {
    let webhook = Webhook::start(judge).await;
    let server = Arc::new(Server::start().await);
    configure(&server, VALIDATING, "all", json!([entry(&webhook, "/allow", json!({}))])).await;
    let creates = (0..64).map(|number| {
        let server = server.clone();
        tokio::spawn(async move {
            let body = config_map(&format!("c-{number}"));
            server.call(&format!("POST {CONFIG_MAPS}"), &body).await.code
        })
    });
    for create in creates.collect::<Vec<_>>() {
        assert_eq!(create.await.unwrap(), 201);
    }
    assert_eq!(webhook.asked().len(), 64);
    assert!(webhook.connections() <= 64);
}

#[tokio::test]
async fn configurations_are_defaulted_and_refused() {
    let server = Server::start().await;
    let rule =
        json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]});
    let hook = json!({"name": "a.example.com", "clientConfig": {"service": {"namespace": "d", "name": "s"}},
        "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"]});
    let with = |change: Value| {
        let mut hook = hook.clone();
        for (field, value) in change.as_object().unwrap() {
            hook[field] = value.clone();
        }
        json!({"metadata": {"name": "c"}, "webhooks": [hook]})
    };
    let created = server.create(&format!("{MUTATING}?dryRun=All"), with(json!({}))).await;
    let mut wanted = hook.clone();
    for (field, value) in [
        ("failurePolicy", json!("Fail")),
        ("matchPolicy", json!("Equivalent")),
        ("namespaceSelector", json!({})),
        ("objectSelector", json!({})),
        ("timeoutSeconds", json!(10)),
        ("reinvocationPolicy", json!("Never")),
    ] {
        wanted[field] = value;
    }
    wanted["rules"][0]["scope"] = json!("*");
    wanted["clientConfig"]["service"]["port"] = json!(443);
    assert_eq!(created["webhooks"][0], wanted);
    let with_rule = |field: &str, value: Value| {
        let mut rule = rule.clone();
        rule[field] = value;
        with(json!({"rules": [rule]}))
    };
    let cases = [
        (
            with(json!({"name": "short"})),
            "webhooks[0].name: Invalid value: \"short\": should be a domain with at least three segments separated \
             by dots",
        ),
        (
            with(json!({"clientConfig": {"url": "http://a.example"}})),
            "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired \
             format: https://host[/path]",
        ),
        (
            with(json!({"clientConfig": {}})),
            "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
        ),
        (
            with(json!({"timeoutSeconds": 31})),
            "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
        ),
        (
            with(json!({"admissionReviewVersions": ["v9"]})),
            "webhooks[0].admissionReviewVersions: Invalid value: [\"v9\"]: must include at least one of v1, v1beta1",
        ),
        (
            with_rule("operations", json!(["CREATE", "*"])),
            "webhooks[0].rules[0].operations: Invalid value: [\"CREATE\",\"*\"]: if '*' is present, must not specify \
             other operations",
        ),
        (
            with_rule("resources", json!(["pods/*", "pods/status"])),
            "webhooks[0].rules[0].resources[1]: Invalid value: \"pods/status\": if 'pods/*' is present, must not \
             specify pods/status",
        ),
        (
            with(json!({"matchConditions": [{"name": "n", "expression": "object.x + 'a'"}]})),
            "webhooks[0].matchConditions[0].expression: Invalid value: \"object.x + 'a'\": must evaluate to bool but \
             got string",
        ),
    ];
    for (body, wanted) in cases {
        let answer: Answer = server.call(&format!("POST {MUTATING}"), &body).await;
        let head = "MutatingWebhookConfiguration.admissionregistration.k8s.io \"c\" is invalid: ";
        assert_eq!((answer.code, answer.status().2), (422, format!("{head}{wanted}")));
    }
}
