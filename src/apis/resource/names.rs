//! Names of pools, and of the attributes and capacities of devices (`validatePoolName`,
//! `validateQualifiedName`).

use serde_json::json;

use crate::validation::Field;
use crate::validation::texts::csi_driver_name;
use apimachinery::field_error::FieldErrors;
use apimachinery::names::dns1123_subdomain;

const MOST_POOL_BYTES: usize = 253;
const MOST_IDENTIFIER_BYTES: usize = 32;
const IDENTIFIER: &str = "a valid C identifier must start with alphabetic character or '_', followed by a string of \
alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is \
'[A-Za-z_][A-Za-z0-9_]*')";

/// Subdomains, joined by slashes.
pub(super) fn pool_name(name: &Field, errors: &mut FieldErrors) {
    if !name.require(errors) {
        return;
    }
    if name.text().len() > MOST_POOL_BYTES {
        errors.too_long(name.path.as_str(), MOST_POOL_BYTES);
    }
    for part in name.text().split('/') {
        for detail in dns1123_subdomain(part) {
            errors.invalid(name.path.as_str(), &json!(part), detail);
        }
    }
}

/// An identifier, which may have a domain; the key of a map at `path`.
pub(super) fn qualified_name(name: &str, path: &str, errors: &mut FieldErrors) {
    match name.split_once('/') {
        None => identifier(name, path, errors),
        Some((_, own)) if own.contains('/') => {
            errors.invalid(path, &json!(name), "must not contain more than one slash");
        }
        Some((domain, own)) => {
            match domain {
                "" => errors.invalid(path, &json!(""), "the domain must not be empty"),
                domain => csi_driver_name(&Field { path: path.to_owned(), value: &json!(domain) }, errors),
            }
            match own {
                "" => errors.invalid(path, &json!(""), "the name must not be empty"),
                own => identifier(own, path, errors),
            }
        }
    }
}

/// What is wrong with a qualified name, which must have a domain.
pub(super) fn fully_qualified_name(name: &Field, errors: &mut FieldErrors) {
    qualified_name(name.text(), &name.path, errors);
    if !name.text().contains('/') {
        let words = "a fully qualified name must be a domain and a name separated by a slash";
        name.invalid(words, errors);
    }
}

fn identifier(text: &str, path: &str, errors: &mut FieldErrors) {
    if text.len() > MOST_IDENTIFIER_BYTES {
        errors.too_long(path, MOST_IDENTIFIER_BYTES);
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) || !text.chars().all(fits) {
        errors.invalid(path, &json!(text), IDENTIFIER);
    }
}

/// `validateUID`
pub(super) fn uid(uid: &Field, errors: &mut FieldErrors) {
    const NORMAL: &str = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase \
hexadecimal characters";
    let text = uid.text();
    let bare = text.strip_prefix("urn:uuid:").unwrap_or(text);
    let bare = bare.strip_prefix('{').and_then(|bare| bare.strip_suffix('}')).unwrap_or(bare);
    let fits = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 if bare.len() == 36 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    if !matches!(text.len(), 32 | 36 | 38 | 45) {
        uid.invalid(format!("error validating uid: invalid UUID length: {}", text.len()), errors);
    } else if !matches!(bare.len(), 32 | 36) || !bare.bytes().enumerate().all(fits) {
        uid.invalid("error validating uid: invalid UUID format", errors);
    } else if text.len() != 36 || text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        uid.invalid(NORMAL, errors);
    }
}
