//! Commands that somebody runs in a container (`ExecSync`): they are played among the files and the
//! variables that the container has, and what they write stays there.

use std::sync::Arc;

use super::kubelet::Kubelet;
use super::lending::Loan;
use super::mounting::Mounting;
use super::players::Cause;
use super::pod_workers::{NodeRuntime, PodWorker};
use crate::container_runtime::invocation;
use machine::exec::{self, Executed};
use machine::process;

use super::runtime::Container;
use crate::volume_manager::facts::Facts;
use crate::volume_manager::sources::Sources;
use crate::volume_manager::surroundings;
use apimachinery::time::Time;
use apis::views::pod::Container as Spec;

/// What is to be run where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The container.
    pub container: String,
    /// The command line.
    pub words: Vec<String>,
    /// What it reads.
    pub standard_input: Option<String>,
    /// More is to come for it to read: when it reads, it is as if it had not run yet.
    pub is_fed: bool,
    /// `words` are a shell, and a line that is typed into it.
    pub shell: Option<exec::Shell>,
}

impl Kubelet {
    /// Runs a command in a container.
    ///
    /// # Errors
    /// Why it could not be started, in the words of kubelet and runtime.
    pub async fn exec(&self, namespace: &str, pod: &str, command: &Command) -> Result<Executed, String> {
        let now = self.shared.context.clock.now();
        let not_found = || format!("container not found ({:?})", command.container);
        let mut loan = self.borrow(namespace, pod).await.ok_or_else(not_found)?;
        let (players, uid) = (self.shared.players.clone(), loan.uid.clone());
        if let Some(fetch) = loan.look_around(now) {
            drop(loan);
            let sources = fetch.perform(&self.shared.context.client).await;
            loan = self.borrow(namespace, pod).await.ok_or_else(not_found)?;
            loan = self.provide(loan, sources).await;
        }
        let (kubelet, own) = (self.clone(), command.clone());
        let run = move || loan.exec(&kubelet.shared.node, kubelet.shared.context.clock.now(), &own);
        let executed = players.run(Cause::Request, run).await.ok_or_else(not_found)?;
        self.wake(&uid);
        let ran = executed.as_ref().filter(|executed| !(command.is_fed && executed.is_waiting));
        if let Some((took, _)) = ran.and_then(|executed| executed.end) {
            self.shared.context.clock.sleep(took).await;
        }
        executed.ok_or_else(|| {
            let program = command.words.first().map_or("", String::as_str);
            format!(
                "OCI runtime exec failed: exec failed: unable to start container process: exec: {program:?}: \
                 executable file not found in $PATH: unknown"
            )
        })
    }

    /// Hands over what was fetched for a pod that somebody looks into.
    pub(super) async fn provide(&self, mut loan: Loan, sources: Sources) -> Loan {
        let (kubelet, now) = (self.clone(), self.shared.context.clock.now());
        let provide = move || {
            loan.provide(sources, &kubelet.shared.node, now);
            loan
        };
        let loan = self.shared.players.run(Cause::Request, provide).await;
        self.wake(&loan.uid);
        loan
    }
}

impl PodWorker {
    /// Somebody looks into its containers: what is to be fetched for that.
    fn look_around(&mut self, now: Time) -> Option<crate::volume_manager::sources::Fetch> {
        match &mut self.mounting {
            Some(mounting) => mounting.look_around(),
            None => self.mounting = Some(Box::new(Mounting::of_running(&self.object, now))),
        }
        self.refresh()
    }

    /// None when the container does not run; nothing in it when the command is not known.
    fn exec(&mut self, node: &NodeRuntime, now: Time, command: &Command) -> Option<Option<Executed>> {
        let (detail, sources) = self.mounted();
        let (pod, object, pod_ip) = (self.pod.clone(), self.object.clone(), self.address().to_owned());
        let nothing = Sources::new();
        let facts = Facts {
            pod: &pod,
            metadata: &object.metadata,
            detail: &*detail?,
            sources: sources.as_deref().unwrap_or(&nothing),
            pod_ip: &pod_ip,
            host_ip: &node.host_ip,
            allocatable: &node.allocatable,
        };
        let mut written = self.written_until(node, now);
        let (spec, container) = self.running_container(&pod.spec, &command.container)?;
        let started_at = container.started_at()?;
        if container.around.is_none() {
            let found =
                surroundings::surroundings(&facts, spec, container.restart_count, started_at, &written)
                    .ok()?;
            container.around = Some(Arc::new(found));
        }
        let around = Arc::make_mut(container.around.get_or_insert_default());
        let ran = (now - started_at).to_std().unwrap_or_default();
        let before = process::play(&invocation::of(spec), around, Some(ran))
            .map(|played| played.written)
            .unwrap_or_default();
        let (input, around_now) = (command.standard_input.clone(), around.from(ran));
        let executed = match (&command.shell, command.words.as_slice()) {
            (Some(shell), [program, line]) => {
                Some(exec::type_lines((program, line), shell, &around_now, before))
            }
            _ => exec::exec(&command.words, &around_now, before, input),
        };
        if executed.as_ref().is_some_and(|executed| command.is_fed && executed.is_waiting) {
            return Some(executed);
        }
        if let Some(executed) = &executed {
            written.keep(process::left_in_volumes(&executed.written, around));
            let own: Vec<_> =
                executed.written.iter().filter(|(path, _)| !process::is_kept(around, path)).collect();
            around.foreign.extend(own.into_iter().cloned());
        }
        self.keep(written);
        self.look_again(node, now);
        Some(executed)
    }

    fn running_container<'a>(
        &'a mut self,
        specs: &'a apis::views::pod::PodSpec,
        name: &str,
    ) -> Option<(&'a Spec, &'a mut Container)> {
        let init = specs.init_containers.iter().zip(&mut self.init_containers);
        let ephemeral = specs.ephemeral_containers.iter().zip(&mut self.ephemeral_containers);
        let mut all = init.chain(specs.containers.iter().zip(&mut self.containers)).chain(ephemeral);
        all.find(|(spec, container)| spec.name == name && container.is_running())
    }
}
