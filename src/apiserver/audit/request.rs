//! The events of one request, from its coming to its end (`audit.LogRequestMetadata` and what follows it).

use std::sync::Arc;

use super::backend::Backend;
use super::event::AuditEvent;
use super::metrics::AuditMetrics;
use super::policy::{AuditStage, Policy};
use crate::audit_context::{AuditContext, Level};
use crate::metrics::Render;
use crate::request::RequestContext;
use apimachinery::status::Status;
use apimachinery::wire::ApiRequest;
use clock::Clock;
use entropy::Entropy;

/// The audit log of one apiserver.
pub struct Audit {
    policy: Policy,
    backends: Arc<[Backend]>,
    clock: Clock,
    entropy: Entropy,
    metrics: Arc<AuditMetrics>,
}

/// One request that is told of.
pub struct Telling {
    event: AuditEvent,
    context: Arc<AuditContext>,
    omit_stages: Vec<AuditStage>,
    backends: Arc<[Backend]>,
    clock: Clock,
    metrics: Arc<AuditMetrics>,
    /// The answer's code, once it is known; its end is then still to be told.
    code: Option<u16>,
    is_done: bool,
}

impl Audit {
    /// Tells what the policy says to these backends.
    pub(super) fn new(
        policy: Policy,
        backends: Vec<Backend>,
        clock: &Clock,
        entropy: &Entropy,
        metrics: Arc<AuditMetrics>,
    ) -> Audit {
        let (clock, entropy) = (clock.clone(), entropy.clone());
        Audit { policy, backends: backends.into(), clock, entropy, metrics }
    }

    /// A request fails because its event could not be stored.
    pub fn rejected(&self) {
        self.metrics.rejected();
    }

    /// A request that is refused before anybody knows who sends it (`WithFailedAuthenticationAudit`,
    /// `withFailedRequestAudit`).
    pub fn refused(&self, request: &ApiRequest, ctx: &RequestContext, status: &Status) -> Option<Telling> {
        let telling = self.begin(request, ctx)?;
        telling.context.gather(|gathered| gathered.response_status = Some(status.clone()));
        Some(telling)
    }

    /// A request that has come; none when it is not to be told of.
    pub fn begin(&self, request: &ApiRequest, ctx: &RequestContext) -> Option<Telling> {
        let RequestContext { user, info, audit_id, .. } = ctx;
        let verdict = self.policy.evaluate(user, info);
        self.metrics.decided(verdict.level);
        if verdict.level == Level::None {
            return None;
        }
        let id = if audit_id.is_empty() { self.entropy.uid().into() } else { audit_id.clone() };
        let event = AuditEvent::new(request, user, info, (id, verdict.level), self.clock.now());
        Some(Telling {
            context: Arc::new(AuditContext::new(verdict.level, verdict.omit_managed_fields)),
            omit_stages: verdict.omit_stages,
            backends: self.backends.clone(),
            clock: self.clock.clone(),
            metrics: self.metrics.clone(),
            code: None,
            is_done: false,
            event,
        })
    }
}

impl Render for Audit {
    fn render(&self, out: &mut String) {
        self.metrics.render(out);
    }
}

impl Telling {
    /// What travels with the request.
    pub fn context(&self) -> &Arc<AuditContext> {
        &self.context
    }

    /// Tells that it has come; says whether it may go on.
    pub async fn received(&self) -> bool {
        self.omit_stages.contains(&AuditStage::RequestReceived) || self.send(&self.event).await
    }

    /// The answer is there, whole.
    pub async fn tell(mut self, stage: AuditStage, code: u16) {
        self.is_done = true;
        if !self.omit_stages.contains(&stage) {
            let event = self.event.at(stage, &self.context, code, self.clock.now());
            self.send(&event).await;
        }
    }

    /// The answer has begun; it ends when this is dropped.
    pub async fn started(&mut self, code: u16) {
        self.code = Some(code);
        if !self.omit_stages.contains(&AuditStage::ResponseStarted) {
            let event = self.event.at(AuditStage::ResponseStarted, &self.context, code, self.clock.now());
            self.send(&event).await;
        }
    }

    async fn send(&self, event: &AuditEvent) -> bool {
        self.metrics.told();
        let mut may_go_on = true;
        for backend in self.backends.iter() {
            may_go_on &= backend.process(event, &self.clock).await;
        }
        may_go_on
    }
}

/// A panic, a client that went away, and the end of a watch are told here.
impl Drop for Telling {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let (stage, code) = if std::thread::panicking() {
            (AuditStage::Panic, 500)
        } else {
            (AuditStage::ResponseComplete, self.code.unwrap_or(504))
        };
        if self.omit_stages.contains(&stage) {
            return;
        }
        let event = self.event.at(stage, &self.context, code, self.clock.now());
        self.metrics.told();
        self.backends.iter().for_each(|backend| backend.process_now(&event));
    }
}
