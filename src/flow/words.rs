//! The words of one step: all that is known of it, in one line.

use std::sync::Arc;

use super::parts::{
    CalledWebhook, ComparedCount, DecodedObject, FieldFromTo, FitRefusal, NodeScore, PassedOnRequest,
    RoutedRequest,
};
use super::step::{Step, WriteOperation};

/// Messages may have lines of their own, which would look like steps.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A path without its API version, and without the word `namespaces` where a resource in a namespace follows.
pub(super) fn short(path: &str) -> &str {
    let segments = if path.starts_with("/apis/") { 4 } else { 3 };
    let Some(rest) = path.splitn(segments + 1, '/').nth(segments) else { return path };
    let inside = rest.strip_prefix("namespaces/").filter(|inside| inside.contains('/'));
    if path.starts_with("/api") { inside.unwrap_or(rest) } else { path }
}

/// What happened, in one line.
pub(super) fn describe(step: &Step) -> String {
    use Step::*;
    match step {
        RequestReceived { user, verb, path } if user.is_empty() => format!("{verb} {}", short(path)),
        RequestReceived { user, verb, path } => {
            // `system:serviceaccount:kube-system:deployment-controller`: the last part says enough.
            format!("{verb} {} ({})", short(path), user.rsplit(':').next().unwrap_or(user))
        }
        Started { what, .. } => format!("has started: {what}"),
        Discovered { client, path, form, code } => {
            format!("answered {code} to {client}, which asks what is served: {path}{}", in_form(form))
        }
        Routed(request) => routed(request),
        Decoded(object) => decoded(object),
        TraceContinued { traceparent } => format!("part of the client's trace {traceparent}"),
        Authenticated { user, by, .. } if by.is_empty() || &**by == "InProcess" => {
            format!("authenticated as {user}")
        }
        Authenticated { user, by, said } if said.is_empty() => format!("authenticated as {user} by {by}"),
        Authenticated { user, by, said } => format!("authenticated as {user} by {by} ({})", joined(said)),
        NotAuthenticated { said } => format!("not authenticated ({})", joined(said)),
        Impersonated { user, acting, verb } => format!("{user} acts as {acting}, allowed by {verb}"),
        Authorized { by, reason, before } => authorized(by, reason, before.as_deref()),
        NotAuthorized { said } => format!("not authorized ({})", joined(said)),
        Denied { plugin } => format!("{plugin} said no"),
        Admitted { plugin, changed, values } if values.is_empty() => format!("{plugin} changed {changed}"),
        Admitted { plugin, values, .. } => format!("{plugin} changed {}", changes(values)),
        WebhookCalled(called) => {
            let CalledWebhook { webhook, microseconds, verdict, .. } = &**called;
            format!("webhook {webhook}: {verdict} ({:.1} ms)", *microseconds as f64 / 1000.0)
        }
        Validated { plugins, changed } => validated(plugins.as_deref(), changed),
        PassedOn(request) => passed_on(request),
        Responded { code, audit_id: None } => format!("answered {code}"),
        Responded { code, audit_id: Some(id) } => format!("answered {code}, audit {id}"),
        DryRun { resource, namespace, name, code } => {
            format!("answered {code} to a dry run: {} is not stored", subject(resource, namespace, name))
        }
        Refused { code, why, .. } => format!("refused with {code}: {why}"),
        other => describe_storage(other),
    }
}

