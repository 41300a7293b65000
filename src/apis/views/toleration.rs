//! `v1.Toleration`: which taints a pod bears.

use std::sync::{Arc, LazyLock};

use serde::Deserialize;

use super::node::Taint;
use apimachinery::object::list;

/// What nearly every pod has (admission plugin `DefaultTolerationSeconds`): once for all of them.
static OF_MOST: LazyLock<Arc<[Toleration]>> = LazyLock::new(|| {
    let bears = |key: &str| Toleration {
        key: key.to_owned(),
        operator: "Exists".to_owned(),
        value: String::new(),
        effect: "NoExecute".to_owned(),
        toleration_seconds: Some(300),
    };
    [bears("node.kubernetes.io/not-ready"), bears("node.kubernetes.io/unreachable")].into()
});

/// `v1.Toleration`
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Toleration {
    /// Empty matches all keys.
    pub key: String,
    /// `Exists` or `Equal` (when empty).
    pub operator: String,
    /// Compared by `Equal`.
    pub value: String,
    /// Empty matches all effects.
    pub effect: String,
    /// How long it stays on a node that has the taint.
    pub toleration_seconds: Option<i64>,
}

impl Toleration {
    /// `Toleration.ToleratesTaint`
    pub fn tolerates(&self, taint: &Taint) -> bool {
        let fits = |wanted: &str, has: &str| wanted.is_empty() || wanted == has;
        let by_value = match self.operator.as_str() {
            "" | "Equal" => self.value == taint.value,
            "Exists" => true,
            _ => false,
        };
        fits(&self.effect, &taint.effect) && fits(&self.key, &taint.key) && by_value
    }
}

/// Reads tolerations; those that most pods have are not made anew.
pub(super) fn shared<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Arc<[Toleration]>, D::Error> {
    let read = list::<D, Toleration>(deserializer)?;
    Ok(if read == **OF_MOST { OF_MOST.clone() } else { read.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::pod::Pod;
    use serde_json::{Value, json};

    #[test]
    fn tolerations_tolerate_as_upstream() {
        let taint =
            Taint { key: "a".into(), value: "1".into(), effect: "NoSchedule".into(), time_added: None };
        let cases: [(Value, bool); 8] = [
            (json!({"key": "a", "operator": "Equal", "value": "1", "effect": "NoSchedule"}), true),
            (json!({"key": "a", "value": "1"}), true),
            (json!({"key": "a", "value": "2"}), false),
            (json!({"key": "a", "operator": "Exists"}), true),
            (json!({"operator": "Exists"}), true),
            (json!({"operator": "Exists", "effect": "NoExecute"}), false),
            (json!({"key": "b", "operator": "Exists"}), false),
            (json!({"key": "a", "operator": "Perhaps", "value": "1"}), false),
        ];
        for (toleration, expected) in cases {
            let parsed: Toleration = serde_json::from_value(toleration.clone()).unwrap();
            assert_eq!(parsed.tolerates(&taint), expected, "{toleration}");
        }
    }

    #[test]
    fn what_most_pods_bear_is_there_once() {
        let pod = |seconds: i64| {
            let of = |key: &str| {
                json!({"key": format!("node.kubernetes.io/{key}"), "operator": "Exists",
                    "effect": "NoExecute", "tolerationSeconds": seconds})
            };
            let spec = json!({"tolerations": [of("not-ready"), of("unreachable")]});
            serde_json::from_value::<Pod>(json!({"spec": spec})).unwrap().spec.tolerations
        };
        assert!(Arc::ptr_eq(&pod(300), &pod(300)));
        assert!(!Arc::ptr_eq(&pod(60), &pod(60)));
        assert_eq!(pod(60)[1].toleration_seconds, Some(60));
    }
}
