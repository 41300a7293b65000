//! What other tools get.

use serde_json::Value;

use crate::handwritten::deployment;
use crate::lane::Lane;
use crate::wanted::WantedSteps;

fn exported(form: &str) -> String {
    let trace = deployment().flow.trace("deployments.apps", "ns", "web");
    trace.export(form, &WantedSteps::default()).unwrap()
}

#[test]
fn json_and_yaml_have_the_steps_and_the_stages() {
    let json: Value = serde_json::from_str(&exported("json")).unwrap();
    let yaml: Value = serde_yaml::from_str(&exported("yaml")).unwrap();
    assert_eq!(json, yaml);
    assert_eq!(
        (&json["subject"], &json["steps"][0]["step"]),
        (&"deployments.apps ns/web".into(), &"RequestReceived".into())
    );
    assert!(
        json["stages"][0]["words"].as_str().unwrap().contains("creates deployments.apps ns/web"),
        "{json}"
    );
    let trace = deployment().flow.trace("deployments.apps", "ns", "web");
    let wanted = WantedSteps { lane: Some(Lane::Scheduler), ..WantedSteps::default() };
    let part: Value = serde_json::from_str(&trace.export("json", &wanted).unwrap()).unwrap();
    let steps = part["steps"].as_array().unwrap();
    assert!(!steps.is_empty() && steps.len() < trace.steps.len(), "{part}");
    assert!(part["stages"].as_array().unwrap().iter().all(|stage| stage["lane"] == "scheduler"), "{part}");
}

#[test]
fn a_diagram_has_a_line_for_each_stage() {
    let text = exported("mermaid");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("sequenceDiagram"));
    let wanted = ["U->>A: 1. ", "A->>E: ", "C->>A: ", "S->>A: ", "K->>A: "];
    for sign in wanted {
        assert!(text.contains(sign), "{sign} is not in\n{text}");
    }
    let is_drawn = |line: &str| line.contains("participant ") || line.contains(": ");
    assert!(lines.all(|line| is_drawn(line) && !line.contains(';')), "{text}");
}

#[test]
fn spans_are_one_trace_whose_causes_are_known() {
    let request: Value = serde_json::from_str(&exported("otlp")).unwrap();
    let mut spans = Vec::new();
    let mut services = Vec::new();
    for resource in request["resourceSpans"].as_array().unwrap() {
        services.push(resource["resource"]["attributes"][0]["value"]["stringValue"].as_str().unwrap());
        for scope in resource["scopeSpans"].as_array().unwrap() {
            spans.extend(scope["spans"].as_array().unwrap());
        }
    }
    assert_eq!(services, ["apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"], "each once");
    let ids: Vec<&Value> = spans.iter().map(|span| &span["spanId"]).collect();
    let roots = spans.iter().filter(|span| span["parentSpanId"].is_null()).count();
    assert_eq!(roots, 1, "the user's request");
    for span in &spans {
        assert_eq!(span["traceId"], spans[0]["traceId"]);
        assert!(
            span["spanId"].as_str().unwrap().len() == 16 && span["traceId"].as_str().unwrap().len() == 32
        );
        assert!(span["parentSpanId"].is_null() || ids.contains(&&span["parentSpanId"]), "{span}");
        let time = |name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"), "{span}");
    }
    assert!(
        spans
            .iter()
            .any(|span| span["links"][0]["spanId"] == span["parentSpanId"] && !span["links"].is_null())
    );
}

#[test]
fn perfetto_gets_spans_that_do_not_overlap_and_an_arrow_for_each_cause() {
    let file: Value = serde_json::from_str(&exported("perfetto")).unwrap();
    let events = file["traceEvents"].as_array().unwrap();
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
    let spans = of("X");
    let named = |span: &&&Value| span["name"] == "step";
    assert!(spans.iter().find(named).is_none(), "people read words");
    assert_eq!(of("s").len(), of("f").len());
    assert_eq!(of("s").len() + 1, spans.len(), "all but the first have a cause");
    for (at, span) in spans.iter().enumerate() {
        let same = |other: &&&Value| (&other["pid"], &other["tid"]) == (&span["pid"], &span["tid"]);
        let end = span["ts"].as_u64().unwrap() + span["dur"].as_u64().unwrap();
        let next = spans[at + 1..].iter().find(same);
        assert!(next.is_none_or(|next| next["ts"].as_u64().unwrap() >= end), "{span} {next:?}");
    }
}

#[test]
fn spans_of_one_lane_and_of_writes_alone() {
    let trace = deployment().flow.trace("deployments.apps", "ns", "web");
    let exported = |form: &str, wanted: &WantedSteps| -> Value {
        serde_json::from_str(&trace.export(form, wanted).unwrap()).unwrap()
    };
    let wanted = WantedSteps { lane: Some(Lane::Scheduler), ..WantedSteps::default() };
    let spans = exported("otlp", &wanted);
    let services = spans["resourceSpans"].as_array().unwrap();
    assert_eq!(services.len(), 1, "{spans}");
    assert_eq!(services[0]["resource"]["attributes"][0]["value"]["stringValue"], "kube-scheduler");
    let events = exported("perfetto", &wanted);
    let processes = events["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "M");
    assert_eq!(processes.count(), 1, "{events}");
    let wanted = WantedSteps { only_writes: true, ..WantedSteps::default() };
    let spans = exported("otlp", &wanted);
    let services = spans["resourceSpans"].as_array().unwrap();
    let all: Vec<&Value> = services.iter().flat_map(|one| one["scopeSpans"].as_array().unwrap()).collect();
    let all: Vec<&Value> = all.iter().flat_map(|scope| scope["spans"].as_array().unwrap()).collect();
    assert!(
        !all.is_empty()
            && all.iter().all(|span| span["name"].as_str().is_some_and(|name| name.contains(" /api"))),
        "{spans}"
    );
}
