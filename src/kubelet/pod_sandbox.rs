//! The sandbox of a pod: what its containers share, its address first of all.

use std::time::Duration;

use super::container_runtime::services::{PodSandboxConfig, PodSandboxStatus, RuntimeService};
use super::kuberuntime::context::{Happening, PodEvent, SyncContext};
use super::kuberuntime::instrumented_services::RUN_SANDBOX;
use super::pod_workers::PodWorker;
use super::sandbox_state::Sandbox;
use super::volume_manager::dns;
use apimachinery::time::Time;
use apis::views::pod_detail::PodDetail;

/// Until a sandbox that could not be made is tried again.
const SANDBOX_RETRY: Duration = Duration::from_secs(15);

impl PodWorker {
    /// CRI `RunPodSandbox`, and again when that fails. Says when it is to be looked at again.
    pub(crate) fn ensure_sandbox(&mut self, context: &mut SyncContext<'_>) -> Option<Time> {
        let now = context.now;
        let attempt = match &self.sandbox {
            Sandbox::None => Some(0),
            Sandbox::BackOff { until, attempt } if *until <= now => Some(*attempt),
            Sandbox::BackOff { until, .. } => return Some(*until),
            _ => None,
        };
        if std::mem::take(&mut self.has_lost_sandbox) {
            let message = "Pod sandbox changed, it will be killed and re-created.".into();
            let event = PodEvent { event_type: "Normal", ..PodEvent::warning("SandboxChanged", message) };
            context.happenings.push(Happening::Event(event));
        }
        if let Some(attempt) = attempt {
            let config = PodSandboxConfig { pod: context.pod, metadata: context.metadata, attempt };
            let call = context.runtime.run_pod_sandbox(&config, now);
            self.sandbox = Sandbox::Creating { began: now, call, attempt };
        }
        let Sandbox::Creating { began, call, attempt } = &self.sandbox else { return None };
        if call.returns_at.is_none_or(|at| at > now) {
            return call.returns_at;
        }
        context.called(RUN_SANDBOX, *began, call.result.is_err());
        match call.result.clone() {
            Ok(status) => {
                context.happenings.push(Happening::SandboxCreated(status.ip.clone()));
                context.tell_of_annotations();
                self.tell_of_names(context);
                self.sandbox = Sandbox::Ready(status);
                None
            }
            Err(error) => {
                let warning = PodEvent::warning("FailedCreatePodSandBox", error.message);
                context.happenings.push(Happening::Event(warning));
                let until = now + SANDBOX_RETRY;
                self.sandbox = Sandbox::BackOff { until, attempt: attempt + 1 };
                Some(until)
            }
        }
    }

    /// What of its `dnsConfig` its containers will not see (`CheckLimitsForResolvConf`).
    fn tell_of_names(&self, context: &mut SyncContext<'_>) {
        // Most say nothing of it: those are not read.
        if !self.object.mentions("dnsConfig") {
            return;
        }
        let (detail, namespace) = (self.object.view::<PodDetail>(), &context.metadata.namespace);
        let is_on_node = context.pod.spec.host_network;
        for why in dns::problems(is_on_node, &detail, namespace, context.cluster_dns) {
            context.happenings.push(Happening::Event(PodEvent::warning("DNSConfigForming", why)));
        }
    }

    /// CRI `StopPodSandbox`. Says whether there was one.
    pub(crate) fn stop_sandbox(&mut self, runtime: &dyn RuntimeService) -> bool {
        runtime.stop_pod_sandbox(&self.object.metadata.uid);
        let is_there = matches!(self.sandbox, Sandbox::Ready(_));
        self.sandbox = match std::mem::replace(&mut self.sandbox, Sandbox::None) {
            Sandbox::Ready(status) => Sandbox::Stopped(status),
            other => other,
        };
        is_there
    }

    /// The pod's address of its own IP family; empty before it has one.
    pub(crate) fn address(&self) -> &str {
        self.addresses().map_or("", |status| &status.ip)
    }

    /// The pod's addresses; nothing before it has any.
    pub(crate) fn addresses(&self) -> Option<&PodSandboxStatus> {
        match &self.sandbox {
            Sandbox::Ready(status) | Sandbox::Stopped(status) => Some(status),
            _ => None,
        }
    }
}
