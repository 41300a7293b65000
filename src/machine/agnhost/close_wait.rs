//! agnhost's `net`: a client and a server, one of which half closes their connection and stays
//! (`net --runner nat-closewait-client`).

use std::net::SocketAddr;
use std::time::Duration;

use serde::Deserialize;

use super::flags::flag;
use super::forward_tester::ForwardTester;
use super::klog_line;
use crate::interpreter::player::{Flow, Player};
use crate::programs::resolve;
use crate::questions::{CONNECT_TIMEOUT, NetworkAsk, NetworkReply, Question};

const CLIENT: &str = "nat-closewait-client";
pub(super) const SERVER: &str = "nat-closewait-server";

/// What stands in `--options`, of either side.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct CloseWaitOptions {
    local_addr: String,
    remote_addr: String,
    timeout_seconds: u64,
    post_fin_timeout_seconds: u64,
    leak_connection: bool,
}

impl CloseWaitOptions {
    fn of(words: &[String]) -> Result<CloseWaitOptions, serde_json::Error> {
        serde_json::from_str(flag(words, "options").unwrap_or_default())
    }

    fn stays(&self) -> Duration {
        Duration::from_secs(self.post_fin_timeout_seconds)
    }
}

/// Where the server listens.
pub(crate) fn serving(words: &[String]) -> Option<(i64, ForwardTester)> {
    let options = CloseWaitOptions::of(words).ok().filter(|_| flag(words, "runner") == Some(SERVER))?;
    let port = options.local_addr.rsplit_once(':')?.1.parse().ok()?;
    Some((port, ForwardTester::closing(options.stays())))
}

pub(super) fn run(player: &mut Player<'_>, words: &[String]) -> Flow {
    let runner = flag(words, "runner").unwrap_or_default();
    if flag(words, "serve").is_some_and(|address| !address.is_empty()) {
        klog_line::say(player, format!("Running server on {}", flag(words, "serve").unwrap_or_default()));
        return player.sleep(Duration::MAX);
    }
    if runner.is_empty() {
        return klog_line::fatal(player, "Must set either --runner or --serve, see --help");
    }
    let options = match CloseWaitOptions::of(words) {
        Ok(options) => options,
        Err(error) => return failed(player, format!("Invalid options JSON: {error}"), ""),
    };
    match runner {
        CLIENT => client(player, &options).unwrap_or_else(|flow| flow),
        // It ends with its connection, which whoever serves it says.
        SERVER => player.sleep(Duration::MAX),
        _ => failed(player, "Invalid runner: '<nil>', see --help".to_owned(), ""),
    }
}

fn failed(player: &mut Player<'_>, why: String, said: &str) -> Flow {
    klog_line::say(player, format!("Error: {why}"));
    player.say(&format!("output:\n\n{said}"));
    Flow::Exit(1)
}

/// Connects, waits until the other side has nothing more to say, and stays.
fn client(player: &mut Player<'_>, options: &CloseWaitOptions) -> Result<Flow, Flow> {
    let place = options.remote_addr.as_str();
    let (host, port) = place.rsplit_once(':').unwrap_or((place, ""));
    let address = resolve(player, host.trim_matches(['[', ']']))?;
    let (Some(address), Ok(port)) = (address, port.parse()) else {
        return Ok(failed(player, format!("lookup {host}: no such host"), ""));
    };
    let to = SocketAddr::new(address, port);
    let within = match options.timeout_seconds {
        0 => CONNECT_TIMEOUT,
        seconds => Duration::from_secs(seconds),
    };
    let what = NetworkAsk::Tcp { to, send: vec![], reads: true };
    let mut said = "# closewait.go:184: Connected to server\n".to_owned();
    let why = match player.ask(Question { what, within })? {
        NetworkReply::Bytes(bytes) if bytes.is_empty() => None,
        NetworkReply::Empty => None,
        NetworkReply::Bytes(_) => Some("Got data but expected EOF".to_owned()),
        NetworkReply::Refused => {
            return Ok(failed(player, format!("dial tcp {to}: connect: connection refused"), ""));
        }
        NetworkReply::TimedOut(true) => Some(format!("read tcp {to}: i/o timeout")),
        _ => return Ok(failed(player, format!("dial tcp {to}: i/o timeout"), "")),
    };
    if let Some(why) = why {
        return Ok(failed(player, why, &said));
    }
    let seconds = options.post_fin_timeout_seconds;
    said.push_str(&format!(
        "# closewait.go:202: Server has half-closed the connection, waiting {seconds} seconds\n"
    ));
    if options.leak_connection {
        said.push_str("# closewait.go:206: Leaking client connection (assigning to global variable)\n");
    }
    match player.pause(options.stays()) {
        Flow::Go => {}
        flow => return Err(flow),
    }
    player.say(&format!("output:\n\n{said}# closewait.go:213: Done\n"));
    Ok(Flow::Exit(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_listens_where_its_options_say() {
        let words = |options: &str| ["--runner", SERVER, "--options", options].map(str::to_owned);
        let found = serving(&words(r#"{"LocalAddr": "0.0.0.0:9999", "PostFinTimeoutSeconds": 3}"#));
        assert_eq!(found, Some((9999, ForwardTester::closing(Duration::from_secs(3)))));
        assert_eq!(serving(&words("{}")), None);
        assert_eq!(serving(&words("{")), None);
    }
}
