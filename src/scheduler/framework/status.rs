//! What a plugin says (`framework.Status`).

use std::borrow::Cow;
use std::fmt;

/// The kinds of answers (`framework.Code`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Code {
    /// The pod may go there.
    #[default]
    Success,
    /// Something went wrong that has nothing to do with the pod: try again.
    Error,
    /// Not here, not now: preemption may help.
    Unschedulable,
    /// Not here, whatever is done to other pods.
    UnschedulableAndUnresolvable,
    /// Not yet (`Permit`).
    Wait,
    /// The plugin has nothing to do for this pod.
    Skip,
}

impl Code {
    /// As metrics call it.
    pub fn name(self) -> &'static str {
        match self {
            Code::Success => "Success",
            Code::Error => "Error",
            Code::Unschedulable => "Unschedulable",
            Code::UnschedulableAndUnresolvable => "UnschedulableAndUnresolvable",
            Code::Wait => "Wait",
            Code::Skip => "Skip",
        }
    }
}

/// A plugin's answer, with its reasons when it is not yes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Which kind.
    pub code: Code,
    /// For people. A plugin says the same of hundreds of nodes, in words that nobody need copy.
    pub reasons: Vec<Cow<'static, str>>,
    /// Whose answer it is; set by the framework.
    pub plugin: &'static str,
}

impl Status {
    /// A status that lets the pod through.
    pub fn success() -> Status {
        Status::default()
    }

    /// Nothing to do.
    pub fn skip() -> Status {
        Status { code: Code::Skip, ..Status::default() }
    }

    /// Try again.
    pub fn error(reason: impl Into<Cow<'static, str>>) -> Status {
        Status { code: Code::Error, reasons: vec![reason.into()], plugin: "" }
    }

    /// Not here, not now.
    pub fn unschedulable(reason: impl Into<Cow<'static, str>>) -> Status {
        Status { code: Code::Unschedulable, reasons: vec![reason.into()], plugin: "" }
    }

    /// Not here at all.
    pub fn unresolvable(reason: impl Into<Cow<'static, str>>) -> Status {
        Status { code: Code::UnschedulableAndUnresolvable, reasons: vec![reason.into()], plugin: "" }
    }

    /// As `plugin`'s answer.
    pub fn by(mut self, plugin: &'static str) -> Status {
        self.plugin = plugin;
        self
    }

    /// Whether it is yes, or nothing to do.
    pub fn is_success(&self) -> bool {
        matches!(self.code, Code::Success | Code::Skip)
    }

    /// Whether it is a no that says something about the pod.
    pub fn is_rejected(&self) -> bool {
        matches!(self.code, Code::Unschedulable | Code::UnschedulableAndUnresolvable)
    }

    /// Its reasons in one line.
    pub fn message(&self) -> String {
        self.reasons.join(", ")
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}
