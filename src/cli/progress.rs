//! The live list that `kubarium up` shows: a line per step that is done, then the pods as they come up, with
//! what keeps them from it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::pod_trouble::{self, TroubledState};
use super::say;
use super::style::{Style, Tone};
use apimachinery::object::Object;
use apimachinery::options::ListOptions;
use apimachinery::watch::WatchEvent;
use apis::core::pod::PODS;
use client_go::client::Client;
use clock::Clock;

/// How long pods are shown after the last change; then the list is over.
const QUIET: Duration = Duration::from_secs(3);
/// Pods shown by name; of more, only the count is.
const SHOWN: usize = 20;

/// Says that a step is done.
pub(crate) fn done(what: &str, detail: &str) {
    say(format!("  {} {what:<12} {detail}", Style::of_stdout().paint(Tone::Good, "✓")));
}

/// Says what to do with a cluster that has just got ready.
pub(crate) fn hint(style: Style) {
    let hint =
        "Ctrl-C stops it. Try: kubectl get pods -A, or for the story of a pod: kubarium trace pod/NAME";
    say(style.paint(Tone::Quiet, hint));
}

/// A duration for people.
pub(crate) fn milliseconds(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}

/// Shows pods as they come up, until all are and nothing has changed for a while.
pub(crate) async fn show_pods(client: &Client, clock: &Clock, style: Style) {
    let Ok(mut events) = client.watch(&PODS, "", &ListOptions::default()).await else { return };
    let mut pods = Pods { style, seen: BTreeMap::new() };
    while let Ok(Some(event)) = clock.timeout(QUIET, events.recv()).await {
        match &event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => pods.update(pod, clock),
            WatchEvent::Deleted(pod) => drop(pods.seen.remove(&pod.key())),
            _ => {}
        }
    }
    pods.sum_up();
}

/// The pods that are there, each with what was last said of it.
struct Pods {
    style: Style,
    seen: BTreeMap<String, (TroubledState, String)>,
}

impl Pods {
    fn update(&mut self, pod: &Object, clock: &Clock) {
        let cells = PODS.cells.cells(pod, clock.now());
        let text = |at: usize| cells.get(at).and_then(Value::as_str).unwrap_or_default();
        // Not `Object::view`: the server keeps the pod, and must not keep a view of it that was once printed.
        let view = serde_json::from_slice(&pod.stored()).unwrap_or_default();
        let (state, why) = pod_trouble::of(&view);
        // The column says the reason already.
        let why = why.map(|why| why.strip_prefix(&format!("{}: ", text(2))).unwrap_or(&why).to_owned());
        let why = why.map(|why| format!("  {why}")).unwrap_or_default();
        let line = format!("{:<7} {}{why}", text(1), self.style.paint(state.tone(), text(2)));
        let is_shown = self.seen.len() < SHOWN || self.seen.contains_key(&pod.key());
        let before = self.seen.insert(pod.key(), (state, line.clone()));
        if is_shown && before.is_none_or(|(_, before)| before != line) {
            say(format!("    {:<52} {line}", pod.key()));
        }
    }

    fn sum_up(&self) {
        let mut bad =
            self.seen.iter().filter(|(_, (state, _))| *state != TroubledState::Well).map(|(key, _)| key);
        let count = self.seen.len();
        let Some(first) = bad.next() else {
            return say(format!("  {count} pods, all well"));
        };
        let (namespace, name) = first.split_once('/').unwrap_or(("default", first));
        let not_well = self.style.paint(Tone::Bad, &format!("{} not well", 1 + bad.count()));
        say(format!("  {count} pods, {not_well}; why: kubarium trace pod/{name} -n {namespace}"));
    }
}
