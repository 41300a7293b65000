//! `openssl s_client`: speaks TLS with somebody, and tells which certificates were shown.

use std::net::SocketAddr;

use base64::Engine;
use x509_parser::parse_x509_certificate;

use super::resolver::resolve;
use crate::interpreter::player::{AfterCommand, Player};
use crate::programs::x509_texts::{date, name};
use crate::questions::{CONNECT_TIMEOUT, NetworkAsk, NetworkReply, Question, TlsPeer, TlsTrust};

/// Letters in a line of PEM.
const PEM_COLUMNS: usize = 64;
/// Upstream's numbers and words of what is wrong with who was shown.
const SELF_SIGNED: &str = "18 (self-signed certificate)";
const UNKNOWN: &str = "21 (unable to verify the first certificate)";

/// What it was told.
#[derive(Default)]
struct ClientOptions<'a> {
    to: &'a str,
    name: Option<&'a str>,
    authorities: Option<&'a str>,
    certificate: Option<&'a str>,
    key: Option<&'a str>,
    shows_all: bool,
    insists: bool,
    is_brief: bool,
}

fn read<'a>(words: &[&'a str]) -> ClientOptions<'a> {
    let mut options = ClientOptions { to: "localhost:4433", ..ClientOptions::default() };
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        match word.trim_start_matches('-') {
            "connect" => options.to = words.next().unwrap_or_default(),
            "servername" => options.name = words.next(),
            "CAfile" => options.authorities = words.next(),
            "cert" => options.certificate = words.next(),
            "key" => options.key = words.next(),
            "starttls" | "CApath" | "alpn" | "verify" | "verify_hostname" => {
                words.next();
            }
            "showcerts" => options.shows_all = true,
            "verify_return_error" => options.insists = true,
            "brief" => options.is_brief = true,
            word if word.contains(':') => options.to = word,
            _ => {}
        }
    }
    options
}

/// Its own certificate and key, one behind the other.
fn own(player: &Player<'_>, options: &ClientOptions<'_>) -> String {
    let files = options.certificate.into_iter().chain(options.key);
    files.filter_map(|path| Some(player.file(path)?.text() + "\n")).collect()
}

/// Runs it.
pub(crate) fn run(player: &mut Player<'_>, words: &[&str]) -> Result<(), AfterCommand> {
    let options = read(words);
    let (host, port) = options.to.rsplit_once(':').unwrap_or((options.to, "443"));
    let host = host.trim_matches(['[', ']']);
    let Ok(port) = port.parse::<u16>() else {
        player.fail(&format!(
            "s_client: -connect argument or target parameter malformed or ambiguous: {host}\n"
        ));
        return Ok(());
    };
    let Some(address) = resolve(player, host)? else {
        player.fail("BIO_lookup_ex:system lib: Name or service not known\nconnect:errno=22\n");
        return Ok(());
    };
    let authorities = options.authorities.and_then(|path| player.file(path)).map(|file| file.text());
    let trust = TlsTrust {
        server_name: options.name.unwrap_or(host).to_owned(),
        everybody: authorities.is_none(),
        authorities: authorities.unwrap_or_default(),
        own: own(player, &options),
    };
    let what = NetworkAsk::Tls { to: SocketAddr::new(address, port), trust: Box::new(trust) };
    match player.ask(Question { what, within: CONNECT_TIMEOUT })? {
        NetworkReply::Peer(peer) => tell(player, &options, &peer),
        NetworkReply::NoTls => {
            player.complain("SSL routines:ssl3_get_record:wrong version number\n");
            nobody(player);
            player.status = 1;
        }
        NetworkReply::Empty => {
            player.complain("SSL routines::unexpected eof while reading\n");
            nobody(player);
            player.status = 1;
        }
        NetworkReply::Refused => player.fail("connect: Connection refused\nconnect:errno=111\n"),
        NetworkReply::Unreachable => player.fail("connect: No route to host\nconnect:errno=113\n"),
        _ => player.fail("connect: Connection timed out\nconnect:errno=110\n"),
    }
    Ok(())
}

fn nobody(player: &mut Player<'_>) {
    player.say("CONNECTED(00000003)\n---\nno peer certificate available\n---\nNo client certificate CA names sent\n---\n");
}

fn tell(player: &mut Player<'_>, options: &ClientOptions<'_>, peer: &TlsPeer) {
    let shown: usize = peer.chain.iter().map(Vec::len).sum();
    let Some(first) = peer.chain.first().filter(|_| player.handle(shown * 4)) else { return nobody(player) };
    let Ok((_, certificate)) = parse_x509_certificate(first) else { return nobody(player) };
    let [subject, issuer] = [certificate.subject(), certificate.issuer()].map(name);
    let verdict = match (peer.is_trusted, subject == issuer) {
        (true, _) => "0 (ok)",
        (false, true) => SELF_SIGNED,
        (false, false) => UNKNOWN,
    };
    let (number, why) = verdict.split_once(' ').unwrap_or((verdict, ""));
    let why = why.trim_matches(['(', ')']);
    player.complain(&format!("depth=0 {subject}\n"));
    if !peer.is_trusted {
        player.complain(&format!("verify error:num={number}:{why}\n"));
    }
    player.complain("verify return:1\n");
    if options.insists && !peer.is_trusted {
        player.status = 1;
        return;
    }
    let mut said = String::from("CONNECTED(00000003)\n---\nCertificate chain\n");
    for (at, der) in peer.chain.iter().enumerate() {
        said.push_str(&of_chain(at, der));
        if options.shows_all {
            said.push_str(&pem(der));
        }
    }
    said.push_str("---\nServer certificate\n");
    if !options.shows_all {
        said.push_str(&pem(first));
    }
    let verified =
        if peer.is_trusted { "Verification: OK".to_owned() } else { format!("Verification error: {why}") };
    said.push_str(&format!(
        "subject={subject}\nissuer={issuer}\n---\nNo client certificate CA names sent\n---\n{verified}\n---\n\
         New, {}, Cipher is {}\nVerify return code: {verdict}\n---\n",
        peer.protocol, peer.cipher
    ));
    if options.is_brief {
        said = format!(
            "Protocol version: {}\nCiphersuite: {}\nPeer certificate: {subject}\n{verified}\n",
            peer.protocol, peer.cipher
        );
    }
    player.say(&said);
    player.complain("DONE\n");
}

fn of_chain(at: usize, der: &[u8]) -> String {
    let Ok((_, certificate)) = parse_x509_certificate(der) else { return String::new() };
    let validity = certificate.validity();
    format!(
        "{at:>2} s:{}\n   i:{}\n   v:NotBefore: {}; NotAfter: {}\n",
        name(certificate.subject()),
        name(certificate.issuer()),
        date(&validity.not_before),
        date(&validity.not_after)
    )
}

fn pem(der: &[u8]) -> String {
    let letters = base64::engine::general_purpose::STANDARD.encode(der);
    let mut said = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in letters.as_bytes().chunks(PEM_COLUMNS) {
        said.push_str(&String::from_utf8_lossy(line));
        said.push('\n');
    }
    said + "-----END CERTIFICATE-----\n"
}
