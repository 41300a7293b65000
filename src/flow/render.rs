//! Prints a trace: one line a step, in lanes, each naming its cause. Readable at 110 columns.

use std::collections::HashMap;
use std::fmt::Write;

use super::StepId;
use super::step::{APISERVER, Operation, SCHEDULER, Step};
use super::trace::{Trace, TraceStep};

/// Columns of the parts of a line. With the blanks between them they make 96, and the cause at most 14 more
/// as long as fewer than a billion steps were taken.
const TIME: usize = 9;
const STEP: usize = 8;
const COMPONENT: usize = 25;
const WHAT: usize = 46;

impl Trace {
    /// The trace as `kubarium trace` prints it. The letters are lanes: **A**piserver, **C**ontrollers,
    /// **S**cheduler, **K**ubelets; the column after them says which one exactly.
    pub fn render(&self) -> String {
        if self.steps.is_empty() {
            return format!("nothing is remembered about {}\n", self.subject);
        }
        let mut out =
            format!("{:>TIME$} {:>STEP$} lane {:<COMPONENT$} {}\n", "ms", "step", "component", self.subject);
        let mut components: HashMap<StepId, String> = HashMap::new();
        for step in &self.steps {
            let component = component_of(step, &components);
            write_line(&mut out, step, &component);
            components.insert(step.id, component);
        }
        out
    }
}

/// A step without a component of its own happened where its cause did.
fn component_of(step: &TraceStep, components: &HashMap<StepId, String>) -> String {
    let inherited = || components.get(&step.cause?).cloned();
    step.step.component().or_else(inherited).unwrap_or_default()
}

fn write_line(out: &mut String, step: &TraceStep, component: &str) {
    let (time, id, lane) = (milliseconds(step.at_microseconds), step.id.to_string(), lane(component));
    let (component, what) = (cut(component, COMPONENT), describe(&step.step));
    let lines = if is_reason(&step.step) { wrap(&what, WHAT) } else { vec![cut(&what, WHAT)] };
    let cause = step.cause.map(|cause| format!(" <- {cause}")).unwrap_or_default();
    let what = lines.first().map(String::as_str).unwrap_or_default();
    let line = format!("{time:>TIME$} {id:>STEP$} {lane} {component:<COMPONENT$} {what:<WHAT$}{cause}");
    writeln!(out, "{}", line.trim_end()).expect("a string takes every line");
    const BEFORE: usize = TIME + 1 + STEP + 1 + 4 + 1 + COMPONENT + 1;
    for more in lines.iter().skip(1) {
        writeln!(out, "{:BEFORE$}  {more}", "").expect("a string takes every line");
    }
}

/// Whether it says why: then nothing of it is cut off.
fn is_reason(step: &Step) -> bool {
    matches!(
        step,
        Step::NotAuthenticated { .. }
            | Step::Impersonated { .. }
            | Step::Authorized { .. }
            | Step::Admitted { .. }
            | Step::Refused { .. }
    )
}

/// Lines of at most `width` characters, broken between words; all but the first are two shorter.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let room = if lines.len() == 1 { width } else { width - 2 };
        let line = lines.last_mut().expect("starts with one");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
            lines.push(cut(word, width - 2));
        } else {
            *line = if line.is_empty() { cut(word, room) } else { format!("{line} {word}") };
        }
    }
    lines
}

/// To the microsecond in the first 100 seconds, so that it fits its column for days.
fn milliseconds(microseconds: u64) -> String {
    let whole = microseconds / 1000;
    if whole < 100_000 { format!("{whole}.{:03}", microseconds % 1000) } else { whole.to_string() }
}

/// A path without its API version, and without the word `namespaces` where a resource in a namespace follows.
fn short(path: &str) -> &str {
    let segments = if path.starts_with("/apis/") { 4 } else { 3 };
    let Some(rest) = path.splitn(segments + 1, '/').nth(segments) else { return path };
    let inside = rest.strip_prefix("namespaces/").filter(|inside| inside.contains('/'));
    if path.starts_with("/api") { inside.unwrap_or(rest) } else { path }
}

fn lane(component: &str) -> &'static str {
    match component {
        APISERVER => "A...",
        SCHEDULER | "default-scheduler" => "..S.",
        _ if component.starts_with("kubelet") => "...K",
        _ => ".C..",
    }
}

/// At most `width` characters; what is cut off shows as `…`.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

