//! The ConfigMap in which a pod's listeners and answers stand, named by an annotation of the pod.

use std::collections::BTreeMap;

use apimachinery::names;

/// The annotation of a pod that names a ConfigMap of its namespace: `NAME`, or `NAME, optional`.
pub const ANSWERS_FROM: &str = "kubarium.dev/answers-from";
/// Behind the name: a pod does without a ConfigMap that there is not.
const OPTIONAL: &str = "optional";

/// Which ConfigMap says what a pod's own annotations do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswersFrom<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether the pod does without it.
    pub is_optional: bool,
}

impl<'a> AnswersFrom<'a> {
    /// What annotations name; nothing where they name none, or what is no name.
    pub fn of(annotations: &'a BTreeMap<String, String>) -> Option<AnswersFrom<'a>> {
        if annotations.is_empty() { None } else { AnswersFrom::parse(annotations.get(ANSWERS_FROM)?) }
    }

    /// Reads the annotation; nothing where it is none.
    pub fn parse(text: &'a str) -> Option<AnswersFrom<'a>> {
        let (name, rest) = text.split_once(',').unwrap_or((text, ""));
        let (name, rest) = (name.trim(), rest.trim());
        let is_well = names::dns1123_subdomain(name).is_empty() && ["", OPTIONAL].contains(&rest);
        is_well.then_some(AnswersFrom { name, is_optional: rest == OPTIONAL })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_map_is_named_and_may_be_optional() {
        let read = |text: &'static str| AnswersFrom::parse(text).map(|it| (it.name, it.is_optional));
        assert_eq!(read("web-answers"), Some(("web-answers", false)));
        assert_eq!(read(" web-answers , optional"), Some(("web-answers", true)));
        for wrong in ["", "two names", "Upper", "a/b", "web, maybe", "a, b, optional"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        let annotations = BTreeMap::from([(ANSWERS_FROM.to_owned(), "two names".to_owned())]);
        assert_eq!(AnswersFrom::of(&annotations), None);
    }
}
