//! `kill`: signals for jobs, and for the shells themselves.

use std::ops::Range;
use std::sync::Arc;

use super::dialect::Dialect;
use super::hearing::INTERRUPTED;
use super::player::{AfterCommand, Player};
use crate::signal_names;

/// The number of a command that is run beside the container's process; that one is 1.
pub(crate) const EXECUTED_PID: usize = 6;
/// Numbers between a shell and one that it runs.
const PIDS_OF_SHELL: usize = 1000;
/// 0 only asks whether there is somebody; CHLD, CONT, URG and WINCH nobody heeds who has not said so, and
/// STOP, TSTP, TTIN and TTOU end nobody.
const WITHOUT_END: &[i32] = &[0, 17, 18, 19, 20, 21, 22, 23, 28];
/// A process that a signal has killed ends with its number and so much.
pub(super) const KILLED_BY: i32 = 128;

impl Player<'_> {
    /// `kill`: a job ends, or the shell itself does what it has said that it would.
    pub(crate) fn kill(&mut self, words: &[&str]) -> AfterCommand {
        let mut signal = "TERM".to_owned();
        let mut words = words;
        while let [flag, rest @ ..] = words
            && let Some(name) = flag.strip_prefix('-')
        {
            words = match (name, rest) {
                ("l", _) => {
                    self.say(&signal_names::listed());
                    return AfterCommand::Go;
                }
                ("s" | "n", [name, rest @ ..]) => {
                    signal = signal_name(name);
                    rest
                }
                ("-", rest) => rest,
                (name, rest) => {
                    signal = signal_name(name);
                    rest
                }
            };
        }
        for word in words {
            match self.signal(word, &signal) {
                AfterCommand::Go => {}
                flow => return flow,
            }
        }
        AfterCommand::Go
    }

    fn signal(&mut self, word: &str, signal: &str) -> AfterCommand {
        let own = if word == "0" { Some(self.pid) } else { word.parse().ok() };
        if let Some(pid) = own.filter(|pid| *pid == 1 || self.is_own_shell(*pid)) {
            return self.signal_shell(pid, signal);
        }
        let now = self.elapsed;
        let Some(job) = self.jobs.find(word).filter(|job| job.ended > now) else {
            let said = self.says_shell(&format!("kill: ({word}) - No such process"));
            self.complain(&said);
            self.status = 1;
            return AfterCommand::Go;
        };
        let Some(number) = number_of(signal).filter(|number| !WITHOUT_END.contains(number)) else {
            return AfterCommand::Go;
        };
        job.ended = now;
        job.status = KILLED_BY + number;
        let said = job.said.clone();
        self.unsay(said);
        AfterCommand::Go
    }

    /// Whether it is this shell, or one that runs it.
    fn is_own_shell(&self, pid: usize) -> bool {
        self.pid.checked_sub(pid).is_some_and(|between| between.is_multiple_of(PIDS_OF_SHELL))
    }

    /// What a shell does that gets a signal: what it has said that it would, or what everybody does.
    fn signal_shell(&mut self, pid: usize, signal: &str) -> AfterCommand {
        match self.traps.get(signal).cloned() {
            Some(handler) if pid == self.pid && !matches!(signal, "EXIT" | "KILL") => {
                return self.handle_signal(&handler);
            }
            _ => {}
        }
        if pid == 1 && self.pid != 1 && number_of(signal).is_some_and(|number| !WITHOUT_END.contains(&number))
        {
            let at = self.elapsed;
            self.sent_to_first.get_or_insert_with(|| (at, signal.to_owned()));
            return AfterCommand::Go;
        }
        // The first process of a container has no default action for a signal, not even for SIGKILL. What a
        // job does to its shell comes later than this is played.
        if pid == 1 && !self.is_interactive || self.is_beside {
            return AfterCommand::Go;
        }
        match (number_of(signal).filter(|number| !WITHOUT_END.contains(number)), signal) {
            (None, _) => AfterCommand::Go,
            (_, "INT") if self.is_interactive && pid == self.pid => self.interrupt_with(signal, INTERRUPTED),
            (_, "TERM" | "QUIT") if self.is_interactive && pid == self.pid => AfterCommand::Go,
            _ if pid == 1 => AfterCommand::Go,
            (Some(number), signal) => {
                // Bash does at its end what it has to, as long as it can.
                if self.dialect != Dialect::Bash || signal == "KILL" {
                    Arc::make_mut(&mut self.traps).remove("EXIT");
                }
                self.killed = Some((pid, KILLED_BY + number));
                AfterCommand::Exit(KILLED_BY + number)
            }
        }
    }

    /// A shell of its own number within this one. When a signal ends it, this one goes on.
    pub(crate) fn in_own_process(&mut self, play: impl FnOnce(&mut Self) -> AfterCommand) -> AfterCommand {
        let outer = self.pid;
        self.pid = outer + PIDS_OF_SHELL;
        let flow = play(self);
        let own = std::mem::replace(&mut self.pid, outer);
        let Some((_, code)) = self.killed.take_if(|(pid, _)| *pid == own) else { return flow };
        self.status = code;
        match code - KILLED_BY {
            9 => self.complain("Killed\n"),
            15 => self.complain("Terminated\n"),
            _ => {}
        }
        AfterCommand::Go
    }

    /// What would have been said from now on is not.
    fn unsay(&mut self, said: Range<usize>) {
        let now = self.elapsed;
        let mut at = 0;
        // Of a log that was cut meanwhile nobody knows whose lines are whose.
        if said.end <= self.lines.len() {
            self.lines.retain(|line| {
                at += 1;
                !(said.contains(&(at - 1)) && line.after > now)
            });
        }
    }
}

