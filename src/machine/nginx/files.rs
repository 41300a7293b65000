//! Files that nginx serves: of volumes, of whoever wrote some, and the few of its image.

use chrono::{DateTime, Utc};

use super::exchange::NginxExchange;
use super::scope::BlockScope;
use crate::byte_text;
use crate::common_time::http_time;
use crate::file_system;
use crate::requests::WebAnswer;

/// Where its image has pages.
pub(super) const IMAGE_ROOT: &str = "/usr/share/nginx/html";
/// When those were made.
const IMAGE_TIME: i64 = 1_744_804_871;
/// So many names are listed of a folder.
const MAX_NAMES: usize = 1000;

/// As `mime.types` has them.
const TYPES: &[(&str, &str)] = &[
    ("html", "text/html"),
    ("htm", "text/html"),
    ("shtml", "text/html"),
    ("css", "text/css"),
    ("xml", "text/xml"),
    ("gif", "image/gif"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "application/javascript"),
    ("txt", "text/plain"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("webp", "image/webp"),
    ("ico", "image/x-icon"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("json", "application/json"),
    ("pdf", "application/pdf"),
    ("wasm", "application/wasm"),
    ("zip", "application/zip"),
    ("crt", "application/x-x509-ca-cert"),
    ("pem", "application/x-x509-ca-cert"),
    ("mp4", "video/mp4"),
];

/// A file that is there.
pub(super) struct ServedFile {
    text: String,
    modified: i64,
    pub(super) may_run: bool,
}

impl NginxExchange<'_> {
    pub(super) fn file(&self, path: &str) -> Option<ServedFile> {
        let path = path.replace("//", "/");
        if let Some(around) = self.backing.around {
            if let Some(file) = around.newest_file(&path) {
                let modified = file.stamp.map_or(around.started_at, |stamp| stamp.modified).timestamp();
                return (!file.is_folder).then(|| ServedFile {
                    text: file.text(),
                    modified,
                    may_run: file.mode & 0o111 != 0,
                });
            }
            let is_hidden = |mount: &file_system::MountedVolume| file_system::is_within(&mount.path, &path);
            let is_removed = around.foreign.get(&path).is_some_and(|foreign| foreign.file.is_none());
            if around.mounts.iter().any(is_hidden) || is_removed {
                return None;
            }
        }
        let name = path.strip_prefix(IMAGE_ROOT)?;
        let text = match name {
            "/index.html" => page("Welcome to nginx!", "If you see this page, a simulated nginx answers."),
            "/50x.html" => page("An error occurred.", "The page you are looking for is not there now."),
            _ => return None,
        };
        Some(ServedFile { text, modified: IMAGE_TIME, may_run: false })
    }

    pub(super) fn is_folder(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        path == IMAGE_ROOT || path.is_empty() || self.names_in(path).next().is_some()
    }

    /// What is below a folder, with the rest of its path.
    fn names_in(&self, folder: &str) -> impl Iterator<Item = String> {
        let start = format!("{folder}/");
        let tree = self.backing.around.and_then(|around| around.views.last()).map(|view| view.tree.clone());
        let paths: Vec<String> = tree
            .iter()
            .flat_map(|tree| {
                let below = tree.range(start.clone()..).take_while(|(path, _)| path.starts_with(&start));
                below.map(|(path, _)| path[start.len()..].to_owned()).take(MAX_NAMES).collect::<Vec<_>>()
            })
            .collect();
        paths.into_iter()
    }

    /// `autoindex`
    pub(super) fn listing(&self, folder: &str) -> WebAnswer {
        let name = |path: String| match path.split_once('/') {
            Some((name, _)) => format!("{name}/"),
            None => path,
        };
        let mut names: Vec<String> = self.names_in(folder.trim_end_matches('/')).map(name).collect();
        names.retain(|name| !name.starts_with('.') && !name.is_empty());
        names.sort();
        names.dedup();
        let links: String = names.iter().map(|name| format!("<a href=\"{name}\">{name}</a>\r\n")).collect();
        let title = format!("Index of {}", self.path);
        let body = format!(
            "<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<h1>{title}</h1><hr><pre>\
             <a href=\"../\">../</a>\r\n{links}</pre><hr></body>\r\n</html>\r\n"
        );
        WebAnswer::typed(200, "text/html", body)
    }

    /// The type that a path's end or the configuration gives.
    pub(super) fn media_type(&self, scope: &BlockScope) -> String {
        let end = self.path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, end)| end);
        let own = |end: &str| scope.types.get(end).cloned();
        let usual = |end: &str| {
            let found = TYPES.iter().find(|(known, _)| *known == end && scope.types.is_empty());
            found.map(|(_, kind)| (*kind).to_owned())
        };
        let of_end = end.map(str::to_ascii_lowercase).and_then(|end| own(&end).or_else(|| usual(&end)));
        of_end.unwrap_or_else(|| scope.default_type.clone())
    }

    /// What is answered with a file; whoever has it already is told so.
    pub(super) fn with_file(&self, found: ServedFile, scope: &BlockScope) -> WebAnswer {
        let modified = DateTime::<Utc>::from_timestamp(found.modified, 0).unwrap_or_default();
        let modified = http_time(modified);
        let tag = format!("\"{:x}-{:x}\"", found.modified, byte_text::byte_count(&found.text));
        let has_it = match self.asked.header("if-none-match") {
            Some(tags) => {
                tags == "*" || tags.split(',').any(|own| own.trim().trim_start_matches("W/") == tag)
            }
            None => self.asked.header("if-modified-since") == Some(&modified),
        };
        let headers = vec![("last-modified", modified), ("etag", tag)];
        if has_it {
            return WebAnswer { code: 304, headers, ..WebAnswer::default() };
        }
        let mut answered = WebAnswer::typed(200, "", found.text);
        answered.headers = vec![("content-type", self.media_type(scope))];
        answered.headers.extend(headers);
        answered.headers.push(("accept-ranges", "bytes".to_owned()));
        self.ranged(answered)
    }

    /// `Range: bytes=FROM-TO`, one of them: of several the whole is said, as is allowed.
    fn ranged(&self, mut answered: WebAnswer) -> WebAnswer {
        let range = self.asked.header("range").and_then(|range| range.strip_prefix("bytes="));
        let Some((from, to)) = range.and_then(|range| range.split_once('-')) else { return answered };
        if to.contains(',') {
            return answered;
        }
        let bytes = byte_text::bytes_of(&answered.body);
        let size = bytes.len();
        let number = |text: &str| text.parse::<usize>().ok();
        let (from, end) = match (number(from), number(to)) {
            (Some(from), None) if to.is_empty() => (from, size),
            (Some(from), Some(to)) => (from, to.saturating_add(1).min(size)),
            (None, Some(last)) if from.is_empty() => (size.saturating_sub(last), size),
            // What is no range leads nowhere.
            _ => (size, size),
        };
        answered.headers.retain(|(name, _)| *name != "accept-ranges");
        match bytes.get(from..end).filter(|part| !part.is_empty()).map(byte_text::text_of) {
            Some(part) => {
                answered.headers.push(("content-range", format!("bytes {from}-{}/{size}", end - 1)));
                WebAnswer { code: 206, body: part, ..answered }
            }
            None => {
                let body = super::answer::error_body(416, &self.server_name());
                let headers = vec![
                    ("content-type", "text/html".to_owned()),
                    ("content-range", format!("bytes */{size}")),
                ];
                WebAnswer { code: 416, headers, body, ..WebAnswer::default() }
            }
        }
    }
}

fn page(title: &str, text: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html>\n<head><title>{title}</title></head>\n<body>\n<h1>{title}</h1>\n<p>{text}</p>\n\
         </body>\n</html>\n"
    )
}
