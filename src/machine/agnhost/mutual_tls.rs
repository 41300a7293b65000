//! agnhost's `mtlsserver`, which tells clients by their certificates, and `mtlsclient`, which asks it.

use std::net::SocketAddr;
use std::time::Duration;

use super::flags::flag;
use super::klog_line;
use crate::interpreter::player::{AfterCommand, Player};
use crate::programs::resolve;
use crate::questions::{CONNECT_TIMEOUT, HttpQuestion, NetworkAsk, NetworkReply, Question, TlsTrust, phrase};
use crate::url::WebUrl;

/// How often the client asks.
const PERIOD: Duration = Duration::from_secs(10);

/// The files of a server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MutualTls {
    /// Its certificates and their key, in one file.
    pub(crate) credentials: String,
    /// Those who vouch for clients.
    pub(crate) authorities: String,
}

/// Where it listens, and with what; nothing without all its flags.
pub(crate) fn serving(words: &[String]) -> Option<(i64, MutualTls)> {
    let port = flag(words, "listen")?.rsplit_once(':')?.1.parse().ok()?;
    let file = |name| flag(words, name).filter(|path| !path.is_empty()).map(str::to_owned);
    let (credentials, authorities) = (file("server-creds")?, file("spiffe-trust-bundle")?);
    Some((port, MutualTls { credentials, authorities }))
}

/// What the server does without its flags, or without its files.
pub(super) fn begin_server(player: &mut Player<'_>, words: &[String]) -> Result<(), AfterCommand> {
    let ends = |player: &mut Player<'_>, why: String| {
        // cobra says so, and the program ends well.
        player.complain(&format!("Error: {why}\n"));
        Err(AfterCommand::Exit(0))
    };
    let Some((_, files)) = serving(words) else { return ends(player, "missing required flags".to_owned()) };
    for (path, what) in [
        (&files.authorities, "reading SPIFFE trust anchors"),
        (&files.credentials, "loading server key pair"),
    ] {
        if player.file(path).is_none() {
            let why = format!("error while serving: while {what}: open {path}: no such file or directory");
            return ends(player, why);
        }
    }
    Ok(())
}

/// `mtlsclient --fetch-url=URL --server-trust-bundle=FILE --client-cred-bundle=FILE`
pub(super) fn client(player: &mut Player<'_>, words: &[String]) -> Result<(), AfterCommand> {
    let named = |name| flag(words, name).filter(|value| !value.is_empty());
    let all = (named("fetch-url"), named("server-trust-bundle"), named("client-cred-bundle"));
    let (Some(url), Some(trusted), Some(own)) = all else {
        player.complain("Error: missing required flags\n");
        return Ok(());
    };
    loop {
        match player.pause(PERIOD) {
            AfterCommand::Go => {}
            flow => return Err(flow),
        }
        match poll(player, url, trusted, own)? {
            Ok(body) => klog_line::say(player, format!("Got response body: {body}")),
            Err(why) => {
                let why = format!("while sending requests to the server: {why}");
                klog_line::say_at(player, ('E', "client.go:79"), why);
            }
        }
    }
}

/// What it is answered, or why not.
fn poll(
    player: &mut Player<'_>,
    url: &str,
    trusted: &str,
    own: &str,
) -> Result<Result<String, String>, AfterCommand> {
    let missing =
        |what: &str, path: &str| Err(format!("while reading {what}: open {path}: no such file or directory"));
    let Some(authorities) = player.file(trusted).map(|file| file.text()) else {
        return Ok(missing("service trust bundle", trusted));
    };
    let Some(bundle) = player.file(own).map(|file| file.text()) else {
        return Ok(missing("client credential bundle", own));
    };
    if !bundle.contains("PRIVATE KEY") {
        return Ok(Err("client credential bundle had no private key".to_owned()));
    }
    if !bundle.contains("BEGIN CERTIFICATE") {
        return Ok(Err("client credential bundle had no certificates".to_owned()));
    }
    let failed = |why: String| Ok(Err(format!("while getting URL: Get {url:?}: {why}")));
    let Ok(parsed) = WebUrl::parse(url) else { return failed("unsupported protocol scheme \"\"".into()) };
    let Some(address) = resolve(player, &parsed.host)? else {
        return failed(format!("dial tcp: lookup {}: no such host", parsed.host));
    };
    let to = SocketAddr::new(address, parsed.port);
    let tls = TlsTrust { server_name: parsed.host.clone(), authorities, own: bundle, ..TlsTrust::default() };
    let question = HttpQuestion {
        to: Some(to),
        method: "GET".to_owned(),
        target: parsed.target.clone(),
        headers: vec![
            ("Host".into(), parsed.host.clone()),
            ("User-Agent".into(), "Go-http-client/1.1".into()),
        ],
        tls: parsed.is_secure.then_some(tls),
        ..HttpQuestion::default()
    };
    let what = NetworkAsk::Http(Box::new(question));
    match player.ask(Question { what, within: CONNECT_TIMEOUT })? {
        NetworkReply::Web(web) if (200..300).contains(&web.code) => {
            Ok(Ok(String::from_utf8_lossy(&web.body).into_owned()))
        }
        NetworkReply::Web(web) => {
            Ok(Err(format!("non-2xx status {} \"{} {}\"", web.code, web.code, phrase(web.code))))
        }
        NetworkReply::Refused => failed(format!("dial tcp {to}: connect: connection refused")),
        NetworkReply::Untrusted => {
            failed("tls: failed to verify certificate: x509: certificate signed by unknown authority".into())
        }
        NetworkReply::NoTls => failed("http: server gave HTTP response to HTTPS client".into()),
        NetworkReply::TimedOut(_) => failed(format!("dial tcp {to}: i/o timeout")),
        NetworkReply::Unreachable => failed(format!("dial tcp {to}: connect: no route to host")),
        _ => failed("EOF".into()),
    }
}
