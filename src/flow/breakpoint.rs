//! `Breakpoint`: where a cluster that runs is to stand still.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::held::{HeldStage, HeldStep};

/// The step at which a cluster stands still.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Breakpoint {
    /// What is about to happen.
    pub stage: HeldStage,
    /// The resource (`pods`, `deployments.apps`), controller, plugin or verb; empty: any.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub of: Arc<str>,
    /// The object as `NAMESPACE/NAME`, or its name alone in any namespace; empty: any.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub object: Arc<str>,
}

impl Breakpoint {
    /// What it is called: `write deployments.apps default/web`.
    pub fn name(&self) -> Arc<str> {
        self.to_string().into()
    }

    pub(super) fn is_at(&self, step: &HeldStep) -> bool {
        self.stage == step.stage && self.is_of(&step.of) && self.is_about(&step.object)
    }

    /// A resource goes by its name without the group, too; nobody minds capitals.
    fn is_of(&self, of: &str) -> bool {
        let wanted = &*self.of;
        let resource = of.split('.').next().unwrap_or(of);
        wanted.is_empty() || wanted.eq_ignore_ascii_case(of) || wanted.eq_ignore_ascii_case(resource)
    }

    fn is_about(&self, object: &str) -> bool {
        let name = object.rsplit('/').next().unwrap_or(object);
        self.object.is_empty() || *self.object == *object || *self.object == *name
    }
}

impl fmt::Display for Breakpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.stage.name())?;
        for part in [&self.of, &self.object] {
            if !part.is_empty() {
                write!(out, " {part}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breakpoint_is_at_what_it_names() {
        let write =
            |of: &str, object: &str| HeldStep::in_apiserver(HeldStage::Write, of.into(), object.into());
        let at = |of: &str, object: &str| Breakpoint {
            stage: HeldStage::Write,
            of: of.into(),
            object: object.into(),
        };
        let web = write("deployments.apps", "default/web");
        for known in [("", ""), ("deployments.apps", ""), ("Deployments", "web"), ("", "default/web")] {
            assert!(at(known.0, known.1).is_at(&web), "{known:?}");
        }
        for other in [("pods", ""), ("", "other/web"), ("deployments", "we")] {
            assert!(!at(other.0, other.1).is_at(&web), "{other:?}");
        }
        let request = Breakpoint { stage: HeldStage::Request, ..at("", "") };
        assert!(!request.is_at(&web));
        assert_eq!(&*at("pods", "a/b").name(), "write pods a/b");
    }
}
