//! Which `Scale` a workload has: that of `autoscaling/v1`; in versions of old one of their own, whose status
//! says the selector twice (`pkg/apis/extensions/v1beta1/conversion.go`).

use serde_json::Value;

use super::kind::Kind;
use apimachinery::gvk::GroupVersion;

/// The group and version of a workload's Scale, and its name in OpenAPI.
pub fn scale_of(kind: &Kind) -> (GroupVersion, String) {
    let GroupVersion { group, version } = &kind.group_version;
    if kind.has_own_scale {
        (kind.group_version.clone(), format!("io.k8s.api.{group}.{version}.Scale"))
    } else {
        (GroupVersion::new("autoscaling", "v1"), "io.k8s.api.autoscaling.v1.Scale".into())
    }
}

/// Makes of the selector of `autoscaling/v1`, in the status of a Scale, what the kind's own says.
pub fn say_selector(kind: &Kind, status: &mut Value) {
    let Some(status) = status.as_object_mut().filter(|_| kind.has_own_scale) else { return };
    let Some(Value::String(text)) = status.remove("selector") else { return };
    // Where it is no more than labels it is said as such too.
    let labels: Option<Value> = text.split(',').map(label).collect::<Option<_>>().map(Value::Object);
    status.extend(labels.map(|labels| ("selector".to_owned(), labels)));
    status.insert("targetSelector".into(), text.into());
}

fn label(term: &str) -> Option<(String, Value)> {
    let (name, value) = term.split_once('=')?;
    let is_plain = |text: &str| !text.contains(['!', '=', ' ', '(']);
    (is_plain(name) && is_plain(value)).then(|| (name.to_owned(), value.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn versions_of_old_say_the_selector_twice() {
        let today = |version: &str| Kind::builtin("apps", version, "Deployment", "deployments", "x");
        let kind = |version: &str| match version {
            "v1" => today(version),
            of_old => today(of_old).with_own_scale(),
        };
        let said = |version: &str, selector: &str| {
            let mut status = json!({"replicas": 1, "selector": selector});
            say_selector(&kind(version), &mut status);
            status
        };
        assert_eq!(said("v1", "a=b"), json!({"replicas": 1, "selector": "a=b"}));
        assert_eq!(
            said("v1beta1", "a=b,c=d"),
            json!({"replicas": 1, "selector": {"a": "b", "c": "d"}, "targetSelector": "a=b,c=d"})
        );
        let set = "a=b,c in (d,e)";
        assert_eq!(said("v1beta2", set), json!({"replicas": 1, "targetSelector": set}));
        assert_eq!(scale_of(&kind("v1beta2")).1, "io.k8s.api.apps.v1beta2.Scale");
    }
}
