//! The course: lessons as data (`manifests/lessons`), for the page and for `kubarium learn`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use apimachinery::{names, yaml};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One lesson.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lesson {
    /// Its file, without the ending.
    #[serde(default)]
    pub name: String,
    /// As in a list.
    pub title: String,
    /// What it is about, in a line.
    pub about: String,
    /// What it is shown on, where another object of the kind will do as well: commands and what is to be seen
    /// have `{name}`, `{namespace}` and `{container}` in place of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<LessonObject>,
    /// From the first to the last.
    pub steps: Vec<LessonStep>,
}

/// What a lesson is shown on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LessonObject {
    /// As `Deployment`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Where it is.
    pub namespace: String,
    /// The first container of its pods.
    pub container: String,
    /// Whether its manifest leaves it to who applies it where it is to be.
    #[serde(skip)]
    pub is_unplaced: bool,
}

/// Why no lesson can be shown on what is in a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfitManifest(pub String);

impl fmt::Display for UnfitManifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnfitManifest {}

/// A text with a command and what is to be seen of it, or a question.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LessonStep {
    /// What is told.
    pub text: String,
    /// A line for a shell that has kubectl.
    pub run: String,
    /// Whether that makes the object that the lesson is shown on: of another one its manifest is applied.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub applies: bool,
    /// Parts of `component: words` of steps of the causal record, in the order in which they come.
    pub see: Vec<String>,
    /// What is asked.
    pub question: String,
    /// What may be answered.
    pub answers: Vec<String>,
    /// The answer that is right.
    pub right: String,
    /// Why that is so.
    pub because: String,
    /// Of each other answer, what is wrong with it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub wrong: BTreeMap<String, String>,
}

macro_rules! lessons {
    ($($name:literal,)*) => {
        const FILES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../manifests/lessons/", $name, ".yaml")))),*];
    };
}

lessons! {
    "deployment",
    "kubectl",
    "request",
    "server",
    "credentials",
    "rbac",
    "admission",
    "webhooks",
    "initializers",
    "storage",
    "watch",
    "informers",
    "status",
    "scheduling",
    "kubelet",
    "versions",
    "apply",
    "optimistic-concurrency",
    "garbage-collection",
    "rolling-update",
    "pending",
    "probes",
    "node-failure",
    "finalizers",
    "controller",
}

static LESSONS: LazyLock<Vec<Lesson>> = LazyLock::new(|| {
    let parsed = FILES.iter().map(|(name, text)| {
        let lesson: Lesson = yaml::from_str(text).expect("a lesson of ours is YAML of this form");
        Lesson { name: (*name).to_owned(), ..lesson }
    });
    parsed.collect()
});

/// All lessons, in the order in which they are best taken.
pub fn lessons() -> &'static [Lesson] {
    &LESSONS
}

/// All lessons as the page reads them.
pub(crate) fn as_json() -> String {
    serde_json::to_string(lessons()).unwrap_or_default()
}

impl Lesson {
    /// As it is shown on an object; one that is shown on nothing else stays as it is.
    pub fn shown_on(&self, object: &LessonObject) -> Lesson {
        let mut lesson = self.clone();
        if lesson.own.is_some() {
            for step in &mut lesson.steps {
                step.run = object.named_in(&step.run);
                step.see = step.see.iter().map(|see| object.named_in(see)).collect();
            }
        }
        lesson
    }
}

impl LessonObject {
    /// The first of the kind in a manifest; none where there is none that has a name and a container.
    ///
    /// # Errors
    /// What is no YAML, and names that no object can have, for a shell reads them.
    pub fn in_manifest(&self, text: &str) -> Result<Option<LessonObject>, UnfitManifest> {
        let documents = yaml::documents(text).map_err(|error| UnfitManifest(error.to_string()))?;
        let mut of_kind = documents.iter().filter(|one| one["kind"] == self.kind.as_str());
        let Some(found) = of_kind.find_map(|one| self.in_document(one)) else {
            return Ok(None);
        };
        found.check_names()?;
        Ok(Some(found))
    }

    fn in_document(&self, one: &Value) -> Option<LessonObject> {
        let named = |path: &str| Some(one.pointer(path)?.as_str()?.to_owned());
        // None that is named is one that is left out.
        let namespace = named("/metadata/namespace").filter(|namespace| !namespace.is_empty());
        Some(LessonObject {
            kind: self.kind.clone(),
            name: named("/metadata/name")?,
            is_unplaced: namespace.is_none(),
            namespace: namespace.unwrap_or_else(|| "default".to_owned()),
            container: named("/spec/template/spec/containers/0/name")?,
        })
    }

    /// As the API would check them: they become words of commands.
    fn check_names(&self) -> Result<(), UnfitManifest> {
        let checked = [
            ("metadata.name", &self.name, names::dns1123_subdomain(&self.name)),
            ("metadata.namespace", &self.namespace, names::dns1123_label(&self.namespace)),
            ("spec.template.spec.containers[0].name", &self.container, names::dns1123_label(&self.container)),
        ];
        match checked.iter().find(|(_, _, wrong)| !wrong.is_empty()) {
            Some((path, name, wrong)) => {
                Err(UnfitManifest(format!("{path}: Invalid value: {name:?}: {}", wrong.join("; "))))
            }
            None => Ok(()),
        }
    }

    fn named_in(&self, text: &str) -> String {
        let named = text.replace("{namespace}", &self.namespace).replace("{name}", &self.name);
        named.replace("{container}", &self.container)
    }
}

