//! agnhost's `external-metrics`: an API of external metrics whose values whoever asks may set.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::requests::{WebAnswer, WebRequest, parameter};
use crate::server_state::{ExternalMetric, ServerState};

const GROUP: &str = "external.metrics.k8s.io";
const VERSION: &str = "external.metrics.k8s.io/v1beta1";

/// What is answered at each path.
pub(super) fn answer(asked: &WebRequest<'_>, state: &mut ServerState) -> WebAnswer {
    let (path, query) = asked.target.split_once('?').unwrap_or((asked.target, ""));
    let path = &*percent_decode_str(path).decode_utf8_lossy();
    if let Some(rest) = path.strip_prefix("/apis/external.metrics.k8s.io")
        && (rest.is_empty() || rest.starts_with('/'))
    {
        return metrics(rest.trim_start_matches('/'), query, asked.now, state);
    }
    let named = |prefix: &str| path.strip_prefix(prefix).map(|rest| rest.split('/').next().unwrap_or(rest));
    match path {
        "/healthz" | "/readyz" => WebAnswer::text(200, "ok"),
        _ => match (named("/fail/"), named("/set/"), named("/create/")) {
            (Some(""), ..) | (_, Some(""), _) | (.., Some("")) => {
                WebAnswer::error(400, "metric name required")
            }
            (Some(metric), ..) => fail(metric, query, state),
            (_, Some(metric), _) => set(metric, query, state),
            (.., Some(metric)) => create(metric, query, state),
            _ => WebAnswer::not_found(),
        },
    }
}

fn told(code: u16, value: &Value) -> WebAnswer {
    WebAnswer::typed(code, "application/json", format!("{value}\n"))
}

fn metrics(path: &str, query: &str, now: &str, state: &mut ServerState) -> WebAnswer {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        [""] => {
            let version = json!({"groupVersion": VERSION, "version": "v1beta1"});
            let group = json!({"kind": "APIGroup", "apiVersion": "v1", "name": GROUP, "versions": [version],
                "preferredVersion": version});
            told(200, &group)
        }
        ["v1beta1"] | ["v1beta1", ""] => {
            let resource =
                json!({"name": "*", "namespaced": true, "kind": "ExternalMetricValueList", "verbs": ["get"]});
            let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": VERSION,
                "resources": [resource]});
            told(200, &list)
        }
        [_, "namespaces", _, metric, ..] => values(metric, query, now, state),
        _ => WebAnswer::not_found(),
    }
}

/// All of that name that have such labels.
fn values(metric: &str, query: &str, now: &str, state: &mut ServerState) -> WebAnswer {
    let wanted = labels(&parameter(query, "labelSelector").unwrap_or_default());
    let fits = |own: &&ExternalMetric| {
        own.name == metric && wanted.iter().all(|(name, value)| own.labels.get(name) == Some(value))
    };
    let all = state.metrics();
    let exact = all.iter().find(|own| !wanted.is_empty() && own.name == metric && own.labels == wanted);
    let found: Vec<&ExternalMetric> = match exact {
        Some(exact) => vec![exact],
        None => all.iter().filter(fits).collect(),
    };
    if found.is_empty() && wanted.is_empty() {
        return WebAnswer::error(404, format!("no metric name called {metric}"));
    }
    if found.is_empty() {
        let pairs: Vec<String> = wanted.iter().map(|(name, value)| format!("{name}:{value}")).collect();
        let labels = pairs.join(" ");
        return WebAnswer::error(404, format!("no metric name called {metric} with labels map[{labels}]"));
    }
    if found.iter().any(|own| own.fails) {
        return WebAnswer::error(500, format!("metric {metric} is configured to fail"));
    }
    // In whole seconds.
    let now = format!("{}Z", now.split(['.', 'Z']).next().unwrap_or(now));
    let shown = |own: &&ExternalMetric| {
        let labels = if own.is_bare { Value::Null } else { json!(own.labels) };
        json!({"metricName": own.name, "metricLabels": labels, "timestamp": now, "value": own.value.to_string()})
    };
    let items: Vec<Value> = found.iter().map(shown).collect();
    let list =
        json!({"kind": "ExternalMetricValueList", "apiVersion": VERSION, "metadata": {}, "items": items});
    told(200, &list)
}

/// `a=b,c=d`
fn labels(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}

fn given(query: &str, name: &str) -> String {
    parameter(query, name).unwrap_or_default()
}

/// What is there, by its name and labels.
fn known<'a>(metric: &str, query: &str, state: &'a mut ServerState) -> Option<&'a mut ExternalMetric> {
    let labels = labels(&given(query, "labels"));
    state.metrics().iter_mut().find(|own| own.name == metric && own.labels == labels)
}