/// The store, watches, informers, queues and reconciles.
fn describe_storage(step: &Step) -> String {
    use Step::*;
    match step {
        Stored { resource, namespace, name, revision, operation, bytes, .. } => {
            let size = if *bytes == 0 { String::new() } else { format!(", {bytes} bytes") };
            format!("{} {} at {revision}{size}", done(*operation), subject(resource, namespace, name))
        }
        Terminating { finalizers, grace_seconds } => terminating(finalizers, *grace_seconds),
        ReadBack { revision, version, after } => read_back(*revision, version, after),
        WatchDelivered { resource, key, revision, watchers } => {
            format!("delivered {resource} {key} at {revision} to {watchers}")
        }
        InformerUpdated { resource, key, revision, delta, callback, handlers, deltas, merged, .. } => {
            let told = delta.zip(*callback).map(|(delta, call)| {
                let many = deltas_of_key(*deltas, *merged);
                format!(" ({delta:?}{many}; {call:?} of {})", counted(u64::from(*handlers), "handler"))
            });
            format!("informed of {resource} {key} at {revision}{}", told.unwrap_or_default())
        }
        Listed { resource, items, revision, again, indices, .. } => {
            let again = if *again { ("once more ", ", its watch had ended") } else { ("", "") };
            let indices =
                indices.as_ref().map(|indices| format!(" (indices: {indices})")).unwrap_or_default();
            format!("listed {resource} {}at {revision}{}: {items}{indices}", again.0, again.1)
        }
        Enqueued { key, retries: 0, delay_milliseconds: 0, .. } => format!("enqueued {key}"),
        Enqueued { key, retries: 0, delay_milliseconds, .. } => {
            format!("enqueued {key} after {delay_milliseconds} ms")
        }
        Enqueued { key, retries, delay_milliseconds, .. } => {
            format!("enqueued {key} again after {delay_milliseconds} ms, failed {retries} times")
        }
        ReconcileStarted { key, coalesced: 0, .. } => format!("reconcile {key}"),
        ReconcileStarted { key, coalesced, .. } => {
            format!("reconcile {key} (asked for {coalesced} times more)")
        }
        ReconcileEnded { result, compared: None } => format!("reconciled: {result}"),
        ReconcileEnded { result, compared: Some(compared) } => {
            format!("reconciled: {result} ({})", comparison(compared))
        }
        other => describe_node_side(other),
    }
}

/// Scheduler, kubelet and Events.
fn describe_node_side(step: &Step) -> String {
    use Step::*;
    match step {
        SchedulingAttempt { pod } => format!("schedule {pod}"),
        Filtered { pod, feasible, nodes, refusals } => {
            let refused: Vec<String> = refusals.iter().map(refusal).collect();
            let refused =
                if refused.is_empty() { String::new() } else { format!(": {}", refused.join("; ")) };
            format!("{feasible} of {nodes} nodes fit {pod}{refused}")
        }
        Scored { pod, node, score, table } => {
            let scores: Vec<String> = table.iter().map(node_score).collect();
            let scores = if scores.is_empty() { String::new() } else { format!(": {}", scores.join("; ")) };
            format!("{node} is best ({score}) for {pod}{scores}")
        }
        Assumed { pod, node } => format!("assumed {pod} on {node}"),
        Bound { pod, node } => format!("bound {pod} to {node}"),
        PodWorkerSync { pod, state, .. } => format!("{state} {pod}"),
        PodPrepared { pod, with, .. } => format!("prepared {pod}: {with}"),
        SandboxCreated { pod, address, .. } => format!("sandbox {address} for {pod}"),
        ImagePulled { image, pod, .. } => format!("pulled {image} for {pod}"),
        ContainerCreated { pod, container, .. } => format!("created container {container} of {pod}"),
        ContainerStarted { pod, container, .. } => format!("started container {container} of {pod}"),
        ContainerExited { pod, container, exit_code, reason, .. } => {
            format!("container {container} exited {exit_code}{} in {pod}", in_brackets(reason))
        }
        SandboxStopped { pod, .. } => format!("stopped the sandbox of {pod}"),
        EventRecorded { object, reason, message, .. } if message.is_empty() => {
            format!("event {reason} about {object}")
        }
        EventRecorded { object, reason, message, .. } => format!("event {reason} about {object}: {message}"),
        other => format!("{other:?}"),
    }
}

/// As ` (OOMKilled)`; of nothing nothing.
pub(super) fn in_brackets(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(" ({reason})") }
}

/// As `, as application/json`.
fn in_form(form: &str) -> String {
    if form.is_empty() { String::new() } else { format!(", as {form}") }
}

/// Who answers a request, and what came with it.
pub(super) fn routed(request: &RoutedRequest) -> String {
    let RoutedRequest { client, options, sent_as, accepts, groups, handler, audit_level } = request;
    let parts = [
        ("", &**handler),
        ("from ", client),
        ("with ", options),
        ("sent as ", sent_as),
        ("takes ", accepts),
        ("in the groups ", groups),
        ("audited at level ", audit_level.as_deref().unwrap_or_default()),
    ];
    let said = parts.iter().filter(|(_, what)| !what.is_empty());
    format!(
        "routed to {}",
        said.map(|(before, what)| format!("{before}{what}")).collect::<Vec<_>>().join(", ")
    )
}

