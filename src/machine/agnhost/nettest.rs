//! agnhost's `nettest`: it finds the others of its Service through the API, tells each of itself, and says
//! whether it was heard and heard of enough of them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::flags::flag;
use super::{in_cluster, klog_line};
use crate::interpreter::player::{AfterCommand, Player};
use crate::questions::{CONNECT_TIMEOUT, HttpQuestion, NetworkAsk, NetworkReply, Question, WebReply};
use crate::requests::{WebAnswer, WebRequest};
use crate::server_state::ServerState;
use crate::surroundings::Surroundings;

/// So often it tells all others of itself.
const ROUNDS: usize = 15;
/// So many lines of its own log it keeps; of more the older ones are gone.
const MAX_LINES: usize = 500;
/// `/write` with a longer name is not counted.
const MAX_NAME_BYTES: usize = 1024;

/// What its flags say.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NetTest {
    peers: usize,
    service: String,
    namespace: String,
}

/// Whom it has told of itself so far.
#[derive(Debug, Default)]
struct PeerContacts {
    sent: BTreeMap<String, u64>,
    log: Vec<String>,
    is_over: bool,
}

/// As `/read` shows it.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ShownState<'a> {
    hostname: &'a str,
    sent: Option<&'a BTreeMap<String, u64>>,
    received: Option<&'a BTreeMap<String, u64>>,
    errors: Option<&'a Vec<String>>,
    log: Option<&'a Vec<String>>,
    still_contacting_peers: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[derive(Default)]
struct WritePost {
    source: String,
    dest: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct WriteResp {
    hostname: String,
}

/// As far as it is looked at.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct FoundEndpoints {
    subsets: Vec<FoundSubset>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FoundSubset {
    addresses: Vec<FoundAddress>,
    ports: Vec<FoundPort>,
}

#[derive(Deserialize)]
struct FoundAddress {
    ip: std::net::IpAddr,
}

#[derive(Deserialize)]
struct FoundPort {
    port: u16,
}

impl NetTest {
    pub(crate) fn of(words: &[String]) -> NetTest {
        let text = |name, usual: &str| flag(words, name).unwrap_or(usual).to_owned();
        NetTest {
            peers: flag(words, "peers").and_then(|peers| peers.parse().ok()).unwrap_or(8),
            service: text("service", "nettest"),
            namespace: text("namespace", "default"),
        }
    }

    /// The process: it ends where it cannot ask the API.
    pub(super) fn run(&self, player: &mut Player<'_>) -> AfterCommand {
        if self.service.is_empty() {
            return klog_line::fatal(player, "Must provide -service flag.");
        }
        match self.contact_others(player, &mut PeerContacts::default()) {
            Ok(()) => player.sleep(Duration::MAX),
            Err(flow) => flow,
        }
    }

    fn contact_others(
        &self,
        player: &mut Player<'_>,
        contacts: &mut PeerContacts,
    ) -> Result<(), AfterCommand> {
        let tenth = Duration::from_secs(self.peers as u64 / 10);
        let pause = tenth.max(Duration::from_secs(5));
        let timeout = Duration::from_secs(300).max(Duration::from_secs(self.peers as u64));
        let begun = player.elapsed;
        find_server(player, (pause, begun.saturating_add(timeout)))?;
        let end = player.elapsed.saturating_add(timeout);
        while player.elapsed < end {
            let found = self.endpoints(player)?;
            if found.len() >= self.peers {
                break;
            }
            contacts.note(format!(
                "{}/{} has {} endpoints ({:?}), which is less than {} as expected. \
                 Waiting for all endpoints to come up.",
                self.namespace,
                self.service,
                found.len(),
                found,
                self.peers
            ));
            wait(player, pause)?;
        }
        for _ in 0..ROUNDS {
            for endpoint in self.endpoints(player)? {
                contacts.note(format!("Attempting to contact {endpoint}"));
                contact(player, contacts, &endpoint)?;
            }
            wait(player, pause)?;
        }
        contacts.is_over = true;
        Ok(())
    }

    /// As `http://IP:PORT`, in their order.
    fn endpoints(&self, player: &mut Player<'_>) -> Result<Vec<String>, AfterCommand> {
        let target = format!("/api/v1/namespaces/{}/endpoints/{}", self.namespace, self.service);
        let Some(reply) = ask_api(player, &target)? else { return Ok(vec![]) };
        let found: FoundEndpoints = serde_json::from_slice(&reply.body).unwrap_or_default();
        let mut all = vec![];
        for subset in found.subsets {
            for address in &subset.addresses {
                let urls = subset.ports.iter().map(|port| std::net::SocketAddr::new(address.ip, port.port));
                all.extend(urls.map(|to| format!("http://{to}")));
            }
        }
        all.sort();
        all.dedup();
        Ok(all)
    }

