//! agnhost's `net`: a client and a server, one of which half closes their connection and stays
//! (`net --runner nat-closewait-client`).

use std::net::SocketAddr;
use std::time::Duration;

use serde::Deserialize;

use super::flags::flag;
use super::forward_tester::{ForwardTester, HalfClosing};
use super::klog_line;
use crate::interpreter::player::{AfterCommand, Player};
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

    /// What the server says until it is done.
    fn server_output(&self) -> String {
        let (address, seconds) = (&self.local_addr, self.post_fin_timeout_seconds);
        format!(
            "# closewait.go:92: Run &{{{address} {seconds}}}\n# closewait.go:105: Server listening on {address}\n\
             # closewait.go:114: Client connected\n# closewait.go:123: Server sent FIN, waiting {seconds} seconds\n\
             # closewait.go:128: Done\n"
        )
    }
}

/// What is wrong with options.
pub(super) struct WrongOptions(pub(super) String);

/// Where a server is to listen by its options, and what it does.
///
/// # Errors
/// What is said of the options.
pub(super) fn server(options: &str, is_run: bool) -> Result<(i64, ForwardTester), WrongOptions> {
    let options: CloseWaitOptions = serde_json::from_str(options)
        .map_err(|error| WrongOptions(format!("Invalid options JSON: {error}")))?;
    let address = &options.local_addr;
    let Some((_, port)) = address.rsplit_once(':') else {
        return Err(WrongOptions(format!("address {address}: missing port in address")));
    };
    let port: u16 = port.parse().map_err(|_| WrongOptions(format!("address {port}: invalid port")))?;
    let how = HalfClosing { stays: options.stays(), output: options.server_output(), is_run };
    Ok((port.into(), ForwardTester::closing(how)))
}

/// Where the server listens.
pub(crate) fn serving(words: &[String]) -> Option<(i64, ForwardTester)> {
    flag(words, "runner").filter(|runner| *runner == SERVER)?;
    server(flag(words, "options").unwrap_or_default(), false).ok()
}

pub(super) fn run(player: &mut Player<'_>, words: &[String]) -> AfterCommand {
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

fn failed(player: &mut Player<'_>, why: String, said: &str) -> AfterCommand {
    klog_line::say(player, format!("Error: {why}"));
    player.say(&format!("output:\n\n{said}"));
    AfterCommand::Exit(1)
}

/// Connects, waits until the other side has nothing more to say, and stays.
fn client(player: &mut Player<'_>, options: &CloseWaitOptions) -> Result<AfterCommand, AfterCommand> {
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
    let CloseWaitOptions { timeout_seconds, post_fin_timeout_seconds, leak_connection, .. } = options;
    let run = format!(
        "# closewait.go:169: Run &{{{place} {timeout_seconds} {post_fin_timeout_seconds} {leak_connection}}}\n"
    );
    let mut said = format!("{run}# closewait.go:184: Connected to server\n");
    let why = match player.ask(Question { what, within })? {
        NetworkReply::Bytes(bytes) if bytes.is_empty() => None,
        NetworkReply::Empty => None,
        NetworkReply::Bytes(_) => Some("Got data but expected EOF".to_owned()),
        NetworkReply::Refused => {
            return Ok(failed(player, format!("dial tcp {to}: connect: connection refused"), &run));
        }
        NetworkReply::TimedOut(true) => Some(format!("read tcp {to}: i/o timeout")),
        _ => return Ok(failed(player, format!("dial tcp {to}: i/o timeout"), &run)),
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
        AfterCommand::Go => {}
        flow => return Err(flow),
    }
    player.say(&format!("output:\n\n{said}# closewait.go:213: Done\n"));
    Ok(AfterCommand::Exit(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_listens_where_its_options_say() {
        let words = |options: &str| ["--runner", SERVER, "--options", options].map(str::to_owned);
        let found = serving(&words(r#"{"LocalAddr": "0.0.0.0:9999", "PostFinTimeoutSeconds": 3}"#));
        let closes = found.as_ref().and_then(|(port, tester)| Some((port, tester.closes.as_ref()?)));
        let (port, how) = closes.unwrap();
        assert_eq!((*port, how.stays, how.is_run), (9999, Duration::from_secs(3), false));
        assert!(how.output.starts_with("# closewait.go:92: Run &{0.0.0.0:9999 3}\n"), "{}", how.output);
        assert_eq!(serving(&words("{}")), None);
        assert_eq!(serving(&words("{")), None);
    }
}
