//! How it stands: what keeps an object from being what somebody wanted, and what would help.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::target::RequestTarget;
use super::units::{Unit, UnitKind};
use crate::step::{Operation, Step};
use crate::trace::Trace;
use crate::words::{refusal, subject};

/// The plugin that puts initializers onto an object.
const INITIALIZERS: &str = "Initializers";

/// So many lines of one kind.
const MOST: usize = 3;

/// A line for each thing that stands in the way.
pub(super) fn standing(trace: &Trace, units: &[Unit<'_>]) -> Vec<String> {
    let mut standing = Obstacles::default();
    trace.steps.iter().for_each(|step| standing.see(&step.step));
    let pending =
        standing.pending.iter().take(MOST).map(|(pod, why)| format!("pod {pod} has no node: {why}"));
    let crashing = standing.crashing.iter().take(MOST).map(|((pod, container), (count, code))| {
        let (namespace, name) = pod.split_once('/').unwrap_or(("default", pod));
        let times = if *count == 1 { String::new() } else { format!(" {count} times") };
        format!(
            "container {container} of pod {pod} has failed{times}, with exit code {code}; what it said: \
             kubectl logs {name} -c {container} -n {namespace} --previous"
        )
    });
    let kept = standing.kept.iter().take(MOST).map(|(what, finalizers)| {
        let names = finalizers.join(", ");
        format!(
            "{what} is deleted and still there: whoever put the finalizers {names} there has to do its work \
             and take them away; when nobody does: kubectl patch {} --type=merge -p \
             '{{\"metadata\":{{\"finalizers\":null}}}}'",
            named(what)
        )
    });
    let forbidden = units.iter().filter_map(would_allow).take(MOST);
    let waiting = units.iter().filter_map(waits_for).take(MOST);
    pending.chain(crashing).chain(kept).chain(waiting).chain(forbidden).collect()
}

/// As kubectl wants it: `configmaps a -n default`.
fn named(subject: &str) -> String {
    let (resource, key) = subject.split_once(' ').unwrap_or((subject, ""));
    match key.split_once('/') {
        Some((namespace, name)) => format!("{resource} {name} -n {namespace}"),
        None => format!("{resource} {key}"),
    }
}

/// What is true at the end, of each object of the trace.
#[derive(Default)]
struct Obstacles {
    /// Pods, and why they have no node.
    pending: BTreeMap<Arc<str>, String>,
    /// Containers by pod: how often one ended badly, and with what.
    crashing: BTreeMap<(Arc<str>, Arc<str>), (usize, i32)>,
    /// Objects that were deleted and wait.
    kept: BTreeMap<String, Vec<Arc<str>>>,
    /// The object of the last write.
    last: String,
}

impl Obstacles {
    fn see(&mut self, step: &Step) {
        match step {
            Step::Filtered { pod, feasible: 0, nodes, refusals } => {
                let refusals: Vec<String> = refusals.iter().map(refusal).collect();
                let why =
                    if refusals.is_empty() { format!("none of {nodes} fits") } else { refusals.join("; ") };
                self.pending.insert(pod.clone(), why);
            }
            Step::Assumed { pod, .. } | Step::Bound { pod, .. } => {
                self.pending.remove(pod);
            }
            Step::ContainerExited { pod, container, exit_code, .. } if *exit_code != 0 => {
                let seen = self.crashing.entry((pod.clone(), container.clone())).or_default();
                *seen = (seen.0 + 1, *exit_code);
            }
            Step::Stored { resource, namespace, name, operation, .. } => {
                self.last = subject(resource, namespace, name);
                if *operation == Operation::Delete {
                    self.gone(&format!("{namespace}/{name}"));
                }
            }
            Step::Terminating { finalizers, .. } if !finalizers.is_empty() => {
                self.kept.insert(self.last.clone(), finalizers.clone());
            }
            _ => {}
        }
    }

    fn gone(&mut self, key: &str) {
        self.pending.remove(key);
        self.crashing.retain(|(pod, _), _| **pod != *key);
        self.kept.remove(&self.last);
    }
}

/// Of a create that is stored and not answered: for which initializers it waits.
fn waits_for(unit: &Unit<'_>) -> Option<String> {
    let steps = || unit.steps.iter().map(|step| &step.step);
    if steps().any(|step| matches!(step, Step::Responded { .. } | Step::Refused { .. })) {
        return None;
    }
    let list = steps().find_map(|step| match step {
        Step::Admitted { plugin, values, .. } if &**plugin == INITIALIZERS => values.first()?.to.clone(),
        _ => None,
    })?;
    let stored = steps().find_map(|step| match step {
        Step::Stored { resource, namespace, name, .. } => Some(subject(resource, namespace, name)),
        _ => None,
    })?;
    Some(format!(
        "{stored} is seen by nobody, and its create not answered, until each of {list} has taken itself off"
    ))
}

/// Of somebody's request that no authorizer allowed: the rule that would have.
fn would_allow(unit: &Unit<'_>) -> Option<String> {
    let steps = || unit.steps.iter().map(|step| &step.step);
    if unit.kind != UnitKind::Request || !steps().any(|step| matches!(step, Step::NotAuthorized { .. })) {
        return None;
    }
    let Step::RequestReceived { verb, path, .. } = &unit.first().step else { return None };
    let target = RequestTarget::of(path)?;
    let (plural, group) = target.resource.split_once('.').unwrap_or((&target.resource, ""));
    let sub = if target.subresource.is_empty() { String::new() } else { format!("/{}", target.subresource) };
    let whom = bound_to(unit.who());
    let rule = format!("apiGroups [{group:?}], resources [\"{plural}{sub}\"], verbs [{verb:?}]");
    let (role, place) = match target.namespace {
        "" => ("ClusterRole", String::new()),
        namespace => ("Role", format!(" in namespace {namespace}")),
    };
    Some(format!("a {role} with {rule}, bound to {whom}{place}, would allow it"))
}

fn bound_to(user: &str) -> String {
    match user.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':')) {
        Some((namespace, name)) => format!("ServiceAccount {namespace}/{name}"),
        None => format!("User {user:?}"),
    }
}
