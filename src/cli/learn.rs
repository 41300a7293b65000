//! `kubarium learn`: a course in the terminal, with a running cluster to try it on.

use std::ffi::OsString;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;
use clock::Clock;
use http::Method;
use serde_json::Value;
use ui::{Lesson, LessonObject, LessonStep, lessons};

use super::connection::Context;
use super::style::{Style, Tone};
use super::terminal::{fitted, paragraphs};
use super::{Failure, block_on, choice, lesson_left, say};

/// How often the record is looked at while something is waited for.
const PERIOD: Duration = Duration::from_millis(200);
/// How long nothing more may be seen until it is said what is waited for.
const HINTED_AFTER: Duration = Duration::from_secs(10);

/// Learn how Kubernetes works, on a cluster that runs: without a lesson, list them.
#[derive(Args)]
pub struct Learn {
    /// Which lesson.
    pub lesson: Option<String>,
    /// A manifest of yours: the lesson is shown on the first Deployment in it instead of its own.
    #[arg(short = 'f', long, value_name = "FILE", requires = "lesson")]
    pub filename: Option<PathBuf>,
    /// Run the commands here, instead of waiting until you have run them in another shell.
    #[arg(long)]
    pub run: bool,
    /// How many seconds to wait for what is to be seen.
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    pub patience: u64,
    /// The cluster's name; else the only one that runs, or that of kubectl's current context.
    #[arg(long, env = "KUBARIUM_NAME", value_name = "NAME")]
    pub name: Option<String>,
}

impl Learn {
    /// Takes the lesson from its first step to its last.
    pub fn run(self) -> Result<(), Failure> {
        let Some(name) = &self.lesson else {
            for Lesson { name, title, about, .. } in lessons() {
                say(fitted(&format!("{name:<24} {title}: {about}")));
            }
            return Ok(());
        };
        let lesson = lessons().iter().find(|lesson| lesson.name == *name);
        let lesson =
            lesson.ok_or_else(|| Failure(format!("no lesson {name:?}; kubarium learn lists them")))?;
        let lesson = self.shown(lesson)?;
        let record = choice::running(self.name.as_deref())?;
        let taken = LessonTaken {
            context: Context::load(&record.kubeconfig, &record.name)?,
            kubeconfig: &record.kubeconfig,
            style: Style::of_stdout(),
            learn: &self,
        };
        // What is brought is applied, whether or not it is there.
        if self.filename.is_none() {
            lesson_left::refuse_if_left(&taken.context, &lesson)?;
        }
        say(taken.style.paint(Tone::Strong, &lesson.title));
        let mut since = taken.newest()?;
        for step in &lesson.steps {
            since = taken.take(step, since)?;
        }
        Ok(())
    }
}

impl Learn {
    /// The lesson on whatever it is shown.
    fn shown(&self, lesson: &Lesson) -> Result<Lesson, Failure> {
        let Some(file) = &self.filename else {
            return Ok(lesson.own.as_ref().map_or_else(|| lesson.clone(), |own| lesson.shown_on(own)));
        };
        let Some(own) = &lesson.own else {
            let others: Vec<&str> =
                lessons().iter().filter(|one| one.own.is_some()).map(|one| one.name.as_str()).collect();
            let name = &lesson.name;
            return Err(Failure(format!(
                "the lesson {name} is shown on its own objects alone; -f is for {}",
                others.join(", ")
            )));
        };
        let shown = file.display();
        let text = std::fs::read_to_string(file)
            .map_err(|error| Failure::new(format!("cannot read {shown}"), error))?;
        let kind = &own.kind;
        let given = own
            .in_manifest(&text)
            .map_err(|error| Failure::new(format!("no lesson can be shown on {shown}"), error))?
            .ok_or_else(|| Failure(format!("{shown} has no {kind} with a name and a container")))?;
        let mut lesson = lesson.shown_on(&given);
        for step in lesson.steps.iter_mut().filter(|step| step.applies) {
            step.run = applying(&shown.to_string(), &given);
        }
        Ok(lesson)
    }
}

/// The command that makes the object where the lesson looks for it, whatever namespace kubectl's context has.
/// Where the manifest says it that is enough: with a flag kubectl refuses what is in other namespaces.
fn applying(file: &str, LessonObject { namespace, is_unplaced, .. }: &LessonObject) -> String {
    let there = if *is_unplaced { format!("-n {namespace} ") } else { String::new() };
    format!("kubectl {there}apply -f {}", quoted(file))
}

/// Where programs are looked for, with our own folder first.
fn path_with_us() -> Option<OsString> {
    let own = std::env::current_exe().ok()?.parent()?.to_owned();
    let others = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&others))).ok()
}

/// What is said to who chose another answer than the right one.
fn refusal(step: &LessonStep, answer: &str) -> String {
    let why = step.wrong.get(answer).map_or("That is not so.", |why| why.trim_end());
    format!("No. {why} Once more?")
}

/// As one word of a shell.
fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-".contains(letter);
    if text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// One who learns, and the cluster that is learned on.
struct LessonTaken<'a> {
    context: Context,
    kubeconfig: &'a Path,
    style: Style,
    learn: &'a Learn,
}

