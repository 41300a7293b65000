//! Post-start hooks (`GenericAPIServer.AddPostStartHook`): what a server does once it is built. Each is a
//! check of `/healthz`, `/livez` and `/readyz`, in upstream's order, and fails until it has come back.
//!
//! The names are upstream's, since people and tools read them. What upstream does in a hook of its own is
//! here often part of a larger step; the hook is done when the step that holds it is ([`StartStep`]). Hooks
//! of steps that a server does not take are not listed: one that shows a snapshot looks after nothing.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use super::crd_handler::DefinitionsSynced;
use super::endpoints::routes::healthz::{Checked, HealthCheck, HealthChecks, at_once};

/// A step of the start, which one or more hooks wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartStep {
    /// The handler chain is built: admission plugins have what they ask for, and what is made when somebody
    /// first asks for it can be asked for (APIServices, published documents, priority classes, FlowSchemas).
    HandlersBuilt,
    /// The namespaces of the system are there.
    NamespacesMade,
    /// The Service `default/kubernetes` is there, and the range of its address.
    ServiceMade,
    /// Aggregated servers can read whom to believe.
    TrustPublished,
    /// Objects of the system are looked after: put back when they are deleted, mended when they are wrong.
    LooksAfterObjects,
    /// The server has a Lease by which others know it.
    IdentityKept,
}

/// What a hook waits for.
#[derive(Clone, Copy)]
enum HookEnd {
    /// A step, of servers that take it.
    Step(StartStep),
    /// The handler chain of a server with priority and fairness, or of one with a mere limit of requests.
    FlowControl { fair: bool },
    /// The handler chain of a server that has a certificate for aggregated ones.
    ProxyCertificate,
    /// The authorizer knows the roles that components ask under.
    Roles,
    /// Definitions of custom resources that were stored before are served.
    Definitions,
}

/// What a server has, and whom its checks ask beside the steps.
pub(crate) struct HookSurroundings {
    pub priority_and_fairness: bool,
    pub proxy_certificate: bool,
    pub roles: HealthCheck,
    pub definitions: HealthCheck,
}

const BUILT: HookEnd = HookEnd::Step(StartStep::HandlersBuilt);
const IDENTITY: HookEnd = HookEnd::Step(StartStep::IdentityKept);

/// The checks of all of them, in upstream's order. `bootstrap-controller` is the one that keeps
/// `default/kubernetes`; `autoregister-completion` is no hook, and asks whether all APIServices of the
/// server's own were available once.
const CHECKS: [(&str, HookEnd); 30] = [
    ("poststarthook/start-apiserver-admission-initializer", BUILT),
    ("poststarthook/generic-apiserver-start-informers", HookEnd::Roles),
    ("poststarthook/priority-and-fairness-config-consumer", HookEnd::FlowControl { fair: true }),
    ("poststarthook/priority-and-fairness-filter", HookEnd::FlowControl { fair: true }),
    ("poststarthook/max-in-flight-filter", HookEnd::FlowControl { fair: false }),
    ("poststarthook/storage-object-count-tracker-hook", BUILT),
    ("poststarthook/start-apiextensions-informers", HookEnd::Definitions),
    ("poststarthook/start-apiextensions-controllers", HookEnd::Definitions),
    ("poststarthook/crd-informer-synced", HookEnd::Definitions),
    ("poststarthook/start-system-namespaces-controller", HookEnd::Step(StartStep::NamespacesMade)),
    ("poststarthook/start-cluster-authentication-info-controller", HookEnd::Step(StartStep::TrustPublished)),
    ("poststarthook/start-kube-apiserver-identity-lease-controller", IDENTITY),
    ("poststarthook/start-kube-apiserver-identity-lease-garbage-collector", IDENTITY),
    ("poststarthook/start-legacy-token-tracking-controller", HookEnd::Step(StartStep::LooksAfterObjects)),
    ("poststarthook/start-service-ip-repair-controllers", HookEnd::Step(StartStep::LooksAfterObjects)),
    ("poststarthook/rbac/bootstrap-roles", HookEnd::Roles),
    ("poststarthook/scheduling/bootstrap-system-priority-classes", BUILT),
    ("poststarthook/priority-and-fairness-config-producer", BUILT),
    ("poststarthook/bootstrap-controller", HookEnd::Step(StartStep::ServiceMade)),
    ("poststarthook/start-kubernetes-service-cidr-controller", HookEnd::Step(StartStep::ServiceMade)),
    ("poststarthook/aggregator-reload-proxy-client-cert", HookEnd::ProxyCertificate),
    ("poststarthook/start-kube-aggregator-informers", BUILT),
    ("poststarthook/apiservice-status-local-available-controller", BUILT),
    ("poststarthook/apiservice-status-remote-available-controller", BUILT),
    ("poststarthook/apiservice-registration-controller", BUILT),
    ("poststarthook/apiservice-discovery-controller", BUILT),
    ("poststarthook/kube-apiserver-autoregistration", HookEnd::Definitions),
    ("autoregister-completion", HookEnd::Definitions),
    ("poststarthook/apiservice-openapi-controller", BUILT),
    ("poststarthook/apiservice-openapiv3-controller", BUILT),
];

