//! Plays lists, pipes, branches and loops: what a shell would do with them.

use std::time::Duration;

use super::pattern;
use super::player::{Flow, Player};
use crate::bounds::{Fault, MAX_DEPTH};
use crate::programs;
use crate::shell::{Action, Command, List, Node, When, Word};

impl Player<'_> {
    /// Plays one command after the other.
    pub(crate) fn list(&mut self, list: &List) -> Flow {
        if self.depth == MAX_DEPTH {
            return self.stop(Fault::Depth);
        }
        self.depth += 1;
        let flow = self.nodes(list);
        self.depth -= 1;
        flow
    }

    fn nodes(&mut self, list: &List) -> Flow {
        for (at, node) in list.iter().enumerate() {
            let wanted = match node.when {
                When::Always => true,
                When::IfSucceeded => self.status == 0,
                When::IfFailed => self.status != 0,
            };
            if !wanted {
                continue;
            }
            // What something else depends on may fail.
            let decides = list.get(at + 1).is_some_and(|next| next.when != When::Always);
            let stops = self.stops_at_failure;
            self.stops_at_failure &= !decides && !node.is_negated;
            let flow = if node.is_background { self.beside(node) } else { self.node(node) };
            // It may have been asked for meanwhile.
            self.stops_at_failure |= stops;
            if flow != Flow::Go {
                return flow;
            }
        }
        Flow::Go
    }

    /// In the background: the time that it takes is not waited for.
    fn beside(&mut self, node: &Node) -> Flow {
        let begun = self.elapsed;
        let (variables, folder) = (self.variables.clone(), self.folder.clone());
        let flow = self.node(node);
        let ended = if flow == Flow::OutOfTime { Duration::MAX } else { self.elapsed };
        self.background = self.background.max(ended);
        (self.variables, self.folder) = (variables, folder);
        if flow == Flow::Stopped || self.question.is_some() || self.steps_left == 0 {
            return flow;
        }
        (self.elapsed, self.status) = (begun, 0);
        Flow::Go
    }

    fn node(&mut self, node: &Node) -> Flow {
        let flow = match node.commands.as_slice() {
            [command] => self.command(command),
            commands => self.pipeline(commands),
        };
        if node.is_negated {
            self.status = i32::from(self.status == 0);
        }
        flow
    }

    /// One after the other, each given what the one before said.
    fn pipeline(&mut self, commands: &[Command]) -> Flow {
        let (variables, input) = (self.variables.clone(), self.standard_input.take());
        let mut flow = Flow::Go;
        let mut failed = 0;
        let stops = self.stops_at_failure;
        self.standard_input = input.clone();
        for (at, command) in commands.iter().enumerate() {
            let is_last = at + 1 == commands.len();
            // Only the last one decides, unless all do.
            self.stops_at_failure = stops && is_last;
            self.status = 0;
            let (said, next) = if is_last {
                (None, self.command(command))
            } else {
                let (said, flow) = self.gather(|player| player.command(command));
                (Some(said), flow)
            };
            if said.is_some() {
                self.standard_input = said;
            }
            failed = if self.status == 0 { failed } else { self.status };
            if matches!(next, Flow::OutOfTime | Flow::Stopped) {
                flow = next;
                break;
            }
        }
        (self.variables, self.standard_input) = (variables, input);
        self.stops_at_failure = stops;
        if self.pipes_fail && flow == Flow::Go && failed != 0 {
            self.status = failed;
            return if stops { Flow::Exit(failed) } else { flow };
        }
        flow
    }

    fn command(&mut self, command: &Command) -> Flow {
        match self.spend(1) {
            Flow::Go => {}
            flow => return flow,
        }
        let flow = if command.redirects.is_empty() {
            self.action(&command.action)
        } else {
            self.redirected(command)
        };
        let fails = matches!(command.action, Action::Simple(..)) && self.status != 0;
        match flow {
            _ if self.fault.is_some() => Flow::Stopped,
            Flow::Go if fails && self.stops_at_failure => Flow::Exit(self.status),
            flow => flow,
        }
    }

    fn redirected(&mut self, command: &Command) -> Flow {
        let before = (self.out.clone(), self.errors.clone(), self.standard_input.clone());
        self.handle(self.standard_input.as_ref().map_or(0, String::len));
        let flow = if command.redirects.iter().all(|redirect| self.redirect(redirect)) {
            self.action(&command.action)
        } else {
            self.status = 1;
            Flow::Go
        };
        (self.out, self.errors, self.standard_input) = before;
        flow
    }

    fn action(&mut self, action: &Action) -> Flow {
        match action {
            Action::Simple(assignments, words) => self.simple(assignments, words),
            Action::Group(list) => self.list(list),
            Action::Subshell(list) => {
                let (variables, folder) = (self.variables.clone(), self.folder.clone());
                let flow = self.list(list);
                (self.variables, self.folder) = (variables, folder);
                match flow {
                    Flow::Exit(code) => {
                        self.status = code;
                        Flow::Go
                    }
                    flow => flow,
                }
            }
            Action::If(branches) => self.branch(branches),
            Action::While { condition, wanted, body, is_endless } => {
                self.repeat(condition, *wanted, body, *is_endless && self.is_for_end)
            }
            Action::For(variable, values, body) => self.for_each(variable, values, body),
            Action::Case(subject, arms) => self.case(subject, arms),
            Action::Function(name, body) => {
                self.status = 0;
                self.functions.insert(name.clone(), body.clone());
                Flow::Go
            }
        }
    }

    fn simple(&mut self, assignments: &[(String, Word)], words: &[Word]) -> Flow {
        for (name, word) in assignments {
            self.status = 0;
            let value = self.text(word);
            self.set(name, value);
        }
        let words: Vec<String> = words.iter().flat_map(|word| self.fields(word)).collect();
        match words.split_first() {
            _ if self.fault.is_some() => Flow::Stopped,
            None => Flow::Go,
            Some((program, arguments)) => {
                self.status = 0;
                match self.functions.get(program).cloned() {
                    Some(function) => self.call(&function, arguments),
                    None => {
                        let flow = programs::run(self, program, arguments);
                        self.run_wanted_shell(flow)
                    }
                }
            }
        }
    }

    /// A function with its arguments. What calls itself again and again is nested too deeply.
    fn call(&mut self, function: &Command, arguments: &[String]) -> Flow {
        if self.depth == MAX_DEPTH {
            return self.stop(Fault::Depth);
        }
        self.depth += 1;
        let before = std::mem::replace(&mut self.arguments, arguments.to_vec());
        let flow = self.command(function);
        self.arguments = before;
        self.depth -= 1;
        match flow {
            Flow::Return(code) => {
                self.status = code;
                Flow::Go
            }
            flow => flow,
        }
    }

    /// A shell within a shell, for whoever is attached; instead of it after `exec`, which ends with `flow`.
    fn run_wanted_shell(&mut self, flow: Flow) -> Flow {
        let Some(shell) = self.wanted_shell.take() else { return flow };
        match programs::run_typed_shell(self, shell) {
            Flow::Exit(code) if flow == Flow::Go => {
                self.status = code;
                Flow::Go
            }
            ended => ended,
        }
    }

    fn branch(&mut self, branches: &[(List, List)]) -> Flow {
        for (condition, body) in branches {
            self.status = 0;
            match self.tested(condition) {
                Flow::Go if self.status == 0 => return self.list(body),
                Flow::Go => {}
                flow => return flow,
            }
        }
        self.status = 0;
        Flow::Go
    }

    /// A condition may fail.
    fn tested(&mut self, condition: &List) -> Flow {
        let stops = std::mem::replace(&mut self.stops_at_failure, false);
        let flow = self.list(condition);
        self.stops_at_failure = stops;
        flow
    }

    /// Of a loop that is endless two rounds are enough to know what it does.
    fn repeat(&mut self, condition: &List, wanted: bool, body: &List, is_endless: bool) -> Flow {
        let mut rounds = 0;
        while self.spend(1) == Flow::Go {
            match self.tested(condition) {
                Flow::Go if (self.status == 0) != wanted => {
                    self.status = 0;
                    return Flow::Go;
                }
                Flow::Go => {}
                flow => return flow,
            }
            match self.list(body) {
                Flow::Go | Flow::Continue => {}
                Flow::Break => return Flow::Go,
                flow => return flow,
            }
            rounds += 1;
            // What is asked is answered in another way each time.
            if is_endless && rounds > 1 && self.asked == 0 {
                return Flow::OutOfTime;
            }
        }
        self.spend(0)
    }

    fn for_each(&mut self, variable: &str, values: &[Word], body: &List) -> Flow {
        let values: Vec<String> = values.iter().flat_map(|value| self.fields(value)).collect();
        for value in values {
            self.set(variable, value);
            match self.spend(1) {
                Flow::Go => {}
                flow => return flow,
            }
            match self.list(body) {
                Flow::Go | Flow::Continue => {}
                Flow::Break => break,
                flow => return flow,
            }
        }
        Flow::Go
    }

    fn case(&mut self, subject: &Word, arms: &[(Vec<Word>, List)]) -> Flow {
        let subject = self.text(subject);
        for (patterns, body) in arms {
            for pattern in patterns {
                let pattern = self.text(pattern);
                if self.matches(&pattern, &subject) {
                    return self.list(body);
                }
            }
        }
        Flow::Go
    }

    /// A comparison costs as much as it may take at worst: a star makes it the product of the lengths.
    fn matches(&mut self, pattern: &str, text: &str) -> bool {
        let work = if pattern.contains('*') { pattern.len().saturating_mul(text.len()) } else { text.len() };
        self.handle(work) && pattern::compare(pattern, text).0
    }
}
