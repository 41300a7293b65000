//! Deployment of `apps/v1beta1`, `apps/v1beta2` and `extensions/v1beta1`: with defaults of their own, and
//! with `rollbackTo`, which today is an annotation (`pkg/apis/apps/v1/conversion.go`).

use std::sync::LazyLock;

use crate::apps::deployment::DEPLOYMENTS;
use crate::core::pod::defaults::pod_spec;
use crate::kind::{Builtin, Kind, StoredAs, Subresource};
use crate::tree::*;
use serde_json::{Value, json};

/// `deployments.v1beta1.apps`
pub(super) static APPS_V1BETA1: Builtin = LazyLock::new(|| {
    let why = "apps/v1beta1 Deployment is deprecated in v1.8+, unavailable in v1.16+; use apps/v1 Deployment";
    let kind = deployment("apps", "v1beta1", "io.k8s.api.apps.v1beta1").deprecated(why).with(ROLLING_BACK);
    kind.defaulted(|deployment| {
        default_from_template(deployment);
        defaults(deployment, json!("25%"), 2, 600);
    })
    .into()
});

/// `deployments.v1beta2.apps`
pub(super) static APPS_V1BETA2: Builtin = LazyLock::new(|| {
    let why = "apps/v1beta2 Deployment is deprecated in v1.9+, unavailable in v1.16+; use apps/v1 Deployment";
    let kind = deployment("apps", "v1beta2", "io.k8s.api.apps.v1beta2").deprecated(why);
    kind.defaulted(|deployment| defaults(deployment, json!("25%"), 10, 600)).into()
});

/// `deployments.v1beta1.extensions`
pub(super) static EXTENSIONS_V1BETA1: Builtin = LazyLock::new(|| {
    let why =
        "extensions/v1beta1 Deployment is deprecated in v1.8+, unavailable in v1.16+; use apps/v1 Deployment";
    let kind = deployment("extensions", "v1beta1", "io.k8s.api.extensions.v1beta1")
        .deprecated(why)
        .status_resets(&["spec"])
        .with(ROLLING_BACK);
    kind.defaulted(|deployment| {
        default_from_template(deployment);
        defaults(deployment, json!(1), i32::MAX, i32::MAX);
    })
    .into()
});

const ROLLING_BACK: &[Subresource] = &[Subresource::Rollback, Subresource::Scale, Subresource::Status];
/// In which today's Deployment keeps `spec.rollbackTo.revision`.
const ROLLBACK: &str = "deprecated.deployment.rollback.to";

fn deployment(group: &str, version: &str, definitions: &str) -> Kind {
    Kind::builtin(group, version, "Deployment", "deployments", definitions)
        .looking_like(&DEPLOYMENTS)
        .with_own_scale()
        .stored_as(StoredAs { kind: &DEPLOYMENTS, encode: to_today, decode: from_today })
}

/// What these versions took from the template when nobody said it.
fn default_from_template(deployment: &mut Value) {
    let labels = at(deployment, "spec.template.metadata.labels").clone();
    if is_zero(&labels) {
        return;
    }
    set_if_unset(deployment, "spec.selector", json!({"matchLabels": labels}));
    set_if_zero(deployment, "metadata.labels", labels);
}

fn defaults(deployment: &mut Value, step: Value, revisions: i32, deadline_seconds: i32) {
    set_if_unset(deployment, "spec.replicas", 1);
    set_if_zero(deployment, "spec.strategy.type", "RollingUpdate");
    if text(deployment, "spec.strategy.type") == "RollingUpdate" {
        set_if_unset(deployment, "spec.strategy.rollingUpdate.maxUnavailable", step.clone());
        set_if_unset(deployment, "spec.strategy.rollingUpdate.maxSurge", step);
    }
    set_if_unset(deployment, "spec.revisionHistoryLimit", revisions);
    set_if_unset(deployment, "spec.progressDeadlineSeconds", deadline_seconds);
    pod_spec(deployment, "spec.template.spec");
}

fn to_today(mut deployment: Value) -> Value {
    if let Some(rollback) = remove(&mut deployment, "spec.rollbackTo")
        && !rollback.is_null()
    {
        let revision = number(&rollback, "revision").to_string();
        object_mut(&mut deployment, "metadata.annotations").insert(ROLLBACK.into(), revision.into());
    }
    deployment
}

fn from_today(mut deployment: Value) -> Value {
    let Some(annotations) = get_mut(&mut deployment, "metadata.annotations") else { return deployment };
    let revision = annotations.as_object_mut().and_then(|annotations| annotations.remove(ROLLBACK));
    if let Some(revision) =
        revision.as_ref().and_then(Value::as_str).and_then(|text| text.parse::<i64>().ok())
    {
        set(&mut deployment, "spec.rollbackTo", json!({"revision": revision}));
    }
    if count(&deployment, "metadata.annotations") == 0 {
        remove(&mut deployment, "metadata.annotations");
    }
    deployment
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given() -> Value {
        json!({"metadata": {"name": "d"}, "spec": {"template": {
            "metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
    }

    #[test]
    fn each_version_has_the_defaults_that_it_had() {
        for (kind, surge, revisions, deadline, selector) in [
            (&EXTENSIONS_V1BETA1, json!(1), i32::MAX, i32::MAX, json!({"matchLabels": {"app": "d"}})),
            (&APPS_V1BETA1, json!("25%"), 2, 600, json!({"matchLabels": {"app": "d"}})),
            (&APPS_V1BETA2, json!("25%"), 10, 600, Value::Null),
        ] {
            let mut tree = given();
            (kind.defaults)(&mut tree);
            let spec = &tree["spec"];
            assert_eq!(spec["strategy"]["rollingUpdate"]["maxSurge"], surge);
            assert_eq!((&spec["revisionHistoryLimit"], &spec["selector"]), (&json!(revisions), &selector));
            assert_eq!(spec["progressDeadlineSeconds"], deadline);
        }
    }

    #[test]
    fn a_rollback_is_kept_in_an_annotation() {
        let mut old = given();
        set(&mut old, "spec.rollbackTo", json!({"revision": 3}));
        let today = to_today(old.clone());
        assert_eq!(annotation(&today, ROLLBACK), "3");
        assert_eq!(from_today(today), old);
    }
}
