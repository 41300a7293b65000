//! What is wrong with what pods say of what they use.

use std::collections::BTreeMap;

use super::stats::MeasuredContainer;
use super::used::{OURS, UsageSources, of_container, variables};
use usage::Curve;
use usage::expression::CurveExpression;

const KNOWN: [&str; 8] =
    ["cpu", "memory", "ephemeral-storage", "pids", "inodes", "network-receive", "network-transmit", "volume"];
/// Those of them that are of a container.
const OF_CONTAINERS: [&str; 5] = ["cpu", "memory", "ephemeral-storage", "pids", "inodes"];

/// What is wrong with the annotations themselves, each in a sentence.
pub(super) fn problems(annotations: &BTreeMap<String, String>) -> Vec<String> {
    let wrong = |(name, text): (&String, &String)| {
        let rest = name.strip_prefix(OURS)?;
        let resource = rest.split_once('.').map_or(rest, |(resource, _)| resource);
        if !KNOWN.contains(&resource) {
            return Some(format!("{name} is not known; {OURS} may be followed by {}", KNOWN.join(", ")));
        }
        Curve::parse(text).err().map(|why| format!("{name}: {why}"))
    };
    annotations.iter().filter_map(wrong).collect()
}

/// Which expressions say nothing of a container when it starts, each in a sentence.
pub(super) fn failures(measured: &MeasuredContainer<'_>, sources: &UsageSources) -> Vec<String> {
    let annotations = &measured.pod.metadata.annotations;
    // Most pods have none.
    if !annotations.values().any(|text| text.trim_start().starts_with("cel:")) {
        return Vec::new();
    }
    let container = &measured.container.name;
    let variables = variables(measured, sources);
    let failure = |resource: &str| {
        let names = [format!("{OURS}{resource}.{container}"), format!("{OURS}{resource}")];
        let name = names.into_iter().find(|name| annotations.contains_key(name))?;
        let expression = annotations[&name].trim().strip_prefix("cel:")?;
        let expression = CurveExpression::parse(expression.trim()).ok()?;
        let (_, against) = of_container(measured, resource, (variables.as_ref(), sources));
        let why = expression.evaluate(0.0, &against).err()?;
        Some(format!("{name} has no value for container {container}, which counts as 0: {why}"))
    };
    OF_CONTAINERS.into_iter().filter_map(failure).collect()
}

#[cfg(test)]
mod tests {
    use apimachinery::object::ObjectMeta;
    use apimachinery::time::Time;
    use apis::views::pod::Pod;
    use serde_json::json;

    use super::*;

    #[test]
    fn wrong_annotations_are_told() {
        let annotations = BTreeMap::from([
            ("kubarium.dev/usage-cpu".to_owned(), "much".to_owned()),
            ("kubarium.dev/usage-gpu".to_owned(), "1".to_owned()),
            ("kubarium.dev/usage-memory".to_owned(), "1Mi".to_owned()),
        ]);
        let problems = problems(&annotations);
        assert!(problems[0].starts_with("kubarium.dev/usage-cpu: \"much\" is no amount"), "{problems:?}");
        assert!(problems[1].starts_with("kubarium.dev/usage-gpu is not known"), "{problems:?}");
        assert_eq!(problems.len(), 2);
    }

    #[test]
    fn expressions_without_a_value_are_told() {
        let annotations = json!({"kubarium.dev/usage-cpu": "cel: 2", "kubarium.dev/usage-cpu.web": "cel: [1]",
            "kubarium.dev/usage-memory": "cel: pod.metadata.labels.size"});
        let containers = json!([{"name": "web"}, {"name": "side"}]);
        let tree = json!({"metadata": {"annotations": annotations}, "spec": {"containers": containers}});
        let pod: Pod = serde_json::from_value(tree).unwrap();
        let metadata = ObjectMeta::default();
        let of = |at: usize| {
            let container = &pod.spec.containers[at];
            let started_at = Time::UNIX_EPOCH;
            let measured =
                MeasuredContainer { pod: &pod, metadata: &metadata, container, attempt: 0, started_at };
            failures(&measured, &UsageSources::default())
        };
        let web = of(0);
        assert!(web[0].starts_with("kubarium.dev/usage-cpu.web has no value for container web"), "{web:?}");
        assert!(web[0].contains("neither a number nor a quantity"), "{web:?}");
        assert!(web[1].starts_with("kubarium.dev/usage-memory has no value"), "{web:?}");
        assert_eq!((web.len(), of(1).len()), (2, 1), "{web:?}");
    }
}
