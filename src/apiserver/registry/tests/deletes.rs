//! Delete, finalizers, grace, collections.

use super::*;

fn finalizers(object: &Object) -> Vec<&str> {
    object.metadata.finalizers.iter().map(String::as_str).collect()
}

#[tokio::test]
async fn an_object_without_grace_and_finalizers_goes_at_once() {
    let subject = Subject::new();
    let kind = conditional();
    let made = subject.create(&kind, named("a")).await.unwrap();
    let gone = subject.delete(&kind, "a", &grace(30)).await.unwrap();
    let DeleteOutcome::Gone(last) = gone else { panic!("{gone:?}") };
    assert!(last.metadata.resource_version > made.metadata.resource_version);
    assert_eq!(message(subject.get(&kind, "a").await), "others.test \"a\" not found");
    assert_eq!(message(subject.delete(&kind, "a", &grace(0)).await), "others.test \"a\" not found");
}

#[tokio::test]
async fn finalizers_hold_an_object_until_the_last_is_gone() {
    let subject = Subject::new();
    let kind = graceful();
    let held = with_metadata("a", "finalizers", json!(["x.io/y"]));
    subject.create(&kind, held).await.unwrap();
    let DeleteOutcome::Pending(object) = subject.delete(&kind, "a", &grace(0)).await.unwrap() else {
        panic!("it is held")
    };
    assert_eq!(object.metadata.deletion_grace_period_seconds, Some(0));
    assert_eq!(object.metadata.generation, 2);
    let more = with_metadata("a", "finalizers", json!(["x.io/y", "x.io/z"]));
    let refused = message(subject.update(&kind, Part::Main, more).await);
    assert!(refused.ends_with("found new finalizers []string{\"x.io/z\"}"), "{refused}");
    let freed = subject.update(&kind, Part::Main, named("a")).await.unwrap();
    assert!(finalizers(&freed).is_empty() && freed.is_deleting());
    assert!(subject.get(&kind, "a").await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn the_policy_becomes_a_finalizer() {
    let subject = Subject::new();
    let kind = conditional();
    let cases: [(&str, &[&str]); 3] =
        [("Orphan", &["orphan"]), ("Foreground", &["foregroundDeletion"]), ("Background", &[])];
    for (policy, expected) in cases {
        subject.create(&kind, named("a")).await.unwrap();
        let deleted = subject.delete(&kind, "a", &DeleteOptions::propagation(policy)).await.unwrap();
        match &deleted {
            DeleteOutcome::Pending(object) => {
                assert_eq!(finalizers(object), expected);
                assert_eq!(object.metadata.deletion_grace_period_seconds, Some(0));
                // Another delete may change the policy, as long as it is not done.
                let again = DeleteOptions::propagation("Background");
                assert!(matches!(subject.delete(&kind, "a", &again).await.unwrap(), DeleteOutcome::Gone(_)));
            }
            DeleteOutcome::Gone(_) => assert!(expected.is_empty()),
        }
    }
    let both = DeleteOptions { orphan_dependents: Some(true), ..DeleteOptions::propagation("Orphan") };
    assert!(message(subject.delete(&kind, "a", &both).await).contains("cannot be both set"));
    let unknown = message(subject.delete(&kind, "a", &DeleteOptions::propagation("Some")).await);
    assert!(unknown.contains("propagationPolicy: Unsupported value: \"Some\""), "{unknown}");
}

#[tokio::test]
async fn grace_can_be_shortened_but_not_lengthened() {
    let subject = Subject::new();
    let kind = graceful();
    subject.create(&kind, json!({"metadata": {"name": "a"}, "spec": {"grace": 30}})).await.unwrap();
    let DeleteOutcome::Pending(first) = subject.delete(&kind, "a", &DeleteOptions::default()).await.unwrap()
    else {
        panic!("it has grace")
    };
    let metadata = &first.metadata;
    assert_eq!((metadata.deletion_timestamp.unwrap().timestamp(), metadata.generation), (30, 2));
    let DeleteOutcome::Pending(same) = subject.delete(&kind, "a", &grace(60)).await.unwrap() else {
        panic!("pending")
    };
    assert_eq!(same.metadata, first.metadata);
    let DeleteOutcome::Pending(shorter) = subject.delete(&kind, "a", &grace(10)).await.unwrap() else {
        panic!("pending")
    };
    assert_eq!(shorter.metadata.deletion_grace_period_seconds, Some(10));
    assert_eq!(shorter.metadata.deletion_timestamp.unwrap().timestamp(), 10);
    assert!(matches!(subject.delete(&kind, "a", &grace(0)).await.unwrap(), DeleteOutcome::Gone(_)));
}

#[tokio::test]
async fn preconditions_are_checked() {
    let subject = Subject::new();
    let kind = conditional();
    let made = subject.create(&kind, named("a")).await.unwrap();
    let refused = message(subject.delete(&kind, "a", &DeleteOptions::default().of_uid("other")).await);
    assert!(
        refused.contains("the UID in the precondition (other) does not match the UID in record"),
        "{refused}"
    );
    let mut options = DeleteOptions::default().of_uid(&made.metadata.uid);
    options.preconditions.as_mut().unwrap().resource_version = Some("1".into());
    assert_eq!(subject.delete(&kind, "a", &options).await.unwrap_err().code, 409);
    let revision = made.metadata.resource_version.to_string();
    options.preconditions.as_mut().unwrap().resource_version = Some(revision);
    subject.delete(&kind, "a", &options).await.unwrap();
}

#[tokio::test]
async fn a_namespace_goes_when_it_is_finalized() {
    let subject = Subject::new();
    let kind = subject.kind("", "v1", "namespaces");
    subject
        .create(&kind, json!({"metadata": {"name": "a"}, "spec": {"finalizers": ["kubernetes"]}}))
        .await
        .unwrap();
    for _ in 0..2 {
        let deleted = subject.delete(&kind, "a", &DeleteOptions::default()).await.unwrap();
        let DeleteOutcome::Pending(object) = deleted else { panic!("it has content") };
        assert_eq!(object.to_value()["status"]["phase"], "Terminating");
    }
    let mut tree = subject.get(&kind, "a").await.unwrap().to_value();
    tree["spec"]["finalizers"] = json!([]);
    subject.update(&kind, Part::Finalize, tree).await.unwrap();
    assert!(subject.get(&kind, "a").await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn a_collection_goes_with_what_selects_it() {
    let subject = Subject::new();
    let kind = conditional();
    for name in ["a", "b", "c"] {
        let label = json!({"app": if name == "b" { "stays" } else { "goes" }});
        subject.create(&kind, with_metadata(name, "labels", label)).await.unwrap();
    }
    let labels = apimachinery::labels::Selector::parse("app=goes").unwrap();
    let predicate = apimachinery::selectable::Predicate { labels, ..Default::default() };
    let options = ListOptions { predicate, ..ListOptions::default() };
    let none = DeleteOptions::default();
    let deleted =
        subject.registry.delete_collection(&subject.ctx, &kind, "ns", &none, &options, &()).await.unwrap();
    assert_eq!(deleted.items.len(), 2);
    let left = subject.registry.list(&kind, "ns", &ListOptions::default()).await.unwrap();
    assert_eq!(left.items[0].metadata.name, "b");
    assert_eq!(left.items.len(), 1);
}
