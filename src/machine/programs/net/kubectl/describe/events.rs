//! What was told of an object, as `kubectl describe` writes it.

use apimachinery::time::human_duration;
use chrono::{DateTime, Utc};
use serde_json::Value;

use super::metadata::{list, number, text};
use super::page::TabbedPage;

/// How long ago something was; `<unknown>` where nobody says.
pub(super) fn age(value: &Value, now: DateTime<Utc>) -> String {
    let time = value.as_str().and_then(|text| DateTime::parse_from_rfc3339(text).ok());
    time.map_or("<unknown>".to_owned(), |time| human_duration((now - time.to_utc()).num_seconds()))
}

/// The newest stand last.
pub(super) fn events(page: &mut TabbedPage, events: &[Value], now: DateTime<Utc>) {
    if events.is_empty() {
        return page.field(0, "Events", "<none>");
    }
    page.flush();
    let mut events: Vec<&Value> = events.iter().collect();
    events.sort_by_key(|event| last_seen(event).to_owned());
    page.line(0, "Events:\n  Type\tReason\tAge\tFrom\tMessage");
    page.line(1, "----\t------\t----\t----\t-------");
    for event in events {
        let from = match text(&event["source"], "component") {
            "" => text(event, "reportingComponent"),
            component => component,
        };
        let message = text(event, "message").trim();
        let message = match text(&event["involvedObject"], "fieldPath") {
            "" => message.to_owned(),
            path => format!("{path}: {message}"),
        };
        let (kind, reason) = (text(event, "type"), text(event, "reason"));
        page.line(1, format!("{kind}\t{reason}\t{}\t{from}\t{message}", interval(event, now)));
    }
}

/// When it was seen last, or first where that is all that is known.
fn last_seen(event: &Value) -> &str {
    let times = [&event["series"]["lastObservedTime"], &event["lastTimestamp"], &event["eventTime"]];
    times.into_iter().find_map(Value::as_str).unwrap_or_default()
}

fn interval(event: &Value, now: DateTime<Utc>) -> String {
    let first = if event["eventTime"].is_string() { &event["eventTime"] } else { &event["firstTimestamp"] };
    let (first, series) = (age(first, now), &event["series"]);
    if series.is_object() {
        let last = age(&series["lastObservedTime"], now);
        return format!("{last} (x{} over {first})", number(&series["count"]));
    }
    let count = number(&event["count"]);
    if count > 1 {
        return format!("{} (x{count} over {first})", age(&event["lastTimestamp"], now));
    }
    first
}

/// Those of a list.
pub(super) fn of_list(answer: &Value) -> Vec<Value> {
    list(&answer["items"]).to_vec()
}
