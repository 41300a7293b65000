//! Fields behind feature gates that are off: a write loses them, unless the object had them before
//! (`DropDisabledFields` of upstream's strategies).

use serde_json::Value;

use apimachinery::feature_gates::FeatureGates;

/// A field that is dropped while its gate is off. In its path `[]` is every item of a list, `*` every member
/// of a map.
#[derive(Clone, Copy, Debug)]
pub struct Gated {
    gate: &'static str,
    path: &'static str,
    /// Only with this in it.
    with: Option<&'static str>,
    /// Its parent goes with it, where nothing else is in it.
    is_all: bool,
    /// It stays for its own sake alone, and not because another of its gate is in use.
    stands_alone: bool,
}

/// Gated fields of a kind.
#[derive(Clone, Copy, Debug)]
pub struct GatedFields {
    /// What their paths begin at, as a JSON pointer: `/spec/template/spec`.
    pub below: &'static str,
    /// The fields.
    pub fields: &'static [Gated],
}

impl Gated {
    /// A field behind a gate.
    pub const fn new(gate: &'static str, path: &'static str) -> Gated {
        Gated { gate, path, with: None, is_all: false, stands_alone: false }
    }

    /// Only with this member in it.
    pub const fn with(mut self, member: &'static str) -> Gated {
        self.with = Some(member);
        self
    }

    /// Its parent goes with it, where nothing else is in it.
    pub const fn with_parent(mut self) -> Gated {
        self.is_all = true;
        self
    }

    /// It stays for its own sake alone, and not because another of its gate is in use.
    pub const fn alone(mut self) -> Gated {
        self.stands_alone = true;
        self
    }
}

/// Drops the fields of a kind that are behind gates that are off, and that `old` does not have.
pub fn drop_disabled<'a>(
    gated: impl IntoIterator<Item = &'a GatedFields>,
    gates: &FeatureGates,
    new: &mut Value,
    old: Option<&Value>,
) {
    for GatedFields { below, fields } in gated {
        let old = old.and_then(|old| old.pointer(below));
        if let Some(new) = new.pointer_mut(below) {
            drop_all(fields, gates, new, old);
        }
    }
}

/// Whatever one gate stands before is dropped, or stays, together.
fn drop_all(fields: &[Gated], gates: &FeatureGates, new: &mut Value, old: Option<&Value>) {
    for field in fields {
        let shares = |other: &&Gated| other.gate == field.gate && !other.stands_alone;
        let together = fields.iter().filter(shares).chain([field]);
        let is_in_use = |old: &Value| together.clone().any(|other| has(old, other.path));
        if !gates.enabled(field.gate) && !old.is_some_and(is_in_use) {
            remove(new, field.path, field);
        }
    }
}

/// The first step of a path, and the rest.
fn split(path: &str) -> (&str, Option<&str>) {
    path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)))
}

fn has(value: &Value, path: &str) -> bool {
    let (first, rest) = split(path);
    let inside = |value: &Value| rest.map_or(!value.is_null(), |rest| has(value, rest));
    match (first.strip_suffix("[]"), value) {
        (_, Value::Object(members)) if first == "*" => members.values().any(inside),
        (Some(list), _) => value[list].as_array().into_iter().flatten().any(inside),
        (None, _) => inside(&value[first]),
    }
}

