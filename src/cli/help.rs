//! How help looks: `-h` shows what is used daily, `--help` all of it; both fit the window, and where there is
//! none, 80 columns.

use std::any::TypeId;
use std::io::IsTerminal;
use std::time::Duration;

use clap::{Arg, Command};

/// The flags of `up` that `-h` shows, and that stand first in their groups, in this order.
const DAILY: &[&str] = &[
    "nodes",
    "filename",
    "detach",
    "name",
    "data_dir",
    "listen",
    "kubeconfig",
    "verbose",
    "stages",
    "seed",
    "apiserver_only",
    "runtime_config",
    "feature_gates",
];
/// How wide help is where nobody says how wide the window is: in a pipe, or in a file.
const WIDTH: usize = 80;
/// Longer lines are hard to read, however wide the window is.
const MAX_WIDTH: usize = 100;
const MORE: &str = "There are more flags, for what runs and who may come in: kubarium up --help";
/// The flags that `-h` of `run` shows beside them.
const DAILY_OF_RUN: &[&str] = &["publish", "keep", "keep_always", "junit"];
const MORE_OF_RUN: &str = "There are more flags, all that `kubarium up` has: kubarium run --help";
const ENVIRONMENT: &str = "Every flag is also read from the environment, as --data-dir from KUBARIUM_DATA_DIR; the \
                           command line counts more. Flags that kube-apiserver has too mean what they mean there.";

/// The command line with its help in shape.
pub(crate) fn shape(command: Command) -> Command {
    let command = if has_window() { command.max_term_width(MAX_WIDTH) } else { command.term_width(WIDTH) };
    command.mut_args(shape_arg).mut_subcommands(|subcommand| match subcommand.get_name() {
        "up" => shape_up(subcommand),
        "run" => shape_run(subcommand),
        _ => shape_all(subcommand),
    })
}

/// Whether there is a window, or somebody who says how wide it is.
fn has_window() -> bool {
    let is_terminal = std::io::stdout().is_terminal() || std::io::stderr().is_terminal();
    is_terminal || std::env::var_os("COLUMNS").is_some()
}

fn shape_up(command: Command) -> Command {
    let command = command.mut_args(|arg| with_variable(arg).hide_env(true));
    shape_daily(command, &[]).after_help(MORE).after_long_help(ENVIRONMENT)
}

fn shape_run(command: Command) -> Command {
    // It ends with its command, so it cannot go on in the background; and its name is its own.
    let command = command.mut_arg("detach", |arg| arg.hide(true));
    let name = "The cluster's name, as of `up`; else run- and a number";
    let command = command.mut_arg("name", |arg| arg.help(name).hide_default_value(true));
    shape_daily(command, DAILY_OF_RUN).after_help(MORE_OF_RUN)
}

/// What is used daily stands first, and `-h` shows nothing else.
fn shape_daily(command: Command, own: &[&str]) -> Command {
    let mut place = DAILY.len() + own.len();
    command.mut_args(|arg| {
        let id = arg.get_id().as_str().replace('-', "_");
        let daily = DAILY.iter().chain(own).position(|daily| id == *daily);
        place += 1;
        let is_rare = daily.is_none() && !arg.is_positional();
        shape_arg(arg).hide_short_help(is_rare).display_order(daily.unwrap_or(place))
    })
}

/// Every flag is read from the environment, too.
fn with_variable(arg: Arg) -> Arg {
    match arg.get_long() {
        Some("help" | "verbose") | None => arg,
        Some(long) => {
            let variable = format!("KUBARIUM_{}", long.replace('-', "_").to_uppercase());
            arg.env(variable)
        }
    }
}

fn shape_all(command: Command) -> Command {
    command.mut_args(shape_arg).mut_subcommands(shape_all)
}

/// A value is called by what it is, not by its flag again; a number may have a sign, so that the error is
/// about the number.
fn shape_arg(arg: Arg) -> Arg {
    if !arg.get_action().takes_values() {
        return arg;
    }
    let named_as_flag = arg.get_id().as_str().replace('-', "_").to_uppercase();
    let is_bool = arg.get_value_parser().type_id() == TypeId::of::<bool>();
    let has_own_name =
        arg.get_value_names().is_some_and(|names| names[0].replace('-', "_").to_uppercase() != named_as_flag);
    let arg = match kind_of(&arg).filter(|_| is_bool || !has_own_name) {
        Some(name) => arg.value_name(name),
        None => arg,
    };
    arg.allow_negative_numbers(true).hide_possible_values(is_bool)
}