/// What became of a body.
pub(super) fn decoded(object: &DecodedObject) -> String {
    let DecodedObject { bytes, read_as, resource, stored_as, defaulted } = object;
    let defaults = match defaulted.as_slice() {
        [] => "nothing to default".to_owned(),
        paths => format!("defaults for {}", paths.join(", ")),
    };
    format!(
        "decoded {bytes} bytes as {read_as} ({resource}), worked on and stored as {stored_as}; {defaults}"
    )
}

/// What an answer is made of, and what was done behind the write.
pub(super) fn read_back(revision: u64, version: &str, after: &str) -> String {
    let after = if after.is_empty() { "no hook behind the write" } else { after };
    format!("read back at {revision} as {version}; {after}")
}

/// As `, 1 of 2 deltas, 1 deletion merged`.
fn deltas_of_key(deltas: u8, merged: u8) -> String {
    let many = if deltas > 1 { format!(", one of {deltas} deltas of the key") } else { String::new() };
    let merged = match merged {
        0 => String::new(),
        merged => format!(", {} merged", counted(u64::from(merged), "deletion")),
    };
    many + &merged
}

fn authorized(by: &str, reason: &str, before: Option<&str>) -> String {
    let words = match (by, reason) {
        ("", _) => "authorized".into(),
        (by, "") => format!("authorized by {by}"),
        // It names the authorizer itself.
        (by, reason) if reason.starts_with(by) => reason.into(),
        (by, reason) => format!("authorized by {by}: {reason}"),
    };
    match before {
        Some(before) => format!("{words} ({before}: no opinion)"),
        None => words,
    }
}

fn validated(plugins: Option<&str>, changed: &[FieldFromTo]) -> String {
    let plugins = plugins.map(|plugins| format!(" (admission: {plugins})")).unwrap_or_default();
    let changed = if changed.is_empty() { String::new() } else { format!(", changes {}", changes(changed)) };
    format!("validated{plugins}{changed}")
}

/// To whom a request was handed, and what came of it.
pub(super) fn passed_on(request: &PassedOnRequest) -> String {
    let PassedOnRequest { api_service, service, address, trust, code, microseconds, why, .. } = request;
    let place = address.as_ref().map(|address| format!(" at {address}")).unwrap_or_default();
    let took = *microseconds as f64 / 1000.0;
    let answer = match why {
        None => format!("answered {code} after {took:.1} ms"),
        Some(why) => format!("no answer: {why}"),
    };
    format!("passed on for APIService {api_service} to Service {service}{place}, {trust}: {answer}")
}

/// What keeps an object that was deleted.
pub(super) fn terminating(finalizers: &[Arc<str>], grace_seconds: Option<u64>) -> String {
    let grace = grace_seconds.filter(|grace| *grace > 0).map(|grace| format!("has {grace} s to end"));
    let kept =
        (!finalizers.is_empty()).then(|| format!("waits for the finalizers {}", finalizers.join(", ")));
    let words: Vec<String> = grace.into_iter().chain(kept).collect();
    if words.is_empty() { "is marked as deleted".into() } else { words.join(", ") }
}

/// What a plugin said of which nodes.
pub(super) fn refusal(FitRefusal { plugin, reason, count, nodes }: &FitRefusal) -> String {
    let more = (*count as usize).saturating_sub(nodes.len());
    let whom = match (nodes.len(), more) {
        (0, _) => counted(u64::from(*count), "node"),
        (_, 0) => nodes.join(", "),
        _ => format!("{} and {more} more", nodes.join(", ")),
    };
    format!("{whom}: {plugin}: {reason}")
}

/// A node's sum and what it is made of.
pub(super) fn node_score(NodeScore { node, total, by }: &NodeScore) -> String {
    let by: Vec<String> = by.iter().map(|(plugin, score)| format!("{plugin} {score}")).collect();
    format!("{node} {total} ({})", by.join(" + "))
}

