//! The chain: the plugins that run, asked in order, in two phases (`admission.chainAdmissionHandler`).

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;

use super::config::BadAdmissionConfig;
use super::metrics::{AdmissionMetrics, Durations, Phase};
use super::operation::Operation;
use super::own::OwnAdmission;
use super::plugin::{AdmissionPlugin, Attributes, Initializer};
use super::plugins::{PLUGINS, PluginEntry};
use super::reinvocation::Reinvocation;
use super::{policy_params, rbac_escalation};
use crate::metrics::Render;
use crate::registry::Validating;
use crate::request::RequestContext;
use apimachinery::fingerprint::Fingerprint;
use apimachinery::status::Status;
use clock::{Clock, FrameName, frame};

/// Before it come the user's plugins: what it has counted is as good as written.
const COUNTS_ALL: &str = "ResourceQuota";

/// The plugins that run, in order.
pub struct Admission {
    plugins: Vec<Enabled>,
    clock: Clock,
    metrics: Arc<AdmissionMetrics>,
}

/// One of them.
struct Enabled {
    name: &'static str,
    plugin: Box<dyn AdmissionPlugin>,
    durations: Durations,
}

impl Enabled {
    fn new(name: &'static str, plugin: Box<dyn AdmissionPlugin>) -> Enabled {
        Enabled { name, plugin, durations: Durations::default() }
    }
}

impl Admission {
    /// Those of [`PLUGINS`] that are enabled, and the user's.
    ///
    /// # Errors
    /// What is wrong with the flags or with the configuration of a plugin.
    pub fn new(with: &Initializer, own: &OwnAdmission) -> Result<Admission, BadAdmissionConfig> {
        if let errors @ [_, ..] = &*with.config.validate() {
            return Err(errors.join("; ").into());
        }
        let mut plugins = Vec::new();
        let mut own: Vec<Enabled> =
            own.make(with).into_iter().map(|(name, plugin)| Enabled::new(name, plugin)).collect();
        let has_gate = |entry: &&PluginEntry| entry.gate.is_none_or(|gate| with.gates.enabled(gate));
        let enabled = PLUGINS.iter().filter(|entry| with.config.is_enabled(entry.name));
        for entry in enabled.filter(has_gate) {
            if entry.name == COUNTS_ALL {
                plugins.append(&mut own);
            }
            if let Some(make) = entry.make {
                let failed = |error| format!("couldn't init admission plugin {:?}: {error}", entry.name);
                plugins.push(Enabled::new(entry.name, make(with).map_err(failed)?));
            }
        }
        // Where nothing is counted.
        plugins.append(&mut own);
        // Behind everything that may still put rules into a role.
        let escalation = Box::new(rbac_escalation::RbacEscalation::new(with));
        plugins.push(Enabled::new("RBAC", escalation));
        plugins.push(Enabled::new("PolicyParams", Box::new(policy_params::PolicyParams::new(with))));
        Ok(Admission { plugins, clock: with.clock.clone(), metrics: with.metrics.clone() })
    }

    /// The mutating phase.
    ///
    /// # Errors
    /// The first refusal.
    pub async fn admit(
        &self,
        attributes: &Attributes<'_>,
        mut object: Option<&mut Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let reinvocation = Reinvocation::default();
        let attributes = Attributes { reinvocation: Some(&reinvocation), ..*attributes };
        let (is_told, mut seen) = (attributes.ctx.is_told(), None);
        let is_told_in_full = attributes.ctx.is_told_in_full();
        let mut timer = Timer::start(self, &attributes, Phase::Admit);
        loop {
            let mut plugins = self.plugins.iter();
            while let Some(enabled) = plugins.find(|enabled| enabled.plugin.handles(&attributes)) {
                let plugin = &enabled.plugin;
                let is_watched = is_told && plugin.changes();
                if let Some(object) = object.as_deref().filter(|_| is_watched && seen.is_none()) {
                    seen = Some(SeenByPlugin::of(object, is_told_in_full));
                }
                if plugin.admits() {
                    let Attributes { ctx, namespace, name, .. } = attributes;
                    ctx.hold_before(enabled.name, namespace, name, object.as_deref()).await;
                }
                let admitted = plugin.admit(&attributes, object.as_deref_mut(), old);
                let admitted = frame(FrameName::Static(enabled.name), admitted).await;
                timer.passed(enabled, admitted).inspect_err(|_| attributes.ctx.tell_denied(enabled.name))?;
                if let (Some(before), Some(object), true) = (&mut seen, object.as_deref(), is_watched) {
                    before.tell(attributes.ctx, enabled.name, object);
                }
            }
            // What people add may change what built-in plugins and their like have looked at already.
            if reinvocation.is_second() || !reinvocation.begin_second() {
                timer.end();
                return Ok(());
            }
        }
    }

