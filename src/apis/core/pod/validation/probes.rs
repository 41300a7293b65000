//! Probes, hooks and their handlers.

use serde_json::Value;

use super::scope::PodScope;
use crate::validation::Field;
use crate::validation::texts::{http_header_name, port_number_or_name};
use apimachinery::field_error::FieldErrors;

const PROBE_HANDLERS: &[&str] = &["exec", "httpGet", "tcpSocket", "grpc"];
const HOOK_HANDLERS: &[&str] = &["exec", "httpGet", "tcpSocket", "sleep"];

/// The hooks and probes of a container that may have them.
pub(super) fn lifecycle_and_probes(container: &Field, scope: &PodScope, errors: &mut FieldErrors) {
    for hook in ["lifecycle.postStart", "lifecycle.preStop"].map(|hook| container.child(hook)) {
        if hook.is_set() {
            handler(&hook, HOOK_HANDLERS, scope, errors);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let field = container.child(name);
        if field.is_set() {
            probe(&field, name == "readinessProbe", scope, errors);
        }
    }
}

fn probe(probe: &Field, is_readiness: bool, scope: &PodScope, errors: &mut FieldErrors) {
    handler(probe, PROBE_HANDLERS, scope, errors);
    probe.all_nonnegative(
        &["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"],
        errors,
    );
    let grace = probe.child("terminationGracePeriodSeconds");
    if grace.is_set() && grace.number() <= 0 {
        grace.invalid("must be greater than 0", errors);
    }
    if is_readiness && grace.is_set() {
        grace.invalid("must not be set for readinessProbes", errors);
    }
    let successes = probe.child("successThreshold");
    if !is_readiness && successes.number() != 1 {
        successes.invalid("must be 1", errors);
    }
}

fn handler(handler: &Field, kinds: &[&str], scope: &PodScope, errors: &mut FieldErrors) {
    let present: Vec<&&str> = kinds.iter().filter(|kind| handler.child(kind).is_set()).collect();
    let Some((first, others)) = present.split_first() else {
        return handler.required("must specify a handler type", errors);
    };
    let action = handler.child(first);
    match **first {
        "exec" => {
            action.child("command").require(errors);
        }
        "httpGet" => http_get(&action, errors),
        "sleep" => sleep(&action, scope, errors),
        _ => port_number_or_name(&action.child("port"), errors),
    }
    for other in others {
        handler.child(other).forbidden("may not specify more than 1 handler type", errors);
    }
}

fn http_get(action: &Field, errors: &mut FieldErrors) {
    action.child("path").require(errors);
    port_number_or_name(&action.child("port"), errors);
    let scheme = action.child("scheme");
    if !matches!(scheme.text(), "HTTP" | "HTTPS") {
        scheme.not_supported(&["HTTP", "HTTPS"], errors);
    }
    for header in action.each("httpHeaders") {
        let name: &Value = header.child("name").value;
        let name = Field { path: action.child("httpHeaders").path, value: name };
        name.invalid_each(http_header_name(name.text()), errors);
    }
}

fn sleep(action: &Field, scope: &PodScope, errors: &mut FieldErrors) {
    let (seconds, grace) = (action.child("seconds"), scope.grace_period_seconds);
    if seconds.number() < 0 || seconds.number() > grace {
        let words = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        seconds.shown_as(action.path.as_str()).invalid(words, errors);
    }
}
