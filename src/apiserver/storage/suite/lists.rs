//! Reads: single objects, lists, pages, revisions.

use super::*;

#[tokio::test]
async fn writes_compare_revisions() {
    for subject in StoreSubject::all().await {
        let first = subject.put("a/x", "", "1").await;
        let tree = pod("a/x", "", "2");
        match subject.write("a/x", 0, &tree).await {
            Written::Conflict(Some(current)) => assert_eq!(current.metadata.resource_version, first),
            other => panic!("{other:?}"),
        }
        assert!(matches!(subject.write("a/y", 7, &tree).await, Written::Conflict(None)));
        let second = subject.put("a/x", "", "2").await;
        assert!(second > first);
        assert_eq!(subject.get("a/x", At::Newest).await.unwrap().unwrap().metadata.resource_version, second);
        subject.delete("a/x").await;
        assert!(subject.get("a/x", At::Newest).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn a_list_has_everything_that_was_written_before_it() {
    for subject in StoreSubject::all().await {
        for round in 0..20 {
            let revision = subject.put(&format!("b/{round:02}"), "", "1").await;
            let list = subject.list("", &ListOptions::default()).await.unwrap();
            assert_eq!((list.items.len(), list.resource_version), (round + 1, revision));
        }
        subject.put("a/z", "n", "1").await;
        subject.put("bb/a", "", "2").await;
        assert_eq!(names(&subject.list("a", &ListOptions::default()).await.unwrap()), ["a/z"]);
        assert_eq!(subject.list("b", &ListOptions::default()).await.unwrap().items.len(), 20);
        let selected = ListOptions { predicate: labelled("app=2"), ..ListOptions::default() };
        assert_eq!(names(&subject.list("", &selected).await.unwrap()), ["bb/a"]);
        let selected = ListOptions { predicate: on_node("n"), ..ListOptions::default() };
        assert_eq!(names(&subject.list("", &selected).await.unwrap()), ["a/z"]);
        let fields = FieldSelector::equal("metadata.name", "0");
        let named = Predicate { fields, ..Predicate::default() };
        let one = ListOptions { predicate: named, limit: Some(1), ..ListOptions::default() };
        let list = subject.list("b", &one).await.unwrap();
        assert_eq!((list.items.len(), list.continue_token.as_str()), (0, ""));
    }
}

#[tokio::test]
async fn pages_show_one_revision() {
    for subject in StoreSubject::all().await {
        for name in ["a", "b", "c", "d", "e"] {
            subject.put(&format!("n/{name}"), "", "1").await;
        }
        let first = subject.list("n", &page(2, "")).await.unwrap();
        assert_eq!((names(&first), first.remaining_item_count), (vec!["n/a".into(), "n/b".into()], Some(3)));
        subject.put("n/c", "", "changed").await;
        subject.put("n/cc", "", "1").await;
        subject.delete("n/d").await;
        let second = subject.list("n", &page(2, &first.continue_token)).await.unwrap();
        assert_eq!(second.resource_version, first.resource_version);
        assert_eq!(
            (names(&second), second.remaining_item_count),
            (vec!["n/c".into(), "n/d".into()], Some(1))
        );
        assert_eq!(second.items[0].metadata.labels["app"], "1");
        let third = subject.list("n", &page(2, &second.continue_token)).await.unwrap();
        assert_eq!((names(&third), third.continue_token.as_str()), (vec!["n/e".into()], ""));
        assert_eq!(third.remaining_item_count, None);
        let refused = ListOptions { resource_version: Some("1".into()), ..page(2, &first.continue_token) };
        let message = subject.list("n", &refused).await.unwrap_err().message;
        assert_eq!(message, "specifying resource version is not allowed when using continue");
    }
}

#[tokio::test]
async fn pages_with_a_selector_are_filled() {
    for subject in StoreSubject::all().await {
        for number in 0..30 {
            let label = if number % 3 == 0 { "yes" } else { "no" };
            subject.put(&format!("n/{number:02}"), "", label).await;
        }
        let mut found = Vec::new();
        let mut token = String::new();
        for _ in 0..4 {
            let options = ListOptions { predicate: labelled("app=yes"), ..page(3, &token) };
            let list = subject.list("", &options).await.unwrap();
            assert_eq!(list.remaining_item_count, None);
            found.extend(names(&list));
            token = list.continue_token;
        }
        let expected: Vec<String> = (0..30).step_by(3).map(|number| format!("n/{number:02}")).collect();
        assert_eq!((found, token.as_str()), (expected, ""));
    }
}

#[tokio::test]
async fn a_page_whose_revision_is_gone_says_how_to_go_on() {
    for subject in StoreSubject::all().await {
        for name in ["a", "b", "c"] {
            subject.put(&format!("n/{name}"), "", "1").await;
        }
        let first = subject.list("n", &page(1, "")).await.unwrap();
        let last = subject.put("n/b", "", "2").await;
        subject.store.kv().compact(last).await.unwrap();
        let status = subject.list("n", &page(1, &first.continue_token)).await.unwrap_err();
        assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
        assert!(status.message.starts_with("The provided continue parameter is too old to display"));
        let rest = subject.list("n", &page(5, status.continue_token())).await.unwrap();
        assert_eq!((names(&rest), rest.resource_version), (vec!["n/b".into(), "n/c".into()], last));
        let exact =
            ListOptions { resource_version_match: Some("Exact".into()), ..from(first.resource_version) };
        let status = subject.list("n", &exact).await.unwrap_err();
        assert_eq!(status.message, "The resourceVersion for the provided list is too old.");
    }
}

#[tokio::test]
async fn lists_are_of_the_revision_that_is_asked_for() {
    for subject in StoreSubject::all().await {
        let first = subject.put("n/a", "", "1").await;
        let second = subject.put("n/b", "", "1").await;
        subject.put("n/c", "", "1").await;
        let exact = |revision| ListOptions { resource_version_match: Some("Exact".into()), ..from(revision) };
        assert_eq!(names(&subject.list("", &exact(first)).await.unwrap()), ["n/a"]);
        let list = subject.list("", &exact(second)).await.unwrap();
        assert_eq!((list.items.len(), list.resource_version), (2, second));
        assert_eq!(subject.list("", &from(second + 1)).await.unwrap().items.len(), 3);
        assert!(subject.list("", &from(0)).await.unwrap().items.len() <= 3);
        let future = subject.list("", &from(1000)).await.unwrap_err();
        let message = format!("Timeout: Too large resource version: 1000, current: {}", second + 1);
        assert_eq!((future.code, future.message), (504, message));
        let details = future.details.unwrap();
        let cause = details.causes[0].reason.as_str();
        assert_eq!((cause, details.retry_after_seconds), ("ResourceVersionTooLarge", 1));
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_said_at_once_and_all_is_well_without_it() {
    let clock = Clock::stepped(DateTime::UNIX_EPOCH);
    let kv = Kv::open(Options::default(), clock.clone()).unwrap();
    let key = "/registry/pods/n/bad";
    let put = Op::Put { value: "k8s:enc:aescbc:v1:key1:...".into(), lease: None };
    kv.txn(key, Expect::Any, put).await.unwrap();
    let kind = Kind::builtin("", "v1", "Pod", "pods", "io.k8s.api.core.v1");
    let subject = StoreSubject::over(kv.clone().into(), clock, kind, true);
    let cacher = subject.cacher.as_ref().unwrap();
    // Time stands still meanwhile: whoever waited would wait for ever.
    for at in [At::Newest, At::Any, At::NotOlderThan(2), At::Exact(2)] {
        let refused = cacher.list(&ListRequest { at, ..ListRequest::everything() }).await.unwrap_err();
        let message = "Internal error occurred: unable to transform key \"/registry/pods/n/bad\": identity \
                       transformer tried to read encrypted data";
        assert_eq!((refused.code, &*refused.message), (500, message), "{at:?}");
    }
    assert!(subject.get("n/bad", At::NotOlderThan(1)).await.is_err());
    assert!(subject.get("n/good", At::Any).await.unwrap().is_none());
    kv.txn(key, Expect::Any, Op::Delete).await.unwrap();
    subject.put("n/good", "", "1").await;
    assert_eq!(names(&subject.list("", &ListOptions::default()).await.unwrap()), ["n/good"]);
    let is_filled = || cacher.contents().is_some();
    subject
        .stepping(async {
            while !is_filled() {
                tokio::task::yield_now().await
            }
        })
        .await;
}

#[tokio::test]
async fn expiring_objects_share_a_lease_and_go() {
    let kind = Kind::builtin("", "v1", "Pod", "pods", "io.k8s.api.core.v1");
    let subject = StoreSubject::of(kind.living_for(Duration::from_secs(3600)), true);
    for name in ["a", "b"] {
        let key = format!("n/{name}");
        subject.put(&key, "", "1").await;
    }
    let kv = subject.store.kv().own("this").unwrap();
    let leases = ["/registry/pods/n/a", "/registry/pods/n/b"].map(|key| {
        let (found, _) = kv.get(key, None).unwrap();
        found.unwrap().lease.unwrap()
    });
    assert_eq!(leases[0], leases[1]);
    while !subject.list("", &ListOptions::default()).await.unwrap().items.is_empty() {
        subject.clock.advance(Duration::from_secs(600));
        tokio::task::yield_now().await;
    }
    assert!(subject.clock.elapsed() >= Duration::from_secs(3600));
}
