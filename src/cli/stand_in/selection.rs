//! What runs beside the apiserver under its name: nothing, as suites for envtest take for granted, unless
//! `KUBARIUM_COMPONENTS` says more.

use crate::cli::outcome::Failure;
use crate::cluster::Components;
use controllers::selection;

/// The variable. A list with commas of the words below and of single controllers, by the names of
/// kube-controller-manager.
pub(crate) const VARIABLE: &str = "KUBARIUM_COMPONENTS";

/// What runs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Selected {
    /// Which components.
    pub components: Components,
    /// What `--controllers` would say; nothing when the components say it all.
    pub controllers: Vec<String>,
}

/// Reads the variable's value.
///
/// # Errors
/// A word that names nothing.
pub(crate) fn parse(text: &str) -> Result<Selected, Failure> {
    let mut selected = Selected { components: Components::NONE, controllers: vec![] };
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        take(word, &mut selected)?;
    }
    Ok(selected)
}

fn take(word: &str, selected: &mut Selected) -> Result<(), Failure> {
    let Selected { components, controllers } = selected;
    match word {
        "all" => {
            *components = Components::ALL;
            controllers.push("*".into());
        }
        "controllers" | "kube-controller-manager" => {
            components.controllers = true;
            controllers.push("*".into());
        }
        "scheduler" | "kube-scheduler" => components.scheduler = true,
        "kubelets" | "kubelet" | "pods" => components.kubelets = true,
        "none" => {}
        name if selection::check(name).is_ok() => {
            components.controllers = true;
            controllers.push(name.into());
        }
        other => {
            return Err(Failure(format!(
                "{VARIABLE}: {other:?} is not known; it may be all, controllers, scheduler, pods, none, or names \
                 of controllers as garbage-collector-controller, several with commas"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_what_runs() {
        let of = |text: &str| parse(text).unwrap();
        assert_eq!(of("").components, Components::NONE);
        assert_eq!(of("none").components, Components::NONE);
        assert_eq!(of("all").components, Components::ALL);
        assert_eq!(of("scheduler, pods").components, Components { controllers: false, ..Components::ALL });
        let some = of("garbage-collector-controller,namespace-controller");
        assert_eq!(some.components, Components { controllers: true, ..Components::NONE });
        assert_eq!(some.controllers, ["garbage-collector-controller", "namespace-controller"]);
        let Failure(why) = parse("everything").unwrap_err();
        assert!(why.starts_with("KUBARIUM_COMPONENTS: \"everything\" is not known; it may be all"), "{why}");
    }
}
