//! What `curl` sends: data, forms and files.

use super::curl_options::{CurlOptions, DataKind};
use crate::byte_text;
use crate::interpreter::player::Player;
use crate::programs::names::base_name;

/// So many bytes of chance are in what parts a form.
const BOUNDARY_BYTES: usize = 11;

/// What is sent, and of what type it says that it is.
#[derive(Clone, Debug, Default)]
pub(super) struct CurlBody {
    pub(super) bytes: Vec<u8>,
    pub(super) media_type: Option<String>,
}

/// Reads what is to be sent.
///
/// # Errors
/// curl's exit code and words, when a file is not there.
pub(super) fn body(player: &mut Player<'_>, options: &CurlOptions) -> Result<CurlBody, (i32, String)> {
    if let Some(path) = &options.upload {
        let missing = || (26, format!("Failed to open/read local data from file/application {path}"));
        let bytes = bytes(player, path).ok_or_else(missing)?;
        return Ok(CurlBody { bytes, media_type: None });
    }
    if !options.forms.is_empty() {
        return form(player, &options.forms);
    }
    if options.data.is_empty() {
        return Ok(CurlBody::default());
    }
    let bytes = byte_text::bytes_of(&data(player, options)).into_owned();
    Ok(CurlBody { bytes, media_type: Some("application/x-www-form-urlencoded".into()) })
}

fn bytes(player: &mut Player<'_>, path: &str) -> Option<Vec<u8>> {
    if matches!(path, "-" | ".") {
        Some(player.input_bytes())
    } else {
        player.file(path).filter(|file| player.handle_file(file)).map(|file| file.content.to_vec())
    }
}

/// All pieces of data; files that are not there are empty, as curl warns.
pub(super) fn data(player: &mut Player<'_>, options: &CurlOptions) -> String {
    let mut pieces = Vec::new();
    for (kind, text) in &options.data {
        let from = text.strip_prefix('@').filter(|_| *kind != DataKind::Raw && *kind != DataKind::Encoded);
        let piece = match (from, kind) {
            (Some(path), kind) => {
                let read = bytes(player, path).unwrap_or_default();
                let text = byte_text::text_of(&read);
                if *kind == DataKind::Binary { text } else { text.replace(['\r', '\n', '\0'], "") }
            }
            (None, DataKind::Encoded) => encoded(player, text),
            (None, _) => text.clone(),
        };
        pieces.push(piece);
    }
    pieces.join(if options.is_json { "" } else { "&" })
}

/// `content`, `=content`, `name=content`, `@file`, `name@file`
fn encoded(player: &mut Player<'_>, text: &str) -> String {
    let (name, is_file, content) = match text.find(['=', '@']) {
        None => ("", false, text),
        Some(at) => (&text[..at], text[at..].starts_with('@'), &text[at + 1..]),
    };
    let content = if is_file {
        bytes(player, content).unwrap_or_default()
    } else {
        byte_text::bytes_of(content).into_owned()
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let letters = content.iter().map(|byte| match byte {
        byte if is_plain(*byte) => char::from(*byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    let joint = if name.is_empty() { "" } else { "=" };
    format!("{name}{joint}{}", letters.collect::<String>())
}

/// `multipart/form-data`
fn form(player: &mut Player<'_>, forms: &[String]) -> Result<CurlBody, (i32, String)> {
    let chance: String =
        player.random_bytes(BOUNDARY_BYTES).iter().map(|byte| format!("{byte:02x}")).collect();
    let boundary = format!("------------------------{chance}");
    let mut out = Vec::new();
    for given in forms {
        let Some((name, value)) = given.split_once('=') else {
            return Err((2, "Illegally formatted input field".to_owned()));
        };
        let mut parts = value.split(';');
        let first = parts.next().unwrap_or_default();
        let option =
            |key: &str| parts.clone().find_map(|part| part.trim().strip_prefix(key)?.strip_prefix('='));
        let missing =
            |path: &str| (26, format!("Failed to open/read local data from file/application {path}"));
        let mut disposition = format!("form-data; name=\"{name}\"");
        let mut media_type = option("type").map(str::to_owned);
        let content = if let Some(path) = first.strip_prefix('@') {
            let file = option("filename").unwrap_or_else(|| base_name(path));
            disposition.push_str(&format!("; filename=\"{file}\""));
            media_type = media_type.or_else(|| Some(media_type_of(path).to_owned()));
            bytes(player, path).ok_or_else(|| missing(path))?
        } else if let Some(path) = first.strip_prefix('<') {
            bytes(player, path).ok_or_else(|| missing(path))?
        } else {
            byte_text::bytes_of(first).into_owned()
        };
        let typed =
            media_type.map(|media_type| format!("Content-Type: {media_type}\r\n")).unwrap_or_default();
        out.extend(format!("--{boundary}\r\nContent-Disposition: {disposition}\r\n{typed}\r\n").into_bytes());
        out.extend(content);
        out.extend(b"\r\n");
    }
    out.extend(format!("--{boundary}--\r\n").into_bytes());
    Ok(CurlBody { bytes: out, media_type: Some(format!("multipart/form-data; boundary={boundary}")) })
}

/// What curl takes a file for by its name.
fn media_type_of(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or_default() {
        "gif" => "image/gif",
        "jpg" | "jpeg" => "image/jpeg",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "txt" => "text/plain",
        "htm" | "html" => "text/html",
        "pdf" => "application/pdf",
        "xml" => "application/xml",
        _ => "application/octet-stream",
    }
}
