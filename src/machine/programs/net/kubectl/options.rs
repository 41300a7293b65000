//! The words of `kubectl`'s command line.

use std::time::Duration;

use super::stop::{KubectlStop, duration};

/// What it is told. Flags that change nothing here are taken and not looked at.
#[derive(Debug, Default)]
pub(crate) struct KubectlOptions {
    /// The subcommand, and what it is about.
    pub(crate) words: Vec<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) output: String,
    pub(crate) selector: Option<String>,
    pub(crate) fields: Option<String>,
    pub(crate) files: Vec<String>,
    /// What is waited for.
    pub(crate) condition: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) grace: Option<i64>,
    pub(crate) is_everywhere: bool,
    pub(crate) is_all: bool,
    pub(crate) is_client_only: bool,
    pub(crate) ignores_missing: bool,
    pub(crate) has_no_headers: bool,
    pub(crate) waits: bool,
    /// `-p` of `patch`, and where else it stands.
    pub(crate) patch: Option<String>,
    pub(crate) patch_file: Option<String>,
    pub(crate) patch_type: Option<String>,
    pub(crate) subresource: Option<String>,
    pub(crate) replicas: Option<i64>,
    pub(crate) overwrites: bool,
    /// Whose log, and how much of it.
    pub(crate) container: Option<String>,
    pub(crate) tail: Option<String>,
    pub(crate) is_previous: bool,
    /// `rollout status` goes on until all is done.
    pub(crate) watches: bool,
    /// Of what `create` makes an object.
    pub(crate) literals: Vec<String>,
    pub(crate) from_files: Vec<String>,
    pub(crate) env_files: Vec<String>,
    pub(crate) images: Vec<String>,
    pub(crate) port: Option<u16>,
    pub(crate) from: Option<String>,
    pub(crate) certificate: Option<String>,
    pub(crate) key: Option<String>,
    /// What comes behind `--`.
    pub(crate) command: Vec<String>,
    /// Nothing is made, only said (`--dry-run=client`).
    pub(crate) is_dry: bool,
    pub(crate) sort_by: Option<String>,
    /// `exec`: what is read is passed on, a terminal is wanted, nothing is said beside.
    pub(crate) passes_input: bool,
    pub(crate) wants_terminal: bool,
    pub(crate) is_quiet: bool,
    /// `describe` tells of events, unless it is told not to, or is about several objects and not told to.
    pub(crate) shows_events: Option<bool>,
    /// Which one `rollout undo` goes back to.
    pub(crate) revision: Option<i64>,
}

/// Flags with a value.
const VALUED: &[&str] = &[
    "-n",
    "--namespace",
    "-o",
    "--output",
    "-l",
    "--selector",
    "--field-selector",
    "-f",
    "--filename",
    "--for",
    "--timeout",
    "--grace-period",
    "--request-timeout",
    "--field-manager",
    "--as",
    "--context",
    "-v",
    "--cascade",
    "--sort-by",
    "--dry-run",
    "--wait",
    "--ignore-not-found",
    "--all",
    "--force",
    "--now",
    "--validate",
    "-p",
    "--patch",
    "--patch-file",
    "--type",
    "--subresource",
    "--replicas",
    "--current-replicas",
    "--overwrite",
    "-c",
    "--container",
    "--tail",
    "--since",
    "--watch",
    "--from-literal",
    "--from-file",
    "--from-env-file",
    "--image",
    "--port",
    "--from",
    "--cert",
    "--key",
    "--to-revision",
    "--save-config",
    "--show-labels",
    "--show-events",
    "--chunk-size",
];
/// Of those, what may stand alone.
const SWITCHES: &[&str] = &[
    "--dry-run",
    "--wait",
    "--ignore-not-found",
    "--all",
    "--force",
    "--now",
    "--validate",
    "--cascade",
    "--overwrite",
    "--watch",
    "--save-config",
    "--show-labels",
    "--show-events",
];
/// Flags without one.
const PLAIN: &[&str] = &[
    "-A",
    "--all-namespaces",
    "--client",
    "--no-headers",
    "-w",
    "--follow",
    "--previous",
    "--timestamps",
    "--server-side",
    "-R",
    "--recursive",
    "-q",
    "--quiet",
    "-i",
    "--stdin",
    "-t",
    "--tty",
    "--force-conflicts",
];

