//! Which names a definition gets (`controller/status/naming_controller.go`): no two of a group share one.

use serde_json::{Value, json};

use apis::apiextensions::view::{CustomResourceDefinition, Names};

/// The names that the other definitions of a group hold.
#[derive(Default)]
pub(super) struct Taken {
    resources: Vec<String>,
    kinds: Vec<String>,
}

impl Taken {
    /// Adds those of one definition.
    pub(super) fn add(&mut self, names: &Names) {
        self.resources.extend([names.plural.clone(), names.singular.clone()]);
        self.resources.extend(names.short_names.iter().cloned());
        self.kinds.extend([names.kind.clone(), names.list_kind.clone()]);
    }
}

/// The names that are accepted, and the condition that says so. What is taken stays as it was before.
pub(super) fn accept(crd: &CustomResourceDefinition, taken: &Taken) -> (Names, Value) {
    let (wanted, held) = (&crd.spec.names, &crd.status.accepted_names);
    let mut accepted = held.clone();
    let mut conflict: Option<(&str, String)> = None;
    let mut check = |name: &str, known: &[String], reason: &'static str| {
        let is_free = name.is_empty() || !known.iter().any(|other| other == name);
        if !is_free {
            conflict = Some((reason, format!("{name:?} is already in use")));
        }
        is_free
    };
    let resource = |names: &[String]| -> Vec<String> { names.to_vec() };
    let resources = resource(&taken.resources);
    if check(&wanted.plural, &resources, "PluralConflict") {
        accepted.plural.clone_from(&wanted.plural);
    }
    if check(&wanted.singular, &resources, "SingularConflict") {
        accepted.singular.clone_from(&wanted.singular);
    }
    let clashing: Vec<String> =
        wanted.short_names.iter().filter(|name| resources.contains(name)).cloned().collect();
    let mut short_free = true;
    for name in &clashing {
        short_free &= check(name, &resources, "ShortNamesConflict");
    }
    if short_free {
        accepted.short_names.clone_from(&wanted.short_names);
    }
    if check(&wanted.kind, &taken.kinds, "KindConflict") {
        accepted.kind.clone_from(&wanted.kind);
    }
    if check(&wanted.list_kind, &taken.kinds, "ListKindConflict") {
        accepted.list_kind.clone_from(&wanted.list_kind);
    }
    accepted.categories.clone_from(&wanted.categories);
    let condition = match conflict {
        Some((reason, message)) => {
            json!({"type": "NamesAccepted", "status": "False", "reason": reason, "message": message})
        }
        None => json!({"type": "NamesAccepted", "status": "True", "reason": "NoConflicts",
            "message": "no conflicts found"}),
    };
    (accepted, condition)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(kind: &str, plural: &str, short: &[&str]) -> CustomResourceDefinition {
        CustomResourceDefinition::read(&json!({"spec": {"names": {"kind": kind, "plural": plural,
            "singular": kind.to_lowercase(), "listKind": format!("{kind}List"), "shortNames": short}}}))
    }

    #[test]
    fn names_that_are_taken_are_not_given_twice() {
        let (accepted, condition) = accept(&crd("A", "as", &["x"]), &Taken::default());
        assert_eq!((&*accepted.plural, &*accepted.kind), ("as", "A"));
        assert_eq!(condition["reason"], "NoConflicts");
        let mut taken = Taken::default();
        taken.add(&accepted);
        let (second, condition) = accept(&crd("B", "bs", &["x"]), &taken);
        assert_eq!((&*second.plural, second.short_names.len()), ("bs", 0));
        assert_eq!(condition["reason"], "ShortNamesConflict");
        assert_eq!(condition["message"], "\"x\" is already in use");
        let (third, condition) = accept(&crd("A", "cs", &[]), &taken);
        assert_eq!((&*third.kind, &condition["status"]), ("", &json!("False")));
    }
}