/// What shells count among signals.
const OF_SHELLS: [&str; 4] = ["EXIT", "ERR", "DEBUG", "RETURN"];

/// `SIGTERM`, `term` and `15` are `TERM`; 0 is what shells do at their end.
pub(super) fn signal_name(word: &str) -> String {
    if word == "0" {
        return "EXIT".to_owned();
    }
    let upper = word.to_ascii_uppercase();
    let bare = || upper.strip_prefix("SIG").unwrap_or(&upper).to_owned();
    signal_names::number_of(word).map_or_else(bare, signal_names::name_of)
}

/// Whether a name is that of a signal, or of what shells count among them.
pub(super) fn is_signal(name: &str) -> bool {
    OF_SHELLS.contains(&name) || signal_names::number_of(name).is_some()
}

/// Nothing for what is no signal; 0 kills nobody.
fn number_of(signal: &str) -> Option<i32> {
    if signal == "EXIT" { Some(0) } else { signal_names::number_of(signal) }
}

#[cfg(test)]
mod tests {
    use crate::exec;
    use crate::given::given;
    use crate::process;
    use crate::surroundings::Surroundings;

    fn ran(script: &str) -> (i32, String) {
        let command = ["sh", "-c", script].map(str::to_owned);
        let ran = exec::exec(&command, &Surroundings::default(), vec![], None).unwrap();
        (ran.end.unwrap().1, ran.out)
    }

    #[test]
    fn a_signal_without_a_trap_ends_a_shell() {
        for (signal, code) in [("-9", 137), ("-TERM", 143), ("-INT", 130), ("-s QUIT", 131), ("", 143)] {
            for kill in ["kill SIGNAL $$; echo alive", "(kill SIGNAL $$); echo alive", "kill SIGNAL $$ | cat"]
            {
                let script = kill.replace("SIGNAL", signal);
                assert_eq!(ran(&script), (code, String::new()), "{script}");
            }
        }
        assert_eq!(ran("kill -0 $$; kill -CHLD $$; kill -18 $$; echo alive"), (0, "alive\n".into()));
        assert_eq!(ran("kill -BUS $$; echo no"), (135, String::new()));
        assert_eq!(ran("trap 'echo got' PWR; kill -30 $$; echo alive"), (0, "got\nalive\n".into()));
        assert_eq!(ran("trap 'echo bye' EXIT; kill -TERM $$"), (143, String::new()));
        assert_eq!(ran("trap 'echo got' TERM; kill $$; echo alive"), (0, "got\nalive\n".into()));
        assert_eq!(
            ran("trap '' TERM; kill $$; echo alive; trap '' KILL; kill -9 $$"),
            (137, "alive\n".into())
        );
        assert_eq!(ran("sh -c 'kill -9 $$; echo no'; echo $?"), (0, "137\n".into()));
        assert_eq!(ran("sh -c \"kill -9 $$\"; echo no"), (137, String::new()));
        assert_eq!(ran("x=$(kill $$); echo no").0, 143);
    }

    #[test]
    fn the_first_process_of_a_container_has_no_default_action() {
        for signal in ["-9", "-TERM", "-INT"] {
            // The kubelet makes one of two dollar signs.
            let script = format!("kill {signal} $$$$; echo $$$$");
            let given = given("busybox", &["sh", "-c", &script], &[]);
            let played = process::play(&given.invocation(), &Surroundings::default(), None).unwrap();
            assert_eq!(played.end.unwrap().1, 0, "{script}");
            assert_eq!(played.lines[0].text, "1", "{script}");
        }
    }
}
