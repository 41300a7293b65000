//! Conflicts, by records that are written down by hand.

use super::owners;
use crate::handwritten::Handwritten;
use crate::parts::RoutedRequest;
use crate::recorded::StepId;
use crate::step::{Step, WriteOperation};
use crate::story::tests::{printed, request, written};

const OBJECT: &str = "/api/v1/namespaces/ns/configmaps/a";
const MODIFIED: &str = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please \
                        apply your changes to the latest version and try again";

/// What is said at the end of the story.
fn told(record: &Handwritten) -> Vec<String> {
    let text = printed(&record.flow.trace("configmaps", "ns", "a"));
    text.lines().filter_map(|line| line.strip_prefix(" => ")).map(str::to_owned).collect()
}

fn asked(record: &Handwritten, user: &str, manager: &str, verb: &str) -> Option<StepId> {
    let asked = request(record, None, "", verb, OBJECT);
    let by = "X509".into();
    record.step(asked, Step::Authenticated { user: user.into(), by, said: vec![] });
    let options = format!("fieldManager={manager}&fieldValidation=Strict").into();
    record.step(asked, Step::Routed(Box::new(RoutedRequest { options, ..RoutedRequest::default() })))
}

fn stored(record: &Handwritten, cause: Option<StepId>, operation: WriteOperation, revision: u64) {
    let (resource, namespace, name) = ("configmaps".into(), "ns".into(), "a".into());
    record.step(cause, Step::Stored { resource, namespace, name, revision, operation, uid: None, bytes: 1 });
}

fn refused(record: &Handwritten, cause: Option<StepId>, why: &str) {
    let (resource, namespace, name) = ("configmaps".into(), "ns".into(), "a".into());
    record.step(cause, Step::Refused { resource, namespace, name, code: 409, why: why.into() });
}

/// Made by jane at revision 7, written by joe at 8.
fn record() -> Handwritten {
    let record = Handwritten::new();
    written(&record, asked(&record, "jane", "create", "create"), "configmaps", "a", 7);
    stored(&record, asked(&record, "joe", "edit", "patch"), WriteOperation::Update, 8);
    record
}

#[test]
fn who_was_faster_is_said_until_the_write_is_made_anew() {
    let record = record();
    let late = asked(&record, "jane", "replace", "update");
    refused(&record, late, MODIFIED);
    let wanted = "joe with edit at revision 8 was faster than jane and wrote configmaps ns/a meanwhile: jane has \
                  to get it again, change what it is now, and update it then; a patch without a resourceVersion \
                  is never too late";
    assert_eq!(told(&record), [wanted]);
    stored(&record, asked(&record, "joe", "edit", "patch"), WriteOperation::Update, 9);
    assert_eq!(told(&record), [wanted], "that is another one's");
    stored(&record, asked(&record, "jane", "edit", "patch"), WriteOperation::Update, 10);
    assert_eq!(told(&record), [""; 0]);
}

#[test]
fn a_component_that_was_faster_says_what_it_wrote_and_one_that_is_refused_tries_again() {
    let record = record();
    let user = "system:serviceaccount:kube-system:some-controller";
    let by = request(&record, None, user, "update", &format!("{OBJECT}/status"));
    stored(&record, by, WriteOperation::Update, 9);
    refused(&record, request(&record, by, user, "update", OBJECT), MODIFIED);
    assert_eq!(told(&record), [""; 0]);
    refused(&record, asked(&record, "jane", "replace", "update"), MODIFIED);
    let wanted = "some-controller, which writes the status of it, at revision 9 was faster than jane";
    assert!(told(&record)[0].starts_with(wanted), "{:?}", told(&record));
}

#[test]
fn a_delete_that_means_another_state_or_another_object_says_which_is_there() {
    let record = record();
    let of = "Operation cannot be fulfilled on ConfigMap \"a\": the";
    let why = format!(
        "{of} ResourceVersion in the precondition (1) does not match the ResourceVersion in record (8)"
    );
    refused(&record, asked(&record, "jane", "curl", "delete"), &why);
    let why = format!("{of} UID in the precondition (1) does not match the UID in record (2)");
    refused(&record, asked(&record, "jane", "curl", "delete"), &why);
    let said = told(&record);
    assert_eq!(said.len(), 1, "the later one: {said:?}");
    assert_eq!(
        said[0],
        "configmaps ns/a is not the object that jane means: made by jane with create at revision 7; to delete \
         this one: with its own uid, or without a precondition"
    );
    let record = self::record();
    let why = format!(
        "{of} ResourceVersion in the precondition (1) does not match the ResourceVersion in record (8)"
    );
    refused(&record, asked(&record, "jane", "curl", "delete"), &why);
    assert!(told(&record)[0].starts_with("joe with edit at revision 8 was faster"), "{:?}", told(&record));
    stored(&record, asked(&record, "joe", "curl", "delete"), WriteOperation::Delete, 9);
    assert_eq!(told(&record), [""; 0], "it is gone");
}

#[test]
fn an_apply_names_the_owners_of_the_fields_until_it_goes_through() {
    let record = record();
    let why = "Apply failed with 2 conflicts: conflicts with \"edit\" using v1:\n- .data.a\nconflicts with \
               \"helm\" using v1:\n- .data.b";
    refused(&record, asked(&record, "jane", "one", "patch"), why);
    let wanted = "fields of configmaps ns/a are owned by \"edit\" (written by joe with edit at revision 8) and \
                  \"helm\": jane has to leave them out, set them as they are, or take them over with \
                  --force-conflicts (force=true)";
    assert_eq!(told(&record), [wanted]);
    stored(&record, asked(&record, "jane", "two", "patch"), WriteOperation::Update, 9);
    assert_eq!(told(&record), [wanted], "that is another manager's");
    stored(&record, asked(&record, "jane", "one", "patch"), WriteOperation::Update, 10);
    assert_eq!(told(&record), [""; 0]);
    assert_eq!(owners("Apply failed with 1 conflict: conflict with \"a b\" using v1: .x"), ["a b"]);
}

#[test]
fn a_name_that_is_taken_says_by_whom() {
    let record = record();
    refused(&record, asked(&record, "joe", "create", "create"), "configmaps \"a\" already exists");
    assert_eq!(
        told(&record),
        ["the name configmaps ns/a is taken: made by jane with create at revision 7; change what is there \
             (kubectl apply, replace or patch), delete it before, or take another name"]
    );
    // Of a quota that somebody else counted on meanwhile the object knows nothing.
    let record = self::record();
    refused(
        &record,
        asked(&record, "joe", "create", "create"),
        &MODIFIED.replace("configmaps \"a\"", "x \"q\""),
    );
    assert_eq!(told(&record), [""; 0]);
}
