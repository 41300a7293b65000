//! A trace as the events that Chrome and Perfetto show ("Trace Event Format"): a process for each component, an arrow
//! for each cause.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::otlp::{component, name};
use crate::story::{Unit, units};
use crate::trace::Trace;
use crate::words::describe;

/// The whole file.
pub(super) fn events(trace: &Trace) -> Value {
    let units = units(&trace.steps);
    let mut processes: BTreeMap<String, usize> = BTreeMap::new();
    for unit in &units {
        let next = processes.len() + 1;
        processes.entry(component(unit)).or_insert(next);
    }
    let mut events: Vec<Value> = processes
        .iter()
        .map(|(name, pid)| json!({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}))
        .collect();
    let threads = threads(&units);
    let place = |at: usize| (processes[&component(&units[at])], threads[at]);
    for (at, unit) in units.iter().enumerate() {
        let (pid, tid) = place(at);
        let start = unit.first().at_microseconds;
        let steps: Vec<String> = unit.steps.iter().map(|step| describe(&step.step)).collect();
        events.push(json!({
            "ph": "X", "name": name(unit).unwrap_or_else(|| describe(&unit.first().step)), "pid": pid, "tid": tid, "ts": start,
            "dur": (unit.until() - start).max(1), "args": {"id": unit.first().id, "steps": steps},
        }));
        if let Some(parent) = unit.parent {
            let (from_pid, from_tid) = place(parent);
            let from = units[parent].first().at_microseconds;
            let id = unit.first().id;
            events.push(json!({"ph": "s", "name": "cause", "cat": "cause", "id": id, "pid": from_pid, "tid": from_tid, "ts": from}));
            events.push(json!({"ph": "f", "bp": "e", "name": "cause", "cat": "cause", "id": id, "pid": pid, "tid": tid, "ts": start}));
        }
    }
    json!({"displayTimeUnit": "ms", "traceEvents": events})
}

/// Spans of one thread must not overlap: each unit takes the first thread of its component that is free.
fn threads(units: &[Unit<'_>]) -> Vec<usize> {
    let mut free_from: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    units
        .iter()
        .map(|unit| {
            let lanes = free_from.entry(component(unit)).or_default();
            let start = unit.first().at_microseconds;
            let free = lanes.iter().position(|until| *until <= start);
            let thread = free.unwrap_or_else(|| {
                lanes.push(0);
                lanes.len() - 1
            });
            lanes[thread] = unit.until().max(start) + 1;
            thread + 1
        })
        .collect()
}
