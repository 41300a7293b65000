//! Plays lists, pipes, branches and loops: what a shell would do with them.

use std::sync::Arc;

use super::pattern;
use super::player::{AfterCommand, Player, Sink};
use crate::bounds::{MAX_DEPTH, MAX_VARIABLES, ScriptFault};
use crate::programs;
use crate::shell::{
    CommandList, PipelineNode, Redirect, ShellAction, ShellCommand, Target, When, Word, plain,
};

/// How a loop goes on after a round that ended so: `Break(0)` leaves it.
fn left_round(flow: AfterCommand) -> AfterCommand {
    match flow {
        AfterCommand::Continue(0 | 1) => AfterCommand::Go,
        AfterCommand::Continue(loops) => AfterCommand::Continue(loops - 1),
        AfterCommand::Break(0 | 1) => AfterCommand::Break(0),
        AfterCommand::Break(loops) => AfterCommand::Break(loops - 1),
        flow => flow,
    }
}

/// What the shell itself does, and what is set before it stays.
fn is_special(program: &str) -> bool {
    matches!(
        program,
        "export" | "exec" | "eval" | "set" | "readonly" | "." | ":" | "trap" | "unset" | "shift"
    )
}

impl Player<'_> {
    /// Plays one command after the other.
    pub(crate) fn list(&mut self, list: &CommandList) -> AfterCommand {
        if self.depth == MAX_DEPTH {
            return self.stop(ScriptFault::Depth);
        }
        self.depth += 1;
        let flow = self.nodes(list);
        self.depth -= 1;
        flow
    }

    fn nodes(&mut self, list: &CommandList) -> AfterCommand {
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
            let is_tested = decides || node.is_negated;
            self.tested += usize::from(is_tested);
            let flow =
                if node.is_background { self.beside(|player| player.node(node)) } else { self.node(node) };
            self.tested -= usize::from(is_tested);
            if flow != AfterCommand::Go {
                return flow;
            }
        }
        AfterCommand::Go
    }

    fn node(&mut self, node: &PipelineNode) -> AfterCommand {
        let flow = match node.commands.as_slice() {
            [command] => self.command(command),
            commands => self.pipeline(commands),
        };
        if node.is_negated {
            self.status = i32::from(self.status == 0);
        }
        flow
    }

    /// In a shell of its own, which takes nothing of what changes there with it when it ends.
    pub(crate) fn isolated(&mut self, play: impl FnOnce(&mut Self) -> AfterCommand) -> AfterCommand {
        let (variables, folder) = (self.variables.clone(), self.folder.clone());
        let (functions, arguments, traps) =
            (self.functions.clone(), self.arguments.clone(), self.traps.clone());
        let (options, sinks, inputs) = (self.options, self.more_sinks.clone(), self.more_inputs.clone());
        let (out, errors) = (self.out.clone(), self.errors.clone());
        self.handle(inputs.values().map(String::len).sum());
        if !self.traps.is_empty() {
            // Whoever leaves it does not end the shell that it is in.
            Arc::make_mut(&mut self.traps).retain(|_, handler| handler.is_empty());
        }
        let flow = play(self);
        let flow = if self.killed.is_some() { flow } else { self.finish(flow) };
        (self.variables, self.folder) = (variables, folder);
        (self.functions, self.arguments, self.traps) = (functions, arguments, traps);
        (self.options, self.more_sinks, self.more_inputs) = (options, sinks, inputs);
        (self.out, self.errors) = (out, errors);
        match flow {
            // It has ended the shell that it is in, too.
            AfterCommand::Exit(_) if self.killed.is_some() => flow,
            AfterCommand::Exit(code) | AfterCommand::Return(code) => {
                self.abort = None;
                self.status = code;
                AfterCommand::Go
            }
            AfterCommand::Break(_) | AfterCommand::Continue(_) => AfterCommand::Go,
            flow => flow,
        }
    }

    /// One after the other, each given what the one before said.
    fn pipeline(&mut self, commands: &[ShellCommand]) -> AfterCommand {
        let mut input = self.standard_input.take();
        let mut failed = 0;
        for (at, command) in commands.iter().enumerate() {
            let is_last = at + 1 == commands.len();
            self.standard_input = input.take();
            self.status = 0;
            let flow = if is_last {
                self.isolated(|player| player.command(command))
            } else {
                let was_piped = std::mem::replace(&mut self.is_piped, true);
                let (said, flow) = self.gather(|player| player.isolated(|player| player.command(command)));
                self.is_piped = was_piped;
                input = Some(said);
                flow
            };
            failed = if self.status == 0 { failed } else { self.status };
            if matches!(flow, AfterCommand::OutOfTime | AfterCommand::Stopped) || self.killed.is_some() {
                return flow;
            }
        }
        self.standard_input = None;
        if self.options.pipes_fail && failed != 0 {
            self.status = failed;
        }
        self.after_failure()
    }

    /// Where a failure ends the script.
    fn after_failure(&mut self) -> AfterCommand {
        if self.status == 0 || self.tested > 0 {
            return AfterCommand::Go;
        }
        match self.handle_failure() {
            AfterCommand::Go if self.options.stops_at_failure => AfterCommand::Exit(self.status),
            flow => flow,
        }
    }

    fn command(&mut self, command: &ShellCommand) -> AfterCommand {
        match self.spend(1) {
            AfterCommand::Go => {}
            flow => return flow,
        }
        self.line = command.line;
        let flow = if command.redirects.is_empty() {
            self.action(&command.action)
        } else {
            self.redirected(command)
        };
        if self.fault.is_some() {
            return AfterCommand::Stopped;
        }
        if let Some(code) = self.abort {
            return if flow == AfterCommand::OutOfTime { flow } else { AfterCommand::Exit(code) };
        }
        let is_simple = matches!(
            command.action,
            ShellAction::Simple(..)
                | ShellAction::Subshell(_)
                | ShellAction::Conditional(_)
                | ShellAction::Sum(_)
        );
        if flow == AfterCommand::Go && is_simple { self.after_failure() } else { flow }
    }

    fn redirected(&mut self, command: &ShellCommand) -> AfterCommand {
        let (out, errors) = (self.out.clone(), self.errors.clone());
        let (sinks, inputs) = (self.more_sinks.clone(), self.more_inputs.clone());
        self.handle(inputs.values().map(String::len).sum());
        let reads = command.redirects.iter().find(|redirect| redirect.descriptor == 0);
        let input = reads.map(|_| self.standard_input.take());
        // `exec` alone changes them for good.
        let is_lasting = matches!(&command.action, ShellAction::Simple(_, words)
            if words.len() == 1 && plain(&words[0]) == Some("exec"));
        let is_read = may_read(&command.action);
        let is_done = command.redirects.iter().all(|redirect| self.redirect(redirect, is_read));
        let mut flow = if is_done {
            self.action(&command.action)
        } else {
            self.status = 1;
            self.pending.take().unwrap_or(AfterCommand::Go)
        };
        if !matches!(flow, AfterCommand::OutOfTime | AfterCommand::Stopped) {
            flow = self.send_to_connections().unwrap_or(flow);
        }
        if is_lasting && is_done {
            return AfterCommand::Go;
        }
        // What was not read from a descriptor can be read later.
        let left = self.standard_input.take();
        let behind = match (reads, &left) {
            (Some(Redirect { target: Target::Descriptor(other @ 3..), .. }), Some(left)) => {
                Some((*other, left.clone()))
            }
            _ => None,
        };
        self.more_inputs.extend(behind.clone());
        let unread = std::mem::take(&mut self.more_inputs);
        self.more_inputs = inputs;
        for (descriptor, own) in &mut self.more_inputs {
            if let Some(now) = unread.get(descriptor).filter(|now| own.ends_with(now.as_str())) {
                own.clone_from(now);
            }
        }
        (self.out, self.errors, self.more_sinks) = (out, errors, sinks);
        let is_connected =
            |(other, _): &(u8, String)| matches!(self.more_sinks.get(other), Some(Sink::Connection(_)));
        self.more_inputs.extend(behind.filter(is_connected));
        self.standard_input = input.unwrap_or(left);
        flow
    }

    fn action(&mut self, action: &ShellAction) -> AfterCommand {
        match action {
            ShellAction::Simple(assignments, words) => self.simple(assignments, words),
            ShellAction::Group(list) => self.list(list),
            ShellAction::Subshell(list) => self.isolated(|player| player.list(list)),
            ShellAction::If(branches) => self.branch(branches),
            ShellAction::While { condition, wanted, body, is_endless } => {
                self.repeat(condition, *wanted, body, *is_endless && self.is_for_end)
            }
            ShellAction::For(variable, values, body) => self.for_each(variable, values, body),
            ShellAction::Count(sums, body) => self.count(sums, body),
            ShellAction::Case(subject, arms) => self.case(subject, arms),
            ShellAction::Conditional(words) => {
                self.status = i32::from(!programs::conditional(self, words));
                AfterCommand::Go
            }
            ShellAction::Sum(word) => {
                let text = self.text(word);
                self.status = i32::from(self.sum(&text) == 0);
                AfterCommand::Go
            }
            ShellAction::Function(name, body) => {
                self.status = 0;
                self.define(name, body)
            }
        }
    }

    fn define(&mut self, name: &str, body: &Arc<ShellCommand>) -> AfterCommand {
        if self.functions.len() >= MAX_VARIABLES {
            return self.stop(ScriptFault::Memory);
        }
        let is_shared = Arc::strong_count(&self.functions) > 1;
        if self.spend(if is_shared { self.functions.len() } else { 0 }) == AfterCommand::Go {
            Arc::make_mut(&mut self.functions).insert(name.to_owned(), body.clone());
        }
        self.spend(0)
    }

    fn simple(&mut self, assignments: &[(String, Word)], words: &[Word]) -> AfterCommand {
        let words = self.command_words(words);
        if words.is_empty() {
            self.status = 0;
        }
        let mut before = Vec::new();
        let mut told = Vec::new();
        for (name, word) in assignments {
            if words.is_empty() {
                self.status = 0;
            }
            let value = self.text(word);
            // Before a program it is for that program alone.
            if !words.is_empty() && !is_special(&words[0]) {
                before.push((name, self.variables.get(name).cloned()));
            }
            if self.options.tells {
                told.push((name.as_str(), value.clone()));
            }
            self.set(name, value);
        }
        if self.options.tells && self.fault.is_none() && self.pending.is_none() && self.abort.is_none() {
            let said = self.dialect.traced(&told, &words);
            self.complain(&said);
        }
        let flow = self.run_words(&words);
        for (name, value) in before.into_iter().rev() {
            match value {
                Some(value) => self.set(name, value),
                None => self.unset(&[name]),
            }
        }
        flow
    }

    fn run_words(&mut self, words: &[String]) -> AfterCommand {
        if self.fault.is_some() {
            return AfterCommand::Stopped;
        }
        if let Some(flow) = self.pending.take() {
            return flow;
        }
        if let Some(code) = self.abort {
            return AfterCommand::Exit(code);
        }
        let Some((program, arguments)) = words.split_first() else { return AfterCommand::Go };
        match self.functions.get(program).cloned() {
            Some(function) => self.call(&function, arguments),
            None => {
                // It may ask how the last one ended.
                self.last_status = std::mem::take(&mut self.status);
                let flow = programs::run(self, program, arguments);
                self.run_wanted_shell(flow)
            }
        }
    }

    /// A function with its arguments. What calls itself again and again is nested too deeply.
    fn call(&mut self, function: &ShellCommand, arguments: &[String]) -> AfterCommand {
        if self.depth == MAX_DEPTH {
            return self.stop(ScriptFault::Depth);
        }
        self.depth += 1;
        self.status = 0;
        let before = std::mem::replace(&mut self.arguments, Arc::new(arguments.to_vec()));
        self.locals.push(vec![]);
        let flow = self.command(function);
        for (name, value) in self.locals.pop().unwrap_or_default().into_iter().rev() {
            match value {
                Some(value) => self.set(&name, value),
                None => self.unset(&[&name]),
            }
        }
        self.arguments = before;
        self.depth -= 1;
        match flow {
            AfterCommand::Return(code) => {
                self.status = code;
                AfterCommand::Go
            }
            flow => flow,
        }
    }

    /// A text as a script in this shell (`eval`, and what `trap` says).
    pub(crate) fn evaluate(&mut self, text: &str) -> AfterCommand {
        let line = self.line;
        let flow = match programs::read(self, text) {
            Ok(script) => self.list(&script.list),
            Err(flow) => flow,
        };
        self.line = line;
        flow
    }

    /// A shell within a shell, for whoever is attached; instead of it after `exec`, which ends with `flow`.
    fn run_wanted_shell(&mut self, flow: AfterCommand) -> AfterCommand {
        let Some(shell) = self.wanted_shell.take() else { return flow };
        let run = |player: &mut Player<'_>| {
            player.arguments = Arc::new(shell.arguments);
            if !shell.options.is_empty() {
                player.evaluate(&format!("set {}", shell.options));
            }
            programs::run_typed_shell(player, shell.name)
        };
        match self.in_own_process(run) {
            AfterCommand::Exit(code) if flow == AfterCommand::Go => {
                self.status = code;
                AfterCommand::Go
            }
            ended => ended,
        }
    }

    fn branch(&mut self, branches: &[(CommandList, CommandList)]) -> AfterCommand {
        for (condition, body) in branches {
            self.status = 0;
            match self.tested(condition) {
                AfterCommand::Go if self.status == 0 => return self.list(body),
                AfterCommand::Go => {}
                flow => return flow,
            }
        }
        self.status = 0;
        AfterCommand::Go
    }

    /// A condition may fail.
    fn tested(&mut self, condition: &CommandList) -> AfterCommand {
        self.tested += 1;
        let flow = self.list(condition);
        self.tested -= 1;
        flow
    }

    /// Of a loop that is endless two rounds are enough to know what it does.
    fn repeat(
        &mut self,
        condition: &CommandList,
        wanted: bool,
        body: &CommandList,
        is_endless: bool,
    ) -> AfterCommand {
        let mut rounds = 0;
        while self.spend(1) == AfterCommand::Go {
            match self.tested(condition) {
                AfterCommand::Go if (self.status == 0) != wanted => {
                    self.status = 0;
                    return AfterCommand::Go;
                }
                AfterCommand::Go => {}
                flow => return flow,
            }
            match left_round(self.list(body)) {
                AfterCommand::Go => {}
                AfterCommand::Break(0) => return AfterCommand::Go,
                flow => return flow,
            }
            rounds += 1;
            // What is asked is answered in another way each time.
            if is_endless && rounds > 1 && self.asked == 0 {
                return AfterCommand::OutOfTime;
            }
        }
        self.spend(0)
    }

    fn for_each(&mut self, variable: &str, values: &[Word], body: &CommandList) -> AfterCommand {
        let values: Vec<String> = values.iter().flat_map(|value| self.fields(value)).collect();
        for value in values {
            self.set(variable, value);
            match self.spend(1) {
                AfterCommand::Go => {}
                flow => return flow,
            }
            match left_round(self.list(body)) {
                AfterCommand::Go => {}
                AfterCommand::Break(0) => break,
                flow => return flow,
            }
        }
        AfterCommand::Go
    }

    /// `for ((first; while; then))`
    fn count(&mut self, [first, condition, then]: &[Word; 3], body: &CommandList) -> AfterCommand {
        let value = |player: &mut Self, word: &Word| {
            let text = player.text(word);
            if text.trim().is_empty() { 1 } else { player.sum(&text) }
        };
        value(self, first);
        while self.spend(1) == AfterCommand::Go && self.abort.is_none() {
            if value(self, condition) == 0 {
                return AfterCommand::Go;
            }
            match left_round(self.list(body)) {
                AfterCommand::Go => {}
                AfterCommand::Break(0) => return AfterCommand::Go,
                flow => return flow,
            }
            value(self, then);
        }
        self.spend(0)
    }

    fn case(&mut self, subject: &Word, arms: &[(Vec<Word>, CommandList)]) -> AfterCommand {
        let subject = self.text(subject);
        for (patterns, body) in arms {
            for pattern in patterns {
                let pattern = self.pattern(pattern);
                if self.matches(&pattern, &subject) {
                    return self.list(body);
                }
            }
        }
        AfterCommand::Go
    }

    /// A comparison costs as much as it may take at worst: a star makes it the product of the lengths.
    pub(crate) fn matches(&mut self, pattern: &str, text: &str) -> bool {
        let work = if pattern.contains('*') { pattern.len().saturating_mul(text.len()) } else { text.len() };
        self.handle(work) && pattern::compare(pattern, text).0
    }
}

/// Whether a command may read its input, as far as its name says that it does not.
fn may_read(action: &ShellAction) -> bool {
    let ShellAction::Simple(_, words) = action else { return true };
    let name = words.first().and_then(|word| plain(word));
    !words.is_empty()
        && !matches!(name, Some(":" | "true" | "false" | "exec" | "echo" | "printf" | "test" | "["))
}
