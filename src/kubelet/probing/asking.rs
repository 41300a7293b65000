//! Who asks for a probe or a hook, and tells the worker of its pod what came back.

use std::sync::Arc;
use std::time::Duration;

use super::inquiry::Inquiry;
use crate::container_runtime::answers;
use crate::container_runtime::services::{
    ContainerConfig, ContainerId, ExecCommand, ProbeAnswer, ProbeForecast, ProbedContainer,
};
use crate::kubelet::Kubelet;
use crate::kuberuntime::container::KubeContainer;
use crate::lifecycle::HookKind;
use crate::pod_workers::PodWorker;
use crate::prober::ProbeKind;
use apis::views::pod::Container as Spec;
use apis::views::probe::Probe;
use machine::exec::Executed;

/// A hook that nothing else ends is given up then.
const MAX_HOOK: Duration = Duration::from_secs(60 * 60);

/// Which run of which container is asked, and what.
struct ProbeAsker {
    uid: Arc<str>,
    namespace: String,
    pod: String,
    container: String,
    id: ContainerId,
    inquiry: Inquiry,
    /// Nobody knows what answers.
    is_assumed: bool,
    within: Duration,
}

impl Kubelet {
    /// Asks what a probe of a container asks.
    pub(crate) fn begin_probe(&self, worker: &PodWorker, container: &str, kind: ProbeKind) {
        let Some(asked) = self.probe_of(worker, container, kind) else { return };
        let kubelet = self.clone();
        // With the kubelet it ends, too: the next one asks anew.
        self.shared.context.tasks.spawn("a probe", async move {
            let answer = kubelet.ask_probe(&asked).await;
            let now = kubelet.shared.context.clock.now();
            let hear = |container: &mut KubeContainer| {
                if let Some(probers) = container.probers_mut() {
                    probers.hear(kind, answer, now);
                }
            };
            kubelet.tell(&asked, hear).await;
        });
    }

    /// Runs a hook of a container that asks the network.
    pub(crate) fn begin_hook(&self, worker: &PodWorker, container: &str, kind: HookKind) {
        let Some(asked) = self.hook_of(worker, container, kind) else { return };
        let kubelet = self.clone();
        self.shared.context.tasks.spawn("a hook", async move {
            let is_well = kubelet.run_hook(&asked).await;
            let now = kubelet.shared.context.clock.now();
            kubelet.tell(&asked, |container| container.hear_hook(kind, is_well, now)).await;
        });
    }

    fn probe_of(&self, worker: &PodWorker, name: &str, kind: ProbeKind) -> Option<ProbeAsker> {
        let (spec, _) = worker.container(name)?;
        let probe = kind.of(spec)?;
        let inquiry = Inquiry::of_probe(probe, spec, worker.address())?;
        self.asked(worker, spec, inquiry, probe)
    }

    fn hook_of(&self, worker: &PodWorker, name: &str, kind: HookKind) -> Option<ProbeAsker> {
        let (spec, _) = worker.container(name)?;
        let hook = kind.of(spec)?;
        let inquiry = Inquiry::of_hook(hook, spec, worker.address())?;
        let probe = Probe { http_get: hook.http_get.clone(), ..Probe::default() };
        Some(ProbeAsker { within: MAX_HOOK, ..self.asked(worker, spec, inquiry, &probe)? })
    }

    fn asked(&self, worker: &PodWorker, spec: &Spec, inquiry: Inquiry, probe: &Probe) -> Option<ProbeAsker> {
        let (_, container) = worker.container(&spec.name)?;
        let (id, started_at) = (container.running_id()?.clone(), container.started_at()?);
        let metadata = &worker.object.metadata;
        let attempt = container.restart_count;
        let config = ContainerConfig { pod: &worker.pod, metadata, container: spec, attempt };
        let probed = ProbedContainer { config, id: &id, pod_ip: worker.address(), started_at };
        let is_over_network = !matches!(inquiry, Inquiry::Exec(_));
        let forecast = is_over_network.then(|| self.shared.node.runtime.probe_forecast(&probed, probe));
        Some(ProbeAsker {
            uid: metadata.uid.as_str().into(),
            namespace: metadata.namespace.clone(),
            pod: metadata.name.clone(),
            container: spec.name.clone(),
            is_assumed: forecast == Some(ProbeForecast::Assumed),
            within: answers::timeout(probe),
            id,
            inquiry,
        })
    }

    async fn ask_probe(&self, asked: &ProbeAsker) -> ProbeAnswer {
        let ProbeAsker { inquiry, within, .. } = asked;
        match inquiry {
            Inquiry::Exec(words) => {
                let ran = self.shared.context.clock.timeout(*within, self.run_command(asked, words)).await;
                match ran {
                    Ok(Ok(executed)) => answers::judge_command(executed, words, *within),
                    Ok(Err(why)) => ProbeAnswer::Errored(answers::exec_failed(&why)),
                    Err(_) => ProbeAnswer::Failure(answers::timed_out(words, *within)),
                }
            }
            inquiry if asked.is_assumed => self.shared.ask_assumed(inquiry, *within).await,
            inquiry => self.shared.ask_server(inquiry, *within).await,
        }
    }

    /// Whether it went well.
    async fn run_hook(&self, asked: &ProbeAsker) -> bool {
        let run = async {
            match &asked.inquiry {
                Inquiry::Exec(words) => {
                    let ran = self.run_command(asked, words).await;
                    ran.is_ok_and(|executed| executed.end.is_some_and(|(_, code)| code == 0))
                }
                inquiry if asked.is_assumed => {
                    self.shared.ask_assumed(inquiry, asked.within).await == ProbeAnswer::Success
                }
                Inquiry::Http(http) => {
                    let told = http.tell(&self.shared).await;
                    let (namespace, pod) = (&asked.namespace, &asked.pod);
                    let why = told.map_err(|failure| http.failed(&failure.text()));
                    why.inspect_err(|why| tracing::info!(namespace, pod, why, "a hook failed")).is_ok()
                }
                _ => true,
            }
        };
        self.shared.context.clock.timeout(asked.within, run).await.unwrap_or(false)
    }

    async fn run_command(&self, asked: &ProbeAsker, words: &[String]) -> Result<Executed, String> {
        let command = ExecCommand {
            container: asked.container.clone(),
            words: words.to_vec(),
            ..ExecCommand::default()
        };
        Ok(self.exec(&asked.namespace, &asked.pod, &command).await?)
    }

    /// Tells the container's worker; of another run nothing.
    async fn tell(&self, asked: &ProbeAsker, hear: impl FnOnce(&mut KubeContainer)) {
        let Some(mut loan) = self.pods.borrow_by_uid(&asked.uid).await else { return };
        let container = loan.container_mut(&asked.container);
        let Some(container) = container.filter(|own| own.running_id() == Some(&asked.id)) else { return };
        hear(container);
        drop(loan);
        self.pods.wake(&asked.uid);
    }
}
