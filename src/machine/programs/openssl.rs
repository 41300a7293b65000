//! `openssl`, as far as scripts ask it: random bytes, and what certificates say.

use std::net::IpAddr;

use sha2::{Digest, Sha256};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::parse_x509_pem;

use super::net::s_client;
use super::x509_texts::{date, name};
use crate::interpreter::player::{AfterCommand, Player};

/// Algorithms by their names.
const ALGORITHMS: [(&str, &str); 4] = [
    ("1.2.840.10045.4.3.2", "ecdsa-with-SHA256"),
    ("1.2.840.10045.4.3.3", "ecdsa-with-SHA384"),
    ("1.2.840.113549.1.1.11", "sha256WithRSAEncryption"),
    ("1.3.101.112", "ED25519"),
];

/// `version`, `rand`, `x509` and `s_client`.
pub(super) fn run(player: &mut Player<'_>, words: &[&str]) -> AfterCommand {
    match words {
        ["version", ..] => player.say("OpenSSL 3.0.15 3 Sep 2024 (Library: OpenSSL 3.0.15 3 Sep 2024)\n"),
        ["rand", rest @ ..] => {
            let count: usize = rest.last().and_then(|count| count.parse().ok()).unwrap_or(16).min(4096);
            let bytes = player.random_bytes(count);
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let said = if rest.contains(&"-base64") { base64_of(&bytes) } else { hex };
            player.say(&format!("{said}\n"));
        }
        ["x509", rest @ ..] => x509(player, rest),
        ["s_client", rest @ ..] => return s_client::run(player, rest).err().unwrap_or(AfterCommand::Go),
        _ => player.fail("openssl: this command is not played here\n"),
    }
    AfterCommand::Go
}

/// The certificate that comes first in a file or in what is read.
fn x509(player: &mut Player<'_>, words: &[&str]) {
    let at = words.iter().position(|word| *word == "-in").and_then(|at| words.get(at + 1));
    let text = match at {
        Some(path) => match player.file(path) {
            Some(file) => file.text(),
            None => {
                return player.fail(&format!(
                    "Could not open file or uri for loading certificate from {path}: No such file or directory\n"
                ));
            }
        },
        None => player.input(),
    };
    player.handle(text.len() * 4);
    let unreadable = "Could not find certificate from the input\nUnable to load certificate\n";
    let Ok((_, pem)) = parse_x509_pem(text.as_bytes()) else { return player.fail(unreadable) };
    let Ok(certificate) = pem.parse_x509() else { return player.fail(unreadable) };
    let now = player.now().timestamp();
    let mut asked = words.iter();
    let mut said = String::new();
    while let Some(word) = asked.next() {
        match *word {
            "-in" | "-inform" | "-outform" | "-nameopt" | "-certopt" => drop(asked.next()),
            "-noout" | "-sha256" => {}
            "-checkend" => {
                let seconds = asked.next().and_then(|seconds| seconds.parse().ok()).unwrap_or(0);
                let is_over = certificate.validity().not_after.timestamp() < now.saturating_add(seconds);
                said.push_str(if is_over {
                    "Certificate will expire\n"
                } else {
                    "Certificate will not expire\n"
                });
                player.status = i32::from(is_over);
            }
            "-ext" => said.push_str(&extension(&certificate, asked.next().copied().unwrap_or_default())),
            word => match shown(&certificate, &pem.contents, word) {
                Some(text) => said.push_str(&text),
                None => {
                    return player
                        .fail(&format!("x509: Unrecognized flag {}\n", word.trim_start_matches('-')));
                }
            },
        }
    }
    if !words.contains(&"-noout") {
        said.push_str(&text);
    }
    player.say(&said);
}

/// What a flag asks of a certificate; nothing of one that is not known.
fn shown(certificate: &X509Certificate<'_>, bytes: &[u8], flag: &str) -> Option<String> {
    let validity = certificate.validity();
    let start = || format!("notBefore={}\n", date(&validity.not_before));
    let end = || format!("notAfter={}\n", date(&validity.not_after));
    Some(match flag {
        "-subject" => format!("subject={}\n", name(certificate.subject())),
        "-issuer" => format!("issuer={}\n", name(certificate.issuer())),
        "-startdate" => start(),
        "-enddate" => end(),
        "-dates" => start() + &end(),
        "-serial" => format!("serial={}\n", hex(certificate.raw_serial(), "")),
        "-fingerprint" => format!("sha256 Fingerprint={}\n", hex(&Sha256::digest(bytes), ":")),
        "-text" => told(certificate),
        _ => return None,
    })
}