/// None where a single word says it already.
fn kind_of(arg: &Arg) -> Option<&'static str> {
    let parser = arg.get_value_parser().type_id();
    let numbers = [
        TypeId::of::<u16>(),
        TypeId::of::<u32>(),
        TypeId::of::<u64>(),
        TypeId::of::<usize>(),
        TypeId::of::<i64>(),
        TypeId::of::<f64>(),
    ];
    match parser {
        parser if parser == TypeId::of::<bool>() => Some("BOOL"),
        parser if parser == TypeId::of::<Duration>() => Some("DURATION"),
        parser if numbers.into_iter().any(|number| parser == number) => Some("N"),
        _ => arg.get_id().as_str().contains(['_', '-']).then_some("VALUE"),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Arguments;

    /// The long and the short help of a subcommand at a width.
    fn helps(path: &[&str], width: usize) -> [String; 2] {
        let mut command = shape(Arguments::command()).term_width(width);
        command.build();
        let mut found = &mut command;
        for name in path {
            found = found.find_subcommand_mut(name).unwrap();
        }
        [found.render_long_help().to_string(), found.render_help().to_string()]
    }

    #[test]
    fn help_fits_eighty_columns_and_is_not_one_word_a_line() {
        for path in
            [&[][..], &["up"], &["down"], &["get"], &["get", "kubeconfig"], &["trace"], &["completion"]]
        {
            for help in helps(path, 80) {
                let wide = help.lines().filter(|line| line.chars().count() > 80).collect::<Vec<_>>();
                assert!(wide.is_empty(), "{path:?}: {wide:?}");
                let words = |line: &str| line.split_whitespace().count();
                let lines: Vec<&str> = help.lines().collect();
                let is_column = |part: &[&str]| part.iter().all(|line| words(line) == 1);
                assert!(!lines.windows(4).any(is_column), "{path:?}: {help}");
            }
        }
    }

    #[test]
    fn short_help_is_a_screen_and_points_to_the_rest() {
        let [long, short] = helps(&["up"], 80);
        let first = short.lines().find(|line| line.contains("--")).unwrap();
        assert!(first.contains("--nodes"), "what is used most is not first: {first}");
        assert!(short.lines().count() <= 40, "{} lines:\n{short}", short.lines().count());
        assert!(short.contains("kubarium up --help") && short.contains("--nodes <N>"), "{short}");
        assert!(!short.contains("--audit-log-path") && long.contains("--audit-log-path"));
        for id in DAILY.iter().filter(|id| **id != "verbose") {
            let flag = format!("--{}", id.replace('_', "-"));
            assert!(short.contains(&flag) && long.contains(&flag), "{flag}");
        }
        let command = shape(Arguments::command());
        let up = command.find_subcommand("up").unwrap();
        for arg in up.get_arguments().filter_map(Arg::get_long) {
            assert!(long.contains(&format!("--{arg}")), "{arg}");
        }
    }

    #[test]
    fn run_has_a_short_help_of_its_own() {
        let [long, short] = helps(&["run"], 80);
        assert!(short.lines().count() <= 60, "{} lines:\n{short}", short.lines().count());
        for shown in
            ["--nodes <N>", "--publish", "--keep <DIR>", "--junit <FILE>", "-- <COMMAND>...", "run --help"]
        {
            assert!(short.contains(shown), "{shown}: {short}");
        }
        assert!(!short.contains("--audit-log-path") && long.contains("--audit-log-path"));
        for help in [&long, &short] {
            assert!(!help.contains("--detach") && !help.contains("[default: kubarium]"), "{help}");
        }
    }

    #[test]
    fn flags_are_grouped_and_the_groups_follow_their_use() {
        let [long, _] = helps(&["up"], 80);
        let headings: Vec<&str> =
            long.lines().filter(|line| line.ends_with(':') && !line.starts_with(' ')).collect();
        let wanted = [
            "Options:",
            "What runs:",
            "Leader election:",
            "Controllers:",
            "Scheduler and kubelets:",
            "APIs:",
            "Kubelets elsewhere:",
            "Admission:",
            "Authentication:",
            "Authorization:",
            "Audit:",
            "Encryption at rest:",
            "etcd:",
        ];
        assert_eq!(headings, wanted);
        assert!(long.contains("--anonymous-auth[=<BOOL>]") && !long.contains("<ANONYMOUS"), "{long}");
    }
}
