//! The live list that `kubarium up` shows: a line per step that is done, then the pods as they come up.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::say;
use crate::apimachinery::options::ListOptions;
use crate::apimachinery::watch::WatchEvent;
use crate::apis::core::pod::PODS;
use crate::client_go::client::Client;
use crate::clock::Clock;

/// How long pods are shown after the last change; then the list is over.
const QUIET: Duration = Duration::from_secs(3);
/// Pods shown by name; of more, only the count is.
const SHOWN: usize = 20;

/// Says that a step is done.
pub fn done(what: &str, detail: &str) {
    say(format!("  ✓ {what:<12} {detail}"));
}

/// A duration for people.
pub fn milliseconds(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}

/// Shows pods as they come up, until all are and nothing has changed for a while.
pub async fn show_pods(client: &Client, clock: &Clock) {
    let Ok(mut events) = client.watch(&PODS, "", &ListOptions::default()).await else { return };
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    while let Ok(Some(event)) = clock.timeout(QUIET, events.recv()).await {
        let (WatchEvent::Added(pod) | WatchEvent::Modified(pod)) = &event else { continue };
        let cells = PODS.cells.cells(pod, clock.now());
        let text = |at: usize| cells.get(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        let state = format!("{:<7} {}", text(1), text(2));
        let is_new = !seen.contains_key(&pod.key());
        if seen.insert(pod.key(), state.clone()).as_ref() != Some(&state) && (seen.len() <= SHOWN || !is_new)
        {
            say(format!("    {:<52} {state}", pod.key()));
        }
    }
    say(format!("  {} pods", seen.len()));
}