fn describe(step: &Step) -> String {
    use Step::*;
    match step {
        RequestReceived { user, verb, path } if user.is_empty() => format!("{verb} {}", short(path)),
        RequestReceived { user, verb, path } => {
            // `system:serviceaccount:kube-system:deployment-controller`: the last part says enough.
            format!("{verb} {} ({})", short(path), user.rsplit(':').next().unwrap_or(user))
        }
        Authenticated { user, by, .. } if by.is_empty() || &**by == "InProcess" => {
            format!("authenticated as {user}")
        }
        Authenticated { user, by, .. } => format!("authenticated as {user} by {by}"),
        NotAuthenticated { said } => {
            let said: Vec<String> = said.iter().map(|(who, words)| format!("{who}: {words}")).collect();
            format!("not authenticated ({})", said.join("; "))
        }
        Impersonated { user, acting, verb } => format!("{user} acts as {acting}, allowed by {verb}"),
        Authorized { by, .. } if by.is_empty() => "authorized".into(),
        Authorized { by, reason } if reason.is_empty() => format!("authorized by {by}"),
        // It names the authorizer itself.
        Authorized { by, reason } if reason.starts_with(&**by) => reason.to_string(),
        Authorized { by, reason } => format!("authorized by {by}: {reason}"),
        Admitted { plugin, changed } => format!("{plugin} changed {changed}"),
        Validated => "validated".into(),
        Stored { resource, namespace, name, revision, operation } => {
            format!("{} {} at {revision}", done(*operation), subject(resource, namespace, name))
        }
        Responded { code } => format!("answered {code}"),
        Refused { code, why, .. } => format!("refused with {code}: {why}"),
        WatchDelivered { resource, key, revision, watchers } => {
            format!("delivered {resource} {key} at {revision} to {watchers}")
        }
        InformerUpdated { resource, key, revision, .. } => {
            format!("informed of {resource} {key} at {revision}")
        }
        Enqueued { key, .. } => format!("enqueued {key}"),
        ReconcileStarted { key, .. } => format!("reconcile {key}"),
        ReconcileEnded { result } => format!("reconciled: {result}"),
        other => describe_node_side(other),
    }
}

/// Scheduler, kubelet and Events.
fn describe_node_side(step: &Step) -> String {
    use Step::*;
    match step {
        SchedulingAttempt { pod } => format!("schedule {pod}"),
        Filtered { pod, feasible, nodes } => format!("{feasible} of {nodes} nodes fit {pod}"),
        Scored { pod, node, score } => format!("{node} is best ({score}) for {pod}"),
        Assumed { pod, node } => format!("assumed {pod} on {node}"),
        Bound { pod, node } => format!("bound {pod} to {node}"),
        PodWorkerSync { pod, state, .. } => format!("{state} {pod}"),
        SandboxCreated { pod, address, .. } => format!("sandbox {address} for {pod}"),
        ImagePulled { image, pod, .. } => format!("pulled {image} for {pod}"),
        ContainerCreated { pod, container, .. } => format!("created container {container} of {pod}"),
        ContainerStarted { pod, container, .. } => format!("started container {container} of {pod}"),
        ContainerExited { pod, container, exit_code, .. } => {
            format!("container {container} exited {exit_code} in {pod}")
        }
        SandboxStopped { pod, .. } => format!("stopped the sandbox of {pod}"),
        EventRecorded { object, reason, .. } => format!("event {reason} about {object}"),
        other => format!("{other:?}"),
    }
}

fn done(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "created",
        Operation::Update => "updated",
        Operation::Delete => "deleted",
    }
}

