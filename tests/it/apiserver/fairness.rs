//! Priority and fairness at work, on a stepped clock: who waits, who is let in when levels lend each other
//! seats, what is told of it, and objects that are kept.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use kubarium::apiserver::flow_control::config::FlowControlOptions;
use kubarium::clock::Clock;
use serde_json::{Value, json};

use super::limits::{FLOW_CONTROL, LEVEL_UID, as_jane, let_jane_do_everything, never_create_config_maps};
use super::{CONFIG_MAPS, Server, config_map};
use crate::support::PATIENCE;

const DUMP: &str = "GET /debug/api_priority_and_fairness";

async fn start(max_requests: u64) -> (Arc<Server>, Clock) {
    let clock = Clock::stepped(chrono::DateTime::UNIX_EPOCH + chrono::TimeDelta::days(20_000));
    let server = Server::start_with(|config| {
        config.clock = clock.clone();
        config.flow_control =
            FlowControlOptions { max_requests, max_mutating_requests: 0, ..Default::default() };
    });
    (Arc::new(server.await), clock)
}

/// Jane's requests go to a level of their own with one queue of two, which may borrow as it is told.
async fn make_narrow(server: &Server, clock: &Clock, borrowing_limit_percent: Option<u32>) {
    let queuing = json!({"queues": 1, "handSize": 1, "queueLengthLimit": 2});
    let limited = json!({"nominalConcurrencyShares": 1, "borrowingLimitPercent": borrowing_limit_percent,
        "limitResponse": {"type": "Queue", "queuing": queuing}});
    let level = json!({"metadata": {"name": "narrow"}, "spec": {"type": "Limited", "limited": limited}});
    let level = server.create(&format!("{FLOW_CONTROL}/prioritylevelconfigurations"), level).await;
    let rule = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]});
    let rules = json!([{"subjects": [{"kind": "User", "user": {"name": "jane"}}], "resourceRules": [rule]}]);
    let schema = json!({"metadata": {"name": "jane"}, "spec": {"matchingPrecedence": 50,
        "distinguisherMethod": {"type": "ByUser"}, "priorityLevelConfiguration": {"name": "narrow"}, "rules": rules}});
    server.create(&format!("{FLOW_CONTROL}/flowschemas"), schema).await;
    let uid = level["metadata"]["uid"].as_str().unwrap();
    let read = format!("GET {CONFIG_MAPS}");
    for poll in 1.. {
        assert!(poll < 20_000, "the configuration is not followed");
        // Of so few seats a level may have none before the next period.
        let answer = while_time_passes(clock, as_jane(server, &read, &Value::Null)).await;
        if answer.headers[LEVEL_UID] == *uid {
            break;
        }
        step(clock, poll).await;
    }
    // What follows begins with a period in which seats are lent.
    let elapsed = u64::try_from(clock.elapsed().as_millis()).unwrap();
    clock.advance(Duration::from_millis(elapsed.next_multiple_of(10_000) - elapsed));
}

async fn while_time_passes<T>(clock: &Clock, work: impl Future<Output = T>) -> T {
    let time_passes = async {
        for poll in 1.. {
            step(clock, poll).await;
        }
    };
    tokio::select! {
        biased;
        done = work => done,
        () = time_passes => unreachable!("it never ends"),
    }
}

/// Who follows a configuration waits a moment before it watches again: now and then time passes.
async fn step(clock: &Clock, poll: usize) {
    if poll.is_multiple_of(20) {
        clock.advance(Duration::from_millis(200));
    }
    tokio::task::yield_now().await;
}

async fn text(server: &Server, line: &str) -> String {
    server.call(line, &Value::Null).await.text
}

/// Lines of a dump or of the metrics that begin so, with single blanks.
async fn lines(server: &Server, line: &str, start: &str) -> Vec<String> {
    let text = text(server, line).await;
    let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let found = text.lines().filter(|line| line.starts_with(start)).map(squeeze);
    // How many were dispatched before depends on how soon a configuration was followed.
    let is_levels = line.ends_with("dump_priority_levels");
    found.map(|line| if is_levels { without_dispatched(&line) } else { line }).collect()
}

fn without_dispatched(row: &str) -> String {
    let mut cells: Vec<&str> = row.split(", ").collect();
    cells.remove(6);
    cells.join(", ")
}

async fn until(server: &Server, line: &str, start: &str, expected: &[&str]) {
    until_followed(server, None, line, start, expected).await;
}