/// What a controller compared.
pub(super) fn comparison(ComparedCount { of, wanted, found }: &ComparedCount) -> String {
    format!("wants {wanted} {of}, has {found}")
}

/// Fields and their values, in one line.
pub(super) fn changes(changes: &[FieldFromTo]) -> String {
    changes.iter().map(change).collect::<Vec<_>>().join(", ")
}

/// A value with more letters is shortened in a line of words.
const MAX_VALUE_LETTERS: usize = 120;

/// As it fits into a line.
fn shown(value: &str) -> String {
    // What was shortened already ends in as many dots.
    if value.len() <= MAX_VALUE_LETTERS + 3 {
        return value.to_owned();
    }
    value.chars().take(MAX_VALUE_LETTERS).collect::<String>() + "..."
}

/// A field, what it was and what it is.
pub(super) fn change(FieldFromTo { path, from, to }: &FieldFromTo) -> String {
    match (from.as_deref().map(shown), to.as_deref().map(shown)) {
        (None, None) => path.to_string(),
        (None, Some(to)) => format!("{path} = {to}"),
        (Some(from), None) => format!("{path}: {from} -> nothing"),
        (Some(from), Some(to)) => format!("{path}: {from} -> {to}"),
    }
}

/// `1 pod`, `3 pods`.
pub(super) fn counted(count: u64, of: &str) -> String {
    if count == 1 { format!("1 {of}") } else { format!("{count} {of}s") }
}

/// Who said what.
pub(super) fn joined(said: &[(Arc<str>, Arc<str>)]) -> String {
    let said: Vec<String> = said.iter().map(|(who, words)| format!("{who}: {words}")).collect();
    said.join("; ")
}

/// What a write did.
pub(super) fn done(operation: WriteOperation) -> &'static str {
    match operation {
        WriteOperation::Create => "created",
        WriteOperation::Update => "updated",
        WriteOperation::Delete => "deleted",
    }
}

/// As `pods default/web`; of those that have no name, or none yet, as `pods in namespace default`.
pub(super) fn subject(resource: &str, namespace: &str, name: &str) -> String {
    match (namespace, name) {
        ("", "") => resource.to_owned(),
        ("", name) => format!("{resource} {name}"),
        (namespace, "") => format!("{resource} in namespace {namespace}"),
        (namespace, name) => format!("{resource} {namespace}/{name}"),
    }
}

/// The subject of a trace, for people: of the requests about a resource that name no object it has a
/// namespace at most.
pub(super) fn titled(subject: &str) -> String {
    match subject.trim_end_matches('/').split_once(' ') {
        Some((resource, "")) => format!("requests about {resource} that name no object"),
        Some((resource, namespace)) if subject.ends_with('/') => {
            format!("requests about {resource} in namespace {namespace} that name no object")
        }
        _ => subject.to_owned(),
    }
}

/// What is said where nothing of a subject is to be told, and so many steps of it are left out.
pub(super) fn nothing_told(subject: &str, left_out: usize) -> String {
    let subject = titled(subject);
    match left_out {
        0 => format!("nothing is recorded of {subject}"),
        _ => format!("nothing that is recorded of {subject} passes the filter"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_without_their_version() {
        let cases = [
            ("/api/v1/namespaces/ns/pods/web/status", "ns/pods/web/status"),
            ("/apis/apps/v1/namespaces/ns/deployments", "ns/deployments"),
            ("/api/v1/namespaces/ns", "namespaces/ns"),
            ("/apis/rbac.authorization.k8s.io/v1/clusterroles", "clusterroles"),
            ("/api/v1", "/api/v1"),
            ("/apis/apps/v1", "/apis/apps/v1"),
            ("/a/b/c/d/e", "/a/b/c/d/e"),
        ];
        for (path, shown) in cases {
            assert_eq!(short(path), shown);
        }
    }

    #[test]
    fn what_names_no_object_is_called_so() {
        assert_eq!(titled("pods ns/a"), "pods ns/a");
        assert_eq!(titled("the whole cluster"), "the whole cluster");
        assert_eq!(titled("pods ns/"), "requests about pods in namespace ns that name no object");
        assert_eq!(titled("nodes "), "requests about nodes that name no object");
    }
}
