//! What the simulated containers would have said.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::interpreter::player::Line;
use crate::invocation::Invocation;
use crate::programs::pi;
use crate::surroundings::Surroundings;
use crate::{image_servers, images, process, web_servers};

/// Lines that are kept of one container; older ones are gone, as after log rotation.
const MAX_LINES: usize = 10_000;

/// A line of a container's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// When it was said.
    pub at: DateTime<Utc>,
    /// Without its end.
    pub text: String,
}

/// A run of a container: from its start to its end, or to now.
pub struct Run<'a> {
    /// The container's name.
    pub name: &'a str,
    /// What it runs.
    pub invocation: &'a Invocation<'a>,
    /// What it found around it, when that is known.
    pub around: Option<&'a Surroundings>,
    /// When it started.
    pub started_at: DateTime<Utc>,
    /// When it ended, or now.
    pub until: DateTime<Utc>,
}

/// All that a run of a container has said until now.
pub fn lines(run: &Run<'_>) -> Vec<LogLine> {
    let spent = (run.until - run.started_at).to_std().unwrap_or_default();
    let played = run.around.and_then(|around| process::play(run.invocation, around, Some(spent)));
    let mut said = played.map_or_else(|| known(run), |played| played.lines);
    said.retain(|line| line.after <= spent);
    said.drain(..said.len().saturating_sub(MAX_LINES));
    said.into_iter().map(|line| finish(line, run)).collect()
}

fn finish(line: Line, run: &Run<'_>) -> LogLine {
    let at = clock::after(run.started_at, line.after);
    let nginx = at.format("%Y/%m/%d %H:%M:%S").to_string();
    let redis = at.format("%d %b %Y %H:%M:%S%.3f").to_string();
    let text = line.text.replace("{nginx-time}", &nginx).replace("{redis-time}", &redis);
    LogLine { at, text: with_pi(text) }
}

fn with_pi(text: String) -> String {
    let count = text.strip_prefix("$(pi ").and_then(|rest| rest.strip_suffix(')')?.parse().ok());
    count.map(pi::digits).unwrap_or(text)
}

/// What well-known images say when they start.
fn known(run: &Run<'_>) -> Vec<Line> {
    let has_command = !run.invocation.command.is_empty();
    let lines: Vec<String> = match images::base_name(run.invocation.image) {
        "nginx" | "nginx-unprivileged" if !has_command => {
            let mut lines: Vec<String> = NGINX.iter().map(ToString::to_string).collect();
            let site = run.around.and_then(|around| web_servers::nginx(run.invocation, Some(around)));
            let problems = site.iter().flat_map(|site| site.problems());
            lines.extend(problems.map(|text| format!("{{nginx-time}} {text}")));
            lines
        }
        "httpd" if !has_command => HTTPD.iter().map(ToString::to_string).collect(),
        _ => match image_servers::first_lines(run.invocation, run.around) {
            lines if lines.is_empty() => {
                vec![format!(
                    "simulated container {:?} of image {:?} started",
                    run.name, run.invocation.image
                )]
            }
            lines => lines,
        },
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

const HTTPD: &[&str] =
    &["[mpm_event:notice] [pid 1:tid 1] AH00489: Apache/2.4 (Unix) configured -- resuming normal operations"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::given::{Given, given};

    fn said(container: &Given, seconds: u64) -> Vec<String> {
        let started_at = DateTime::UNIX_EPOCH;
        let until = started_at + Duration::from_secs(seconds);
        let invocation = container.invocation();
        let variables = [("HOSTNAME".to_owned(), "web-1".to_owned())].into();
        let around = Surroundings { variables, started_at, ..Surroundings::default() };
        let run = Run { name: "a", invocation: &invocation, around: Some(&around), started_at, until };
        lines(&run).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn containers_say_what_they_would() {
        let counter = "i=0; while true; do echo \"$i: $(date)\"; i=$((i+1)); sleep 1; done";
        let counted = said(&given("busybox", &[], &["/bin/sh", "-c", counter]), 2);
        assert_eq!(counted[0], "0: Thu Jan  1 00:00:00 UTC 1970");
        assert_eq!(counted[2], "2: Thu Jan  1 00:00:02 UTC 1970");
        assert_eq!(counted.len(), 3);
        let nginx = said(&given("nginx:1.27", &[], &[]), 5);
        assert!(nginx.last().unwrap().starts_with("1970/01/01 00:00:00 [notice]"), "{nginx:?}");
        let redis = said(&given("redis", &["redis-server", "--port", "6380"], &[]), 5);
        assert!(
            redis.contains(&"1:M 01 Jan 1970 00:00:00.000 * Running mode=standalone, port=6380.".to_owned())
        );
        let hello = given("busybox", &["sh", "-c", "sleep 5; echo on $HOSTNAME"], &[]);
        assert_eq!(said(&hello, 4), Vec::<String>::new());
        assert_eq!(said(&hello, 9), ["on web-1"]);
        let pi = ["perl", "-Mbignum=bpi", "-wle", "print bpi(10)"];
        assert_eq!(said(&given("perl:5.34.0", &pi, &[]), 2), ["3.141592654"]);
    }
}