fn subject(resource: &str, namespace: &str, name: &str) -> String {
    match namespace {
        "" => format!("{resource} {name}"),
        namespace => format!("{resource} {namespace}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use chrono::DateTime;

    use super::super::{Flow, StepId, Trace};
    use super::*;
    use crate::clock::Clock;

    /// A cluster's record, written down by hand.
    struct Story {
        flow: Flow,
        clock: Clock,
    }

    impl Story {
        fn new() -> Story {
            let clock = Clock::stepped(DateTime::UNIX_EPOCH);
            Story { flow: Flow::new(clock.clone()), clock }
        }

        fn step(&self, cause: Option<StepId>, step: Step) -> Option<StepId> {
            self.clock.advance(Duration::from_micros(120));
            self.flow.record(cause, step).cause()
        }

        /// A request, as far as its write, and its answer.
        fn write(
            &self,
            cause: Option<StepId>,
            user: &str,
            resource: &str,
            name: &str,
            revision: u64,
        ) -> Option<StepId> {
            let path: Arc<str> = format!("/apis/apps/v1/namespaces/ns/{resource}").into();
            let request = Step::RequestReceived { user: user.into(), verb: "create".into(), path };
            let request = self.step(cause, request);
            let (namespace, name, operation) = ("ns".into(), name.into(), Operation::Create);
            let stored = Step::Stored { resource: resource.into(), namespace, name, revision, operation };
            let stored = self.step(request, stored);
            self.step(stored, Step::Responded { code: 201 });
            stored
        }

        fn reconcile(&self, resource: &str, controller: &str, key: &str, revision: u64) -> Option<StepId> {
            let (component, resource) = ("kube-controller-manager".into(), resource.into());
            let informed = Step::InformerUpdated { component, resource, key: key.into(), revision };
            let informed = self.step(None, informed);
            let enqueued = self.step(informed, Step::Enqueued { queue: controller.into(), key: key.into() });
            self.step(enqueued, Step::ReconcileStarted { controller: controller.into(), key: key.into() })
        }
    }

    /// A deployment, what comes of it, and something else that has nothing to do with it.
    fn story() -> Story {
        let story = Story::new();
        story.write(None, "", "configmaps", "other", 6);
        story.write(None, "", "deployments.apps", "web", 7);
        let deployment = story.reconcile("deployments.apps", "deployment", "ns/web", 7);
        story.write(deployment, "deployment-controller", "replicasets.apps", "web-5d4", 8);
        story.reconcile("configmaps", "other", "ns/other", 6);
        let (component, object) = ("deployment-controller".into(), "ns/web".into());
        story.step(deployment, Step::EventRecorded { component, object, reason: "ScalingReplicaSet".into() });
        story.step(deployment, Step::ReconcileEnded { result: "done".into() });
        let replica_set = story.reconcile("replicasets.apps", "replicaset", "ns/web-5d4", 8);
        story.write(replica_set, "replicaset-controller", "pods", "web-5d4-x", 9);
        let (component, resource, key) = ("kube-scheduler".into(), "pods".into(), "ns/web-5d4-x".into());
        let seen = story.step(None, Step::InformerUpdated { component, resource, key, revision: 9 });
        let pod = "ns/web-5d4-x";
        let attempt = story.step(seen, Step::SchedulingAttempt { pod: pod.into() });
        story.step(attempt, Step::Filtered { pod: pod.into(), feasible: 2, nodes: 3 });
        let (node, pod) = ("node-1".into(), pod.into());
        let sync = story.step(attempt, Step::PodWorkerSync { node, pod, state: "sync".into() });
        let (node, pod, container) =
            ("node-1".into(), "ns/web-5d4-x".into(), "nginx-with-a-name-too-long-for-it".into());
        story.step(sync, Step::ContainerStarted { node, pod, container });
        story
    }

    const GOLDEN: &str = include_str!("testdata/deployment.txt");

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
    fn a_deployment_is_told_from_its_request_to_the_container() {
        let text = story().flow.trace("deployments.apps", "ns", "web").render();
        assert_eq!(text, GOLDEN, "\n{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 110));
    }

    #[test]
    fn a_pod_is_told_from_the_request_that_nobody_caused() {
        let trace = story().flow.trace("pods", "ns", "web-5d4-x");
        let told: Vec<u64> = trace.steps.iter().map(|step| step.id.0).collect();
        // Straight back to the deployment's request, without what else came of it; everything that came of
        // the pod.
        assert_eq!(told, [4, 5, 7, 8, 9, 10, 11, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28]);
        let json = serde_json::to_string(&trace).unwrap();
        assert_eq!(serde_json::from_str::<Trace>(&json).unwrap(), trace);
    }

    #[test]
    fn of_what_is_not_remembered_it_says_so() {
        let text = story().flow.trace("pods", "", "ghost").render();
        assert_eq!(text, "nothing is remembered about pods ghost\n");
        assert_eq!(Flow::off().trace("pods", "ns", "a"), Trace::default());
    }

    #[test]
    fn a_watch_that_is_faster_than_the_writer_does_not_hide_the_cause() {
        let story = Story::new();
        let (component, resource, key) = ("kubelet/n".into(), "pods".into(), "ns/a".into());
        story.step(None, Step::InformerUpdated { component, resource, key, revision: 3 });
        story.write(None, "", "pods", "a", 3);
        let trace = story.flow.trace("pods", "ns", "a");
        let causes: Vec<Option<StepId>> = trace.steps.iter().map(|step| step.cause).collect();
        assert_eq!(causes, [Some(StepId(3)), None, Some(StepId(2)), Some(StepId(3))]);
    }
}
