//! Files that a web server finds in its container: of its image, of volumes, and what somebody wrote there.

use crate::file_system::{self, File};
use crate::image_files;
use crate::requests::{WebAnswer, WebRequest};
use crate::surroundings::Surroundings;

/// What is served for a folder.
const INDEX: &str = "index.html";
/// Types of files by the ends of their names.
const TYPES: &[(&str, &str)] = &[
    ("html", "text/html"),
    ("htm", "text/html"),
    ("css", "text/css"),
    ("js", "application/javascript"),
    ("json", "application/json"),
    ("xml", "text/xml"),
    ("txt", "text/plain"),
    ("svg", "image/svg+xml"),
    ("crt", "application/x-x509-ca-cert"),
];

/// Folders and files that agnhost's image has, beside what is mounted: `test-webserver` serves them.
const AGNHOST_FILES: &[&str] = &[
    "/",
    "/agnhost",
    "/bin",
    "/dev",
    "/etc",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/passwd",
    "/etc/resolv.conf",
    "/home",
    "/lib",
    "/proc",
    "/root",
    "/sys",
    "/tmp",
    "/usr",
    "/var",
];

/// The file that is asked for below a folder; nothing where none is known.
pub(crate) fn answer(root: &str, asked: &WebRequest<'_>, around: Option<&Surroundings>) -> Option<WebAnswer> {
    let path = asked.target.split('?').next().unwrap_or_default();
    let is_read = matches!(asked.method, "GET" | "HEAD");
    let file = file(root, path, around?).filter(|_| is_read)?;
    Some(WebAnswer::typed(200, media_type(path), file.text()))
}

/// What agnhost's `test-webserver` says: a file of its container, or a folder.
pub(crate) fn of_agnhost(
    folders: &[String],
    asked: &WebRequest<'_>,
    around: Option<&Surroundings>,
) -> WebAnswer {
    if let Some(answer) = answer("", asked, around) {
        return answer;
    }
    let path = plain(asked.target.split('?').next().unwrap_or_default());
    let is_folder = || folders.iter().any(|folder| folder.trim_end_matches('/') == path);
    let is_there = match around {
        Some(_) => is_folder() || AGNHOST_FILES.contains(&path),
        None => is_believed(folders, path),
    };
    if is_there { WebAnswer::text(200, "") } else { WebAnswer::text(404, "404 page not found\n") }
}

/// Whether its image has a file, or a volume may have it: what is believed while nobody looks.
pub(crate) fn is_believed(folders: &[String], path: &str) -> bool {
    let path = plain(path);
    let is_in_volume = || folders.iter().any(|folder| file_system::is_within(folder, path));
    AGNHOST_FILES.contains(&path) || image_files::is_in("agnhost", path) || is_in_volume()
}

fn plain(path: &str) -> &str {
    if path.len() > 1 { path.trim_end_matches('/') } else { path }
}

fn file<'a>(root: &str, path: &str, around: &'a Surroundings) -> Option<&'a File> {
    let is_outside = path.split('/').any(|part| part == "..");
    let path = if path.ends_with('/') { format!("{root}{path}{INDEX}") } else { format!("{root}{path}") };
    around.newest_file(&path).filter(|file| !is_outside && !file.is_folder)
}

fn media_type(path: &str) -> &'static str {
    let end = path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map_or("html", |(_, end)| end);
    TYPES.iter().find(|(known, _)| *known == end).map_or("text/plain", |(_, kind)| kind)
}
