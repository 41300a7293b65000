//! What a container reads of its process in `/proc/PID/status`: as whom it runs, which capabilities it has,
//! and whether it may get more (`kuberuntime/security_context.go`, and what containerd makes of it).

use super::facts::VolumeFacts;
use super::runs_as::{RunsAs, command_name};
use apis::views::pod::Container;
use apis::views::pod_detail::{Capabilities, SecurityContext};
use machine::file_system::File;

const MODE: u32 = 0o444;
/// By their numbers (`linux/capability.h`).
const CAPABILITIES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];
const ALL: u64 = (1 << CAPABILITIES.len()) - 1;
/// What a container has that says nothing of it.
const BY_DEFAULT: [&str; 14] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "NET_BIND_SERVICE",
    "NET_RAW",
    "SYS_CHROOT",
    "MKNOD",
    "AUDIT_WRITE",
    "SETFCAP",
];

/// The files of a container. Whoever looks at itself sees its first process, which is not told apart.
pub(super) fn files(facts: &VolumeFacts<'_>, container: &Container) -> Option<[(String, File); 2]> {
    let own = &facts.detail.container(&container.name)?.security_context;
    let of_pod = &facts.detail.spec.security_context;
    let status = File::new(
        text(&command_name(facts, container), own, of_pod, &RunsAs::of(own, of_pod, container)),
        MODE,
    );
    Some(["1", "self"].map(|process| (format!("/proc/{process}/status"), status.clone())))
}

fn text(name: &str, own: &SecurityContext, of_pod: &SecurityContext, who: &RunsAs) -> String {
    let is_privileged = own.privileged == Some(true);
    let bound =
        if is_privileged { ALL } else { own.capabilities.as_ref().map_or_else(by_default, capabilities) };
    // Only root gets them by starting a program.
    let effective = if who.user == 0 { bound } else { 0 };
    let profile = own.seccomp_profile.as_ref().or(of_pod.seccomp_profile.as_ref());
    let is_filtered = !is_privileged && profile.is_some_and(|profile| profile.kind != "Unconfined");
    let (mode, filters) = if is_filtered { (2, 1) } else { (0, 0) };
    let gains_none = u8::from(own.allow_privilege_escalation == Some(false));
    let RunsAs { user, group, .. } = who;
    let groups: String = who.groups.iter().map(|group| format!("{group} ")).collect();
    format!(
        "Name:\t{name}\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t1\nNgid:\t0\nPid:\t1\nPPid:\t0\nTracerPid:\t0\n\
         Uid:\t{user}\t{user}\t{user}\t{user}\nGid:\t{group}\t{group}\t{group}\t{group}\nFDSize:\t64\nGroups:\t{groups}\n\
         Threads:\t1\nCapInh:\t{:016x}\nCapPrm:\t{effective:016x}\nCapEff:\t{effective:016x}\nCapBnd:\t{bound:016x}\n\
         CapAmb:\t{:016x}\nNoNewPrivs:\t{gains_none}\nSeccomp:\t{mode}\nSeccomp_filters:\t{filters}\n",
        0, 0
    )
}

fn bit(name: &str) -> u64 {
    CAPABILITIES.iter().position(|known| *known == name).map_or(0, |number| 1 << number)
}

fn by_default() -> u64 {
    BY_DEFAULT.into_iter().map(bit).sum()
}

/// All or nothing first, then what is named.
fn capabilities(said: &Capabilities) -> u64 {
    let names_all = |names: &[String]| names.iter().any(|name| name == "ALL");
    let mut set = by_default();
    if names_all(&said.add) {
        set = ALL;
    }
    if names_all(&said.drop) {
        set = 0;
    }
    let set = said.add.iter().fold(set, |set, name| set | bit(name));
    said.drop.iter().fold(set, |set, name| set & !bit(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn lines(own: Value, of_pod: Value) -> Vec<String> {
        let [own, of_pod] = [own, of_pod].map(|it| serde_json::from_value::<SecurityContext>(it).unwrap());
        let who = RunsAs::of(&own, &of_pod, &Container { image: "busybox".into(), ..Container::default() });
        text("sh", &own, &of_pod, &who).lines().map(String::from).collect()
    }

    /// The numbers are those of the page "Configure a Security Context for a Pod or Container", and of a node with
    /// containerd.
    #[test]
    fn capabilities_and_filters_are_told_as_the_kernel_does() {
        let default = "00000000a80425fb";
        let none = "0000000000000000";
        let added = json!({"capabilities": {"add": ["NET_ADMIN", "SYS_TIME"]}});
        let dropped = json!({"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
            "allowPrivilegeEscalation": false, "seccompProfile": {"type": "RuntimeDefault"}});
        for (own, of_pod, effective, bound, gains_none, mode) in [
            (json!({}), json!({}), default, default, 0, 0),
            (added, json!({}), "00000000aa0435fb", "00000000aa0435fb", 0, 0),
            (dropped, json!({}), "0000000000000400", "0000000000000400", 1, 2),
            (json!({}), json!({"runAsUser": 1000}), none, default, 0, 0),
            (
                json!({"privileged": true}),
                json!({"seccompProfile": {"type": "RuntimeDefault"}}),
                "000001ffffffffff",
                "000001ffffffffff",
                0,
                0,
            ),
            (json!({}), json!({"seccompProfile": {"type": "Localhost"}}), default, default, 0, 2),
            (
                json!({"seccompProfile": {"type": "Unconfined"}}),
                json!({"seccompProfile": {"type": "Localhost"}}),
                default,
                default,
                0,
                0,
            ),
            (
                json!({"capabilities": {"add": ["ALL"], "drop": ["CHOWN"]}}),
                json!({}),
                "000001fffffffffe",
                "000001fffffffffe",
                0,
                0,
            ),
        ] {
            let told = lines(own.clone(), of_pod.clone());
            for line in [
                format!("CapPrm:\t{effective}"),
                format!("CapEff:\t{effective}"),
                format!("CapBnd:\t{bound}"),
                format!("NoNewPrivs:\t{gains_none}"),
                format!("Seccomp:\t{mode}"),
            ] {
                assert!(told.contains(&line), "{own} {of_pod}: {line} is not in {told:#?}");
            }
        }
    }

    #[test]
    fn it_says_as_whom_it_runs() {
        let of_pod =
            json!({"runAsUser": 1000, "runAsGroup": 3000, "fsGroup": 2000, "supplementalGroups": [4000]});
        let told = lines(json!({"runAsUser": 2000}), of_pod);
        for line in ["Uid:\t2000\t2000\t2000\t2000", "Gid:\t3000\t3000\t3000\t3000", "Groups:\t4000 2000 "] {
            assert!(told.iter().any(|own| own == line), "{line} is not in {told:#?}");
        }
    }
}
