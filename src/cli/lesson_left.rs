//! What a lesson that was not taken to its end has left in the cluster, and how it goes.

use serde_json::Value;
use ui::Lesson;

use super::connection::Context;
use super::{Failure, block_on};

/// What lessons make is called so, or begins so with a `-`.
const NAME: &str = "lesson";

/// Where lessons make things: kinds as kubectl takes them, and where they are listed.
const PLACES: &[(&str, &str)] = &[
    ("pod", "/api/v1/namespaces/default/pods"),
    ("configmap", "/api/v1/namespaces/default/configmaps"),
    ("deployment", "/apis/apps/v1/namespaces/default/deployments"),
    ("hpa", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"),
    ("role", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"),
    ("rolebinding", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"),
    ("namespace", "/api/v1/namespaces"),
    (
        "validatingwebhookconfiguration",
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    ),
    ("validatingadmissionpolicy", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"),
    (
        "validatingadmissionpolicybinding",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    ),
    ("apiservice", "/apis/apiregistration.k8s.io/v1/apiservices"),
    ("mutatingadmissionpolicy", "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"),
    (
        "mutatingadmissionpolicybinding",
        "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings",
    ),
];

/// Refuses a lesson as long as something is there that it, or another, makes itself.
pub(crate) fn refuse_if_left(context: &Context, lesson: &Lesson) -> Result<(), Failure> {
    let mut left = Vec::new();
    for (kind, path) in PLACES {
        // Flags may say that a group is not served.
        let Ok(answer) = block_on(context.get(path)) else { continue };
        let list: Value = serde_json::from_slice(&answer)
            .map_err(|error| Failure::new("the cluster's answer is not understood", error))?;
        left.extend(names(&list).map(|name| format!("{kind}/{name}")));
    }
    if left.is_empty() { Ok(()) } else { Err(Failure(advice(lesson, &left))) }
}

/// Of lessons, and of nobody else: what belongs to another object goes with it.
fn names(list: &Value) -> impl Iterator<Item = &str> {
    let objects = list["items"].as_array().into_iter().flatten().map(|object| &object["metadata"]);
    let free = objects.filter(|metadata| metadata["ownerReferences"].is_null());
    free.filter_map(|metadata| metadata["name"].as_str()).filter(|name| is_of_a_lesson(name))
}

fn is_of_a_lesson(name: &str) -> bool {
    // An APIService is called after its version and group.
    let name = name.strip_prefix("v1.").unwrap_or(name);
    name.strip_prefix(NAME).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']))
}

/// The lesson's own last command undoes what else it has changed, such as labels of nodes.
fn advice(lesson: &Lesson, left: &[String]) -> String {
    let last = lesson.steps.iter().rev().map(|step| step.run.trim()).find(|run| !run.is_empty());
    let last = last.filter(|run| !run.contains('\n')).map(|run| format!("{run}; ")).unwrap_or_default();
    let objects = left.join(" ");
    format!(
        "of a lesson that was not taken to its end there is still {}; clean up with: \
         {last}kubectl -n default delete {objects} --ignore-not-found",
        left.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use ui::lessons;

    use super::*;

    #[test]
    fn what_lessons_make_is_found_and_nothing_else() {
        let named = |name: &str| json!({"metadata": {"name": name}});
        let owned = json!({"metadata": {"name": "lesson-x", "ownerReferences": [{"name": "lesson"}]}});
        let of_a_group = named("v1.lesson.example.com");
        let others = [named("lessons"), named("a"), owned];
        let mut items = vec![named("lesson"), named("lesson-live"), of_a_group];
        items.extend(others);
        let list = json!({"items": items});
        assert_eq!(names(&list).collect::<Vec<_>>(), ["lesson", "lesson-live", "v1.lesson.example.com"]);
    }

    #[test]
    fn it_is_said_how_it_goes() {
        let pending = lessons().iter().find(|lesson| lesson.name == "pending").unwrap();
        let said = advice(pending, &["pod/lesson".to_owned()]);
        assert!(
            said.contains("there is still pod/lesson; clean up with: kubectl -n default delete pod"),
            "{said}"
        );
        assert!(said.contains("disk-; kubectl -n default delete pod/lesson --ignore-not-found"), "{said}");
    }
}
