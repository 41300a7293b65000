//! What nginx reads from its files: servers, their locations, and what is said for each.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::patterns::{ConfPattern, PatternBook, signed};
use super::scope::{BlockLevel, BlockScope};
use super::syntax::{self, Directive};
use super::template;
use crate::file_system::{self, File, Tree};
use crate::surroundings::Surroundings;

/// Where everything begins.
const MAIN: &str = "/etc/nginx/nginx.conf";
/// What the image includes there.
const FOLDER: &str = "/etc/nginx/conf.d";
/// So many files are read; of more the later ones are not.
const MAX_FILES: usize = 200;
/// So many directives are read of all files together; of more the later ones are not.
const MAX_DIRECTIVES: usize = 20_000;

/// The main file of the image, as far as it counts.
const IMAGE_MAIN: &str = "http { default_type application/octet-stream; access_log /var/log/nginx/access.log main; \
    include /etc/nginx/conf.d/*.conf; }";
/// And its one server. Its port is another one where nobody is root.
const IMAGE_SERVER: &str = "server { listen PORT; server_name localhost; \
    location / { root /usr/share/nginx/html; index index.html index.htm; } \
    error_page 500 502 503 504 /50x.html; location = /50x.html { root /usr/share/nginx/html; } }";

/// What it is configured to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NginxConfig {
    pub(super) hosts: Vec<ServerBlock>,
    /// Upstreams, and where their servers are.
    pub(super) upstreams: BTreeMap<String, Vec<String>>,
    pub(super) maps: Vec<ValueMap>,
    pub(super) formats: BTreeMap<String, String>,
    /// What is not understood or is wrong, as its log says it.
    pub(super) problems: Vec<String>,
}

/// A `server`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ServerBlock {
    pub(super) listens: Vec<ListenAt>,
    pub(super) names: Vec<String>,
    pub(super) name_patterns: Vec<ConfPattern>,
    pub(super) scope: BlockScope,
    pub(super) locations: Vec<LocationBlock>,
    pub(super) certificate: String,
    pub(super) key: String,
}

/// Where a `server` listens.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ListenAt {
    pub(super) port: i64,
    pub(super) is_default: bool,
    pub(super) is_tls: bool,
}

/// A `location`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LocationBlock {
    pub(super) matches: Matching,
    pub(super) scope: BlockScope,
    pub(super) inner: Vec<LocationBlock>,
}

/// For which paths a location is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Matching {
    /// `=`
    Exact(String),
    /// And whether no pattern is looked at then: `^~`.
    Prefix(String, bool),
    /// `~`, `~*`
    Pattern(ConfPattern),
    /// `@name`
    Named(String),
}

/// A `map`: what a value becomes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ValueMap {
    pub(super) source: String,
    pub(super) name: String,
    pub(super) entries: Vec<(String, String)>,
    /// `~pattern`, in their order.
    pub(super) patterns: Vec<(ConfPattern, String)>,
}

/// What is read so far.
struct ConfReading<'a> {
    tree: &'a Tree,
    around: Option<&'a Surroundings>,
    image_port: i64,
    files: usize,
    directives: usize,
    book: PatternBook,
    config: NginxConfig,
}

impl NginxConfig {
    /// As a container finds it that starts with these volumes.
    pub(super) fn read(around: Option<&Surroundings>, image_port: i64) -> NginxConfig {
        let nothing = Arc::default();
        let tree: &Arc<Tree> =
            around.and_then(|around| around.views.first()).map_or(&nothing, |view| &view.tree);
        let config = NginxConfig::default();
        let book = PatternBook::default();
        let mut reading = ConfReading { tree, around, image_port, files: 0, directives: 0, book, config };
        let main = reading.parsed(MAIN);
        reading.top(&main);
        if reading.config.hosts.is_empty() {
            reading.config.problems.push("[warn] 1#1: no server is configured, nobody listens".to_owned());
        }
        reading.config.problems.append(&mut reading.book.problems);
        reading.config
    }
}