impl KubectlOptions {
    /// # Errors
    /// What it does not know.
    pub(crate) fn parse(words: &[&str]) -> Result<KubectlOptions, KubectlStop> {
        let mut options = KubectlOptions { waits: true, watches: true, ..KubectlOptions::default() };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            if word == "--" {
                options.command = words.map(str::to_owned).collect();
                break;
            }
            if !word.starts_with('-') || word == "-" {
                options.words.push(word.to_owned());
                continue;
            }
            if matches!(word, "-it" | "-ti") {
                (options.passes_input, options.wants_terminal) = (true, true);
                continue;
            }
            let (name, given) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None if !word.starts_with("--") && word.len() > 2 => (&word[..2], Some(&word[2..])),
                None => (word, None),
            };
            let name = own_name(options.words.first(), name);
            if PLAIN.contains(&name) {
                options.switch(name, given != Some("false"));
            } else if SWITCHES.contains(&name) {
                options.set(name, given.unwrap_or("true"))?;
            } else if VALUED.contains(&name) {
                let missing = || KubectlStop::Failed(format!("error: flag needs an argument: {name}"));
                let value = given.or_else(|| words.next()).ok_or_else(missing)?;
                options.set(name, value)?;
            } else {
                return Err(KubectlStop::Failed(format!("error: unknown flag: {name}")));
            }
        }
        Ok(options)
    }

    fn switch(&mut self, name: &str, is_on: bool) {
        match name {
            "-A" | "--all-namespaces" => self.is_everywhere = is_on,
            "--client" => self.is_client_only = is_on,
            "--no-headers" => self.has_no_headers = is_on,
            "--previous" => self.is_previous = is_on,
            "-i" | "--stdin" => self.passes_input = is_on,
            "-t" | "--tty" => self.wants_terminal = is_on,
            "-q" | "--quiet" => self.is_quiet = is_on,
            _ => {}
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), KubectlStop> {
        let text = || Some(value.to_owned());
        let wrong = || KubectlStop::Failed(format!("error: invalid argument {value:?} for {name:?} flag"));
        match name {
            "-n" | "--namespace" => self.namespace = text(),
            "-o" | "--output" => value.clone_into(&mut self.output),
            "-l" | "--selector" => self.selector = text(),
            "--field-selector" => self.fields = text(),
            "-f" | "--filename" => self.files.push(value.to_owned()),
            "--for" => self.condition = text(),
            "--timeout" => self.timeout = Some(duration(value).ok_or_else(wrong)?),
            "--grace-period" => self.grace = Some(value.parse().map_err(|_| wrong())?),
            "-p" | "--patch" => self.patch = text(),
            "--patch-file" => self.patch_file = text(),
            "--type" => self.patch_type = text(),
            "--subresource" => self.subresource = text(),
            "--replicas" => self.replicas = Some(value.parse().map_err(|_| wrong())?),
            "--overwrite" => self.overwrites = value == "true",
            "-c" | "--container" => self.container = text(),
            "--tail" if value != "-1" => self.tail = text(),
            "--watch" => self.watches = value == "true",
            "--wait" => self.waits = value == "true",
            "--ignore-not-found" => self.ignores_missing = value == "true",
            "--all" => self.is_all = value == "true",
            "--show-events" => self.shows_events = Some(value == "true"),
            "--now" if value == "true" => self.grace = Some(1),
            "--force" if value == "true" => self.grace = Some(0),
            "--from-literal" => self.literals.push(value.to_owned()),
            "--from-file" => self.from_files.push(value.to_owned()),
            "--from-env-file" => self.env_files.push(value.to_owned()),
            "--image" => self.images.push(value.to_owned()),
            "--port" => self.port = Some(value.parse().map_err(|_| wrong())?),
            "--from" => self.from = text(),
            "--cert" => self.certificate = text(),
            "--key" => self.key = text(),
            "--sort-by" => self.sort_by = text(),
            "--to-revision" => self.revision = Some(value.parse().map_err(|_| wrong())?),
            "--dry-run" if value == "client" && self.words.first().is_some_and(|word| word == "create") => {
                self.is_dry = true;
            }
            "--dry-run" if value != "none" && value != "false" => {
                return Err(KubectlStop::Failed(
                    "error: --dry-run=client of create is all that is known here".into(),
                ));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Short flags are of their command: those of `logs` take no value.
fn own_name<'w>(command: Option<&String>, name: &'w str) -> &'w str {
    match (command.map(String::as_str), name) {
        (Some("logs"), "-p") => "--previous",
        (Some("logs"), "-f") => "--follow",
        (_, name) => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_stand_anywhere_and_in_all_forms() {
        let line = "get pods -nkube-system --selector=a=b -o json -A --ignore-not-found web";
        let options = KubectlOptions::parse(&line.split(' ').collect::<Vec<_>>()).ok().unwrap();
        assert_eq!(options.words, ["get", "pods", "web"]);
        assert_eq!(
            (options.namespace.as_deref(), options.selector.as_deref()),
            (Some("kube-system"), Some("a=b"))
        );
        assert!(
            options.output == "json" && options.is_everywhere && options.ignores_missing && options.waits
        );
        for line in ["logs -p web", "logs -f -p web --tail=3", "logs web -pf"] {
            let options = KubectlOptions::parse(&line.split(' ').collect::<Vec<_>>()).ok().unwrap();
            assert_eq!((options.words[1].as_str(), options.is_previous), ("web", true), "{line}");
            assert!(options.files.is_empty() && options.patch.is_none(), "{line}");
        }
        let options = KubectlOptions::parse(&["patch", "pod", "web", "-p", "{}"]).ok().unwrap();
        assert_eq!(options.patch.as_deref(), Some("{}"));
        let said = |line: &str| match KubectlOptions::parse(&line.split(' ').collect::<Vec<_>>()) {
            Err(KubectlStop::Failed(why)) => why,
            _ => String::new(),
        };
        assert_eq!(said("get --what"), "error: unknown flag: --what");
        assert_eq!(said("get -n"), "error: flag needs an argument: -n");
        assert_eq!(said("wait --timeout=x"), "error: invalid argument \"x\" for \"--timeout\" flag");
    }
}
