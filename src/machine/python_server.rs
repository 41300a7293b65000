//! What python's `http.server` answers: files, lists of folders, and its own words for what is not there.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::common_time::common_time;
use crate::file_system::{self, File};
use crate::images;
use crate::requests::{WebAnswer, WebRequest};

/// Of images that name no version.
const VERSION: &str = "3.13.1";
/// What `urllib.parse.quote` leaves as it is.
const QUOTED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'.').remove(b'-').remove(b'~').remove(b'/');
/// As `mimetypes` has them.
const TYPES: &[(&str, &str)] = &[
    ("html", "text/html"),
    ("htm", "text/html"),
    ("txt", "text/plain"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("js", "text/javascript"),
    ("md", "text/markdown"),
    ("py", "text/x-python"),
    ("xml", "text/xml"),
    ("json", "application/json"),
    ("pdf", "application/pdf"),
    ("sh", "application/x-sh"),
    ("gz", "application/gzip"),
    ("zip", "application/zip"),
    ("tar", "application/x-tar"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("svg", "image/svg+xml"),
];

/// The files that it serves.
pub(crate) trait PythonFiles {
    /// The file of a path; nothing for a folder.
    fn file(&self, path: &str) -> Option<File>;
    /// What is in a folder: folders with a slash behind their names.
    fn names(&self, folder: &str) -> BTreeSet<String>;
}

/// What is answered to a request.
pub(crate) fn answer(
    files: &dyn PythonFiles,
    folder: &str,
    asked: &WebRequest<'_>,
    image: &str,
) -> WebAnswer {
    let tag = images::tag(image).split('-').next().unwrap_or_default();
    let version = if tag.starts_with(|letter: char| letter.is_ascii_digit()) { tag } else { VERSION };
    let mut answered = page(files, folder, asked);
    answered.headers.push(("server", format!("SimpleHTTP/0.6 Python/{version}")));
    answered
}

fn page(files: &dyn PythonFiles, folder: &str, asked: &WebRequest<'_>) -> WebAnswer {
    if !matches!(asked.method, "GET" | "HEAD") {
        let why = format!("Unsupported method ('{}')", asked.method);
        return error(501, &why, "Server does not support this operation.");
    }
    let target = asked.target.split(['?', '#']).next().unwrap_or_default();
    let decoded = percent_encoding::percent_decode_str(target).decode_utf8_lossy();
    let path = format!("{}{}", folder.trim_end_matches('/'), file_system::absolute("/", &decoded));
    let path = path.trim_end_matches('/');
    let names = files.names(path);
    if names.is_empty() {
        let file = files.file(path).filter(|_| !target.ends_with('/'));
        let missing = || error(404, "File not found", "Nothing matches the given URI.");
        return file.map_or_else(missing, |file| WebAnswer::typed(200, media_type(path), file.text()));
    }
    if !target.ends_with('/') {
        let headers = vec![("location", format!("{target}/"))];
        return WebAnswer { code: 301, headers, ..WebAnswer::default() };
    }
    let index = ["index.html", "index.htm"].iter().find_map(|name| files.file(&format!("{path}/{name}")));
    match index {
        Some(file) => WebAnswer::typed(200, "text/html", file.text()),
        None => WebAnswer::typed(200, "text/html; charset=utf-8", listing(&decoded, names)),
    }
}

/// What it writes into its log of a request, as lines.
pub(crate) fn logged(asked: &WebRequest<'_>, answered: &WebAnswer, at: DateTime<Utc>) -> Vec<String> {
    let (from, _) = asked.client();
    let time = common_time(at).replacen(':', " ", 1);
    let time = time.trim_end_matches(" +0000");
    let line = |text: String| format!("{} - - [{time}] {text}", from.trim_matches(['[', ']']));
    let why = match answered.code {
        404 => Some("File not found".to_owned()),
        501 => Some(format!("Unsupported method ('{}')", asked.method)),
        _ => None,
    };
    let failed = why.map(|why| line(format!("code {}, message {why}", answered.code)));
    let request = line(format!("\"{} {} HTTP/1.1\" {} -", asked.method, asked.target, answered.code));
    failed.into_iter().chain([request]).collect()
}

fn listing(path: &str, names: BTreeSet<String>) -> String {
    let mut names: Vec<String> = names.into_iter().collect();
    names.sort_by_key(|name| name.to_lowercase());
    let item = |name: &String| {
        let shown = escaped(name);
        format!("<li><a href=\"{}\">{shown}</a></li>\n", utf8_percent_encode(name, QUOTED))
    };
    let items: String = names.iter().map(item).collect();
    let title = format!("Directory listing for {}", escaped(path));
    format!(
        "<!DOCTYPE HTML>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n</head>\n\
         <body>\n<h1>{title}</h1>\n<hr>\n<ul>\n{items}</ul>\n<hr>\n</body>\n</html>\n"
    )
}

fn error(code: u16, why: &str, explained: &str) -> WebAnswer {
    let why = escaped(why);
    let body = format!(
        "<!DOCTYPE HTML>\n<html lang=\"en\">\n    <head>\n        <meta charset=\"utf-8\">\n        \
         <title>Error response</title>\n    </head>\n    <body>\n        <h1>Error response</h1>\n        \
         <p>Error code: {code}</p>\n        <p>Message: {why}.</p>\n        \
         <p>Error code explanation: {code} - {explained}</p>\n    </body>\n</html>\n"
    );
    WebAnswer::typed(code, "text/html;charset=utf-8", body)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn media_type(path: &str) -> &'static str {
    let end = path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, end)| end);
    let known = TYPES.iter().find(|(own, _)| end.is_some_and(|end| own.eq_ignore_ascii_case(end)));
    known.map_or("application/octet-stream", |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Given(&'static [&'static str]);

    impl PythonFiles for Given {
        fn file(&self, path: &str) -> Option<File> {
            self.0.contains(&path).then(|| File::new(format!("of {path}"), 0o644))
        }

        fn names(&self, folder: &str) -> BTreeSet<String> {
            let start = format!("{folder}/");
            let name = |rest: &str| match rest.split_once('/') {
                Some((name, _)) => format!("{name}/"),
                None => rest.to_owned(),
            };
            self.0.iter().filter_map(|path| path.strip_prefix(&start)).map(name).collect()
        }
    }

    #[test]
    fn folders_are_listed_and_files_have_their_types() {
        let files = Given(&["/w/b.txt", "/w/A & B", "/w/sub/index.html", "/w/x.bin"]);
        let get = |target: &str| {
            let asked = WebRequest { method: "GET", target, ..WebRequest::default() };
            answer(&files, "/w", &asked, "python:3.12-slim")
        };
        let header = |answered: &WebAnswer, name: &str| {
            answered.headers.iter().find(|(own, _)| *own == name).map(|(_, value)| value.clone())
        };
        let listed = get("/");
        assert!(listed.body.contains("<title>Directory listing for /</title>"), "{}", listed.body);
        let items = "<ul>\n<li><a href=\"A%20%26%20B\">A &amp; B</a></li>\n<li><a href=\"b.txt\">b.txt</a></li>\n\
            <li><a href=\"sub/\">sub/</a></li>\n<li><a href=\"x.bin\">x.bin</a></li>\n</ul>\n";
        assert!(listed.body.contains(items), "{}", listed.body);
        assert_eq!(header(&listed, "server").as_deref(), Some("SimpleHTTP/0.6 Python/3.12"));
        assert_eq!(header(&get("/b.txt"), "content-type").as_deref(), Some("text/plain"));
        assert_eq!(header(&get("/x.bin"), "content-type").as_deref(), Some("application/octet-stream"));
        assert_eq!(get("/A%20%26%20B").body, "of /w/A & B");
        let moved = get("/sub");
        assert_eq!((moved.code, header(&moved, "location").as_deref()), (301, Some("/sub/")));
        assert_eq!(get("/sub/").body, "of /w/sub/index.html");
        let missing = get("/../../etc/passwd");
        assert_eq!(missing.code, 404);
        assert!(missing.body.contains("<p>Message: File not found.</p>"), "{}", missing.body);
        assert_eq!(get("/b.txt/").code, 404);
    }

    #[test]
    fn each_request_is_a_line_of_its_log() {
        let asked = WebRequest { method: "GET", target: "/x", from: "10.0.0.9:41", ..WebRequest::default() };
        let answered = WebAnswer { code: 404, ..WebAnswer::default() };
        let lines = logged(&asked, &answered, DateTime::UNIX_EPOCH);
        let wanted = [
            "10.0.0.9 - - [01/Jan/1970 00:00:00] code 404, message File not found",
            "10.0.0.9 - - [01/Jan/1970 00:00:00] \"GET /x HTTP/1.1\" 404 -",
        ];
        assert_eq!(lines, wanted);
    }
}
