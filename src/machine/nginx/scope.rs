//! What is said for all that is in a block of nginx's configuration, and what only for the block itself.

use std::collections::BTreeMap;

use super::patterns::PatternBook;
use super::rewrite::RewriteStep;
use super::syntax::Directive;

/// Where a directive stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum BlockLevel {
    Http,
    Server,
    LocationBlock,
}

/// Of processes, buffers, connections and packing: what is answered is the same without them.
const WITHOUT_EFFECT: &[&str] = &[
    "client_body_buffer_size",
    "client_body_temp_path",
    "client_body_timeout",
    "client_header_buffer_size",
    "client_header_timeout",
    "error_log",
    "fastcgi_temp_path",
    "gzip",
    "http2",
    "keepalive_requests",
    "keepalive_timeout",
    "large_client_header_buffers",
    "log_not_found",
    "proxy_buffering",
    "proxy_buffer_size",
    "proxy_buffers",
    "proxy_busy_buffers_size",
    "proxy_cache_bypass",
    "proxy_connect_timeout",
    "proxy_http_version",
    "proxy_read_timeout",
    "proxy_request_buffering",
    "proxy_send_timeout",
    "proxy_ssl_server_name",
    "proxy_ssl_verify",
    "proxy_temp_path",
    "reset_timedout_connection",
    "resolver",
    "resolver_timeout",
    "scgi_temp_path",
    "send_timeout",
    "sendfile",
    "server_names_hash_bucket_size",
    "server_names_hash_max_size",
    "tcp_nodelay",
    "tcp_nopush",
    "types_hash_bucket_size",
    "types_hash_max_size",
    "uwsgi_temp_path",
    "variables_hash_bucket_size",
    "variables_hash_max_size",
];
/// They are read elsewhere.
const READ_ELSEWHERE: &[&str] = &[
    "include",
    "listen",
    "location",
    "log_format",
    "map",
    "server",
    "server_name",
    "ssl_certificate",
    "ssl_certificate_key",
    "ssl_ciphers",
    "ssl_prefer_server_ciphers",
    "ssl_protocols",
    "ssl_session_cache",
    "ssl_session_timeout",
    "upstream",
];

/// One `proxy_redirect`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LeadBack {
    /// As `proxy_pass` and the location say.
    Default,
    /// What a place begins with, and with what instead.
    Pair(String, String),
}

/// What holds in a block.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BlockScope {
    pub(super) root: String,
    pub(super) index: Vec<String>,
    pub(super) default_type: String,
    /// By the ends of names.
    pub(super) types: BTreeMap<String, String>,
    /// Names, values, and whether for all codes.
    pub(super) headers: Vec<(String, String, bool)>,
    pub(super) proxy_headers: Vec<(String, String)>,
    /// Codes, the code instead, and the page.
    pub(super) error_pages: Vec<(Vec<u16>, Option<u16>, String)>,
    /// The format of its log; nothing where it has none.
    pub(super) log: Option<String>,
    pub(super) shows_version: bool,
    /// `charset`, of texts that have none.
    pub(super) charset: Option<String>,
    /// `client_max_body_size` in bytes; nothing where all are taken.
    pub(super) max_body: Option<u64>,
    /// Whether headers with underscores in their names are heard.
    pub(super) hears_underscores: bool,
    /// How places behind it are named before it (`proxy_redirect`).
    pub(super) leads_back: Vec<LeadBack>,
    pub(super) lists_folders: bool,
    pub(super) intercepts_errors: bool,
    /// Whether somebody may ask, by his address: the first that fits.
    pub(super) access: Vec<(bool, String)>,
    pub(super) alias: Option<String>,
    pub(super) tries: Vec<String>,
    pub(super) proxy: Option<String>,
    pub(super) is_status: bool,
    pub(super) is_internal: bool,
    /// What is done before anything is looked for.
    pub(super) actions: Vec<RewriteStep>,
}

impl Default for BlockScope {
    fn default() -> BlockScope {
        BlockScope {
            root: "/etc/nginx/html".to_owned(),
            index: vec!["index.html".to_owned()],
            default_type: "text/plain".to_owned(),
            types: BTreeMap::new(),
            headers: vec![],
            proxy_headers: vec![],
            error_pages: vec![],
            log: Some("combined".to_owned()),
            shows_version: true,
            charset: None,
            max_body: Some(1 << 20),
            hears_underscores: false,
            leads_back: vec![LeadBack::Default],
            lists_folders: false,
            intercepts_errors: false,
            access: vec![],
            alias: None,
            tries: vec![],
            proxy: None,
            is_status: false,
            is_internal: false,
            actions: vec![],
        }
    }
}

