//! Refusals by webhooks and policies, by records that are written down by hand.

use crate::handwritten::Handwritten;
use crate::parts::CalledWebhook;
use crate::recorded::StepId;
use crate::step::{Step, WriteOperation};
use crate::story::tests::{printed, request, written};

const PODS: &str = "/api/v1/namespaces/ns/pods";
const CONTROLLER: &str = "system:serviceaccount:kube-system:replicaset-controller";

/// What is said at the end of the story.
fn told(record: &Handwritten, resource: &str, name: &str) -> Vec<String> {
    let text = printed(&record.flow.trace(resource, "ns", name));
    text.lines().filter_map(|line| line.strip_prefix(" => ")).map(str::to_owned).collect()
}

fn asked(record: &Handwritten, verb: &str) -> Option<StepId> {
    let asked = request(record, None, "", verb, PODS);
    let (user, by) = ("jane".into(), "X509".into());
    record.step(asked, Step::Authenticated { user, by, said: vec![] })
}

fn called(record: &Handwritten, cause: Option<StepId>, name: &str, verdict: &str) -> Option<StepId> {
    let called = CalledWebhook {
        webhook: name.into(),
        configuration: "ValidatingWebhookConfiguration gate".into(),
        microseconds: 3400,
        verdict: verdict.into(),
    };
    record.step(cause, Step::WebhookCalled(Box::new(called)))
}

fn refused(record: &Handwritten, cause: Option<StepId>, plugin: &str, name: &str, why: &str) {
    let denied = record.step(cause, Step::Denied { plugin: plugin.into() });
    let (resource, namespace, name) = ("pods".into(), "ns".into(), name.into());
    record.step(denied, Step::Refused { resource, namespace, name, code: 403, why: why.into() });
}

fn refused_by_webhook(record: &Handwritten, cause: Option<StepId>, name: &str, verdict: &str) {
    let cause = called(record, cause, "check.example.com", verdict);
    refused(record, cause, "ValidatingAdmissionWebhook", name, verdict);
}

#[test]
fn a_webhook_that_says_no_is_named_with_what_helps_until_it_is_content() {
    let record = Handwritten::new();
    let denied = "admission webhook \"check.example.com\" denied the request: no team label";
    refused_by_webhook(&record, asked(&record, "create"), "a", denied);
    let wanted = "the webhook check.example.com of ValidatingWebhookConfiguration gate forbids that jane creates \
                  pods ns/a (no team label): jane has to send what is allowed, or whoever keeps the \
                  configuration has to change what the webhook is asked about (its rules, selectors and \
                  matchConditions)";
    assert_eq!(told(&record, "pods", "a"), [wanted]);
    written(&record, request(&record, None, "", "create", PODS), "pods", "a", 7);
    assert_eq!(told(&record, "pods", "a"), [wanted], "that was somebody else");
    written(&record, asked(&record, "create"), "pods", "a", 8);
    assert_eq!(told(&record, "pods", "a"), [""; 0]);
    let unexplained = "admission webhook \"check.example.com\" denied the request without explanation";
    refused_by_webhook(&record, asked(&record, "delete"), "a", unexplained);
    let said = told(&record, "pods", "a");
    let wanted = "forbids that jane deletes pods ns/a (it does not say why): whoever keeps the ";
    assert!(said.len() == 1 && said[0].contains(wanted), "{said:?}");
    written(&record, asked(&record, "update"), "pods", "a", 8);
    assert_eq!(told(&record, "pods", "a"), said, "they may change it, and not delete it");
    let (resource, namespace, name) = ("pods".into(), "ns".into(), "a".into());
    let (operation, uid, bytes) = (WriteOperation::Delete, None, 0);
    record.step(None, Step::Stored { resource, namespace, name, revision: 9, operation, uid, bytes });
    assert_eq!(told(&record, "pods", "a"), [""; 0], "it is gone");
}

