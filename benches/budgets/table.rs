//! The table: a line for each figure, with its budget and what the real thing needs.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write as _;

/// One figure.
pub(crate) struct Row {
    what: String,
    figure: f64,
    unit: &'static str,
    budget: Option<f64>,
    /// The budget is the least that it may be.
    is_floor: bool,
    /// What a real control plane needs on a machine of this size, in the same unit.
    real: Cow<'static, str>,
}

impl Row {
    /// A figure without a budget.
    pub(crate) fn new(what: impl Into<String>, figure: f64, unit: &'static str) -> Row {
        Row { what: what.into(), figure, unit, budget: None, is_floor: false, real: Cow::Borrowed("") }
    }

    /// The most that it may be.
    pub(crate) fn budget(self, budget: f64) -> Row {
        Row { budget: Some(budget), ..self }
    }

    /// The least that it may be.
    pub(crate) fn at_least(self, budget: f64) -> Row {
        Row { budget: Some(budget), is_floor: true, ..self }
    }

    /// The same figure of kube-apiserver 1.36 with etcd, controller manager and scheduler.
    pub(crate) fn real(self, real: &'static str) -> Row {
        Row { real: real.into(), ..self }
    }

    /// The same figure of upstream's program, measured in this run.
    pub(crate) fn measured(self, real: f64) -> Row {
        Row { real: rounded(real).into(), ..self }
    }
}

/// All figures.
#[derive(Default)]
pub(crate) struct Table {
    /// In the order in which they are shown.
    pub rows: Vec<Row>,
}

impl Table {
    /// Prints it.
    pub(crate) fn print(&self) {
        let mut text = String::from("\n");
        let head = ["what", "budget", "figure", "met", "the real one"];
        let lines: Vec<[String; 5]> = self.rows.iter().map(cells).collect();
        let width = |column: usize| {
            let cells = lines.iter().map(|line| line[column].chars().count());
            cells.chain([head[column].len()]).max().unwrap_or_default()
        };
        let widths = [0, 1, 2, 3, 4].map(width);
        for line in [head.map(str::to_owned)].iter().chain(&lines) {
            let [what, budget, figure, met, real] = line;
            let [w0, w1, w2, w3, w4] = widths;
            let _ = writeln!(text, "{what:w0$}  {budget:>w1$}  {figure:>w2$}  {met:w3$}  {real:>w4$}");
        }
        let missed = self.rows.iter().filter(|row| row.is_met() == Some(false)).count();
        let judged = self.rows.iter().filter(|row| row.budget.is_some()).count();
        let _ = writeln!(text, "\n{} of {judged} budgets met. {}", judged - missed, machine());
        let _ = std::io::stdout().write_all(text.as_bytes());
    }
}

impl Row {
    fn is_met(&self) -> Option<bool> {
        let is_met = |budget| if self.is_floor { self.figure >= budget } else { self.figure <= budget };
        self.budget.map(is_met)
    }
}

fn cells(row: &Row) -> [String; 5] {
    let number = |number: f64| format!("{} {}", rounded(number), row.unit);
    let met = match row.is_met() {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "",
    };
    [
        row.what.clone(),
        row.budget.map(number).unwrap_or_default(),
        number(row.figure),
        met.into(),
        if row.real.is_empty() { String::new() } else { format!("{} {}", row.real, row.unit) },
    ]
}

/// Three digits that mean something.
fn rounded(number: f64) -> String {
    let decimals = match number.abs() {
        number if number >= 100.0 => 0,
        number if number >= 10.0 => 1,
        number if number >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{number:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// What it was measured on, and how busy that was: on a busy machine only processor time and memory say much.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or("?");
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    format!("{cores} cores ({}), load average {load}, {profile} build.", model.unwrap_or("unknown"))
}
