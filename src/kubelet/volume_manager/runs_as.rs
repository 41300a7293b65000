//! As whom the first process of a container runs, and what it is called.

use super::facts::VolumeFacts;
use crate::kuberuntime::security::user_of_image;
use apis::views::pod::Container;
use apis::views::pod_detail::SecurityContext;
use machine::surroundings::program_of;

/// As whom the processes of a container run.
pub(super) struct RunsAs {
    pub user: i64,
    pub group: i64,
    pub groups: Vec<i64>,
}

impl RunsAs {
    /// As the container says, else its pod, else its image.
    pub(super) fn of(own: &SecurityContext, of_pod: &SecurityContext, container: &Container) -> RunsAs {
        let by_image = || user_of_image(&container.image);
        RunsAs {
            user: own.run_as_user.or(of_pod.run_as_user).or_else(by_image).unwrap_or(0),
            group: own.run_as_group.or(of_pod.run_as_group).unwrap_or(0),
            groups: of_pod.supplemental_groups.iter().chain(&of_pod.fs_group).copied().collect(),
        }
    }
}

/// The name of the first process that a container sees (`comm`).
pub(super) fn command_name(facts: &VolumeFacts<'_>, container: &Container) -> String {
    let words = first_process(facts, container);
    let program = words.first().map_or_else(|| program_of(&container.image), String::as_str);
    program.rsplit('/').next().unwrap_or_default().chars().take(15).collect()
}

/// The command line of the first process that a container sees: its own, or that of the one that it is to
/// debug.
pub(super) fn first_process(facts: &VolumeFacts<'_>, container: &Container) -> Vec<String> {
    let target = &container.target_container_name;
    let words = |of: &Container| of.command.iter().chain(&of.args).cloned().collect();
    let Some(target) = facts.pod.spec.all_containers().find(|spec| spec.name == *target) else {
        return words(container);
    };
    let words: Vec<String> = words(target);
    if words.is_empty() { vec![program_of(&target.image).to_owned()] } else { words }
}
