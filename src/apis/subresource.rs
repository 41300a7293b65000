//! `Subresource`: what hangs below the path of an object.

/// What hangs below an object's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subresource {
    /// `status`: written by whoever observes; shares the object.
    Status,
    /// `scale`: the object as an `autoscaling/v1` Scale.
    Scale,
    /// `pods/log`
    Log,
    /// `pods/binding`: the scheduler's decision.
    Binding,
    /// `pods/eviction`: a delete that respects disruption budgets.
    Eviction,
    /// `pods/ephemeralcontainers`
    EphemeralContainers,
    /// `pods/resize`
    Resize,
    /// `pods/exec`, `pods/attach`, `pods/portforward`: streams, which nothing simulated can serve
    Exec,
    /// See [`Subresource::Exec`].
    Attach,
    /// See [`Subresource::Exec`].
    PortForward,
    /// `pods/proxy`, `services/proxy`, `nodes/proxy`
    Proxy,
    /// `namespaces/finalize`
    Finalize,
    /// `serviceaccounts/token`
    Token,
    /// `certificatesigningrequests/approval`
    Approval,
    /// `deployments/rollback`, in versions of old
    Rollback,
}

impl Subresource {
    /// The path segment.
    pub fn name(self) -> &'static str {
        match self {
            Subresource::Status => "status",
            Subresource::Scale => "scale",
            Subresource::Log => "log",
            Subresource::Binding => "binding",
            Subresource::Eviction => "eviction",
            Subresource::EphemeralContainers => "ephemeralcontainers",
            Subresource::Resize => "resize",
            Subresource::Exec => "exec",
            Subresource::Attach => "attach",
            Subresource::PortForward => "portforward",
            Subresource::Proxy => "proxy",
            Subresource::Finalize => "finalize",
            Subresource::Token => "token",
            Subresource::Approval => "approval",
            Subresource::Rollback => "rollback",
        }
    }

    /// The verbs in discovery.
    pub fn verbs(self) -> &'static [&'static str] {
        match self {
            Subresource::Status
            | Subresource::Scale
            | Subresource::EphemeralContainers
            | Subresource::Resize
            | Subresource::Approval => &["get", "patch", "update"],
            Subresource::Log => &["get"],
            Subresource::Binding | Subresource::Eviction | Subresource::Token | Subresource::Rollback => {
                &["create"]
            }
            Subresource::Exec | Subresource::Attach | Subresource::PortForward => &["create", "get"],
            Subresource::Proxy => &["create", "delete", "get", "patch", "update"],
            Subresource::Finalize => &["update"],
        }
    }

    /// The kind of its body where that is not the parent's.
    pub fn kind(self) -> Option<(&'static str, &'static str, &'static str)> {
        match self {
            Subresource::Scale => Some(("autoscaling", "v1", "Scale")),
            Subresource::Binding => Some(("", "v1", "Binding")),
            Subresource::Eviction => Some(("policy", "v1", "Eviction")),
            Subresource::Token => Some(("authentication.k8s.io", "v1", "TokenRequest")),
            Subresource::Exec => Some(("", "v1", "PodExecOptions")),
            Subresource::Attach => Some(("", "v1", "PodAttachOptions")),
            Subresource::PortForward => Some(("", "v1", "PodPortForwardOptions")),
            _ => None,
        }
    }
}
