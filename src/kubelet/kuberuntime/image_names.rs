//! What an image may be called (`github.com/distribution/reference`, `ParseNormalizedNamed`).

golang::text_error! {
    /// What is no name of an image; in upstream's words.
    pub(crate) struct BadImageName;
}

/// Of a name without its tag and digest (`RepositoryNameTotalLengthMax`); a longer one is refused.
const MAX_BYTES: usize = 255;
/// Of a tag; a longer one makes the name one that cannot be parsed.
const MAX_TAG_BYTES: usize = 128;
/// Of a digest; a shorter one makes the name one that cannot be parsed.
const MIN_DIGEST_DIGITS: usize = 32;

/// Whether `image` is a name.
///
/// # Errors
/// Why not, as the kubelet says it.
pub(crate) fn check(image: &str) -> Result<(), BadImageName> {
    faults(image).map_err(|why| format!("couldn't parse image reference {image:?}: {why}").into())
}

fn faults(image: &str) -> Result<(), String> {
    if image.len() == 64 && image.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return Err(format!("invalid repository name ({image}), cannot specify 64-byte hexadecimal strings"));
    }
    let (domain, rest) = split_domain(image);
    let path =
        if domain == "docker.io" && !rest.contains('/') { format!("library/{rest}") } else { rest.into() };
    let name = path.split(':').next().unwrap_or_default();
    if name.chars().any(char::is_uppercase) {
        return Err(format!("invalid reference format: repository name ({name}) must be lowercase"));
    }
    let (named, digest) = path.split_once('@').map_or((&*path, None), |(named, it)| (named, Some(it)));
    let (name, tag) = named.split_once(':').map_or((named, None), |(name, tag)| (name, Some(tag)));
    let is_well = is_domain(domain)
        && name.split('/').all(is_component)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest);
    if !is_well {
        return Err("invalid reference format".into());
    }
    if name.len() > MAX_BYTES {
        return Err(format!("repository name must not be more than {MAX_BYTES} characters"));
    }
    Ok(())
}

/// The registry and the rest.
fn split_domain(image: &str) -> (&str, &str) {
    match image.split_once('/') {
        Some((host, rest))
            if host.contains(['.', ':']) || host == "localhost" || host.chars().any(char::is_uppercase) =>
        {
            (if host == "index.docker.io" { "docker.io" } else { host }, rest)
        }
        _ => ("docker.io", image),
    }
}

/// A host name or an address, with or without a port.
fn is_domain(domain: &str) -> bool {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((address, port)) = domain.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let is_address = address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':');
        return is_address && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
    }
    let (host, port) = domain.split_once(':').map_or((domain, None), |(host, port)| (host, Some(port)));
    let is_label = |label: &str| {
        let inner = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        inner && !label.is_empty() && !label.starts_with('-') && !label.ends_with('-')
    };
    host.split('.').all(is_label) && port.is_none_or(is_port)
}

/// Small letters and digits, between them `.`, `_`, `__` or any number of `-`.
fn is_component(component: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_separator =
        |separator: &str| matches!(separator, "" | "." | "_" | "__") || separator.chars().all(|c| c == '-');
    component.starts_with(is_inner)
        && component.ends_with(is_inner)
        && component.split(is_inner).all(is_separator)
}

fn is_tag(tag: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    tag.len() <= MAX_TAG_BYTES
        && tag.starts_with(is_word)
        && tag.chars().all(|c| is_word(c) || ".-".contains(c))
}

/// `sha256:...`
fn is_digest(digest: &str) -> bool {
    let Some((algorithm, digits)) = digest.split_once(':') else { return false };
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic()) && part.chars().all(|c| c.is_ascii_alphanumeric())
    };
    algorithm.split(['-', '_', '+', '.']).all(is_part)
        && digits.len() >= MIN_DIGEST_DIGITS
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_upstream() {
        let digest = format!("nginx@sha256:{}", "0".repeat(64));
        for image in [
            "nginx",
            "nginx:1.25",
            "a/b_c/d__e/f--g.h:Tag_1.0-x",
            "localhost/a",
            "localhost:5000/a:b",
            "Registry.example.com:443/a",
            "[fe80::1]:5000/a",
            &digest,
            "x",
        ] {
            assert_eq!(check(image), Ok(()));
        }
        let format = "invalid reference format";
        for (image, why) in [
            ("Nginx", "invalid reference format: repository name (library/Nginx) must be lowercase"),
            ("a.com/Web:1", "invalid reference format: repository name (Web) must be lowercase"),
            ("nginx:", format),
            ("nginx::1", format),
            ("nginx:-1", format),
            ("a//b", format),
            ("a..b", format),
            ("-a", format),
            ("a b", format),
            ("nginx@sha256:12", format),
            ("exa_mple.com/a", format),
        ] {
            assert_eq!(check(image), Err(format!("couldn't parse image reference {image:?}: {why}").into()));
        }
        let hexadecimal = "a".repeat(64);
        assert!(check(&hexadecimal).unwrap_err().ends_with("cannot specify 64-byte hexadecimal strings"));
        assert!(check(&"a/".repeat(130)).is_err());
        assert_eq!(check(&format!("a:{}", "t".repeat(128))), Ok(()));
        assert!(check(&format!("a:{}", "t".repeat(129))).is_err());
        let long = format!("{}a", "a/".repeat(130));
        assert!(check(&long).unwrap_err().ends_with("repository name must not be more than 255 characters"));
    }
}
