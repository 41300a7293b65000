//! Which contexts were current before one of ours: an extension of the context, as minikube marks its own.
//!
//! The newest stands first: another cluster of ours perhaps, then what was before that, up to the user's own.

use std::path::Path;

use serde_yaml::{Mapping, Value};

use super::current;
use crate::cli::{Failure, state};

/// The name of our extension; a context that has it is ours.
const EXTENSION: &str = "kubarium";

/// Whether the context of a name is one of ours.
pub(crate) fn is_ours(config: &Mapping, name: &str) -> bool {
    chain(config, name).is_some()
}

/// A context of the user's own must not be lost because a cluster has its name.
pub(crate) fn refuse_a_users_own(config: &Mapping, name: &str, path: &Path) -> Result<(), Failure> {
    if current::context_in(config, name).is_none() || is_ours(config, name) {
        return Ok(());
    }
    let shown = path.display();
    Err(Failure(format!(
        "{shown} has a context {name:?} that is not kubarium's; choose another --name, or another file with \
         --kubeconfig (if it is of no use: kubectl config delete-context {name})"
    )))
}

/// Whether there is no other context.
pub(crate) fn is_alone(config: &Mapping, name: &str) -> bool {
    let contexts = config.get("contexts").and_then(Value::as_sequence);
    contexts.into_iter().flatten().all(|context| context["name"].as_str() == Some(name))
}

/// What the context `name` will displace.
pub(crate) fn displaced(config: &Mapping, name: &str) -> Vec<String> {
    let Some(before) = current::name_in(config) else { return vec![] };
    let mut displaced = vec![before.to_owned()];
    displaced.extend(chain(config, before).unwrap_or_default());
    let mut seen = vec![name.to_owned()];
    displaced.retain(|context| {
        let is_new = !seen.contains(context);
        seen.push(context.clone());
        is_new
    });
    displaced
}

/// Marks the context `name` as ours.
pub(crate) fn remember(config: &mut Mapping, name: &str, displaced: &[String]) {
    let names = displaced.iter().map(|name| Value::from(name.as_str()));
    let content = Mapping::from_iter([("previous".into(), Value::Sequence(names.collect()))]);
    let extension = Mapping::from_iter([
        ("name".into(), EXTENSION.into()),
        ("extension".into(), Value::Mapping(content)),
    ]);
    let Some(Value::Sequence(contexts)) = config.get_mut("contexts") else { return };
    let found = contexts.iter_mut().find(|entry| entry["name"].as_str() == Some(name));
    if let Some(Value::Mapping(context)) = found.and_then(|entry| entry.get_mut("context")) {
        context.insert("extensions".into(), Value::Sequence(vec![Value::Mapping(extension)]));
    }
}

/// What is to be current when the context `name` goes: the newest of those before it that is still there, and
/// of ours only one whose cluster runs.
pub(crate) fn restored(config: &Mapping, name: &str) -> Option<String> {
    let folder = state::folder().ok();
    let runs = |context: &str| folder.as_ref().is_some_and(|folder| state::is_running(folder, context));
    let is_there = |context: &String| match current::context_in(config, context) {
        Some(_) => !is_ours(config, context) || runs(context),
        None => current::is_known_elsewhere(context),
    };
    chain(config, name)?.into_iter().find(is_there)
}

fn chain(config: &Mapping, name: &str) -> Option<Vec<String>> {
    let extensions = current::context_in(config, name)?["extensions"].as_sequence()?;
    let ours = extensions.iter().find(|extension| extension["name"].as_str() == Some(EXTENSION))?;
    let names = ours["extension"]["previous"].as_sequence().map(Vec::as_slice).unwrap_or_default();
    Some(names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Mapping {
        serde_yaml::from_str(text).unwrap()
    }

    fn ours(name: &str, previous: &str) -> String {
        format!(
            "- {{name: {name}, context: {{user: {name}, extensions: \
             [{{name: kubarium, extension: {{previous: [{previous}]}}}}]}}}}\n"
        )
    }

    #[test]
    fn what_was_before_another_of_ours_is_remembered_too() {
        let text = format!(
            "current-context: b\ncontexts:\n- {{name: prod, context: {{}}}}\n{}{}",
            ours("a", "prod"),
            ours("b", "a, prod")
        );
        let config = config(&text);
        assert_eq!(displaced(&config, "c"), ["b", "a", "prod"]);
        assert_eq!(displaced(&config, "b"), ["a", "prod"], "one that was killed and starts again");
        assert_eq!(displaced(&config, "a"), ["b", "prod"]);
        assert!(is_ours(&config, "a") && !is_ours(&config, "prod") && !is_ours(&config, "none"));
    }

    #[test]
    fn a_context_that_does_not_exist_is_never_restored() {
        let text = format!("current-context: b\ncontexts:\n{}", ours("b", "gone, prod"));
        assert_eq!(restored(&config(&text), "b"), None);
        let text = format!("{text}- {{name: prod, context: {{}}}}\n");
        assert_eq!(restored(&config(&text), "b").as_deref(), Some("prod"));
        assert_eq!(restored(&config(&text), "prod"), None, "of one that is not ours nothing is known");
    }

    #[test]
    fn a_users_own_context_is_not_overwritten() {
        let text = format!("contexts:\n- {{name: prod, context: {{}}}}\n{}", ours("a", ""));
        let path = Path::new("config");
        assert!(refuse_a_users_own(&config(&text), "a", path).is_ok());
        assert!(refuse_a_users_own(&config(&text), "b", path).is_ok());
        let Failure(why) = refuse_a_users_own(&config(&text), "prod", path).unwrap_err();
        assert!(why.contains("\"prod\" that is not kubarium's") && why.contains("--name"), "{why}");
    }
}
