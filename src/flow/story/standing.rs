//! How it stands: what keeps an object from being what somebody wanted, and what would help.

use super::admission::refusals;
use super::conflict::conflicts;
use super::obstacles::{CrashingContainer, Obstacles, RefusedReconcile, StuckPod};
use super::own::OwnObjects;
use super::target::RequestTarget;
use super::units::{Unit, UnitKind};
use crate::step::Step;
use crate::trace::Trace;
use crate::words::{comparison, in_brackets, one_line, subject};

/// The plugin that puts initializers onto an object.
const INITIALIZERS: &str = "Initializers";

/// So many lines of one kind.
const MOST: usize = 3;

/// A line for each thing that stands in the way of the subject, or of what was made of it.
pub(super) fn standing(trace: &Trace, units: &[Unit<'_>]) -> Vec<String> {
    let mut obstacles = Obstacles::default();
    trace.steps.iter().for_each(|step| obstacles.see(step));
    let own = OwnObjects::of(trace);
    let kinds = [
        pending(&obstacles, &own),
        not_started(&obstacles, &own),
        not_well(&obstacles, &own),
        refused(&obstacles, &own),
        kept(&obstacles, &own),
        units.iter().filter_map(waits_for).take(MOST).collect(),
        units.iter().filter_map(would_allow).take(MOST).collect(),
        last(refusals(units, &own)),
        last(conflicts(units, &own)),
    ];
    kinds.into_iter().flatten().map(|line| one_line(&line)).collect()
}

/// Those that came last, in their order.
fn last(lines: Vec<String>) -> Vec<String> {
    lines.into_iter().rev().take(MOST).rev().collect()
}

/// What has no place.
fn pending(obstacles: &Obstacles, own: &OwnObjects<'_>) -> Vec<String> {
    let pods = obstacles.pending.iter().filter(|(pod, _)| own.has(pod));
    let pods = pods.take(MOST).map(|(pod, why)| format!("pod {pod} has no node: {why}"));
    let claims = obstacles.unbound.iter().filter(|(claim, _)| own.has(claim));
    let claims =
        claims.take(MOST).map(|(claim, why)| format!("persistentvolumeclaim {claim} has no volume: {why}"));
    pods.chain(claims).collect()
}

/// Pods that have a node and do not run, or not for long.
fn not_started(obstacles: &Obstacles, own: &OwnObjects<'_>) -> Vec<String> {
    let stuck = obstacles.stuck.iter().filter(|(pod, _)| own.has(pod));
    let stuck = stuck.take(MOST).map(|(pod, StuckPod { reason, message, .. })| {
        format!("pod {pod} cannot start{}: {message}", in_brackets(reason))
    });
    let crashing = obstacles.crashing.iter().filter(|((pod, _), _)| own.has(pod));
    let crashing = crashing.take(MOST).map(|((pod, container), crashing)| {
        let (namespace, name) = pod.split_once('/').unwrap_or(("default", pod));
        let CrashingContainer { times, exit_code, reason, backs_off } = crashing;
        let times = if *times == 1 { String::new() } else { format!(" {times} times") };
        let backs_off = if *backs_off { ", and is in CrashLoopBackOff" } else { "" };
        format!(
            "container {container} of pod {pod} has failed{times}, with exit code {exit_code}{}{backs_off}; \
             what it said: kubectl logs {name} -c {container} -n {namespace} --previous",
            in_brackets(reason)
        )
    });
    stuck.chain(crashing).collect()
}

/// Nodes that are silent or unwell, and pods that run and are not as they should be. That a pod was evicted
/// is in nobody's way but its own: another one takes its place.
fn not_well(obstacles: &Obstacles, own: &OwnObjects<'_>) -> Vec<String> {
    let silent = obstacles.silent.iter().filter(|node| own.is_subject("nodes", node));
    let silent = silent.take(MOST).map(|node| {
        format!("node {node} is not ready: its kubelet says nothing any more, node-controller speaks for it")
    });
    let is_told = |node: &str| own.is_subject("nodes", node) && !obstacles.silent.contains(node);
    let unwell = obstacles.unwell.iter().filter(|(node, said)| is_told(node) && !said.is_empty());
    let unwell = unwell.take(MOST).map(|(node, said)| {
        let said: Vec<&str> = said.iter().copied().collect();
        format!(
            "node {node} is {}: its kubelet says so itself; why: kubectl describe node {node}",
            said.join(" and ")
        )
    });
    let evicted = obstacles.evicted.iter().filter(|(pod, _)| own.is_subject("pods", pod));
    let evicted = evicted.take(MOST).map(|(pod, why)| format!("pod {pod} was evicted: {why}"));
    let unhealthy = obstacles.unhealthy.iter().filter(|(pod, _)| own.has(pod));
    let unhealthy = unhealthy.take(MOST).map(|(pod, why)| {
        let is = if why.starts_with("Readiness") { "ready" } else { "healthy" };
        format!("pod {pod} is not {is}: {why}")
    });
    silent.chain(unwell).chain(evicted).chain(unhealthy).collect()
}

/// Controllers that may not do what they have to.
fn refused(obstacles: &Obstacles, own: &OwnObjects<'_>) -> Vec<String> {
    let refused = obstacles.refused.iter().filter(|(key, _)| own.has(key));
    let told = refused.take(MOST).map(|(key, RefusedReconcile { controller, why, compared })| {
        let compared = compared.as_ref().map(|compared| format!("{}, and ", comparison(compared)));
        format!("{controller} of {key} {}is refused: {why}", compared.unwrap_or_default())
    });
    told.collect()
}

/// What is deleted and waits.
fn kept(obstacles: &Obstacles, own: &OwnObjects<'_>) -> Vec<String> {
    let is_meant =
        |what: &str| !own.is_of_pod() || own.has(what.split_once(' ').map_or(what, |(_, key)| key));
    let kept = obstacles.kept.iter().filter(|(what, _)| is_meant(what));
    let told = kept.take(MOST).map(|(what, finalizers)| {
        let names = finalizers.join(", ");
        format!(
            "{what} is deleted and still there: whoever put the finalizers {names} there has to do its work \
             and take them away; when nobody does: kubectl patch {} --type=merge -p \
             '{{\"metadata\":{{\"finalizers\":null}}}}'",
            named(what)
        )
    });
    told.collect()
}

/// As kubectl wants it: `configmaps a -n default`.
fn named(subject: &str) -> String {
    let (resource, key) = subject.split_once(' ').unwrap_or((subject, ""));
    match key.split_once('/') {
        Some((namespace, name)) => format!("{resource} {name} -n {namespace}"),
        None => format!("{resource} {key}"),
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

#[cfg(test)]
mod tests;