fn unknown(metric: &str, query: &str) -> WebAnswer {
    let labels = labels(&given(query, "labels"));
    let pairs: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let key = if pairs.is_empty() { metric.to_owned() } else { format!("{metric}:{}", pairs.join(",")) };
    WebAnswer::error(404, format!("metric {key} not found"))
}

fn fail(metric: &str, query: &str, state: &mut ServerState) -> WebAnswer {
    let failing = given(query, "fail");
    if failing != "true" && failing != "false" {
        return WebAnswer::error(400, "fail param should be true or false");
    }
    let Some(own) = known(metric, query, state) else { return unknown(metric, query) };
    own.fails = failing == "true";
    let labels = labels(&given(query, "labels"));
    told(200, &json!({"status": "success", "metric": metric, "labels": labels, "failing": failing}))
}

/// The number that is given.
fn value(query: &str) -> Result<i64, WebAnswer> {
    let text = given(query, "value");
    if text.is_empty() {
        return Err(WebAnswer::error(400, "value param required"));
    }
    // What stands behind a number is not looked at.
    let sign = usize::from(text.starts_with(['-', '+']));
    let end = text[sign..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |end| sign + end);
    text[..end].parse().map_err(|_| WebAnswer::error(400, "value param must be an integer"))
}

fn set(metric: &str, query: &str, state: &mut ServerState) -> WebAnswer {
    let value = match value(query) {
        Ok(value) => value,
        Err(wrong) => return wrong,
    };
    let Some(own) = known(metric, query, state) else { return unknown(metric, query) };
    own.value = value;
    told(200, &json!({"status": "success", "metric": metric, "value": value}))
}

fn create(metric: &str, query: &str, state: &mut ServerState) -> WebAnswer {
    let value = match value(query) {
        Ok(value) => value,
        Err(wrong) => return wrong,
    };
    let (labels, fails) = (labels(&given(query, "labels")), given(query, "fail") == "true");
    let made =
        ExternalMetric { name: metric.to_owned(), labels: labels.clone(), is_bare: false, value, fails };
    if !state.keep_metric(made) {
        return WebAnswer::error(507, "there are too many metrics");
    }
    let answer =
        json!({"status": "created", "metric": metric, "labels": labels, "value": value, "failing": fails});
    told(201, &answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_what_somebody_set() {
        let mut state = ServerState::default();
        let mut ask = |target: &str| {
            let asked = WebRequest { target, now: "2026-01-01T00:00:00.5Z", ..WebRequest::default() };
            let answered = answer(&asked, &mut state);
            (answered.code, answered.body)
        };
        let api = "/apis/external.metrics.k8s.io";
        assert!(ask(api).1.starts_with("{\"apiVersion\":\"v1\",\"kind\":\"APIGroup\""));
        assert!(ask(&format!("{api}/v1beta1")).1.contains("ExternalMetricValueList"));
        let value = |metric: &str| format!("{api}/v1beta1/namespaces/default/{metric}");
        assert_eq!(
            ask(&value("queue_messages_ready")),
            (
                200,
                "{\"apiVersion\":\"external.metrics.k8s.io/v1beta1\",\"items\":[{\"metricLabels\":null,\
                 \"metricName\":\"queue_messages_ready\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"value\":\"100\"}],\
                 \"kind\":\"ExternalMetricValueList\",\"metadata\":{}}\n"
                    .to_owned()
            )
        );
        let none = "no metric name called nn with labels map[a:b c:d]\n";
        assert_eq!(ask(&value("nn?labelSelector=a%3Db,c%3Dd")), (404, none.to_owned()));
        let created = "{\"failing\":false,\"labels\":{\"a\":\"b\"},\"metric\":\"foo\",\"status\":\"created\",\"value\":12}\n";
        assert_eq!(ask("/create/foo?value=12&labels=a%3Db"), (201, created.to_owned()));
        assert_eq!(ask("/set/foo?value=3"), (404, "metric foo not found\n".to_owned()));
        assert_eq!(ask("/set/foo?value=3&labels=a%3Db").0, 200);
        assert!(ask(&value("foo?labelSelector=a%3Db")).1.contains("\"value\":\"3\""));
        assert_eq!(ask("/fail/foo?fail=true&labels=a%3Db").0, 200);
        assert_eq!(ask(&value("foo")), (500, "metric foo is configured to fail\n".to_owned()));
        for (target, why) in [
            ("/fail/foo?fail=x", "fail param should be true or false\n"),
            ("/fail/", "metric name required\n"),
            ("/set/a", "value param required\n"),
            ("/set/a?value=x", "value param must be an integer\n"),
        ] {
            assert_eq!(ask(target), (400, why.to_owned()), "{target}");
        }
        assert_eq!((ask("/readyz").0, ask("/other").0), (200, 404));
    }
}
