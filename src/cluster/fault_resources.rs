//! Whether a fault is about resources that there are: a slip of the hand would hit nothing, without a word.

use std::collections::BTreeSet;
use std::sync::Arc;

use apis::kind::Kind;
use apis::scheme::Scheme;
use component_base::flags::nearest;
use faults::{Contradiction, Fault};

/// What is wrong with the resources of a fault. One that is named with its group may come later, and is taken
/// as it is; so is what has a star, and what is no resource.
///
/// # Errors
/// The first that no kind has.
pub(super) fn check(fault: &Fault, scheme: &Scheme) -> Result<(), Contradiction> {
    let objects = fault.resources.iter().map(|text| text.split('/').next().unwrap_or_default());
    let mut whole = objects.filter(|name| !name.is_empty() && !name.contains(['*', '.'])).peekable();
    if whole.peek().is_none() {
        return Ok(());
    }
    let kinds = scheme.all();
    let plurals: BTreeSet<&str> = kinds.iter().map(|kind: &Arc<Kind>| &*kind.plural).collect();
    let Some(unknown) = whole.find(|name| !plurals.contains(name)) else { return Ok(()) };
    let plurals: Vec<&str> = plurals.into_iter().collect();
    let named = scheme.named(unknown).map(|kind| kind.plural.to_string());
    let near = || nearest(unknown, &plurals).join(" or ");
    let meant = match named.unwrap_or_else(near).as_str() {
        "" => String::new(),
        near => format!("did you mean {near}? "),
    };
    Err(Contradiction(format!(
        "resources: the cluster serves no {unknown:?}; {meant}a resource that is defined later is named with \
         its group, as {}.example.com",
        unknown.to_lowercase()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_kind_has_is_refused_with_what_is_near() {
        let scheme = Scheme::builtin();
        let check = |text: &str| check(&Fault::answer(500).resource(text), &scheme);
        for known in ["pods", "pods/status", "pods/*", "*", "*/status", "/version", "deployments.apps/scale"]
        {
            assert_eq!(check(known), Ok(()), "{known}");
        }
        for later in ["widgets.example.com", "widget*"] {
            assert_eq!(check(later), Ok(()), "{later}");
        }
        for (unknown, words) in [
            ("Pods", "no \"Pods\"; did you mean pods?"),
            ("deploy", "did you mean deployments?"),
            ("confimaps/status", "no \"confimaps\"; did you mean configmaps?"),
            (
                "flubbers",
                "no \"flubbers\"; a resource that is defined later is named with its group, as flubbers.",
            ),
        ] {
            let why = check(unknown).unwrap_err().to_string();
            assert!(why.contains(words), "{why}");
        }
    }
}
