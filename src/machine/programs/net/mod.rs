//! Programs that talk: they ask the network, and say what it answers in the words of the real ones.

mod resolver;

mod curl;
mod curl_body;
mod curl_options;
mod curl_source;
mod curl_telling;
pub(crate) mod database_clients;
mod dig;
mod kubectl;
mod lookups;
mod netcat;
mod ping;
pub(crate) mod s_client;
mod wget;

pub(crate) use resolver::resolve;

#[cfg(test)]
mod bash_test;
#[cfg(test)]
mod tests;

use crate::interpreter::player::{AfterCommand, Player};

const PROGRAMS: &[&str] =
    &["curl", "wget", "nc", "netcat", "nslookup", "dig", "host", "getent", "ping", "kubectl"];

pub(crate) fn is_known(name: &str) -> bool {
    PROGRAMS.contains(&name) || database_clients::is_known(name)
}

/// Runs one of them.
pub(crate) fn run(player: &mut Player<'_>, name: &str, words: &[&str]) -> AfterCommand {
    let ran = match name {
        "curl" => curl::run(player, words),
        "wget" => wget::run(player, words),
        "nc" | "netcat" => netcat::run(player, words),
        "ping" => ping::run(player, words),
        "kubectl" => kubectl::run(player, words),
        name if database_clients::is_known(name) => database_clients::run(player, name, words),
        "dig" => dig::dig(player, words),
        name => lookups::run(player, name, words),
    };
    ran.err().unwrap_or(AfterCommand::Go)
}
