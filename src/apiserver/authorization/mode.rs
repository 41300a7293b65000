//! The kinds of authorizers (`pkg/kubeapiserver/authorizer/modes`).

use std::str::FromStr;

/// One entry of `--authorization-mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Everybody may do everything.
    AlwaysAllow,
    /// Nobody may do anything.
    AlwaysDeny,
    /// A file of policies.
    Abac,
    /// Somebody else is asked.
    Webhook,
    /// Roles and bindings.
    Rbac,
    /// What kubelets need.
    Node,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Mode; 6] =
        [Mode::AlwaysAllow, Mode::AlwaysDeny, Mode::Abac, Mode::Webhook, Mode::Rbac, Mode::Node];

    /// As in the flag.
    pub fn name(self) -> &'static str {
        match self {
            Mode::AlwaysAllow => "AlwaysAllow",
            Mode::AlwaysDeny => "AlwaysDeny",
            Mode::Abac => "ABAC",
            Mode::Webhook => "Webhook",
            Mode::Rbac => "RBAC",
            Mode::Node => "Node",
        }
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Mode, String> {
        let found = Mode::ALL.into_iter().find(|mode| mode.name() == text);
        found.ok_or_else(|| format!("authorization-mode {text:?} is not a valid mode"))
    }
}
