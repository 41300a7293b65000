//! As many pods as a Job wants now (`manageJob`): creates what is missing, deletes what is too much.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Map, Value, json};

use super::backoff::remaining_for_index;
use super::counts::SyncAction;
use super::finalizers::remove_finalizer;
use super::judge::{JobSync, note_deleted};
use super::pods::{
    COMPLETION_INDEX, INDEX_FAILURES, INDEX_IGNORED_FAILURES, JobPod, TRACKING_FINALIZER, has_finalizer,
};
use super::policies;
use crate::pod_control::{create_named_pod, delete_pod, is_namespace_terminating, slow_start_batch};
use crate::replica_set::ranking::pods_to_delete;
use apimachinery::object::Object;
use apimachinery::status::Status;
use apimachinery::time::Time;
use apis::batch::job::JOBS;
use apis::views::job::JobSpec;

/// Upstream's `MaxPodCreateDeletePerSync`.
const MAX_POD_CREATE_DELETE_PER_SYNC: usize = 500;
/// The longest prefix that the server appends its five characters to (`MaxGeneratedNameLength`).
const MAX_GENERATED_NAME_LENGTH: usize = 58;

/// Creates or deletes, never both in one sync. Nothing is created before the back-off is over.
pub(super) async fn manage(sync: &mut JobSync<'_>) -> Result<(), Status> {
    let wanted = if sync.spec().suspend { 0 } else { wanted(sync) };
    let active = sync.active.len() as i64;
    sync.ctx.compares("active pods", wanted, active);
    let doomed = doomed(sync.spec(), &sync.active, active - wanted, sync.now);
    if !doomed.is_empty() {
        sync.action = SyncAction::PodsDeleted;
        return delete(sync, doomed).await;
    }
    if sync.spec().suspend {
        return Ok(());
    }
    let terminating = if sync.spec().replaces_only_failed() { sync.status.terminating } else { None };
    let missing = usize::try_from(wanted - terminating.unwrap_or(0) - active).unwrap_or(0);
    if missing == 0 {
        return Ok(());
    }
    create(sync, missing.min(MAX_POD_CREATE_DELETE_PER_SYNC)).await
}

/// Not more than successes are missing; and once there is one, when one is enough, those that run run on.
fn wanted(sync: &JobSync<'_>) -> i64 {
    let parallelism = sync.spec().parallelism.unwrap_or(1);
    match sync.spec().completions {
        None if sync.succeeded > 0 => sync.active.len() as i64,
        None => parallelism,
        Some(completions) => (completions - sync.succeeded).min(parallelism).max(0),
    }
}

async fn create(sync: &mut JobSync<'_>, missing: usize) -> Result<(), Status> {
    let per_index = sync.spec().backoff_limit_per_index.is_some();
    let pause = if per_index { Duration::ZERO } else { sync.backoff.remaining(sync.now) };
    if !pause.is_zero() {
        sync.look_again_after(pause);
        return Ok(());
    }
    if !sync.spec().is_indexed() {
        return create_pods(sync, vec![None; missing]).await;
    }
    let indexes = pending_indexes(sync, missing);
    let pauses: Vec<(i64, Duration)> = indexes
        .into_iter()
        .map(|index| {
            let before = sync.awaiting_replacement.get(&index).filter(|_| per_index);
            (index, before.map_or(Duration::ZERO, |pod| remaining_for_index(pod, sync.now)))
        })
        .collect();
    let due: Vec<Option<i64>> =
        pauses.iter().filter(|(_, pause)| pause.is_zero()).map(|(index, _)| Some(*index)).collect();
    if let Some(pause) = pauses.iter().map(|(_, pause)| *pause).filter(|pause| !pause.is_zero()).min() {
        sync.look_again_after(pause);
    }
    if due.is_empty() { Ok(()) } else { create_pods(sync, due).await }
}

/// The first indexes that are neither at their end nor have a pod (`firstPendingIndexes`).
fn pending_indexes(sync: &JobSync<'_>, count: usize) -> Vec<i64> {
    let waits = sync.spec().replaces_only_failed();
    let holds = |pod: &&JobPod| pod.is_active() || (waits && pod.is_terminating());
    let held = sync.pods.iter().filter(holds).filter_map(JobPod::index);
    let mut settled = sync.completed_indexes.with(held);
    if let Some(failed) = &sync.failed_indexes {
        settled = settled.with_all(failed);
    }
    settled.first_missing(count, sync.spec().completions.unwrap_or(0))
}