/// The same for what comes of a configuration; time passes meanwhile.
async fn until_followed(server: &Server, clock: Option<&Clock>, line: &str, start: &str, expected: &[&str]) {
    let mut found = vec![];
    for poll in 1..20_000 {
        found = lines(server, line, start).await;
        if found == expected {
            return;
        }
        match clock {
            Some(clock) => step(clock, poll).await,
            None => tokio::task::yield_now().await,
        }
    }
    panic!("{line}: {found:#?} is not {expected:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_is_let_in_when_seats_are_lent() {
    let (server, clock) = start(10).await;
    let webhook = never_create_config_maps(&server).await;
    let_jane_do_everything(&server).await;
    make_narrow(&server, &clock, None).await;
    let begin = |name: String| {
        let server = server.clone();
        tokio::spawn(async move {
            let answer = as_jane(&server, &format!("POST {CONFIG_MAPS}"), &config_map(&name)).await;
            (answer.code, answer.headers.get("retry-after").map(|after| after.to_str().unwrap().to_owned()))
        })
    };
    let queues = format!("{DUMP}/dump_queues");
    // Two have a seat, and two may wait.
    let mut waiting = vec![];
    for (at, standing) in ["0, 1, 1", "0, 2, 2", "1, 2, 2", "2, 2, 2"].iter().enumerate() {
        waiting.push(begin(format!("c{at}")));
        let (pending, all) = (standing.as_bytes()[0] - b'0', at);
        let r = format!("{}.{:08}ss", 0, 300_000 * (all + 1 - usize::from(pending)));
        let sum = format!("{pending}, {pending}, 0.{:08}ss", 300_000 * usize::from(pending));
        until(&server, &queues, "narrow", &[&format!("narrow, 0, {standing}, {r}, {sum}")]).await;
    }
    assert_eq!(begin("c4".into()).await.unwrap(), (429, Some("1".into())));
    let requests = lines(&server, &format!("{DUMP}/dump_requests?includeRequestDetails=1"), "narrow").await;
    let path = "/api/v1/namespaces/default/configmaps";
    let at = &*clock.now().format("%Y-%m-%dT%H:%M:%SZ").to_string();
    let tail = |started: &str| {
        format!("{at}, 1, 0, 0s, {started}, jane, create, {path}, default, , v1, configmaps,")
    };
    let row = |index: i8, started: &str| format!("narrow, jane, 0, {index}, , {}", tail(started));
    let none = "0001-01-01T00:00:00Z";
    assert_eq!(requests, [row(0, none), row(1, none), row(-1, at), row(-1, at)]);
    for (start, expected) in [
        (
            "apiserver_flowcontrol_rejected_requests_total",
            "{flow_schema=\"jane\",priority_level=\"narrow\",reason=\"queue-full\"} 1",
        ),
        (
            "apiserver_flowcontrol_current_inqueue_requests",
            "{flow_schema=\"jane\",priority_level=\"narrow\"} 2",
        ),
        (
            "apiserver_flowcontrol_current_executing_seats",
            "{flow_schema=\"jane\",priority_level=\"narrow\"} 2",
        ),
        ("apiserver_flowcontrol_nominal_limit_seats", "{priority_level=\"narrow\"} 1"),
        ("apiserver_flowcontrol_lower_limit_seats", "{priority_level=\"narrow\"} 1"),
        ("apiserver_flowcontrol_upper_limit_seats", "{priority_level=\"narrow\"} 11"),
        ("apiserver_flowcontrol_current_limit_seats", "{priority_level=\"narrow\"} 2"),
    ] {
        let found = lines(&server, "GET /metrics", start).await;
        assert!(found.contains(&format!("{start}{expected}")), "{expected}: {found:#?}");
    }
    assert_eq!(webhook.asked().len(), 2);
    clock.advance(Duration::from_secs(10));
    until(&server, &queues, "narrow", &["narrow, 0, 0, 4, 4, 0.01200000ss, 0, 0, 0.00000000ss"]).await;
    let start = "apiserver_flowcontrol_demand_seats_smoothed{priority_level=\"narrow\"}";
    until(&server, "GET /metrics", start, &[&format!("{start} 4")]).await;
    // A level that is taken away goes when nobody is left.
    server.call(&format!("DELETE {FLOW_CONTROL}/prioritylevelconfigurations/narrow"), &Value::Null).await;
    let levels = format!("{DUMP}/dump_priority_levels");
    until_followed(&server, Some(&clock), &levels, "narrow", &["narrow, 0, false, true, 0, 4, 1, 0, 0"])
        .await;
    waiting.iter().for_each(|request| request.abort());
    until_followed(&server, Some(&clock), &levels, "narrow", &[]).await;
}

/// Who may not borrow waits for a quarter of a request's time.
#[tokio::test(flavor = "multi_thread")]
async fn who_waits_too_long_is_refused() {
    let (server, clock) = start(10).await;
    let webhook = never_create_config_maps(&server).await;
    let_jane_do_everything(&server).await;
    make_narrow(&server, &clock, Some(0)).await;
    let begin = |name: &str| {
        let (server, map) = (server.clone(), config_map(name));
        tokio::spawn(async move { as_jane(&server, &format!("POST {CONFIG_MAPS}"), &map).await })
    };
    let working = begin("worked-on");
    while webhook.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    let waiting = begin("waits");
    let of_jane = "{flow_schema=\"jane\",priority_level=\"narrow\"";
    let queued = format!("apiserver_flowcontrol_current_inqueue_requests{of_jane}}}");
    until(&server, "GET /metrics", &queued, &[&format!("{queued} 1")]).await;
    clock.advance(Duration::from_secs(15));
    let refused = waiting.await.unwrap();
    assert_eq!((refused.code, &*refused.text), (429, "Too many requests, please try again later.\n"));
    let timed_out = format!("apiserver_flowcontrol_rejected_requests_total{of_jane},reason=\"time-out\"}}");
    assert_eq!(lines(&server, "GET /metrics", &timed_out).await, [format!("{timed_out} 1")]);
    let ended = "apiserver_request_terminations_total{code=\"429\",component=\"apiserver\",group=\"\",\
        resource=\"configmaps\",scope=\"resource\",subresource=\"\",verb=\"POST\",version=\"v1\"}";
    assert_eq!(lines(&server, "GET /metrics", ended).await, [format!("{ended} 1")]);
    assert_eq!(lines(&server, "GET /metrics", &queued).await, [format!("{queued} 0")]);
    working.abort();
    let read = format!("GET {CONFIG_MAPS}");
    let next = tokio::time::timeout(PATIENCE, as_jane(&server, &read, &Value::Null));
    assert_eq!(next.await.expect("the seat is free").code, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_every_server_has_is_kept() {
    let (server, clock) = start(400).await;
    let annotated =
        |value: &str| json!({"metadata": {"annotations": {"apf.kubernetes.io/autoupdate-spec": value}}});
    let shares = |annotation: Option<&str>| {
        let mut patch = annotation.map_or_else(|| json!({}), annotated);
        patch["spec"] = json!({"limited": {"nominalConcurrencyShares": 7}});
        patch
    };
    let rule = json!({"subjects": [{"kind": "User", "user": {"name": "jane"}}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]});
    let mut own = annotated("true");
    own["metadata"]["name"] = "own".into();
    own["spec"] = json!({"priorityLevelConfiguration": {"name": "exempt"}, "rules": [rule]});
    let levels = "prioritylevelconfigurations";
    // What is done, and what is there in the end: its shares and its annotation.
    let cases = [
        ("PATCH", levels, "workload-low", shares(None), Some((json!(100), "true"))),
        ("PATCH", levels, "workload-high", shares(Some("false")), Some((json!(7), "false"))),
        ("PATCH", levels, "system", shares(Some("perhaps")), Some((json!(7), "false"))),
        ("DELETE", levels, "node-high", Value::Null, Some((json!(40), "true"))),
        ("DELETE", "flowschemas", "service-accounts", Value::Null, Some((Value::Null, "true"))),
        ("POST", "flowschemas", "own", own, None),
    ];
    for (verb, plural, name, body, _) in &cases {
        let path = format!("{FLOW_CONTROL}/{plural}");
        let path = if *verb == "POST" { path } else { format!("{path}/{name}") };
        let headers = if *verb == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = server.call_with(&format!("{verb} {path}"), &[("content-type", headers)], body).await;
        assert!(answer.code < 300, "{verb} {name}: {}", answer.text);
    }
    for (_, plural, name, _, expected) in cases {
        let mut found = None;
        for _ in 0..20_000 {
            clock.advance(Duration::from_secs(60));
            let answer = server.call(&format!("GET {FLOW_CONTROL}/{plural}/{name}"), &Value::Null).await;
            let object = answer.json();
            let annotation = object["metadata"]["annotations"]["apf.kubernetes.io/autoupdate-spec"].clone();
            let shares = object["spec"]["limited"]["nominalConcurrencyShares"].clone();
            found = (answer.code == 200).then_some((shares, annotation));
            if found == expected.as_ref().map(|(shares, annotation)| (shares.clone(), json!(annotation))) {
                break;
            }
            tokio::task::yield_now().await;
        }
        assert_eq!(found, expected.map(|(shares, annotation)| (shares, json!(annotation))), "{name}");
    }
}
