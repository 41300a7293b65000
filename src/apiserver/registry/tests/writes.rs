//! Create and update.

use super::*;

#[tokio::test]
async fn a_new_object_gets_what_the_server_gives() {
    let subject = Subject::new();
    let kind = graceful();
    let tree = json!({"metadata": {"name": "a", "uid": "mine", "creationTimestamp": null, "generation": 7,
        "selfLink": "x", "deletionTimestamp": "2020-01-01T00:00:00Z", "labels": {}},
        "spec": {"x": 1}, "status": {"mine": true}});
    let object = subject.create(&kind, tree).await.unwrap();
    let stored = object.to_value();
    assert_ne!(object.metadata.uid, "mine");
    let expected = json!({"metadata": {"name": "a", "namespace": "ns", "generation": 1,
        "creationTimestamp": "1970-01-01T00:00:00Z", "uid": object.metadata.uid,
        "resourceVersion": object.metadata.resource_version.to_string()}, "spec": {"x": 1}, "status": {}});
    assert_eq!(stored, expected);
}

#[tokio::test]
async fn what_cannot_be_created_is_refused() {
    let subject = Subject::new();
    let kind = graceful();
    subject.create(&kind, named("a")).await.unwrap();
    let held = with_metadata("b", "finalizers", json!(["x.io/y"]));
    subject.create(&kind, held).await.unwrap();
    subject.delete(&kind, "b", &grace(0)).await.unwrap();
    let cases = [
        (named("a"), "things.test \"a\" already exists"),
        (named("b"), "object is being deleted: things.test \"b\" already exists"),
        (
            with_metadata("c", "namespace", json!("elsewhere")),
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            with_metadata("c", "resourceVersion", json!("3")),
            "resourceVersion should not be set on objects to be created",
        ),
        (
            json!({"metadata": {}}),
            "Thing.test \"\" is invalid: metadata.name: Required value: name or generateName is required",
        ),
    ];
    for (tree, text) in cases {
        assert_eq!(message(subject.create(&kind, tree).await), text);
    }
}

#[tokio::test]
async fn names_are_generated() {
    let subject = Subject::new();
    let kind = graceful();
    let tree = json!({"metadata": {"generateName": "web-"}});
    let object = subject.create(&kind, tree).await.unwrap();
    assert!(object.metadata.name.starts_with("web-") && object.metadata.name.len() == 9);
}

#[tokio::test]
async fn an_update_must_meet_the_object_as_it_is() {
    let subject = Subject::new();
    let kind = graceful();
    let first = subject.create(&kind, named("a")).await.unwrap();
    let stale = first.metadata.resource_version.to_string();
    let mut tree = first.to_value();
    tree["spec"] = json!({"x": 1});
    let second = subject.update(&kind, Part::Main, tree.clone()).await.unwrap();
    assert_eq!(second.metadata.generation, 2);
    assert_eq!(
        message(subject.update(&kind, Part::Main, tree).await),
        "Operation cannot be fulfilled on things.test \"a\": the object has been modified; please apply your \
         changes to the latest version and try again"
    );
    assert!(!stale.is_empty());
    let uid = with_metadata("a", "uid", json!("other"));
    assert_eq!(
        message(subject.update(&kind, Part::Main, uid).await),
        format!(
            "Operation cannot be fulfilled on things.test \"a\": StorageError: invalid object, Code: 4, Key: \
             /registry/things/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: \
             other, UID in object meta: {}",
            first.metadata.uid
        )
    );
    let missing = message(subject.update(&kind, Part::Main, named("none")).await);
    assert_eq!(missing, "things.test \"none\" not found");
    let fixed = json!({"metadata": {"name": "a"}, "spec": {"fixed": 1}});
    let refused = message(subject.update(&kind, Part::Main, fixed).await);
    assert_eq!(refused, "Thing.test \"a\" is invalid: spec.fixed: Invalid value: 1: field is immutable");
    let kind = conditional();
    subject.create(&kind, named("a")).await.unwrap();
    assert_eq!(
        message(subject.update(&kind, Part::Main, named("a")).await),
        "others.test \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an \
         update"
    );
}