/// Creates one pod for each of `indexes`, in batches that grow while they succeed.
async fn create_pods(sync: &mut JobSync<'_>, indexes: Vec<Option<i64>>) -> Result<(), Status> {
    let (ctx, job, count) = (sync.ctx, sync.object.clone(), indexes.len());
    let template = pod_template(sync.spec());
    let expectations = &sync.memory.expectations;
    expectations.expect_creations(&job.metadata.uid, count);
    let create = |number: usize| {
        let index = indexes.get(number).copied().flatten();
        let (template, name) = match index {
            None => (template.clone(), None),
            Some(index) => {
                let before = sync.awaiting_replacement.get(&index);
                let template = indexed_template(&template, &job, sync.spec(), index, before);
                (template.into(), Some(generated_name(&job.metadata.name, index)))
            }
        };
        let job = job.clone();
        async move {
            match create_named_pod(ctx, &template, name.as_deref(), &job, &JOBS).await {
                // Every creation will fail from now on, and all is being deleted anyway.
                Err(error) if is_namespace_terminating(&error) => Ok(()),
                other => other,
            }
        }
    };
    let (successes, result) = slow_start_batch(count, create).await;
    let lost = (sync.failed, sync.status.terminating.unwrap_or(0));
    let replaces_only_failed = sync.spec().replaces_only_failed();
    let failures = if result.is_err() { count - successes } else { 0 };
    sync.memory.counts.created(replaces_only_failed, lost, successes, failures);
    sync.action = SyncAction::PodsCreated;
    // The informer will not see those that were not created.
    for _ in successes..count {
        expectations.creation_observed(&sync.object.metadata.uid);
    }
    sync.status.active += successes as i64;
    result
}

/// Deletes pods, which need not be counted: the finalizer goes first.
async fn delete(sync: &mut JobSync<'_>, doomed: Vec<JobPod>) -> Result<(), Status> {
    let (ctx, job, expectations) = (sync.ctx, &sync.object, &sync.memory.expectations);
    let uid = &job.metadata.uid;
    expectations.expect_deletions(uid, doomed.iter().map(|pod| pod.uid().to_owned()));
    let delete = |pod: &JobPod| {
        let object = pod.object.clone();
        async move {
            if has_finalizer(&object) {
                remove_finalizer(ctx, &object).await?;
            }
            delete_pod(ctx, &object.metadata.name, job, &JOBS).await
        }
    };
    let results = join_all(doomed.iter().map(delete)).await;
    let mut failure = Ok(());
    for (pod, result) in doomed.iter().zip(results) {
        if result.is_err() {
            expectations.deletion_observed(uid, pod.uid());
        }
        match result {
            Err(error) if !error.is_not_found() => failure = Err(error),
            _ => note_deleted(&mut sync.status, pod),
        }
    }
    failure
}

/// The active pods to delete: of an Indexed Job those without an index of it, and all but one of each index;
/// then those that are missed least, until `surplus` are found (`activePodsForRemoval`).
fn doomed(spec: &JobSpec, active: &[JobPod], surplus: i64, now: Time) -> Vec<JobPod> {
    let surplus = usize::try_from(surplus).unwrap_or(0);
    let (mut doomed, mut left) = (Vec::new(), active.to_vec());
    if spec.is_indexed() {
        (doomed, left) = without_repetitions(spec, active, now);
    }
    doomed.extend(missed_least(&left, surplus.saturating_sub(doomed.len()), now));
    doomed.truncate(MAX_POD_CREATE_DELETE_PER_SYNC);
    doomed
}

fn without_repetitions(spec: &JobSpec, active: &[JobPod], now: Time) -> (Vec<JobPod>, Vec<JobPod>) {
    let (mut doomed, mut by_index) = (Vec::new(), BTreeMap::<i64, Vec<JobPod>>::new());
    for pod in active {
        match pod.valid_index(spec) {
            None => doomed.push(pod.clone()),
            Some(index) => by_index.entry(index).or_default().push(pod.clone()),
        }
    }
    let mut left = Vec::new();
    for pods in by_index.into_values() {
        let repeated = missed_least(&pods, pods.len() - 1, now);
        let is_repeated = |pod: &JobPod| repeated.iter().any(|other| other.uid() == pod.uid());
        left.extend(pods.iter().filter(|pod| !is_repeated(pod)).cloned());
        doomed.extend(repeated);
    }
    (doomed, left)
}

fn missed_least(pods: &[JobPod], count: usize, now: Time) -> Vec<JobPod> {
    if count == 0 {
        return vec![];
    }
    let objects: Vec<Arc<Object>> = pods.iter().map(|pod| pod.object.clone()).collect();
    let chosen = pods_to_delete(&objects, &[], count, now);
    let is_chosen = |pod: &&JobPod| chosen.iter().any(|object| object.metadata.uid == pod.uid());
    pods.iter().filter(is_chosen).cloned().collect()
}

/// The template with the finalizer, and in an Indexed Job with a variable for the index.
fn pod_template(spec: &JobSpec) -> Arc<Value> {
    let mut template = Value::clone(&spec.template);
    let finalizers = &mut template["metadata"]["finalizers"];
    match finalizers.as_array_mut() {
        Some(list) if list.iter().any(|finalizer| finalizer == TRACKING_FINALIZER) => {}
        Some(list) => list.push(TRACKING_FINALIZER.into()),
        None => *finalizers = json!([TRACKING_FINALIZER]),
    }
    if spec.is_indexed() {
        for list in ["initContainers", "containers"] {
            let containers = template["spec"][list].as_array_mut();
            containers.into_iter().flatten().for_each(add_index_variable);
        }
    }
    template.into()
}

