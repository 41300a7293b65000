//! Annotations of ReplicaSets: which revision of the deployment they are, and what they were sized for.

use std::collections::BTreeMap;

/// The number of a ReplicaSet in its deployment's history; `kubectl rollout history` lists it.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// The numbers that it had before it was rolled back to.
pub(super) const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// The size of the deployment when the set was last sized: a difference is a scaling event.
pub(super) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
/// The size of the deployment with its surge, when the set was last sized.
pub(super) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";

/// Not copied from a deployment to its sets.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "deprecated.deployment.rollback.to",
];
/// Upstream's `maxRevHistoryLengthInChars`: beyond it the oldest numbers are dropped.
const HISTORY_CHARACTERS: usize = 2000;

type Annotations = BTreeMap<String, String>;

/// The revision that annotations tell; 0 when they tell none.
pub(super) fn of(annotations: &Annotations) -> i64 {
    annotations.get(REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// What a set of `revision` should have beside what it has: the deployment's annotations (the change cause
/// among them), and the revision if its own is lower. A set that had a revision and gets a higher one is
/// being rolled back to; its former numbers are kept.
pub(super) fn of_new_set(deployment: &Annotations, set: &Annotations, revision: i64) -> Annotations {
    let mut annotations = set.clone();
    let copied = deployment.iter().filter(|(key, _)| !NOT_COPIED.contains(&key.as_str()));
    annotations.extend(copied.map(|(key, value)| (key.clone(), value.clone())));
    if of(set) < revision {
        annotations.insert(REVISION.into(), revision.to_string());
        if let Some(former) = set.get(REVISION) {
            let history = with_former(set.get(REVISION_HISTORY).map_or("", String::as_str), former);
            annotations.insert(REVISION_HISTORY.into(), history);
        }
    }
    annotations
}

/// With the sizes of the deployment.
pub(super) fn with_sizes(mut annotations: Annotations, desired: i64, max_surge: i64) -> Annotations {
    annotations.insert(DESIRED_REPLICAS.into(), desired.to_string());
    annotations.insert(MAX_REPLICAS.into(), (desired + max_surge).to_string());
    annotations
}

fn with_former(history: &str, former: &str) -> String {
    let mut numbers: Vec<&str> = history.split(',').filter(|number| !number.is_empty()).collect();
    numbers.push(former);
    let mut first = 0;
    while numbers[first..].join(",").len() > HISTORY_CHARACTERS {
        first += 1;
    }
    numbers[first..].join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotations(pairs: &[(&str, &str)]) -> Annotations {
        pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
    }

    #[test]
    fn a_set_that_is_rolled_back_to_remembers_its_numbers() {
        let deployment = annotations(&[(REVISION, "3"), ("kubernetes.io/change-cause", "undo")]);
        let first = of_new_set(&deployment, &annotations(&[]), 1);
        assert_eq!(first, annotations(&[(REVISION, "1"), ("kubernetes.io/change-cause", "undo")]));
        let again = of_new_set(&deployment, &first, 4);
        assert_eq!((of(&again), again[REVISION_HISTORY].as_str()), (4, "1"));
        let third = of_new_set(&deployment, &again, 6);
        assert_eq!(third[REVISION_HISTORY], "1,4");
        assert_eq!(of_new_set(&deployment, &third, 2), third);
    }

    #[test]
    fn a_long_history_loses_its_oldest() {
        let long = (1000..1500).map(|number: i32| number.to_string()).collect::<Vec<_>>().join(",");
        let history = with_former(&long, "2000");
        assert!(history.len() <= HISTORY_CHARACTERS && history.ends_with(",1499,2000"));
    }
}
