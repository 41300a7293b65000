//! Rules for names, labels and their texts (`k8s.io/apimachinery/pkg/util/validation`).
//!
//! Each returns what is wrong, in upstream's words; empty when nothing is.

const DNS1123_SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const DNS1123_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and \
must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const DNS1035_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED_NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// `IsDNS1123Subdomain`: the names of most objects.
pub fn dns1123_subdomain(name: &str) -> Vec<String> {
    subdomain(name, "characters")
}

fn subdomain(name: &str, unit: &str) -> Vec<String> {
    let fits = name.split('.').all(|label| is_label(label, |_| true));
    collect((name.len(), 253, unit), fits, DNS1123_SUBDOMAIN)
}

/// `IsDNS1123Label`: namespaces, containers. Of what would be a subdomain only the dots are wrong.
pub fn dns1123_label(name: &str) -> Vec<String> {
    let fits_between_dots = name.split('.').all(|label| is_label(label, |_| true));
    let words = if fits_between_dots { "must not contain dots" } else { DNS1123_LABEL };
    collect((name.len(), 63, "characters"), is_label(name, |_| true), words)
}

/// `IsDNS1035Label`: services of old.
pub fn dns1035_label(name: &str) -> Vec<String> {
    let fits = is_label(name, |first| first.is_ascii_lowercase());
    collect((name.len(), 63, "characters"), fits, DNS1035_LABEL)
}

/// `path.IsValidPathSegmentName`: names of RBAC objects.
pub fn path_segment_name(name: &str) -> Vec<String> {
    if matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    let has = |part: &&&str| name.contains(**part);
    ["/", "%"].iter().filter(has).map(|part| format!("may not contain '{part}'")).collect()
}

/// `IsDomainPrefixedPath`: `example.com/name`, as whole errors without their path.
pub fn domain_prefixed_path(text: &str) -> Vec<String> {
    let (host, path) = text.split_once('/').unwrap_or_default();
    if host.is_empty() || path.is_empty() {
        return vec![format!(
            "Invalid value: {text:?}: must be a domain-prefixed path (such as \"acme.io/foo\")"
        )];
    }
    dns1123_subdomain(host).into_iter().map(|why| format!("Invalid value: {host:?}: {why}")).collect()
}

/// `IsQualifiedName`: label keys, annotation keys, condition types: an optional DNS prefix, a slash, a name.
pub fn qualified_name(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".into());
            } else {
                let wrong = subdomain(prefix, "bytes").into_iter();
                errors.extend(wrong.map(|text| format!("prefix part {text}")));
            }
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                QUALIFIED_NAME.trim_start_matches("name part ")
            )];
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".into());
    } else if name.len() > 63 {
        errors.push("name part must be no more than 63 bytes".into());
    }
    if !is_loose(name) {
        errors.push(QUALIFIED_NAME.into());
    }
    errors
}

/// `IsValidLabelValue`.
pub fn label_value(text: &str) -> Vec<String> {
    collect((text.len(), 63, "bytes"), text.is_empty() || is_loose(text), LABEL_VALUE)
}

/// Upstream counts bytes everywhere, and calls them characters in names.
fn collect((length, max, unit): (usize, usize, &str), fits: bool, words: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if length > max {
        errors.push(format!("must be no more than {max} {unit}"));
    }
    if !fits {
        errors.push(words.into());
    }
    errors
}

fn is_label(text: &str, first_may_be: fn(char) -> bool) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    text.chars().all(inner)
        && text.starts_with(|c: char| c != '-' && first_may_be(c))
        && text.ends_with(|c: char| c != '-')
}

/// `([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]`
fn is_loose(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, ok) in
            [("a", true), ("a.b-c", true), ("A", false), ("a.", false), ("-a", false), ("", false)]
        {
            assert_eq!(dns1123_subdomain(name).is_empty(), ok, "{name}");
        }
        for (key, ok) in [("app", true), ("a.io/B_c", true), ("/b", false), ("a/b/c", false), ("a/", false)] {
            assert_eq!(qualified_name(key).is_empty(), ok, "{key}");
        }
        assert!(dns1123_label("a.B")[0].starts_with("a lowercase RFC 1123 label must consist"));
        assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
        assert!(dns1035_label("1a")[0].contains("start with an alphabetic character"));
        assert_eq!(label_value(&"x".repeat(64)), ["must be no more than 63 bytes"]);
    }
}