impl ConfReading<'_> {
    fn problem(&mut self, text: String) {
        self.config.problems.push(text);
    }

    /// What somebody mounted, else what the image has.
    fn text(&self, path: &str) -> Option<String> {
        if let Some(file) = self.tree.get(path).filter(|file| !file.is_folder) {
            return Some(file.text());
        }
        if let Some(text) = template::made(path, self.tree, self.around) {
            return Some(text);
        }
        let is_hidden = self.around.is_some_and(|around| {
            around.mounts.iter().any(|mount| file_system::is_within(&mount.path, path))
        });
        match path {
            _ if is_hidden => None,
            MAIN => Some(IMAGE_MAIN.to_owned()),
            "/etc/nginx/conf.d/default.conf" => {
                Some(IMAGE_SERVER.replace("PORT", &self.image_port.to_string()))
            }
            _ => None,
        }
    }

    fn parsed(&mut self, path: &str) -> Vec<Directive> {
        self.files += 1;
        let Some(text) = self.text(path).filter(|_| self.files <= MAX_FILES) else {
            if self.files <= MAX_FILES {
                let why = "failed (2: No such file or directory)";
                self.problem(format!("[emerg] 1#1: open() \"{path}\" {why}"));
            } else if self.files == MAX_FILES + 1 {
                self.problem(format!("[emerg] 1#1: more than {MAX_FILES} files are not simulated"));
            }
            return vec![];
        };
        syntax::parse(&text, path).unwrap_or_else(|wrong| {
            self.problem(format!("[emerg] 1#1: {}", wrong.0));
            vec![]
        })
    }

    /// The files that an `include` names.
    fn included(&mut self, directive: &Directive) -> Vec<Directive> {
        let path = file_system::absolute("/etc/nginx", directive.word());
        if matches!(path.rsplit('/').next(), Some("mime.types" | "fastcgi_params" | "uwsgi_params")) {
            return vec![];
        }
        if path.starts_with("/etc/nginx/modules") || path.starts_with("/usr/share/nginx/modules") {
            return vec![];
        }
        let Some((before, after)) = path.split_once('*') else { return self.parsed(&path) };
        let fits = |own: &str| {
            let rest = own.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            rest.is_some_and(|rest| !rest.contains('/') && !rest.starts_with('.'))
        };
        let of_file = |(path, file): (&String, &File)| (!file.is_folder).then(|| path.clone());
        let mut paths: Vec<String> = self.tree.iter().filter_map(of_file).collect();
        paths.push(format!("{FOLDER}/default.conf"));
        paths.extend(template::paths(self.tree));
        paths.retain(|path| fits(path) && self.text(path).is_some());
        paths.sort();
        paths.dedup();
        paths.iter().flat_map(|path| self.parsed(path)).collect()
    }

    /// With what is included in its place.
    fn whole(&mut self, directives: &[Directive], depth: usize) -> Vec<Directive> {
        let mut whole = Vec::new();
        for directive in directives {
            if self.directives > MAX_DIRECTIVES {
                break;
            }
            self.directives += 1;
            if self.directives > MAX_DIRECTIVES {
                self.problem(format!("[emerg] 1#1: more than {MAX_DIRECTIVES} directives are not simulated"));
            } else if directive.name == "include" && depth < 8 {
                let included = self.included(directive);
                whole.extend(self.whole(&included, depth + 1));
            } else {
                whole.push(directive.clone());
            }
        }
        whole
    }

    fn top(&mut self, directives: &[Directive]) {
        for directive in self.whole(directives, 0) {
            match (directive.name.as_str(), &directive.block) {
                ("http", Some(block)) => self.http(block),
                ("stream" | "mail", Some(_)) => self.unknown(&directive),
                ("server", Some(_)) => {
                    let (name, place) = (&directive.name, directive.place());
                    let text = format!("[emerg] 1#1: \"{name}\" directive is not allowed here in {place}");
                    self.problem(text);
                }
                // Of processes, their logs and their modules.
                _ => {}
            }
        }
    }

    fn unknown(&mut self, directive: &Directive) {
        let (name, place) = (&directive.name, directive.place());
        self.problem(format!(
            "[warn] 1#1: directive \"{name}\" is not simulated, and has no effect in {place}"
        ));
    }

    fn http(&mut self, block: &[Directive]) {
        let directives = self.whole(block, 0);
        let scope = self.scope(&BlockScope::default(), &directives, BlockLevel::Http);
        for directive in &directives {
            let Some(block) = &directive.block else { continue };
            match directive.name.as_str() {
                "server" => self.server(&scope, block),
                "upstream" => self.upstream(directive.word(), block),
                "map" => self.map(directive, block),
                _ => {}
            }
        }
        let formats = directives.iter().filter(|own| own.name == "log_format");
        let format = |own: &Directive| {
            let is_text = |word: &&String| !word.starts_with("escape=");
            let words: Vec<&str> = own.words.iter().skip(1).filter(is_text).map(String::as_str).collect();
            (own.word().to_owned(), words.concat())
        };
        self.config.formats.extend(formats.map(format));
    }

    /// What the directives of a block say; whoever is not known is told of.
    fn scope(&mut self, outer: &BlockScope, directives: &[Directive], level: BlockLevel) -> BlockScope {
        let (scope, unknown) = BlockScope::read(outer, directives, level, &mut self.book);
        unknown.iter().for_each(|directive| self.unknown(directive));
        scope
    }

    fn server(&mut self, outer: &BlockScope, block: &[Directive]) {
        let directives = self.whole(block, 0);
        let scope = self.scope(outer, &directives, BlockLevel::Server);
        let mut host = ServerBlock { scope, ..ServerBlock::default() };
        for directive in &directives {
            match directive.name.as_str() {
                "listen" => match listen(directive) {
                    Some(listen) => host.listens.push(listen),
                    None => self.unknown(directive),
                },
                "server_name" => self.server_names(&mut host, directive),
                "ssl_certificate" => host.certificate = in_folder(directive.word()),
                "ssl_certificate_key" => host.key = in_folder(directive.word()),
                _ => {}
            }
        }
        if host.listens.is_empty() {
            host.listens.push(ListenAt { port: 80, is_default: false, is_tls: false });
        }
        host.locations = self.locations(&host.scope.clone(), &directives);
        self.config.hosts.push(host);
    }

    fn server_names(&mut self, host: &mut ServerBlock, directive: &Directive) {
        for word in &directive.words {
            // Names have no case.
            match word.strip_prefix('~') {
                Some(pattern) => {
                    host.name_patterns.push(self.book.read(pattern, true, &directive.place()));
                }
                None => host.names.push(word.clone()),
            }
        }
    }

    fn locations(&mut self, outer: &BlockScope, directives: &[Directive]) -> Vec<LocationBlock> {
        let mut locations = Vec::new();
        for directive in directives.iter().filter(|own| own.name == "location") {
            let Some(block) = &directive.block else { continue };
            let directives = self.whole(block, 0);
            let scope = self.scope(outer, &directives, BlockLevel::LocationBlock);
            let matches = self.matching(directive);
            let inner = self.locations(&scope, &directives);
            locations.push(LocationBlock { matches, scope, inner });
        }
        locations
    }

    fn upstream(&mut self, name: &str, block: &[Directive]) {
        let servers = block.iter().filter(|own| own.name == "server");
        let is_used = |own: &&Directive| !own.words.iter().any(|word| word == "down" || word == "backup");
        let servers = servers.filter(is_used).map(|own| own.word().to_owned()).collect();
        self.config.upstreams.insert(name.to_owned(), servers);
    }

    fn map(&mut self, directive: &Directive, block: &[Directive]) {
        let [source, name] = directive.words.as_slice() else { return };
        let mut map = ValueMap {
            source: source.clone(),
            name: name.trim_start_matches('$').to_owned(),
            entries: vec![],
            patterns: vec![],
        };
        for own in block {
            let value = own.word().to_owned();
            match signed(&own.name) {
                Some((pattern, ignores_case)) => {
                    map.patterns.push((self.book.read(pattern, ignores_case, &own.place()), value));
                }
                None => map.entries.push((own.name.clone(), value)),
            }
        }
        self.config.maps.push(map);
    }

    fn matching(&mut self, directive: &Directive) -> Matching {
        match directive.words.as_slice() {
            [sign, path] if sign == "=" => Matching::Exact(path.clone()),
            [sign, path] if sign == "^~" => Matching::Prefix(path.clone(), true),
            [sign, pattern] if sign == "~" || sign == "~*" => {
                Matching::Pattern(self.book.read(pattern, sign == "~*", &directive.place()))
            }
            [name] if name.starts_with('@') => Matching::Named(name.clone()),
            [path, ..] => Matching::Prefix(path.clone(), false),
            [] => Matching::Prefix("/".to_owned(), false),
        }
    }
}

/// Files are named below its folder.
fn in_folder(path: &str) -> String {
    file_system::absolute("/etc/nginx", path)
}

/// Nothing for what is no port of TCP.
fn listen(directive: &Directive) -> Option<ListenAt> {
    let word = directive.word();
    let has = |flag: &str| directive.words.iter().any(|word| word == flag);
    if word.starts_with("unix:") || has("udp") || has("quic") {
        return None;
    }
    let port = match word.rsplit_once(':') {
        Some((address, port)) if !port.contains(']') && !address.is_empty() => port,
        Some(_) => "80",
        // An address alone, or a port.
        None if word.contains(['.', '*']) || word == "localhost" => "80",
        None => word,
    };
    Some(ListenAt {
        port: port.parse().ok()?,
        is_default: has("default_server") || has("default"),
        is_tls: has("ssl"),
    })
}
