//! Flags of agnhost's programs.

/// The flag of a server's certificate.
pub(crate) const TLS_FILE: &str = "tls-cert-file";

/// Whether a flag that is or is not is set.
pub(crate) fn is_set(arguments: &[String], name: &str) -> bool {
    let long = format!("--{name}");
    arguments.iter().any(|argument| {
        let rest = argument.strip_prefix(&long);
        rest.is_some_and(|rest| matches!(rest, "" | "=true" | "=1" | "=t" | "=T" | "=TRUE" | "=True"))
    })
}

/// `--name=value` or `--name value`
pub(crate) fn flag<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    let long = format!("--{name}");
    let at = arguments.iter().position(|argument| {
        argument.strip_prefix(&long).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })?;
    match arguments[at].split_once('=') {
        Some((_, value)) => Some(value),
        None => arguments.get(at + 1).map(String::as_str),
    }
}