#[test]
fn a_webhook_that_does_not_answer_says_what_it_keeps_from_whom_and_how_it_goes() {
    let record = Handwritten::new();
    let open = "failed calling webhook \"open.example.com\": failed to call webhook: refused";
    let cause = called(&record, asked(&record, "create"), "open.example.com", open);
    let cause = called(&record, cause, "content.example.com", "allowed it");
    let why = "failed to call webhook: Post \"https://gate.ns.svc:443/?timeout=10s\": connection refused";
    let failed = format!("failed calling webhook \"check.example.com\": {why}");
    let cause = called(&record, cause, "check.example.com", &failed);
    let answered = format!("Internal error occurred: {failed}");
    refused(&record, cause, "ValidatingAdmissionWebhook", "a", &answered);
    let wanted = format!(
        "the webhook check.example.com of ValidatingWebhookConfiguration gate gives no valid answer ({why}), and \
         its failurePolicy is Fail: nothing that its rules match can be written until it answers, its \
         failurePolicy is Ignore, or the configuration goes (kubectl delete validatingwebhookconfiguration gate)"
    );
    assert_eq!(told(&record, "pods", "a"), [wanted]);
    let record = Handwritten::new();
    let why = "admission webhook \"check.example.com\" does not support dry run";
    refused_by_webhook(&record, asked(&record, "create"), "a", why);
    let said = told(&record, "pods", "a");
    assert!(said[0].contains("not asked in a dry run: jane has to write without one, or"), "{said:?}");
}

#[test]
fn what_a_controller_may_not_make_is_told_of_what_it_makes_it_for() {
    let record = Handwritten::new();
    let made = request(&record, None, "", "create", "/apis/apps/v1/namespaces/ns/replicasets");
    let stored = written(&record, made, "replicasets.apps", "web", 7);
    let denied = "admission webhook \"check.example.com\" denied the request: no team label";
    let wants = |cause, key: &str| {
        let reconcile = record.reconcile_after(cause, "replicaset", key, 0, 0);
        request(&record, reconcile, CONTROLLER, "create", PODS)
    };
    for name in ["web-x", "web-y"] {
        refused_by_webhook(&record, wants(stored, "ns/web"), name, denied);
    }
    let said = told(&record, "replicasets.apps", "web");
    let wanted = "forbids that replicaset-controller creates pods ns/web-y (no team label): ns/web, for which it \
                  is, has to ask for what is allowed, or";
    assert!(said.len() == 1 && said[0].contains(wanted), "{said:?}");
    written(&record, wants(stored, "ns/other"), "pods", "other-x", 8);
    assert_eq!(told(&record, "replicasets.apps", "web"), said, "that was made for another");
    written(&record, wants(stored, "ns/web"), "pods", "web-z", 9);
    assert_eq!(told(&record, "replicasets.apps", "web"), [""; 0]);
}

#[test]
fn a_policy_that_says_no_is_named_with_its_binding_and_what_helps() {
    let policy = "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'teams'";
    let forbids = "that jane creates pods ns/a (no team label): jane has to send what is allowed, or whoever \
                   keeps the policy has to change it";
    let fails = "its failurePolicy is Fail: what it fails on cannot be written until whoever keeps it has mended \
                 it, its failurePolicy is Ignore, or its binding goes";
    for (plugin, why, wanted) in [
        (
            "ValidatingAdmissionPolicy",
            format!("{policy} with binding 'all' denied request: no team label"),
            format!(
                "ValidatingAdmissionPolicy teams, bound by all, forbids {forbids} or the binding (kubectl edit \
                 validatingadmissionpolicy teams)"
            ),
        ),
        (
            "ValidatingAdmissionPolicy",
            format!("{policy} with binding 'all' denied request: expression 'a' resulted in error: b"),
            format!(
                "ValidatingAdmissionPolicy teams, bound by all, fails on pods ns/a (expression 'a' resulted in \
                 error: b), and {fails} (kubectl delete validatingadmissionpolicybinding all)"
            ),
        ),
        (
            "MutatingAdmissionPolicy",
            "policy 'teams' denied request: failed to configure policy: b".to_owned(),
            format!(
                "MutatingAdmissionPolicy teams fails on pods ns/a (failed to configure policy: b), and {fails}"
            ),
        ),
        (
            "ValidatingAdmissionPolicy",
            "the object is invalid".to_owned(),
            "a ValidatingAdmissionPolicy forbids that jane creates pods ns/a: jane has to send what is allowed, or \
             whoever keeps the policies has to change them or their bindings"
                .to_owned(),
        ),
    ] {
        let record = Handwritten::new();
        refused(&record, asked(&record, "create"), plugin, "a", &why);
        assert_eq!(told(&record, "pods", "a"), [wanted]);
    }
    let record = Handwritten::new();
    refused(&record, asked(&record, "create"), "LimitRanger", "a", "too much");
    assert_eq!(told(&record, "pods", "a"), [""; 0], "nobody has set that up as a gate");
}
