//! Reads, and kinds that are stored in another kind's form.

use super::*;
use apimachinery::fields::FieldSelector;
use apimachinery::selectable::Predicate;

fn event(name: &str, about: &str) -> Value {
    json!({"metadata": {"name": name}, "regarding": {"kind": "Pod", "name": about, "namespace": "ns"},
        "note": "hello", "reason": "Because", "type": "Normal", "action": "Test",
        "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "test.io/controller",
        "reportingInstance": "test-1"})
}

#[tokio::test]
async fn a_kind_can_be_kept_in_the_form_of_another() {
    let subject = Subject::new();
    let (new, core) = (subject.kind("events.k8s.io", "v1", "events"), subject.kind("", "v1", "events"));
    let about = |field: &str| {
        let fields = FieldSelector::equal(field, "a");
        ListOptions { predicate: Predicate { fields, ..Predicate::default() }, ..ListOptions::default() }
    };
    let mut watch = subject.registry.watch(&new, "ns", &about("regarding.name")).await.unwrap();
    subject.create(&new, event("other", "b")).await.unwrap();
    let made = subject.create(&new, event("one", "a")).await.unwrap();
    assert_eq!(made.to_value()["note"], "hello");
    assert_eq!(subject.get(&core, "one").await.unwrap().to_value()["message"], "hello");
    assert_eq!(subject.get(&new, "one").await.unwrap().to_value()["regarding"]["name"], "a");
    for (kind, field) in [(&new, "regarding.name"), (&core, "involvedObject.name")] {
        let list = subject.registry.list(kind, "ns", &about(field)).await.unwrap();
        assert_eq!(list.items.iter().map(|item| item.metadata.name.as_str()).collect::<Vec<_>>(), ["one"]);
    }
    let heard = watch.recv().await.unwrap();
    let object = heard.object().unwrap();
    assert_eq!((object.metadata.name.as_str(), &object.to_value()["note"]), ("one", &json!("hello")));
    assert_eq!(object.metadata.resource_version, made.metadata.resource_version);
}

#[tokio::test]
async fn a_read_of_what_is_to_come_is_refused() {
    let subject = Subject::new();
    let kind = graceful();
    subject.create(&kind, named("a")).await.unwrap();
    for revision in [None, Some("0"), Some("1")] {
        assert!(subject.registry.get(&kind, "ns", "a", revision).await.is_ok());
    }
    let bad = subject.registry.get(&kind, "ns", "a", Some("x")).await.unwrap_err();
    assert_eq!((bad.code, &*bad.reason), (500, ""));
    assert!(subject.registry.get(&kind, "other", "a", None).await.unwrap_err().is_not_found());
}