impl LessonTaken<'_> {
    /// Tells one step. `since` is where in the record the last command was shown: what needs no command is
    /// looked for from there on, and not in the story of who took the lesson before. Says it for the next.
    fn take(&self, step: &LessonStep, since: u64) -> Result<u64, Failure> {
        if !step.question.is_empty() {
            self.ask(step);
            return Ok(since);
        }
        say(format!("\n{}", paragraphs(step.text.trim_end())));
        let since = if step.run.is_empty() { since } else { self.newest()? };
        if !step.run.is_empty() {
            say(self.style.paint(Tone::Strong, &format!("\n$ {}", step.run)));
            if self.learn.run {
                self.do_it(&step.run)?;
            } else if !step.see.is_empty() {
                self.whisper("(for another shell: this one waits until it has been seen)");
            } else if std::io::stdin().is_terminal() {
                self.whisper("(for another shell; Enter goes on)");
                let _ = std::io::stdin().read_line(&mut String::new());
            }
        }
        self.wait(step, since)?;
        Ok(since)
    }

    fn whisper(&self, text: &str) {
        say(self.style.paint(Tone::Quiet, text));
    }

    /// Runs a command as who learns would: with the cluster's kubeconfig, and this program as `kubarium`.
    fn do_it(&self, command: &str) -> Result<(), Failure> {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).env("KUBECONFIG", self.kubeconfig);
        if let Some(path) = path_with_us() {
            shell.env("PATH", path);
        }
        let status = shell.status();
        let status = status.map_err(|error| Failure::new("cannot run sh", error))?;
        let failed = || Failure(format!("the command ended with {status}: {command}"));
        if status.success() { Ok(()) } else { Err(failed()) }
    }

    /// Until everything that is to be seen is in the record.
    fn wait(&self, step: &LessonStep, since: u64) -> Result<(), Failure> {
        let clock = Clock::real();
        let mut told = 0;
        let mut hint_at = HINTED_AFTER;
        loop {
            let lines = self.lines(since)?;
            let seen = step.seen(lines.iter().map(String::as_str));
            for line in seen.iter().skip(told) {
                say(self.style.paint(Tone::Good, &fitted(&format!("seen: {line}"))));
                hint_at = clock.elapsed() + HINTED_AFTER;
            }
            told = told.max(seen.len());
            let Some(wanted) = step.see.get(told) else {
                return Ok(());
            };
            if clock.elapsed() > Duration::from_secs(self.learn.patience) {
                return Err(Failure(format!("{wanted:?} was not seen in time")));
            }
            if clock.elapsed() > hint_at {
                self.whisper(&format!("(still to be seen: {wanted:?})"));
                hint_at = Duration::MAX;
            }
            block_on(async {
                clock.sleep(PERIOD).await;
                Ok(())
            })?;
        }
    }

    /// Asks until the answer is right; where nobody can answer it is given.
    fn ask(&self, step: &LessonStep) {
        say(self.style.paint(Tone::Strong, &format!("\n{}", step.question)));
        for (number, answer) in (1..).zip(&step.answers) {
            say(fitted(&format!("  {number}. {answer}")));
        }
        let mut input = std::io::stdin().lock();
        let mut word = "Answer";
        while std::io::stdin().is_terminal() {
            let _ = std::io::stdout().write_all(b"> ").and_then(|()| std::io::stdout().flush());
            let mut line = String::new();
            if input.read_line(&mut line).unwrap_or_default() == 0 {
                break;
            }
            let chosen =
                line.trim().parse::<usize>().ok().and_then(|number| step.answers.get(number.wrapping_sub(1)));
            match chosen {
                Some(answer) if *answer == step.right => {
                    word = "Yes";
                    break;
                }
                Some(answer) => say(paragraphs(&refusal(step, answer))),
                None => say("The number of an answer, please."),
            }
        }
        say(paragraphs(&format!("{word}: {}. {}", step.right, step.because.trim_end())));
    }

    /// The step that comes next in the record.
    fn newest(&self) -> Result<u64, Failure> {
        let told = self.told("now")?;
        Ok(told.last().and_then(|line| line["next"].as_u64()).unwrap_or(1))
    }

    /// `component: words` of each step from one on.
    fn lines(&self, since: u64) -> Result<Vec<String>, Failure> {
        let told = self.told(&since.to_string())?;
        let steps = told.iter().filter_map(|line| line["steps"].as_array()).flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(steps.map(|step| format!("{}: {}", text(&step["component"]), text(&step["words"]))).collect())
    }

    fn told(&self, since: &str) -> Result<Vec<Value>, Failure> {
        let path = format!("{}/flow?since={since}", handles::ROOT);
        let answer = block_on(self.context.ask(Method::GET, &path, vec![]))?;
        let lines = answer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let read = |line| serde_json::from_slice(line);
        let parsed: Result<Vec<Value>, _> = lines.map(read).collect();
        parsed.map_err(|error| Failure::new("the cluster's answer is not understood", error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_wrong_is_told_why() {
        let lesson = lessons().iter().find(|lesson| lesson.name == "deployment").unwrap();
        let asked = lesson.steps.iter().find(|step| !step.question.is_empty()).unwrap();
        let said = refusal(asked, &asked.answers[0]);
        assert!(
            said.starts_with("No. ") && said.contains("binding") && said.ends_with(" Once more?"),
            "{said}"
        );
    }

    #[test]
    fn commands_find_this_program_first() {
        let own = std::env::current_exe().unwrap();
        let path = path_with_us().unwrap();
        assert_eq!(std::env::split_paths(&path).next().as_deref(), own.parent());
    }
}