#[tokio::test]
async fn an_update_that_changes_nothing_writes_nothing() {
    let subject = Subject::new();
    let kind = graceful();
    let tree = json!({"metadata": {"name": "a", "labels": {"k": "v"}}, "spec": {"x": 1}});
    let first = subject.create(&kind, tree.clone()).await.unwrap();
    let same = subject.update(&kind, Part::Main, tree).await.unwrap();
    assert_eq!(same.metadata, first.metadata);
}

#[tokio::test]
async fn each_part_changes_only_itself() {
    let subject = Subject::new();
    let kind = graceful();
    subject.create(&kind, json!({"metadata": {"name": "a"}, "spec": {"x": 1}})).await.unwrap();
    let both = json!({"metadata": {"name": "a"}, "spec": {"x": 2}, "status": {"y": 1}});
    let status = subject.update(&kind, Part::Status, both.clone()).await.unwrap();
    let tree = status.to_value();
    assert_eq!((&tree["spec"]["x"], &tree["status"]["y"]), (&json!(1), &json!(1)));
    assert_eq!(status.metadata.generation, 1);
    let main =
        json!({"metadata": {"name": "a", "annotations": {"k": "v"}}, "spec": {"x": 2}, "status": {"y": 2}});
    let updated = subject.update(&kind, Part::Main, main).await.unwrap();
    let tree = updated.to_value();
    assert_eq!((&tree["spec"]["x"], &tree["status"]["y"]), (&json!(2), &json!(1)));
    assert_eq!(updated.metadata.generation, 2);
}

#[tokio::test]
async fn changes_without_a_revision_are_tried_until_they_get_through() {
    let subject = Subject::new();
    let kind = graceful();
    subject.create(&kind, json!({"metadata": {"name": "a"}, "spec": {"count": 0}})).await.unwrap();
    let add = |current: Option<&Value>| {
        let mut tree = current.unwrap().clone();
        tree["spec"]["count"] = json!(tree["spec"]["count"].as_i64().unwrap() + 1);
        Ok(tree)
    };
    let ctx = context("patch", false);
    let once = async || {
        subject.registry.update(&ctx, &kind, "ns", "a", Part::Main, &add, &(), false).await.unwrap();
    };
    // Each reads before any writes: all but one have to try again.
    futures::future::join_all((0..20).map(|_| once())).await;
    assert_eq!(subject.get(&kind, "a").await.unwrap().to_value()["spec"]["count"], 20);
}

#[tokio::test]
async fn a_dry_run_writes_nothing() {
    let mut subject = Subject::new();
    let kind = graceful();
    subject.create(&kind, named("a")).await.unwrap();
    let revision = subject.registry.revision();
    subject.ctx = context("update", true);
    let made = subject.create(&kind, named("b")).await.unwrap();
    assert!(!made.metadata.uid.is_empty() && made.to_value()["metadata"]["resourceVersion"].is_null());
    let versioned = |name: &str| with_metadata(name, "resourceVersion", json!("7"));
    let made = subject.create(&kind, versioned("b")).await.unwrap();
    assert_eq!(made.to_value()["metadata"]["resourceVersion"], "7");
    for tree in [named("a"), versioned("a")] {
        assert_eq!(message(subject.create(&kind, tree).await), "things.test \"a\" already exists");
    }
    let tree = json!({"metadata": {"name": "a"}, "spec": {"x": 1}});
    assert_eq!(subject.update(&kind, Part::Main, tree).await.unwrap().to_value()["spec"]["x"], 1);
    assert!(matches!(subject.delete(&kind, "a", &grace(0)).await.unwrap(), DeleteOutcome::Gone(_)));
    assert_eq!(subject.registry.revision(), revision);
}

#[tokio::test]
async fn create_on_update_says_so() {
    let subject = Subject::new();
    let kind = graceful();
    let change = |current: Option<&Value>| Ok(current.cloned().unwrap_or_else(|| json!({"metadata": {}})));
    for created in [true, false] {
        let updated =
            subject.registry.update(&subject.ctx, &kind, "ns", "a", Part::Main, &change, &(), true).await;
        assert_eq!(updated.unwrap().1, created);
    }
}
