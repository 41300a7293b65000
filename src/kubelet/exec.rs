//! Commands that somebody runs in a container (`ExecSync`): they are played among the files and the
//! variables that the container has, and what they write stays there.

use std::sync::Arc;

pub use super::container_runtime::services::ExecCommand;

use super::attach::refusal;
use super::container_runtime::services::{ContainerConfig, ExecResponse, Exit, RuntimeError};
use super::dependencies::NodeRuntime;
use super::kubelet::Kubelet;
use super::kuberuntime::container::KubeContainer;
use super::kuberuntime::task::Task;
use super::players::Cause;
use super::pod_manager::pods::Loan;
use super::pod_workers::PodWorker;
use super::volume_manager::facts::VolumeFacts;
use super::volume_manager::fetch::Fetch;
use super::volume_manager::mounting::Mounting;
use super::volume_manager::sources::Sources;
use super::volume_manager::surroundings;
use apimachinery::time::Time;
use apis::views::pod::Container as Spec;
use machine::bounds;
use machine::exec::Executed;

golang::text_error! {
    /// Why a command could not be started; in the words of kubelet and runtime.
    pub struct ExecError;
}

impl Kubelet {
    /// Runs a command in a container.
    ///
    /// # Errors
    /// Why it could not be started, in the words of kubelet and runtime.
    pub async fn exec(
        &self,
        namespace: &str,
        pod: &str,
        command: &ExecCommand,
    ) -> Result<Executed, ExecError> {
        let clock = &self.shared.context.clock;
        let (begun, now) = (clock.elapsed(), clock.now());
        let mut command = command.clone();
        loop {
            let response = self.exec_at(namespace, pod, &command, now).await;
            let response = response.map_err(|why| why.message)?;
            let executed = response.executed.unwrap_or_default();
            if let Some((after, question)) = &executed.question {
                clock.sleep_until(begun.saturating_add(*after)).await;
                let answered = self.answer(namespace, pod, question).await;
                Arc::make_mut(&mut command.answers).push(answered);
                continue;
            }
            if let Some((took, _)) = executed.end {
                clock.sleep_until(begun.saturating_add(took)).await;
            }
            return Ok(executed);
        }
    }

    /// Runs it as if it were `now`, as far as the answers that it has lead.
    pub(crate) async fn exec_at(
        &self,
        namespace: &str,
        pod: &str,
        command: &ExecCommand,
        now: Time,
    ) -> Result<ExecResponse, RuntimeError> {
        let not_found = || refusal(format!("container not found ({:?})", command.container));
        let mut loan = self.pods.borrow(namespace, pod).await.ok_or_else(not_found)?;
        self.shared.counted.called("exec", 1);
        let (players, uid) = (self.shared.players.clone(), loan.uid.clone());
        if let Some(fetch) = loan.look_around(now) {
            drop(loan);
            let sources = fetch.perform(&self.shared.context.client).await;
            loan = self.pods.borrow(namespace, pod).await.ok_or_else(not_found)?;
            // What was fetched is there when the command looks.
            loan = self.provide(loan, sources, now).await;
        }
        let (kubelet, own) = (self.clone(), command.clone());
        let run = move || loan.exec(&kubelet.shared.node, now, &own);
        let response = players.run(Cause::Request, run).await.ok_or_else(not_found)?;
        self.pods.wake(&uid);
        if response.executed.is_some() || response.sat.is_some() {
            return Ok(response);
        }
        let program = command.words.first().map_or("", String::as_str);
        Err(refusal(bounds::not_executed(program)))
    }

    /// Hands over what was fetched for a pod that somebody looks into.
    pub(crate) async fn provide(&self, mut loan: Loan, sources: Sources, now: Time) -> Loan {
        let kubelet = self.clone();
        let provide = move || {
            loan.provide(sources, &kubelet.shared.node, now);
            loan
        };
        let loan = self.shared.players.run(Cause::Request, provide).await;
        self.pods.wake(&loan.uid);
        loan
    }
}

impl PodWorker {
    /// Somebody looks into its containers: what is to be fetched for that.
    pub(crate) fn look_around(&mut self, now: Time) -> Option<Fetch> {
        match &mut self.mounting {
            Some(mounting) => mounting.look_around(now),
            None => self.mounting = Some(Box::new(Mounting::of_running(&self.object, now))),
        }
        self.refresh(now)
    }

    /// None when the container does not run; nothing in it when the command is not known. What it left is
    /// kept.
    fn exec(&mut self, node: &NodeRuntime, now: Time, command: &ExecCommand) -> Option<ExecResponse> {
        // What other containers left meanwhile is there, too.
        self.look_again(node, now);
        let held = self.held_facts()?;
        let facts = held.facts(node);
        let VolumeFacts { pod, metadata, .. } = facts;
        let mut written = self.written_until(node, now);
        let response = self.running_container(&command.container).and_then(|(spec, container)| {
            let (id, started_at) = (container.running_id()?, container.started_at()?);
            let attempt = container.restart_count;
            let config = ContainerConfig { pod, metadata, container: spec, attempt };
            let found = || surroundings::surroundings(&facts, spec, attempt, started_at, &written).ok();
            node.runtime.exec(&config, id, command, &found, now)
        });
        let Some(mut response) = response else {
            self.keep(written);
            return None;
        };
        written.keep(std::mem::take(&mut response.left));
        self.keep(written);
        self.look_again(node, now);
        if response.is_first_sight {
            self.look_at_files_again(node, &command.container, now);
        }
        if let Some((after, exit)) = response.ends.take() {
            self.end_process(&command.container, clock::after(now, after), exit);
        }
        Some(response)
    }

    /// Its own process ends then, unless it does so before.
    pub(crate) fn end_process(&mut self, container: &str, at: Time, exit: Exit) {
        let Some(container) = self.container_mut(container) else { return };
        if let Task::Run(running) = &mut container.task
            && running.ends.as_ref().is_none_or(|(ends, _)| at < *ends)
        {
            running.ends = Some((at, exit));
        }
    }

    fn running_container(&self, name: &str) -> Option<(&Spec, &KubeContainer)> {
        self.all_containers().find(|(spec, container)| spec.name == name && container.is_running())
    }
}
