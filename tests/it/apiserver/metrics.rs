//! What the server counts of requests, by the labels that upstream's has.

use super::watches::Watching;
use super::*;

const TEMPLATES: &str = "/api/v1/namespaces/default/podtemplates";

/// The samples of a metric about pod templates, which nobody else asks for: what stands behind the name and the
/// labels that all have, as `name scope="cluster",...`.
async fn samples(server: &Server) -> Vec<String> {
    let text = server.call("GET /metrics", &Value::Null).await.text;
    let lines = text.lines().filter(|line| line.contains("resource=\"podtemplates\""));
    lines.map(|line| line.replace("system_client=\"\",", "")).collect()
}

/// Until there are all of these lines.
async fn wait_for(server: &Server, wanted: &[String]) {
    for _ in 0..500 {
        let found = samples(server).await;
        if wanted.iter().all(|line| found.contains(line)) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let found = samples(server).await;
    let missing: Vec<&String> = wanted.iter().filter(|line| !found.contains(line)).collect();
    panic!("missing: {missing:#?}\nthere are: {found:#?}");
}

fn total(code: u16, dry_run: &str, scope: &str, verb: &str, count: u64) -> String {
    format!(
        "apiserver_request_total{{code=\"{code}\",component=\"apiserver\",dry_run=\"{dry_run}\",group=\"\",\
         resource=\"podtemplates\",scope=\"{scope}\",subresource=\"\",verb=\"{verb}\",version=\"v1\"}} {count}"
    )
}

fn of_body(verb: &str, what: &str, value: usize) -> String {
    format!(
        "apiserver_request_body_size_bytes_{what}{{group=\"\",resource=\"podtemplates\",verb=\"{verb}\"}} {value}"
    )
}

fn of_requests(name: &str, scope: &str, verb: &str, value: &str) -> String {
    format!(
        "{name}{{component=\"apiserver\",group=\"\",resource=\"podtemplates\",scope=\"{scope}\",subresource=\"\",\
         verb=\"{verb}\",version=\"v1\"}} {value}"
    )
}

#[tokio::test]
async fn requests_are_counted_by_what_they_ask() {
    let server = Server::start().await;
    let template = |name: &str| {
        json!({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name},
            "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}})
    };
    let (of_a, body) = (format!("{TEMPLATES}/a"), template("a"));
    let asked: &[(&str, &str, Value, u16)] = &[
        ("POST", TEMPLATES, body.clone(), 201),
        ("POST", &format!("{TEMPLATES}?dryRun=All"), template("b"), 201),
        ("GET", TEMPLATES, Value::Null, 200),
        ("GET", &format!("{TEMPLATES}?fieldSelector=metadata.name%3Da"), Value::Null, 200),
        ("GET", "/api/v1/podtemplates", Value::Null, 200),
        ("GET", &of_a, Value::Null, 200),
        ("GET", &format!("{TEMPLATES}/nobody"), Value::Null, 404),
        ("DELETE", &format!("{TEMPLATES}/nobody"), Value::Null, 404),
        ("DELETE", &format!("{TEMPLATES}?labelSelector=a%3Db"), Value::Null, 200),
    ];
    for (method, path, body, code) in asked {
        assert_eq!(server.call(&format!("{method} {path}"), body).await.code, *code, "{method} {path}");
    }
    let applied = [("content-type", "application/apply-patch+yaml")];
    let line = format!("PATCH {of_a}?fieldManager=m&force=true");
    assert_eq!(server.call_with(&line, &applied, body.to_string()).await.code, 200);
    // What there is no route for is nobody's request.
    assert_eq!(server.call("GET /api/v1/namespaces/default/podtemplatez", &Value::Null).await.code, 404);
    assert_eq!(server.call("PATCH /api/v1/podtemplates", &Value::Null).await.code, 405);

    let list = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watching = Watching::start(&server, &format!("{TEMPLATES}{list}"), "application/json").await;
    let events = [watching.next().await, watching.next().await];
    let sizes: usize = events.iter().map(|event| event.to_string().len() + 1).sum();
    let of_kind = |name: &str, value: String| {
        format!("{name}{{group=\"\",resource=\"podtemplates\",version=\"v1\"}} {value}")
    };
    wait_for(
        &server,
        &[
            of_requests("apiserver_longrunning_requests", "namespace", "WATCH", "1"),
            of_kind("apiserver_watch_events_total", "2".into()),
            of_kind("apiserver_watch_events_sizes_count", "2".into()),
            of_kind("apiserver_watch_events_sizes_sum", sizes.to_string()),
            "apiserver_watch_list_duration_seconds_count{group=\"\",resource=\"podtemplates\",scope=\"namespace\",\
             version=\"v1\"} 1"
                .into(),
        ],
    )
    .await;
    let found = samples(&server).await;
    assert!(!found.iter().any(|line| line.contains("request_total") && line.contains("WATCH")), "{found:#?}");
    drop(watching);

    let size = server.call(&format!("GET {of_a}"), &Value::Null).await.text.len();
    let sent = body.to_string().len();
    wait_for(
        &server,
        &[
            total(201, "", "resource", "POST", 1),
            total(201, "All", "resource", "POST", 1),
            total(200, "", "namespace", "LIST", 2),
            total(200, "", "cluster", "LIST", 1),
            total(200, "", "resource", "GET", 2),
            total(404, "", "resource", "GET", 1),
            total(404, "", "resource", "DELETE", 1),
            total(200, "", "namespace", "DELETE", 1),
            total(200, "", "resource", "APPLY", 1),
            total(200, "", "namespace", "WATCH", 1),
            of_requests("apiserver_longrunning_requests", "namespace", "WATCH", "0"),
            of_requests("apiserver_request_sli_duration_seconds_count", "resource", "POST", "1"),
            of_requests("apiserver_request_sli_duration_seconds_count", "namespace", "LIST", "2"),
            of_body("delete", "count", 1),
            of_body("delete_collection", "count", 1),
            of_body("patch", "sum", sent),
            of_requests("apiserver_response_sizes_count", "resource", "GET", "3"),
            of_requests("apiserver_response_sizes_count", "namespace", "LIST", "2"),
            "apiserver_request_body_size_bytes_bucket{group=\"\",resource=\"podtemplates\",verb=\"create\",\
             le=\"1.05e+06\"} 2"
                .into(),
        ],
    )
    .await;
    let sizes = of_requests("apiserver_response_sizes_sum", "resource", "GET", "");
    let found = samples(&server).await;
    let sum = found.iter().find_map(|line| line.strip_prefix(&sizes)).unwrap();
    assert!(sum.parse::<usize>().unwrap() > 2 * size, "{sum}");
    let posts = found.iter().filter(|line| line.contains("_seconds_count") && line.contains("POST"));
    let posts: Vec<&String> = posts.filter(|line| !line.contains("etcd")).collect();
    assert_eq!(posts.len(), 3, "dry runs have no indicator: {found:#?}");
    let is_of_watch = |line: &&String| line.contains("_sli_") && line.contains("WATCH");
    assert!(!found.iter().any(|line| is_of_watch(&line)), "{found:#?}");
}

#[tokio::test]
async fn paths_and_deprecated_kinds_are_counted() {
    let server = Server::start().await;
    for path in ["/readyz", "/openapi/v3", "/version", "/api/v1/namespaces/default/endpoints"] {
        assert_eq!(server.call(&format!("GET {path}"), &Value::Null).await.code, 200, "{path}");
    }
    let text = server.call("GET /metrics", &Value::Null).await.text.replace("system_client=\"\",", "");
    let of_path = |path: &str| {
        format!(
            "apiserver_request_total{{code=\"200\",component=\"\",dry_run=\"\",group=\"\",resource=\"\",scope=\"\",\
             subresource=\"{path}\",verb=\"GET\",version=\"\"}} "
        )
    };
    assert!(text.contains(&of_path("/readyz")), "{text}");
    assert!(text.contains(&of_path("openapi/v3")), "{text}");
    assert!(!text.contains("subresource=\"/version\""), "{text}");
    assert!(text.contains(
        "\napiserver_requested_deprecated_apis{group=\"\",removed_release=\"\",resource=\"endpoints\",\
         subresource=\"\",version=\"v1\"} 1\n"
    ));
}