    /// What its process has done of it after so long.
    fn contacted(&self, around: Option<&Surroundings>, uptime: Duration) -> PeerContacts {
        let mut contacts = PeerContacts::default();
        let Some(around) = around else { return contacts };
        let mut player = Player::new(around, Some(uptime), vec![]);
        // How far it came is in the contacts, and why it came no further does not matter.
        let _ = self.contact_others(&mut player, &mut contacts);
        contacts
    }

    /// `/read`, `/write`, `/status` and `/quit`.
    pub(crate) fn answer(
        &self,
        asked: &WebRequest<'_>,
        state: &mut ServerState,
        around: Option<&Surroundings>,
    ) -> WebAnswer {
        match asked.target.split('?').next() {
            Some("/read") => read(asked, state, &self.contacted(around, asked.uptime)),
            Some("/write") => write(asked, state),
            Some("/status") => {
                let contacts = self.contacted(around, asked.uptime);
                let has_all = contacts.sent.len() >= self.peers && state.received.len() >= self.peers;
                let word = match (has_all, contacts.is_over) {
                    (true, _) => "pass",
                    (false, false) => "running",
                    (false, true) => "fail",
                };
                WebAnswer::text(200, word)
            }
            Some("/quit") => WebAnswer { exits: Some(0), ..WebAnswer::default() },
            _ => WebAnswer::not_found(),
        }
    }
}

impl PeerContacts {
    fn note(&mut self, line: String) {
        self.log.push(line);
        if self.log.len() > MAX_LINES {
            self.log.remove(0);
        }
    }
}

/// Waits for the apiserver, and says which one it is.
fn find_server(player: &mut Player<'_>, (pause, end): (Duration, Duration)) -> Result<(), AfterCommand> {
    while player.elapsed < end {
        let why = match ask_api(player, "/version")? {
            Some(reply) if reply.code == 200 => {
                let version = String::from_utf8_lossy(&reply.body).replace(['\n', ' '], "");
                klog_line::say(player, format!("Server version: {version}"));
                return Ok(());
            }
            Some(reply) => format!("the server answered {}", reply.code),
            None => "connection refused".to_owned(),
        };
        klog_line::say(player, format!("Unable to get server version: {why}; retrying."));
        wait(player, pause.saturating_add(Duration::from_secs(1)))?;
    }
    Err(klog_line::fatal(player, "Unable to contact Kubernetes: connection refused"))
}

/// Nothing where it does not answer.
fn ask_api(player: &mut Player<'_>, target: &str) -> Result<Option<WebReply>, AfterCommand> {
    let Some(question) = in_cluster::question(player, target) else {
        let why = format!("Unable to create config; error: {}", in_cluster::WHY_NONE);
        return Err(klog_line::fatal(player, why));
    };
    Ok(match player.ask(question)? {
        NetworkReply::Web(web) => Some((*web).clone()),
        _ => None,
    })
}

/// Tells one of itself.
fn contact(player: &mut Player<'_>, contacts: &mut PeerContacts, endpoint: &str) -> Result<(), AfterCommand> {
    let post = WritePost { source: player.around.hostname.clone(), dest: endpoint.to_owned() };
    let to = endpoint.trim_start_matches("http://").to_owned();
    let http = HttpQuestion {
        to: to.parse().ok(),
        method: "POST".into(),
        target: "/write".into(),
        headers: vec![("Host".into(), to.clone()), ("Content-Type".into(), "application/json".into())],
        body: serde_json::to_vec(&post).unwrap_or_default(),
        tls: None,
        ..HttpQuestion::default()
    };
    let asked = Question { what: NetworkAsk::Http(Box::new(http)), within: CONNECT_TIMEOUT };
    let why = match player.ask(asked)? {
        NetworkReply::Web(web) => match serde_json::from_slice::<WriteResp>(&web.body) {
            Ok(heard) => {
                *contacts.sent.entry(heard.hostname).or_default() += 1;
                return Ok(());
            }
            Err(error) => {
                let said = String::from_utf8_lossy(&web.body);
                contacts.note(format!(
                    "Warning: unable to unmarshal response ({said}) from '{endpoint}': '{error}'"
                ));
                return Ok(());
            }
        },
        NetworkReply::Refused => format!("dial tcp {to}: connect: connection refused"),
        NetworkReply::TimedOut(_) => format!("dial tcp {to}: i/o timeout"),
        NetworkReply::Unreachable => format!("dial tcp {to}: connect: no route to host"),
        _ => "EOF".to_owned(),
    };
    contacts.note(format!(
        "Warning: unable to contact the endpoint {endpoint:?}: Post \"{endpoint}/write\": {why}"
    ));
    Ok(())
}

fn wait(player: &mut Player<'_>, time: Duration) -> Result<(), AfterCommand> {
    match player.pause(time) {
        AfterCommand::Go => Ok(()),
        flow => Err(flow),
    }
}

fn read(asked: &WebRequest<'_>, state: &ServerState, contacts: &PeerContacts) -> WebAnswer {
    let shown = ShownState {
        hostname: asked.host_name,
        sent: Some(&contacts.sent).filter(|sent| !sent.is_empty()),
        received: Some(&state.received).filter(|received| !received.is_empty()),
        errors: Some(&state.errors).filter(|errors| !errors.is_empty()),
        log: Some(&contacts.log).filter(|log| !log.is_empty()),
        still_contacting_peers: !contacts.is_over,
    };
    let mut text = vec![];
    let form = serde_json::ser::PrettyFormatter::with_indent(b"\t");
    let written = shown.serialize(&mut serde_json::Serializer::with_formatter(&mut text, form));
    WebAnswer::text(if written.is_ok() { 200 } else { 500 }, String::from_utf8_lossy(&text))
}

/// Somebody tells of himself.
fn write(asked: &WebRequest<'_>, state: &mut ServerState) -> WebAnswer {
    let post: WritePost = match serde_json::from_slice(asked.body) {
        Ok(post) => post,
        Err(error) => {
            state.note_error(if asked.body.is_empty() { "EOF".to_owned() } else { error.to_string() });
            WritePost::default()
        }
    };
    if post.source.is_empty() {
        state.note_error(format!("{}: Got request with no source", asked.host_name));
    } else if post.source.len() <= MAX_NAME_BYTES {
        state.receive(post.source);
    }
    let told = WriteResp { hostname: asked.host_name.to_owned() };
    WebAnswer::text(200, serde_json::to_string(&told).unwrap_or_default() + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::questions::Answered;
    use std::sync::Arc;

    fn web(body: &str) -> Answered {
        let reply = WebReply { code: 200, headers: vec![], body: body.as_bytes().to_vec() };
        Answered { reply: NetworkReply::Web(Arc::new(reply)), took: Duration::ZERO }
    }

    fn around(answers: Vec<Answered>) -> Surroundings {
        let variables = [("KUBERNETES_SERVICE_HOST", "10.96.0.1"), ("KUBERNETES_SERVICE_PORT", "443")];
        let files = ["token", "ca.crt"].map(|name| {
            let path = format!("{}/{name}", in_cluster::ACCOUNT);
            (path, crate::file_system::File::new(*b"x", 0o644))
        });
        let tree = Arc::new(files.into());
        Surroundings {
            variables: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            views: vec![crate::file_system::View { after: Duration::ZERO, tree }],
            hostname: "a".into(),
            answers: Arc::new(answers),
            ..Surroundings::default()
        }
    }

    fn asked<'a>(target: &'a str, body: &'a [u8]) -> WebRequest<'a> {
        WebRequest { target, body, host_name: "a", uptime: Duration::from_secs(60), ..WebRequest::default() }
    }

    #[test]
    fn it_passes_when_it_was_heard_and_heard_of_all() {
        let words = ["nettest", "--peers=1"].map(str::to_owned);
        let (test, mut state) = (NetTest::of(&words), ServerState::default());
        let endpoints = r#"{"subsets":[{"addresses":[{"ip":"10.0.0.2"}],"ports":[{"port":8080}]}]}"#;
        let answers = vec![
            web("{}"),
            web(r#"{"subsets":[]}"#),
            web(endpoints),
            web(endpoints),
            web(r#"{"Hostname":"b"}"#),
        ];
        let around = around(answers);
        let status = |state: &mut ServerState| test.answer(&asked("/status", b""), state, Some(&around)).body;
        assert_eq!(status(&mut state), "running");
        let told = test.answer(&asked("/write", br#"{"Source":"b"}"#), &mut state, Some(&around));
        assert_eq!(told.body, "{\"Hostname\":\"a\"}\n");
        assert_eq!(status(&mut state), "pass");
        let read = test.answer(&asked("/read", b""), &mut state, Some(&around)).body;
        let waited = "default/nettest has 0 endpoints ([]), which is less than 1 as expected. \
            Waiting for all endpoints to come up.";
        assert_eq!(
            read,
            format!(
                "{{\n\t\"Hostname\": \"a\",\n\t\"Sent\": {{\n\t\t\"b\": 1\n\t}},\n\t\"Received\": {{\n\t\t\"b\": 1\n\t}},\n\t\
                 \"Errors\": null,\n\t\"Log\": [\n\t\t\"{waited}\",\n\t\t\"Attempting to contact http://10.0.0.2:8080\"\n\t],\n\t\
                 \"StillContactingPeers\": true\n}}"
            )
        );
    }

    #[test]
    fn who_says_nothing_of_himself_is_an_error() {
        let (test, mut state) = (NetTest::of(&[]), ServerState::default());
        let mut ask = |target, body| test.answer(&asked(target, body), &mut state, None);
        assert_eq!(ask("/write", b"").code, 200);
        let read = ask("/read", b"").body;
        assert!(read.contains("\"Received\": null") && read.contains("\"EOF\""), "{read}");
        assert!(read.contains("\"a: Got request with no source\""), "{read}");
        assert_eq!((ask("/quit", b"").exits, ask("/", b"").code), (Some(0), 404));
    }
}