fn remove(value: &mut Value, path: &str, field: &Gated) {
    let (first, rest) = split(path);
    let Value::Object(members) = value else { return };
    let Some(rest) = rest else {
        let is_meant = |value: &Value| {
            field.with.is_none_or(|with| value[with].as_str().is_some_and(|text| !text.is_empty()))
        };
        if members.get(first).is_some_and(is_meant) {
            members.remove(first);
        }
        return;
    };
    if first == "*" {
        return members.values_mut().for_each(|value| remove(value, rest, field));
    }
    if let Some(list) = first.strip_suffix("[]") {
        let items = members.get_mut(list).and_then(Value::as_array_mut);
        return items.into_iter().flatten().for_each(|value| remove(value, rest, field));
    }
    let Some(inner) = members.get_mut(first) else { return };
    let was_empty = *inner == Value::Object(serde_json::Map::new());
    remove(inner, rest, field);
    if field.is_all && !was_empty && *inner == Value::Object(serde_json::Map::new()) {
        members.remove(first);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scheme::Scheme;

    fn dropped(group: &str, plural: &str, new: &Value, old: Option<&Value>) -> Value {
        dropped_with("", (group, plural), new, old)
    }

    fn dropped_with(gates: &str, (group, plural): (&str, &str), new: &Value, old: Option<&Value>) -> Value {
        let kind = Scheme::builtin().resource(group, "v1", plural).expect("it is built in");
        let mut new = new.clone();
        drop_disabled(&kind.gated, &FeatureGates::parse(gates).unwrap(), &mut new, old);
        new
    }

    #[test]
    fn parts_and_shares_of_devices_are_dropped_where_their_gates_are_off() {
        let slices = ("resource.k8s.io", "resourceslices");
        let device = json!({"name": "d", "consumesCounters": [{"counterSet": "s"}], "allowMultipleAllocations": true,
            "capacity": {"m": {"value": "1", "requestPolicy": {"default": "1"}}}});
        let slice = json!({"spec": {"devices": [device], "sharedCounters": [{"name": "s"}]}});
        assert_eq!(dropped(slices.0, slices.1, &slice, None), slice, "both are on by default");
        let without =
            dropped_with("DRAPartitionableDevices=false,DRAConsumableCapacity=false", slices, &slice, None);
        let bare = json!({"name": "d", "capacity": {"m": {"value": "1"}}});
        assert_eq!(without, json!({"spec": {"devices": [bare]}}));
        let kept = dropped_with("DRAPartitionableDevices=false", slices, &slice, Some(&slice));
        assert_eq!(kept, slice);
        let request = json!({"name": "r", "exactly": {"capacity": {"requests": {"m": "1"}}}});
        let spec = json!({"devices": {"requests": [request]}});
        let bare = json!({"devices": {"requests": [{"name": "r", "exactly": {}}]}});
        for (plural, object, expected) in [
            ("resourceclaims", json!({ "spec": spec }), json!({ "spec": bare })),
            ("resourceclaimtemplates", json!({"spec": {"spec": spec}}), json!({"spec": {"spec": bare}})),
        ] {
            let off = dropped_with("DRAConsumableCapacity=false", ("resource.k8s.io", plural), &object, None);
            assert_eq!(off, expected, "{plural}");
        }
    }

    #[test]
    fn what_is_off_is_dropped_unless_it_was_there() {
        let lifecycle =
            |lifecycle: Value| json!({"spec": {"containers": [{"name": "c", "lifecycle": lifecycle}]}});
        let signal = lifecycle(json!({"stopSignal": "SIGUSR1"}));
        let with_hook = lifecycle(json!({"stopSignal": "SIGUSR1", "preStop": {"sleep": {"seconds": 1}}}));
        assert_eq!(dropped("", "pods", &signal, None), json!({"spec": {"containers": [{"name": "c"}]}}));
        assert_eq!(dropped("", "pods", &signal, Some(&signal)), signal);
        assert_eq!(
            dropped("", "pods", &with_hook, None),
            lifecycle(json!({"preStop": {"sleep": {"seconds": 1}}}))
        );
        let template = json!({"spec": {"template": {"spec": {"schedulingGroup": {"podGroupName": "g"}}}}});
        let empty = json!({"spec": {"template": {"spec": {}}}});
        assert_eq!(dropped("apps", "deployments", &template, None), empty);
        let lease = json!({"spec": {"strategy": "OldestEmulationVersion", "preferredHolder": "a"}});
        let old = json!({"spec": {"strategy": "x"}});
        let kept = json!({"spec": {"strategy": "OldestEmulationVersion"}});
        assert_eq!(dropped("coordination.k8s.io", "leases", &lease, Some(&old)), kept);
        let set = |rolling: Value| json!({"spec": {"updateStrategy": {"rollingUpdate": rolling}}});
        let at_once = set(json!({"maxUnavailable": 2, "partition": 0}));
        let sets = ("apps", "statefulsets");
        assert_eq!(dropped(sets.0, sets.1, &at_once, None), set(json!({"partition": 0})));
        assert_eq!(dropped(sets.0, sets.1, &at_once, Some(&at_once)), at_once);
        assert_eq!(dropped_with("MaxUnavailableStatefulSet=true", sets, &at_once, None), at_once);
        let claim = json!({"spec": {"dataSourceRef": {"kind": "K", "name": "n", "namespace": "other"}}});
        assert_eq!(dropped("", "persistentvolumeclaims", &claim, None), json!({"spec": {}}));
    }
}
