//! The options of `curl`.

use std::time::Duration;

use super::resolver::AddressFamily;

golang::text_error! {
    /// An option that is unknown or lacks its value; in curl's words.
    pub(super) struct BadCurlOption;
}

/// Those that take no value and change nothing here.
const IDLE: &[&str] = &[
    "-#",
    "--compressed",
    "--http1.1",
    "--http1.0",
    "--http2",
    "-N",
    "--no-buffer",
    "-g",
    "--globoff",
    "--progress-bar",
    "--no-progress-meter",
    "--tcp-nodelay",
    "-q",
    "--location-trusted",
    "--path-as-is",
    "--no-keepalive",
    "--create-dirs",
    "--tlsv1.2",
    "--fail-early",
];
/// Those whose value changes nothing here.
const IDLE_VALUES: &[&str] = &[
    "--noproxy",
    "-x",
    "--proxy",
    "--keepalive-time",
    "--retry-max-time",
    "-c",
    "--cookie-jar",
    "--proto",
    "--tls-max",
    "--ciphers",
    "--capath",
    "--limit-rate",
];

/// How a piece of data is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataKind {
    /// `-d`: a file's ends of lines are left out.
    Plain,
    /// `--data-binary`, `--json`: a file as it is.
    Binary,
    /// `--data-raw`: `@` is a letter.
    Raw,
    /// `--data-urlencode`
    Encoded,
}

/// What a command line of `curl` says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CurlOptions {
    pub(super) urls: Vec<String>,
    pub(super) method: Option<String>,
    pub(super) headers: Vec<(String, String)>,
    /// As it stands, `@` for files.
    pub(super) data: Vec<(DataKind, String)>,
    /// `NAME=VALUE`, with `@` and `<` for files.
    pub(super) forms: Vec<String>,
    /// The file that is sent.
    pub(super) upload: Option<String>,
    /// Where heads go.
    pub(super) heads_to: Option<String>,
    /// Data is one document, and not several fields.
    pub(super) is_json: bool,
    pub(super) is_verbose: bool,
    pub(super) tells_version: bool,
    pub(super) user: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) output: Option<String>,
    pub(super) write_out: Option<String>,
    pub(super) authorities: Option<String>,
    /// Files of its own certificate and key.
    pub(super) certificate: Option<String>,
    pub(super) key: Option<String>,
    /// `host:port:address`
    pub(super) resolve: Vec<String>,
    /// Where it asks from: a device, an address or a name.
    pub(super) interface: Option<String>,
    pub(super) family: AddressFamily,
    pub(super) max_time: Option<Duration>,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) retries: usize,
    pub(super) retry_delay: Option<Duration>,
    pub(super) retries_refused: bool,
    pub(super) max_redirects: Option<usize>,
    pub(super) is_silent: bool,
    pub(super) shows_errors: bool,
    pub(super) is_head: bool,
    pub(super) includes_headers: bool,
    pub(super) is_insecure: bool,
    pub(super) follows: bool,
    pub(super) fails: bool,
    pub(super) fails_with_body: bool,
    pub(super) puts_data_in_url: bool,
    pub(super) names_output: bool,
}