/// How far the start of one server has come. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct PostStartHooks {
    expected: u8,
    reached: Arc<AtomicU8>,
    /// Whether the custom kinds are served that were stored before; set with the handler chain.
    definitions: Arc<OnceLock<DefinitionsSynced>>,
}

/// As a hook says it that has not come back yet.
pub(crate) fn finished(is_done: bool) -> Checked {
    if is_done { Ok(()) } else { Err("not finished".into()) }
}

impl StartStep {
    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl PostStartHooks {
    /// Of a server that takes these steps, beside the first.
    pub fn expecting(steps: impl IntoIterator<Item = StartStep>) -> PostStartHooks {
        let expected = steps.into_iter().fold(0, |all, step| all | step.bit());
        PostStartHooks { expected, ..PostStartHooks::default() }
    }

    /// A step is taken.
    pub fn reach(&self, step: StartStep) {
        self.reached.fetch_or(step.bit(), Ordering::AcqRel);
    }

    /// All steps were taken before, by the server that this one is a copy of.
    pub fn reach_all(&self) {
        self.reached.fetch_or(self.expected, Ordering::AcqRel);
    }

    /// Whoever waits for custom kinds waits for this.
    pub(crate) fn follow_definitions(&self, synced: DefinitionsSynced) {
        drop(self.definitions.set(synced));
    }

    /// Comes back when the custom kinds are served that were stored before; at once where there is no server.
    pub async fn custom_kinds_served(&self) {
        if let Some(synced) = self.definitions.get() {
            synced.wait().await;
        }
    }

    /// With a check for each hook.
    pub(crate) fn add_to(&self, health: HealthChecks, around: &HookSurroundings) -> HealthChecks {
        CHECKS.iter().fold(health, |health, (name, end)| match self.check_of(*end, around) {
            Some(check) => health.with(name, check, true),
            None => health,
        })
    }

    /// Nothing where the server does not do that.
    fn check_of(&self, end: HookEnd, around: &HookSurroundings) -> Option<HealthCheck> {
        let step = match end {
            HookEnd::Roles => return Some(around.roles.clone()),
            HookEnd::Definitions => return Some(around.definitions.clone()),
            HookEnd::Step(step) => self.takes(step).then_some(step),
            HookEnd::FlowControl { fair } => {
                (fair == around.priority_and_fairness).then_some(StartStep::HandlersBuilt)
            }
            HookEnd::ProxyCertificate => around.proxy_certificate.then_some(StartStep::HandlersBuilt),
        };
        let hooks = self.clone();
        step.map(|step| at_once(move || hooks.check(step)))
    }

    fn takes(&self, step: StartStep) -> bool {
        step == StartStep::HandlersBuilt || self.expected & step.bit() != 0
    }

    fn check(&self, step: StartStep) -> Checked {
        finished(self.reached.load(Ordering::Acquire) & step.bit() != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoints::query::Query;

    fn surroundings() -> HookSurroundings {
        HookSurroundings {
            priority_and_fairness: true,
            proxy_certificate: false,
            roles: at_once(|| Ok(())),
            definitions: at_once(|| Ok(())),
        }
    }

    async fn livez(health: &HealthChecks) -> (u16, String) {
        let response = health.respond("livez", None, &Query::parse("verbose")).await.unwrap();
        let code = response.status().as_u16();
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (code, String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_hook_fails_until_its_step_is_taken() {
        let hooks = PostStartHooks::expecting([StartStep::NamespacesMade]);
        let health = hooks.add_to(HealthChecks::default(), &surroundings());
        let (code, text) = livez(&health).await;
        assert_eq!(code, 500, "{text}");
        let failed = |text: &str, name: &str| text.contains(&format!("[-]poststarthook/{name} failed: "));
        assert!(failed(&text, "start-apiserver-admission-initializer"), "{text}");
        hooks.reach(StartStep::HandlersBuilt);
        let (code, text) = livez(&health).await;
        assert!(code == 500 && !failed(&text, "start-apiserver-admission-initializer"), "{text}");
        assert!(failed(&text, "start-system-namespaces-controller"), "{text}");
        hooks.reach(StartStep::NamespacesMade);
        let (code, text) = livez(&health).await;
        assert!(code == 200 && text.ends_with("livez check passed\n"), "{text}");
    }

    #[tokio::test]
    async fn what_a_server_does_not_do_is_not_listed() {
        let hooks = PostStartHooks::default();
        hooks.reach(StartStep::HandlersBuilt);
        let fair = livez(&hooks.add_to(HealthChecks::default(), &surroundings())).await.1;
        assert!(!fair.contains("bootstrap-controller") && !fair.contains("identity-lease"), "{fair}");
        assert!(fair.contains("priority-and-fairness-filter") && !fair.contains("max-in-flight"), "{fair}");
        assert!(!fair.contains("aggregator-reload-proxy-client-cert"), "{fair}");
        let around =
            HookSurroundings { priority_and_fairness: false, proxy_certificate: true, ..surroundings() };
        let limited = livez(&hooks.add_to(HealthChecks::default(), &around)).await.1;
        assert!(
            limited.contains("max-in-flight-filter") && !limited.contains("fairness-filter"),
            "{limited}"
        );
        assert!(limited.contains("aggregator-reload-proxy-client-cert"), "{limited}");
    }
}
