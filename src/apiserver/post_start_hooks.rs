//! Post-start hooks (`GenericAPIServer.AddPostStartHook`): what a server does once it is built. Each is a
//! check of `/healthz`, `/livez` and `/readyz`, in upstream's order, and fails until it has come back.
//!
//! The names are upstream's, since people and tools read them. What upstream does in a hook of its own is
//! here often part of a larger step; the hook is done when the step that holds it is ([`StartStep`]). Hooks
//! of steps that a server does not take are not listed: one that shows a snapshot looks after nothing.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::watch;

use super::endpoints::routes::healthz::{Checked, HealthChecks, at_once};

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
pub(crate) struct HookSurroundings<R, D> {
    pub priority_and_fairness: bool,
    pub proxy_certificate: bool,
    pub roles: R,
    pub definitions: D,
}

const BUILT: HookEnd = HookEnd::Step(StartStep::HandlersBuilt);
const IDENTITY: HookEnd = HookEnd::Step(StartStep::IdentityKept);

/// All of them, in upstream's order. `bootstrap-controller` is the one that keeps `default/kubernetes`.
const HOOKS: [(&str, HookEnd); 29] = [
    ("start-apiserver-admission-initializer", BUILT),
    ("generic-apiserver-start-informers", HookEnd::Roles),
    ("priority-and-fairness-config-consumer", HookEnd::FlowControl { fair: true }),
    ("priority-and-fairness-filter", HookEnd::FlowControl { fair: true }),
    ("max-in-flight-filter", HookEnd::FlowControl { fair: false }),
    ("storage-object-count-tracker-hook", BUILT),
    ("start-apiextensions-informers", HookEnd::Definitions),
    ("start-apiextensions-controllers", HookEnd::Definitions),
    ("crd-informer-synced", HookEnd::Definitions),
    ("start-system-namespaces-controller", HookEnd::Step(StartStep::NamespacesMade)),
    ("start-cluster-authentication-info-controller", HookEnd::Step(StartStep::TrustPublished)),
    ("start-kube-apiserver-identity-lease-controller", IDENTITY),
    ("start-kube-apiserver-identity-lease-garbage-collector", IDENTITY),
    ("start-legacy-token-tracking-controller", HookEnd::Step(StartStep::LooksAfterObjects)),
    ("start-service-ip-repair-controllers", HookEnd::Step(StartStep::LooksAfterObjects)),
    ("rbac/bootstrap-roles", HookEnd::Roles),
    ("scheduling/bootstrap-system-priority-classes", BUILT),
    ("priority-and-fairness-config-producer", BUILT),
    ("bootstrap-controller", HookEnd::Step(StartStep::ServiceMade)),
    ("start-kubernetes-service-cidr-controller", HookEnd::Step(StartStep::ServiceMade)),
    ("aggregator-reload-proxy-client-cert", HookEnd::ProxyCertificate),
    ("start-kube-aggregator-informers", BUILT),
    ("apiservice-status-local-available-controller", BUILT),
    ("apiservice-status-remote-available-controller", BUILT),
    ("apiservice-registration-controller", BUILT),
    ("apiservice-discovery-controller", BUILT),
    ("kube-apiserver-autoregistration", HookEnd::Definitions),
    ("apiservice-openapi-controller", BUILT),
    ("apiservice-openapiv3-controller", BUILT),
];

/// The hook after whose check upstream lists another, which is no hook: whether all APIServices of its own
/// were available once.
const AUTOREGISTRATION: &str = "kube-apiserver-autoregistration";
const AUTOREGISTERED: &str = "autoregister-completion";

/// How far the start of one server has come. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct PostStartHooks {
    expected: u8,
    reached: Arc<AtomicU8>,
    /// Whether the custom kinds are served that were stored before; set with the handler chain.
    definitions: Arc<OnceLock<watch::Receiver<bool>>>,
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
    pub(crate) fn follow_definitions(&self, synced: watch::Receiver<bool>) {
        drop(self.definitions.set(synced));
    }

    /// Comes back when the custom kinds are served that were stored before; at once where there is no server.
    pub async fn custom_kinds_served(&self) {
        if let Some(synced) = self.definitions.get() {
            // An error means that the server is gone.
            drop(synced.clone().wait_for(|synced| *synced).await);
        }
    }

    /// With a check for each hook.
    pub(crate) fn add_to<R, D>(&self, health: HealthChecks, around: HookSurroundings<R, D>) -> HealthChecks
    where
        R: Fn() -> Checked + Clone + Send + Sync + 'static,
        D: Fn() -> Checked + Clone + Send + Sync + 'static,
    {
        let of_step = |step: StartStep| {
            let hooks = self.clone();
            self.takes(step).then(|| at_once(move || hooks.check(step)))
        };
        HOOKS.iter().fold(health, |health, (name, end)| {
            let check = match *end {
                HookEnd::Step(step) => of_step(step),
                HookEnd::FlowControl { fair } => {
                    of_step(StartStep::HandlersBuilt).filter(|_| fair == around.priority_and_fairness)
                }
                HookEnd::ProxyCertificate => {
                    of_step(StartStep::HandlersBuilt).filter(|_| around.proxy_certificate)
                }
                HookEnd::Roles => Some(at_once(around.roles.clone())),
                HookEnd::Definitions => Some(at_once(around.definitions.clone())),
            };
            let Some(check) = check else { return health };
            let health = health.with(&format!("poststarthook/{name}"), check.clone(), true);
            if *name == AUTOREGISTRATION { health.with(AUTOREGISTERED, check, true) } else { health }
        })
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

    type AlwaysKnown = fn() -> Checked;

    fn surroundings() -> HookSurroundings<AlwaysKnown, AlwaysKnown> {
        HookSurroundings {
            priority_and_fairness: true,
            proxy_certificate: false,
            roles: || Ok(()),
            definitions: || Ok(()),
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
        let health = hooks.add_to(HealthChecks::default(), surroundings());
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
        let fair = livez(&hooks.add_to(HealthChecks::default(), surroundings())).await.1;
        assert!(!fair.contains("bootstrap-controller") && !fair.contains("identity-lease"), "{fair}");
        assert!(fair.contains("priority-and-fairness-filter") && !fair.contains("max-in-flight"), "{fair}");
        assert!(!fair.contains("aggregator-reload-proxy-client-cert"), "{fair}");
        let around =
            HookSurroundings { priority_and_fairness: false, proxy_certificate: true, ..surroundings() };
        let limited = livez(&hooks.add_to(HealthChecks::default(), around)).await.1;
        assert!(
            limited.contains("max-in-flight-filter") && !limited.contains("fairness-filter"),
            "{limited}"
        );
        assert!(limited.contains("aggregator-reload-proxy-client-cert"), "{limited}");
    }
}
