//! What the simulated containers would have said.

use std::time::Duration;

use super::process::{self, Line};
use super::runtime::after;
use super::surroundings::Surroundings;
use super::{images, pi};
use apimachinery::time::Time;
use apis::views::pod::Container as Spec;

/// Lines that are kept of one container; older ones are gone, as after log rotation.
const MAX_LINES: usize = 10_000;

/// A line of a container's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// When it was said.
    pub at: Time,
    /// Without its end.
    pub text: String,
}

/// A run of a container: from its start to its end, or to now.
pub struct Run<'a> {
    /// The container.
    pub spec: &'a Spec,
    /// What it found around it, when that is known.
    pub around: Option<&'a Surroundings>,
    /// When it started.
    pub started_at: Time,
    /// When it ended, or now.
    pub until: Time,
}

/// All that a run of a container has said until now.
pub fn lines(run: &Run<'_>) -> Vec<LogLine> {
    let spent = (run.until - run.started_at).to_std().unwrap_or_default();
    let played = run.around.and_then(|around| process::play(run.spec, around, Some(spent)));
    let mut said = played.map_or_else(|| known(run.spec), |played| played.lines);
    said.retain(|line| line.after <= spent);
    said.drain(..said.len().saturating_sub(MAX_LINES));
    said.into_iter().map(|line| finish(line, run)).collect()
}

fn finish(line: Line, run: &Run<'_>) -> LogLine {
    let at = after(run.started_at, line.after);
    let nginx = at.format("%Y/%m/%d %H:%M:%S").to_string();
    LogLine { at, text: with_pi(line.text.replace("{nginx-time}", &nginx)) }
}

fn with_pi(text: String) -> String {
    let count = text.strip_prefix("$(pi ").and_then(|rest| rest.strip_suffix(')')?.parse().ok());
    count.map(pi::digits).unwrap_or(text)
}

/// What well-known images say when they start.
fn known(spec: &Spec) -> Vec<Line> {
    let has_command = !spec.command.is_empty();
    let lines: Vec<String> = match images::base_name(&spec.image) {
        "nginx" if !has_command => NGINX.iter().map(ToString::to_string).collect(),
        "redis" if !has_command => REDIS.iter().map(ToString::to_string).collect(),
        "httpd" if !has_command => HTTPD.iter().map(ToString::to_string).collect(),
        _ => vec![format!("simulated container {:?} of image {:?} started", spec.name, spec.image)],
    };
    lines.into_iter().map(|text| Line { after: Duration::ZERO, text }).collect()
}

const NGINX: &[&str] = &[
    "/docker-entrypoint.sh: /docker-entrypoint.d/ is not empty, will attempt to perform configuration",
    "/docker-entrypoint.sh: Looking for shell scripts in /docker-entrypoint.d/",
    "/docker-entrypoint.sh: Launching /docker-entrypoint.d/10-listen-on-ipv6-by-default.sh",
    "/docker-entrypoint.sh: Configuration complete; ready for start up",
    "{nginx-time} [notice] 1#1: using the \"epoll\" event method",
    "{nginx-time} [notice] 1#1: start worker processes",
];

const REDIS: &[&str] = &[
    "1:C * oO0OoO0OoO0Oo Redis is starting oO0OoO0OoO0Oo",
    "1:C * Configuration loaded",
    "1:M * Running mode=standalone, port=6379.",
    "1:M * Ready to accept connections tcp",
];

const HTTPD: &[&str] =
    &["[mpm_event:notice] [pid 1:tid 1] AH00489: Apache/2.4 (Unix) configured -- resuming normal operations"];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(container: serde_json::Value, seconds: i64) -> Vec<String> {
        let spec: Spec = serde_json::from_value(container).unwrap();
        let (started_at, until) = (Time::UNIX_EPOCH, Time::UNIX_EPOCH + chrono::TimeDelta::seconds(seconds));
        let variables = [("HOSTNAME".to_owned(), "web-1".to_owned())].into();
        let around = Surroundings { variables, started_at, ..Surroundings::default() };
        let run = Run { spec: &spec, around: Some(&around), started_at, until };
        lines(&run).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn containers_say_what_they_would() {
        let counter = "i=0; while true; do echo \"$i: $(date)\"; i=$((i+1)); sleep 1; done";
        let counter = json!({"name": "count", "image": "busybox", "args": ["/bin/sh", "-c", counter]});
        let counted = said(counter, 2);
        assert_eq!(counted[0], "0: Thu Jan  1 00:00:00 UTC 1970");
        assert_eq!(counted[2], "2: Thu Jan  1 00:00:02 UTC 1970");
        assert_eq!(counted.len(), 3);
        let nginx = said(json!({"name": "web", "image": "nginx:1.27"}), 5);
        assert!(nginx.last().unwrap().starts_with("1970/01/01 00:00:00 [notice]"), "{nginx:?}");
        let hello =
            json!({"name": "a", "image": "busybox", "command": ["sh", "-c", "sleep 5; echo on $HOSTNAME"]});
        assert_eq!(said(hello.clone(), 4), Vec::<String>::new());
        assert_eq!(said(hello, 9), ["on web-1"]);
        let pi = ["perl", "-Mbignum=bpi", "-wle", "print bpi(10)"];
        assert_eq!(said(json!({"name": "pi", "image": "perl:5.34.0", "command": pi}), 2), ["3.141592654"]);
    }
}