impl CurlOptions {
    /// # Errors
    /// The option that is unknown or lacks its value, in curl's words.
    pub(super) fn parse(words: &[&str]) -> Result<CurlOptions, BadCurlOption> {
        let (mut options, mut words) = (CurlOptions::default(), words.iter().copied());
        while let Some(word) = words.next() {
            if word.starts_with("--") {
                let (name, value) = match word.split_once('=') {
                    Some((name, value)) => (name, Some(value)),
                    None => (word, None),
                };
                let mut next = || value.or_else(|| words.next()).map(str::to_owned);
                options.take(name, &mut next)?;
            } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                options.take_letters(letters, &mut words)?;
            } else {
                options.urls.push(word.to_owned());
            }
        }
        Ok(options)
    }

    /// `-sSfo FILE`: the rest behind a letter that takes a value is that value.
    fn take_letters<'a>(
        &mut self,
        letters: &'a str,
        words: &mut impl Iterator<Item = &'a str>,
    ) -> Result<(), String> {
        for (at, letter) in letters.char_indices() {
            let rest = &letters[at + letter.len_utf8()..];
            let mut is_taken = false;
            let mut next = || {
                is_taken = true;
                Some(rest).filter(|rest| !rest.is_empty()).or_else(|| words.next()).map(str::to_owned)
            };
            self.take(&format!("-{letter}"), &mut next)?;
            if is_taken {
                break;
            }
        }
        Ok(())
    }

    fn take(&mut self, name: &str, next: &mut dyn FnMut() -> Option<String>) -> Result<(), String> {
        if IDLE.contains(&name) || self.take_switch(name) || self.take_family(name) {
            return Ok(());
        }
        let help = "curl: try 'curl --help' or 'curl --manual' for more information\n";
        if !IDLE_VALUES.contains(&name) && !takes_value(name) {
            return Err(format!("curl: option {name}: is unknown\n{help}"));
        }
        let value = next().ok_or_else(|| format!("curl: option {name}: requires parameter\n{help}"))?;
        self.take_value(name, value)
            .ok_or_else(|| format!("curl: option {name}: expected a proper numerical parameter\n{help}"))
    }

    fn take_switch(&mut self, name: &str) -> bool {
        let switch = match name {
            "-s" | "--silent" => &mut self.is_silent,
            "-S" | "--show-error" => &mut self.shows_errors,
            "-I" | "--head" => &mut self.is_head,
            "-i" | "--include" => &mut self.includes_headers,
            "-k" | "--insecure" => &mut self.is_insecure,
            "-L" | "--location" => &mut self.follows,
            "-f" | "--fail" => &mut self.fails,
            "--fail-with-body" => &mut self.fails_with_body,
            "-G" | "--get" => &mut self.puts_data_in_url,
            "-O" | "--remote-name" => &mut self.names_output,
            "--retry-connrefused" | "--retry-all-errors" => &mut self.retries_refused,
            "-v" | "--verbose" => &mut self.is_verbose,
            "-V" | "--version" => &mut self.tells_version,
            _ => return false,
        };
        *switch = true;
        true
    }

    fn take_family(&mut self, name: &str) -> bool {
        self.family = match name {
            "-4" | "--ipv4" => AddressFamily::V4,
            "-6" | "--ipv6" => AddressFamily::V6,
            _ => return false,
        };
        true
    }

    /// Nothing when the value is no number where one must be.
    fn take_value(&mut self, name: &str, value: String) -> Option<()> {
        match name {
            "-X" | "--request" => self.method = Some(value),
            "-H" | "--header" => self.headers.extend(header(&value)),
            "-d" | "--data" | "--data-ascii" => self.data.push((DataKind::Plain, value)),
            "--data-raw" => self.data.push((DataKind::Raw, value)),
            "--data-binary" => self.data.push((DataKind::Binary, value)),
            "--data-urlencode" => self.data.push((DataKind::Encoded, value)),
            "-F" | "--form" | "--form-string" => self.forms.push(value),
            "-T" | "--upload-file" => self.upload = Some(value),
            "-D" | "--dump-header" => self.heads_to = Some(value),
            "--oauth2-bearer" => self.headers.push(("Authorization".into(), format!("Bearer {value}"))),
            "--json" => {
                self.data.push((DataKind::Binary, value));
                self.is_json = true;
                let json = || "application/json".to_owned();
                self.headers.extend([("Content-Type".to_owned(), json()), ("Accept".to_owned(), json())]);
            }
            "-u" | "--user" => self.user = Some(value),
            "-A" | "--user-agent" => self.agent = Some(value),
            "-o" | "--output" => self.output = Some(value),
            "-w" | "--write-out" => self.write_out = Some(value),
            "--cacert" => self.authorities = Some(value),
            "-E" | "--cert" => self.certificate = Some(value),
            "--key" => self.key = Some(value),
            "--resolve" | "--connect-to" => self.resolve.push(value),
            "--interface" => self.interface = Some(value),
            "-m" | "--max-time" => self.max_time = Some(seconds(&value)?),
            "--connect-timeout" => self.connect_timeout = Some(seconds(&value)?),
            "--retry" => self.retries = value.parse().ok()?,
            "--retry-delay" => self.retry_delay = Some(seconds(&value)?),
            "--max-redirs" => self.max_redirects = Some(value.parse().ok()?),
            "--url" => self.urls.push(value),
            "-e" | "--referer" => self.headers.push(("Referer".into(), value)),
            "-b" | "--cookie" => self.headers.push(("Cookie".into(), value)),
            _ => {}
        }
        Some(())
    }
}

fn takes_value(name: &str) -> bool {
    let short = ["-X", "-H", "-d", "-u", "-A", "-o", "-w", "-m", "-e", "-b", "-F", "-T", "-D", "-E"];
    let long = [
        "--request",
        "--header",
        "--data",
        "--data-raw",
        "--data-binary",
        "--data-ascii",
        "--data-urlencode",
        "--json",
        "--user",
        "--user-agent",
        "--output",
        "--write-out",
        "--cacert",
        "--cert",
        "--key",
        "--resolve",
        "--connect-to",
        "--interface",
        "--max-time",
        "--connect-timeout",
        "--retry",
        "--retry-delay",
        "--max-redirs",
        "--url",
        "--referer",
        "--cookie",
        "--form",
        "--form-string",
        "--upload-file",
        "--dump-header",
        "--oauth2-bearer",
    ];
    short.contains(&name) || long.contains(&name)
}

fn header(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once(':')?;
    Some((name.trim().to_owned(), value.trim().to_owned()))
}

fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}
