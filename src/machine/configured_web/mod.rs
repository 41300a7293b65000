//! Web servers that files of their volumes configure, but for nginx: Apache's `httpd.conf` and Caddy's
//! `Caddyfile`, as far as examples use them. Both are read into the same rules, which are followed in their
//! order.

mod apache;
mod apache_commands;
mod apache_environment;
mod apache_expression_reader;
mod apache_expressions;
mod apache_patterns;
mod caddy;
mod caddy_tokens;
mod header_changes;
mod paths;
mod rules;
#[cfg(test)]
mod tests;

pub(crate) use rules::{BadConfig, ConfiguredWeb, WebRules};

use crate::file_system::is_within;
use crate::images;
use crate::interpreter::player::{AfterCommand, Player};
use crate::invocation::Invocation;
use crate::programs::names;
use crate::surroundings::Surroundings;

/// Which of them, and where it is configured.
#[derive(Clone, Debug, PartialEq)]
enum WebProgram {
    Apache,
    /// By this file.
    Caddy(String),
}

/// Whether an image is one of theirs, started as it comes, and something is mounted that it reads.
pub(crate) fn is_configured(invocation: &Invocation<'_>, mounts: &[&str]) -> bool {
    let is_mounted =
        |folder: &str| mounts.iter().any(|mount| is_within(folder, mount) || is_within(mount, folder));
    match web_program(invocation) {
        Some(WebProgram::Apache) => is_mounted(apache::FOLDER),
        Some(WebProgram::Caddy(file)) => is_mounted(&file) || is_mounted(caddy::PAGES),
        None => false,
    }
}

fn web_program(invocation: &Invocation<'_>) -> Option<WebProgram> {
    let repository = images::repository(invocation.image);
    let words: Vec<&str> = invocation.words().map(String::as_str).collect();
    match repository.as_str() {
        "docker.io/library/httpd" | "registry.k8s.io/e2e-test-images/httpd" => {
            matches!(words.as_slice(), [] | ["httpd-foreground"]).then_some(WebProgram::Apache)
        }
        "docker.io/library/caddy" => {
            let words = match words.as_slice() {
                [first, rest @ ..] if names::base_name(first) == "caddy" => rest,
                words => words,
            };
            let file = |at: usize| words.get(at + 1).map(|file| (*file).to_owned());
            match words {
                [] => Some(WebProgram::Caddy(caddy::FILE.to_owned())),
                ["run", ..] => {
                    let at = words.iter().position(|word| matches!(*word, "--config" | "-c"));
                    Some(WebProgram::Caddy(at.and_then(file).unwrap_or_else(|| caddy::FILE.to_owned())))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// What such a container reads; nothing where it is none.
///
/// # Errors
/// Why it does not start.
pub(crate) fn read(
    invocation: &Invocation<'_>,
    around: &Surroundings,
) -> Option<Result<ConfiguredWeb, BadConfig>> {
    let mounts: Vec<&str> = around.mounts.iter().map(|mount| mount.path.as_str()).collect();
    if !is_configured(invocation, &mounts) {
        return None;
    }
    Some(match web_program(invocation)? {
        WebProgram::Apache => apache::read(around),
        WebProgram::Caddy(file) => caddy::read(&file, around),
    })
}

/// The process: it serves until it is stopped, or ends at once.
pub(crate) fn run(player: &mut Player<'_>, read: &Result<ConfiguredWeb, BadConfig>) -> AfterCommand {
    match read {
        Ok(configured) => {
            configured.says.iter().for_each(|line| player.complain(&format!("{line}\n")));
            player.sleep(std::time::Duration::MAX)
        }
        Err(bad) => {
            player.complain(&format!("{}\n", bad.says));
            AfterCommand::Exit(bad.code)
        }
    }
}