impl LessonStep {
    /// In which of these lines of `component: words` is what is to be seen, in order, as far as it is there.
    pub fn seen<'a>(&self, lines: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
        let mut seen: Vec<&str> = Vec::new();
        for line in lines {
            if self.see.get(seen.len()).is_some_and(|wanted| line.contains(wanted.as_str())) {
                seen.push(line);
            }
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lesson_of_the_folder_is_taken_and_whole() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/lessons");
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), FILES.len());
        for Lesson { name, title, about, steps, .. } in lessons() {
            assert!(!title.is_empty() && !about.is_empty() && steps.len() > 2, "{name}");
            for step in steps {
                let is_question = !step.question.is_empty();
                assert_ne!(is_question, !step.text.is_empty(), "{name}: {step:?}");
                assert_eq!(is_question, step.answers.contains(&step.right), "{name}: {step:?}");
                assert_eq!(is_question, !step.because.is_empty(), "{name}: {step:?}");
                // Who is wrong is told why.
                let mut others: Vec<&String> =
                    step.answers.iter().filter(|one| **one != step.right).collect();
                others.sort_unstable();
                assert_eq!(others, step.wrong.keys().collect::<Vec<_>>(), "{name}: {step:?}");
                assert!(step.wrong.values().all(|why| why.ends_with('.')), "{name}: {step:?}");
            }
        }
    }

    #[test]
    fn a_lesson_is_shown_on_somebody_elses_object() {
        let lesson = lessons().iter().find(|one| one.name == "deployment").unwrap();
        let own = lesson.own.as_ref().unwrap();
        let manifest = "---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\n---\napiVersion: apps/v1\n\
                        kind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n  template:\n    \
                        spec: {containers: [{name: app, image: a}]}\n";
        let given = own.in_manifest(manifest).unwrap().unwrap();
        assert_eq!([&*given.name, &*given.namespace, &*given.container], ["web", "shop", "app"]);
        assert!(!given.is_unplaced);
        assert_eq!(own.in_manifest("kind: Deployment\nmetadata: {name: a}\n"), Ok(None));
        assert_eq!(own.in_manifest("kind: Service\nmetadata: {name: a}\n"), Ok(None));
        let shown = lesson.shown_on(&given);
        assert!(shown.steps[0].see.contains(&"kube-apiserver: created deployments.apps shop/web".to_owned()));
        assert!(shown.steps.last().unwrap().run.contains("kubectl -n shop delete deployment web"));
        let is_left =
            |text: &String| ["{name}", "{namespace}", "{container}"].iter().any(|at| text.contains(at));
        for one in lessons() {
            let shown = one.own.as_ref().map_or_else(|| one.clone(), |own| one.shown_on(own));
            let texts = shown.steps.iter().flat_map(|step| step.see.iter().chain([&step.run]));
            assert_eq!(texts.filter(|text| is_left(text)).count(), 0, "{}", one.name);
            let applying = one.steps.iter().filter(|step| step.applies).count();
            assert_eq!(applying, usize::from(one.own.is_some()), "{}", one.name);
        }
    }

    /// What a lesson on a Deployment says of one with these names.
    fn given(name: &str, namespace: &str, container: &str) -> Result<Option<LessonObject>, UnfitManifest> {
        let own = lessons().iter().find_map(|lesson| lesson.own.as_ref()).unwrap();
        let manifest = serde_json::json!({
            "kind": own.kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"template": {"spec": {"containers": [{"name": container}]}}},
        });
        own.in_manifest(&manifest.to_string())
    }

    #[test]
    fn names_that_are_none_are_no_words_of_a_shell() {
        let whole = given("web.example", "shop", "app").unwrap().unwrap();
        assert_eq!((&*whole.name, whole.is_unplaced), ("web.example", false));
        let unplaced = given("web", "", "app").unwrap().unwrap();
        assert_eq!((&*unplaced.namespace, unplaced.is_unplaced), ("default", true));
        for (path, refused) in [
            ("metadata.name", given("web; rm x", "shop", "app")),
            ("metadata.name", given("$(id)", "shop", "app")),
            ("metadata.namespace", given("web", "shop.here", "app")),
            ("metadata.namespace", given("web", "--all", "app")),
            ("spec.template.spec.containers[0].name", given("web", "shop", "a`id`")),
        ] {
            let why = refused.unwrap_err().to_string();
            assert!(why.starts_with(&format!("{path}: Invalid value: ")), "{why}");
        }
    }

    #[test]
    fn a_manifest_that_is_no_yaml_is_refused_and_text_with_dashes_is_one_document() {
        let own = lessons().iter().find_map(|lesson| lesson.own.as_ref()).unwrap();
        assert!(own.in_manifest("kind: [\n").is_err());
        let manifest = "kind: ConfigMap\ndata:\n  a: |\n    x\n    ---\n    kind: Deployment\n--- # next\n\
                        kind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    \
                        spec: {containers: [{name: app}]}\n";
        assert_eq!(own.in_manifest(manifest).unwrap().unwrap().name, "web");
    }

    #[test]
    fn what_is_seen_counts_in_order() {
        let step = LessonStep { see: vec!["created a".into(), "deleted a".into()], ..LessonStep::default() };
        assert_eq!(step.seen(["x: deleted a", "x: created a at 1"]), ["x: created a at 1"]);
        let both = ["x: created a at 1", "x: deleted a at 2"];
        assert_eq!(step.seen([both[0], "y: z", both[1]]), both, "the lines themselves, with their revisions");
    }
}