fn add_index_variable(container: &mut Value) {
    const NAME: &str = "JOB_COMPLETION_INDEX";
    let Some(container) = container.as_object_mut() else { return };
    let list = container.entry("env").or_insert_with(|| json!([]));
    if list.is_null() {
        *list = json!([]);
    }
    let Some(variables) = list.as_array_mut() else { return };
    if !variables.iter().any(|variable| variable["name"] == NAME) {
        let path = format!("metadata.labels['{COMPLETION_INDEX}']");
        variables.push(json!({"name": NAME, "valueFrom": {"fieldRef": {"fieldPath": path}}}));
    }
}

/// The template of the pod with an index; `before` is the pod that it replaces.
fn indexed_template(
    template: &Value,
    job: &Object,
    spec: &JobSpec,
    index: i64,
    before: Option<&JobPod>,
) -> Value {
    let mut template = template.clone();
    let mut annotations = vec![(COMPLETION_INDEX, index)];
    if spec.backoff_limit_per_index.is_some() {
        let (failures, ignored) = failure_counts(spec, before);
        annotations.push((INDEX_FAILURES, failures));
        annotations.extend((ignored > 0).then_some((INDEX_IGNORED_FAILURES, ignored)));
    }
    put_texts(&mut template["metadata"]["annotations"], &annotations);
    put_texts(&mut template["metadata"]["labels"], &[(COMPLETION_INDEX, index)]);
    template["spec"]["hostname"] = format!("{}-{index}", job.metadata.name).into();
    template
}

fn put_texts(members: &mut Value, numbers: &[(&str, i64)]) {
    if !members.is_object() {
        *members = Value::Object(Map::new());
    }
    for (name, number) in numbers {
        members[*name] = number.to_string().into();
    }
}

/// How many pods of an index failed, with the one that is replaced now: counted, and ignored.
fn failure_counts(spec: &JobSpec, before: Option<&JobPod>) -> (i64, i64) {
    let Some(pod) = before else { return (0, 0) };
    let (failures, ignored) = (pod.index_failures(), pod.index_ignored_failures());
    if policies::failure(spec, pod).is_counted { (failures + 1, ignored) } else { (failures, ignored + 1) }
}

/// `JOB-INDEX-`, cut in the Job's name if it is too long (`podGenerateNameWithIndex`).
fn generated_name(job: &str, index: i64) -> String {
    let end = format!("-{index}-");
    let room = MAX_GENERATED_NAME_LENGTH.saturating_sub(end.len());
    format!("{}{end}", job.get(..room).unwrap_or(job))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn spec(tree: Value) -> JobSpec {
        serde_json::from_value(tree).unwrap()
    }

    fn pod(uid: &str, index: &str, node: &str) -> JobPod {
        let annotations = json!({COMPLETION_INDEX: index});
        let tree = json!({
            "metadata": {"name": uid, "uid": uid, "annotations": annotations},
            "spec": {"nodeName": node},
        });
        let object = Arc::new(Object::from_value(&tree, vec![]).unwrap());
        let job = Object::from_value(&json!({"metadata": {"name": "j"}}), vec![]).unwrap();
        JobPod::of(object, &job, &BTreeSet::new())
    }

    #[test]
    fn an_indexed_pod_knows_its_index_in_every_way() {
        let container = json!({"name": "c", "env": [{"name": "A", "value": "b"}]});
        let spec = spec(json!({"completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 1,
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}}));
        let job = Object::from_value(&json!({"metadata": {"name": "j"}}), vec![]).unwrap();
        let template = indexed_template(&pod_template(&spec), &job, &spec, 1, None);
        let metadata = json!({
            "labels": {"a": "b", COMPLETION_INDEX: "1"},
            "annotations": {COMPLETION_INDEX: "1", INDEX_FAILURES: "0"},
            "finalizers": [TRACKING_FINALIZER],
        });
        assert_eq!(template["metadata"], metadata);
        assert_eq!(template["spec"]["hostname"], "j-1");
        let path = "metadata.labels['batch.kubernetes.io/job-completion-index']";
        let variable =
            json!({"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": path}}});
        assert_eq!(template["spec"]["containers"][0]["env"][1], variable);
        assert_eq!(failure_counts(&spec, Some(&pod("a", "1", ""))), (1, 0));
    }

    #[test]
    fn long_names_give_way_to_the_index() {
        assert_eq!(generated_name("job", 7), "job-7-");
        let name = generated_name(&"a".repeat(63), 12);
        assert_eq!((name.len(), name.ends_with("a-12-")), (58, true));
    }

    #[test]
    fn repeated_and_unknown_indexes_go_first() {
        let pods = [
            pod("a", "0", "n"),
            pod("b", "0", ""),
            pod("c", "5", "n"),
            pod("d", "", "n"),
            pod("e", "1", "n"),
        ];
        let spec = spec(json!({"completionMode": "Indexed", "completions": 2}));
        let names = |surplus| -> Vec<String> {
            let doomed = doomed(&spec, &pods, surplus, Time::UNIX_EPOCH);
            doomed.iter().map(|pod| pod.name().to_owned()).collect()
        };
        assert_eq!(names(0), ["c", "d", "b"]);
        assert_eq!(names(5).len(), 5);
    }
}