impl BlockScope {
    /// What of it holds in a block inside.
    pub(super) fn entered(&self) -> BlockScope {
        BlockScope {
            alias: None,
            tries: vec![],
            proxy: None,
            is_status: false,
            is_internal: false,
            actions: vec![],
            ..self.clone()
        }
    }

    /// What the directives of one block say. Lists are that of the innermost block that has any.
    pub(super) fn read(
        outer: &BlockScope,
        directives: &[Directive],
        level: BlockLevel,
        book: &mut PatternBook,
    ) -> (BlockScope, Vec<Directive>) {
        let mut scope = outer.entered();
        let has = |name: &str| directives.iter().any(|own| own.name == name);
        if has("add_header") {
            scope.headers.clear();
        }
        if has("proxy_set_header") {
            scope.proxy_headers.clear();
        }
        if has("proxy_redirect") {
            scope.leads_back.clear();
        }
        if has("error_page") {
            scope.error_pages.clear();
        }
        if has("types") {
            scope.types.clear();
        }
        if has("allow") || has("deny") {
            scope.access.clear();
        }
        let unknown = directives.iter().filter(|own| !scope.takes(own, level, book)).cloned().collect();
        (scope, unknown)
    }

    /// Whether it is known what a directive means here.
    fn takes(&mut self, own: &Directive, level: BlockLevel, book: &mut PatternBook) -> bool {
        let word = own.word().to_owned();
        let is_on = word == "on";
        match own.name.as_str() {
            "root" => self.root = word,
            "index" => self.index.clone_from(&own.words),
            "default_type" => self.default_type = word,
            "types" => self.take_types(own),
            "add_header" => {
                let [name, value, rest @ ..] = own.words.as_slice() else { return false };
                self.headers.push((name.clone(), value.clone(), rest.iter().any(|word| word == "always")));
            }
            "proxy_set_header" => {
                let [name, value] = own.words.as_slice() else { return false };
                self.proxy_headers.push((name.clone(), value.clone()));
            }
            "error_page" => return self.take_error_page(&own.words),
            "access_log" => {
                let format = own.words.get(1).filter(|word| !word.contains('=')).cloned();
                self.log = (word != "off").then(|| format.unwrap_or_else(|| "combined".to_owned()));
            }
            "server_tokens" => self.shows_version = word != "off",
            "charset" => self.charset = (word != "off").then_some(word),
            "client_max_body_size" => match bytes(&word) {
                Some(most) => self.max_body = (most > 0).then_some(most),
                None => return false,
            },
            "underscores_in_headers" => self.hears_underscores = is_on,
            "proxy_redirect" => match own.words.as_slice() {
                [word] if word == "off" => self.leads_back.clear(),
                [word] if word == "default" => self.leads_back.push(LeadBack::Default),
                [from, to] if !from.starts_with('~') => {
                    self.leads_back.push(LeadBack::Pair(from.clone(), to.clone()));
                }
                _ => return false,
            },
            "autoindex" => self.lists_folders = is_on,
            "proxy_intercept_errors" => self.intercepts_errors = is_on,
            "allow" | "deny" => self.access.push((own.name == "allow", word)),
            "alias" => self.alias = Some(word),
            "try_files" => self.tries.clone_from(&own.words),
            "proxy_pass" => self.proxy = Some(word),
            "stub_status" => self.is_status = true,
            "internal" => self.is_internal = true,
            "set" | "return" | "rewrite" | "if" | "break" if level != BlockLevel::Http => {
                let Some(action) = RewriteStep::of(own, book) else { return false };
                self.actions.push(action);
            }
            name => {
                return WITHOUT_EFFECT.contains(&name)
                    || READ_ELSEWHERE.contains(&name)
                    || name.starts_with("gzip_");
            }
        }
        true
    }

    fn take_types(&mut self, own: &Directive) {
        for kind in own.block.iter().flatten() {
            let ends = kind.words.iter().map(|end| (end.clone(), kind.name.clone()));
            self.types.extend(ends);
        }
    }

    fn take_error_page(&mut self, words: &[String]) -> bool {
        let Some((page, codes)) = words.split_last() else { return false };
        let instead = codes.iter().find_map(|word| word.strip_prefix('='));
        // A bare `=` takes the code of the page.
        let instead = instead.map(|code| code.parse().unwrap_or(200));
        let codes = codes.iter().filter_map(|word| word.parse().ok()).collect();
        self.error_pages.push((codes, instead, page.clone()));
        true
    }
}

/// `8k`, `1m`, `1g`, or bytes.
fn bytes(word: &str) -> Option<u64> {
    let digits = word.trim_end_matches(['k', 'K', 'm', 'M', 'g', 'G']);
    let unit = match &word[digits.len()..] {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}
