//! Creating and deleting pods for a controller (`controller.RealPodControl`).

use std::future::Future;

use futures::future::join_all;
use serde_json::{Map, Value, json};

use super::controller::Reconcile;
use super::controller_ref::controller_reference;
use apimachinery::names::dns1123_subdomain;
use apimachinery::object::Object;
use apimachinery::options::DeleteOptions;
use apimachinery::status::Status;
use apis::core::pod::PODS;
use apis::kind::Kind;

/// Upstream's `SlowStartInitialBatchSize`.
pub(crate) const SLOW_START_INITIAL_BATCH_SIZE: usize = 1;

/// Creates one pod from a template, controlled by `owner`, and says so in an event about `owner`.
pub(crate) async fn create_pod(
    ctx: &Reconcile,
    template: &Value,
    owner: &Object,
    kind: &Kind,
) -> Result<(), Status> {
    create_named_pod(ctx, template, None, owner, kind).await
}

/// A pod of the owner, with a prefix of its name other than the owner's name
/// (`CreatePodsWithGenerateName`).
pub(crate) async fn create_named_pod(
    ctx: &Reconcile,
    template: &Value,
    generate_name: Option<&str>,
    owner: &Object,
    kind: &Kind,
) -> Result<(), Status> {
    let mut pod = pod_from_template(template, owner, kind)?;
    if let Some(prefix) = generate_name {
        pod["metadata"]["generateName"] = prefix.into();
    }
    match ctx.client.create(&PODS, &owner.metadata.namespace, pod).await {
        Ok(pod) => {
            let message = format!("Created pod: {}", pod.metadata.name);
            ctx.event(kind, owner, "Normal", "SuccessfulCreate", message);
            Ok(())
        }
        Err(error) => {
            if !is_namespace_terminating(&error) {
                ctx.event(kind, owner, "Warning", "FailedCreate", format!("Error creating: {error}"));
            }
            Err(error)
        }
    }
}

/// Deletes one pod and says so in an event about `owner`. A pod that is gone already is no event, but an
/// error.
pub(crate) async fn delete_pod(
    ctx: &Reconcile,
    name: &str,
    owner: &Object,
    kind: &Kind,
) -> Result<(), Status> {
    let deleted = ctx.client.delete(&PODS, &owner.metadata.namespace, name, &DeleteOptions::default()).await;
    match &deleted {
        Ok(_) => ctx.event(kind, owner, "Normal", "SuccessfulDelete", format!("Deleted pod: {name}")),
        Err(error) if error.is_not_found() => {}
        Err(error) => ctx.event(kind, owner, "Warning", "FailedDelete", format!("Error deleting: {error}")),
    }
    deleted.map(drop)
}

/// What a pod of `owner` is created as (`GetPodFromTemplate`).
pub(crate) fn pod_from_template(template: &Value, owner: &Object, kind: &Kind) -> Result<Value, Status> {
    let part = |name: &str| template["metadata"].get(name).filter(|value| !value.is_null()).cloned();
    let labels = part("labels").filter(|labels| labels.as_object().is_some_and(|labels| !labels.is_empty()));
    let labels = labels.ok_or_else(|| Status::internal("unable to create pods, no labels"))?;
    let mut metadata = Map::new();
    metadata.insert("generateName".into(), pods_prefix(&owner.metadata.name).into());
    metadata.insert("labels".into(), labels);
    for name in ["annotations", "finalizers"] {
        metadata.extend(part(name).map(|value| (name.to_owned(), value)));
    }
    metadata.insert("ownerReferences".into(), json!([controller_reference(owner, kind)]));
    Ok(json!({"metadata": metadata, "spec": template["spec"]}))
}

/// Calls `create` for 0 to `count`, in batches of 1, 2, 4, ... each at once, and stops after the first
/// batch with a failure: what fails once, for want of quota say, would fail for all. Gives the number that
/// succeeded and the first failure.
pub(crate) async fn slow_start_batch<F, Created>(count: usize, create: F) -> (usize, Result<(), Status>)
where
    F: Fn(usize) -> Created,
    Created: Future<Output = Result<(), Status>>,
{
    let (mut successes, mut batch) = (0, SLOW_START_INITIAL_BATCH_SIZE.min(count));
    while batch > 0 {
        let results = join_all((successes..successes + batch).map(&create)).await;
        successes += results.iter().filter(|result| result.is_ok()).count();
        if let Some(failure) = results.into_iter().find(Result::is_err) {
            return (successes, failure);
        }
        batch = (2 * batch).min(count - successes);
    }
    (successes, Ok(()))
}

/// Whether a create failed because the namespace is on its way out
/// (`HasStatusCause(NamespaceTerminatingCause)`): nothing to report, and nothing to retry.
pub(crate) fn is_namespace_terminating(error: &Status) -> bool {
    let causes = error.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
}

/// The owner's name and a dash, if that can begin a name (`GetPodsPrefix`).
fn pods_prefix(name: &str) -> String {
    // The dash stands for the suffix that follows it, as upstream's check of a prefix has it.
    if dns1123_subdomain(&format!("{name}-a")).is_empty() { format!("{name}-") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apis::apps::replica_set::REPLICA_SETS;
    use std::cell::RefCell;

    #[tokio::test]
    async fn batches_double_until_one_fails() {
        let calls = RefCell::new(0);
        let create = |fails_at: usize| {
            let calls = &calls;
            move |_| {
                *calls.borrow_mut() += 1;
                let failed = *calls.borrow() == fails_at;
                async move { if failed { Err(Status::bad_request("no")) } else { Ok(()) } }
            }
        };
        let (successes, result) = slow_start_batch(10, create(usize::MAX)).await;
        assert_eq!((successes, result.is_ok(), *calls.borrow()), (10, true, 10));
        *calls.borrow_mut() = 0;
        let (successes, result) = slow_start_batch(100, create(5)).await;
        assert_eq!((successes, result.is_err(), *calls.borrow()), (6, true, 7));
    }

    #[test]
    fn a_pod_has_what_its_template_has_and_its_owner() {
        let owner = Object::from_value(&json!({"metadata": {"name": "web-1", "uid": "u"}}), vec![]).unwrap();
        let template =
            json!({"metadata": {"labels": {"a": "b"}, "creationTimestamp": null}, "spec": {"x": 1}});
        let pod = pod_from_template(&template, &owner, &REPLICA_SETS).unwrap();
        assert_eq!(pod["metadata"]["generateName"], "web-1-");
        assert_eq!(pod["metadata"]["labels"], json!({"a": "b"}));
        assert_eq!(pod["metadata"]["ownerReferences"][0]["blockOwnerDeletion"], true);
        assert_eq!(pod["spec"], json!({"x": 1}));
        assert!(pod_from_template(&json!({"spec": {}}), &owner, &REPLICA_SETS).is_err());
    }
}