fn extension(certificate: &X509Certificate<'_>, wanted: &str) -> String {
    match alternative_names(certificate).filter(|_| wanted.contains("subjectAltName")) {
        Some(names) => format!("X509v3 Subject Alternative Name: \n    {names}\n"),
        None => "No extensions matching requested\n".into(),
    }
}

/// As a page; without the key and the signature themselves.
fn told(certificate: &X509Certificate<'_>) -> String {
    let oid = certificate.signature_algorithm.algorithm.to_id_string();
    let algorithm = ALGORITHMS.iter().find(|(known, _)| *known == oid).map_or(oid.as_str(), |(_, name)| name);
    let version = certificate.version().0;
    let validity = certificate.validity();
    let mut text = format!(
        "Certificate:\n    Data:\n        Version: {} (0x{version:x})\n        Serial Number:\n            {}\n        \
         Signature Algorithm: {algorithm}\n        Issuer: {}\n        Validity\n            Not Before: {}\n            \
         Not After : {}\n        Subject: {}\n",
        version + 1,
        hex(certificate.raw_serial(), ":").to_lowercase(),
        name(certificate.issuer()),
        date(&validity.not_before),
        date(&validity.not_after),
        name(certificate.subject()),
    );
    let is_authority = certificate.is_ca();
    let names = alternative_names(certificate);
    if is_authority || names.is_some() {
        text.push_str("        X509v3 extensions:\n");
    }
    if is_authority {
        text.push_str("            X509v3 Basic Constraints: critical\n                CA:TRUE\n");
    }
    if let Some(names) = names {
        let heading = "            X509v3 Subject Alternative Name: \n                ";
        text.push_str(&format!("{heading}{names}\n"));
    }
    text
}

fn alternative_names(certificate: &X509Certificate<'_>) -> Option<String> {
    let extension = certificate.subject_alternative_name().ok()??;
    let names = extension.value.general_names.iter().filter_map(|name| match name {
        GeneralName::DNSName(name) => Some(format!("DNS:{name}")),
        GeneralName::URI(uri) => Some(format!("URI:{uri}")),
        GeneralName::RFC822Name(name) => Some(format!("email:{name}")),
        GeneralName::IPAddress(bytes) => address(bytes).map(|address| format!("IP Address:{address}")),
        _ => None,
    });
    Some(names.collect::<Vec<_>>().join(", "))
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

fn hex(bytes: &[u8], between: &str) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(between)
}

/// Bytes as letters.
fn base64_of(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use crate::exec::exec;
    use crate::file_system::File;
    use crate::surroundings::Surroundings;

    /// Made by `openssl req -x509` for `CN=web, O=me` with two names, good until 2037.
    const CERTIFICATE: &str = include_str!("openssl/certificate.pem");

    fn said(arguments: &str) -> (i32, String) {
        let words = ["sh".to_owned(), "-c".to_owned(), format!("openssl x509 -in /c.pem {arguments}")];
        let files = vec![("/c.pem".to_owned(), Some(File::new(CERTIFICATE, 0o644)))];
        let around = Surroundings { image: "alpine/openssl".into(), ..Surroundings::default() };
        let ran = exec(&words, &around, files, None).expect("it is understood");
        (ran.end.unwrap().1, ran.out)
    }

    #[test]
    fn a_certificate_says_whose_it_is_and_how_long() {
        for (flags, wanted) in [
            ("-noout -subject", "subject=CN = web, O = me\n"),
            ("-noout -issuer", "issuer=CN = web, O = me\n"),
            (
                "-noout -ext subjectAltName",
                "X509v3 Subject Alternative Name: \n    DNS:web.default.svc, IP Address:10.0.0.1\n",
            ),
            ("-noout -checkend 0", "Certificate will not expire\n"),
        ] {
            assert_eq!(said(flags), (0, wanted.to_owned()), "{flags}");
        }
        let dates = said("-noout -dates").1;
        assert!(dates.starts_with("notBefore=") && dates.contains(" 2037 GMT\n"), "{dates}");
        let (code, out) = said("-noout -checkend 9000000000");
        assert_eq!((code, &*out), (1, "Certificate will expire\n"));
        let page = said("-noout -text").1;
        for line in [
            "        Subject: CN = web, O = me\n",
            "Version: 3 (0x2)",
            "DNS:web.default.svc, IP Address:10.0.0.1",
        ] {
            assert!(page.contains(line), "{page}");
        }
        assert_eq!(said("").1, CERTIFICATE);
        assert_ne!(said("-noout -modulus").0, 0);
    }
}