    /// The validating phase of one request, for the registry to call.
    pub fn validating<'a>(&'a self, attributes: &'a Attributes<'a>) -> ValidatingPhase<'a> {
        ValidatingPhase { admission: self, attributes }
    }
}

/// Measures a phase, and each plugin of it.
struct Timer<'a> {
    admission: &'a Admission,
    operation: Operation,
    phase: Phase,
    start: Duration,
    last: Duration,
}

impl Render for Admission {
    fn render(&self, out: &mut String) {
        self.metrics.render(out, self.plugins.iter().map(|enabled| (enabled.name, &enabled.durations)));
    }
}

impl<'a> Timer<'a> {
    fn start(admission: &'a Admission, attributes: &Attributes, phase: Phase) -> Timer<'a> {
        let now = admission.clock.elapsed();
        Timer { admission, operation: attributes.operation, phase, start: now, last: now }
    }

    /// A plugin has done its work; its refusal ends the phase.
    fn passed(&mut self, enabled: &Enabled, outcome: Result<(), Status>) -> Result<(), Status> {
        let now = self.admission.clock.elapsed();
        let duration = now.saturating_sub(self.last);
        enabled.durations.observe(self.phase, self.operation, outcome.is_err(), duration);
        self.last = now;
        if outcome.is_err() {
            self.count(true);
        }
        outcome
    }

    fn end(self) {
        self.count(false);
    }

    fn count(&self, is_rejected: bool) {
        let duration = self.last.saturating_sub(self.start);
        self.admission.metrics.step(self.phase, self.operation, is_rejected, duration);
    }
}

/// An object as the next plugin finds it.
struct SeenByPlugin {
    fingerprint: Fingerprint,
    /// All of it, where values are told.
    tree: Option<Value>,
}

impl SeenByPlugin {
    fn of(object: &Value, is_told_in_full: bool) -> SeenByPlugin {
        SeenByPlugin { fingerprint: Fingerprint::of(object), tree: is_told_in_full.then(|| object.clone()) }
    }

    /// Says what a plugin changed, and looks at the object as the next one will find it.
    fn tell(&mut self, ctx: &RequestContext, plugin: &str, object: &Value) {
        let after = Fingerprint::of(object);
        if after != self.fingerprint {
            let changed = self.fingerprint.changes(object);
            ctx.tell_admitted(plugin, &changed, self.tree.as_ref(), object);
            *self = SeenByPlugin { fingerprint: after, tree: self.tree.as_ref().map(|_| object.clone()) };
        }
    }
}

/// The validating phase of one request.
pub struct ValidatingPhase<'a> {
    admission: &'a Admission,
    attributes: &'a Attributes<'a>,
}

impl Validating for ValidatingPhase<'_> {
    fn validate<'b>(
        &'b self,
        new: Option<&'b Value>,
        old: Option<&'b Value>,
    ) -> BoxFuture<'b, Result<(), Status>> {
        Box::pin(async move {
            let mut attributes = *self.attributes;
            if new.is_none() {
                // Only here is the object known that is to go.
                self.admission.admit(&attributes, None, old).await?;
            } else if old.is_none() && attributes.operation == Operation::Update {
                attributes.operation = Operation::Create;
            }
            let mut timer = Timer::start(self.admission, &attributes, Phase::Validate);
            let mut plugins = self.admission.plugins.iter();
            let mut asked = Vec::new();
            let is_persons = attributes.ctx.is_persons();
            while let Some(enabled) = plugins.find(|enabled| enabled.plugin.handles(&attributes)) {
                if is_persons {
                    asked.push(enabled.name);
                }
                if enabled.plugin.validates() {
                    attributes
                        .ctx
                        .hold_before(enabled.name, attributes.namespace, attributes.name, new)
                        .await;
                }
                let validated = enabled.plugin.validate(&attributes, new, old);
                let validated = frame(FrameName::Static(enabled.name), validated).await;
                let validated = timer.passed(enabled, validated);
                validated.inspect_err(|_| attributes.ctx.tell_denied(enabled.name))?;
            }
            timer.end();
            if let Some(new) = new {
                let asked = (!asked.is_empty()).then(|| asked.join(", ").into());
                attributes.ctx.tell_validated(asked, new, old);
            }
            Ok(())
        })
    }
}
