//! What browsers are told: which pages of other servers may ask this one, and that it is asked over TLS only
//! (`--cors-allowed-origins`, `--strict-transport-security-directives`).

use std::sync::Arc;

use http::HeaderValue;
use regex::Regex;

use golang::go_text::regexp_error;

const ORIGINS_HELP: &str = "List of allowed origins for CORS, comma separated. An allowed origin can be a regular expression to \
     support subdomain matching. If this list is empty CORS will not be enabled. Please ensure each expression \
     matches the entire hostname by anchoring to the start with '^' or including the '//' prefix, and by \
     anchoring to the end with '$' or including the ':' port separator suffix. Examples of valid expressions \
     are '//example\\.com(:|$)' and '^https://example\\.com(:|$)'";

/// Nothing by default.
#[derive(Clone, Debug, Default)]
pub struct BrowserConfig {
    /// Pages of these origins may read answers.
    pub allowed_origins: Arc<[Regex]>,
    /// The directives, as the header has them.
    pub strict_transport_security: Option<HeaderValue>,
}

impl BrowserConfig {
    /// What the flags say.
    ///
    /// # Errors
    /// Whatever is wrong with them (`ServerRunOptions.Validate`).
    pub fn new(origins: &[String], directives: &[String]) -> Result<BrowserConfig, String> {
        let mut errors: Vec<String> =
            directives.iter().filter_map(|one| check_directive(one).err()).collect();
        let mut allowed = Vec::new();
        for pattern in origins {
            match origin(pattern) {
                Ok(regex) => allowed.push(regex),
                Err(error) => errors.push(error),
            }
        }
        let header = Some(directives.join("; ")).filter(|header| !header.is_empty());
        let header = header.map(|header| HeaderValue::from_str(&header)).transpose();
        let strict_transport_security = header.unwrap_or_else(|error| {
            errors.push(error.to_string());
            None
        });
        match &*errors {
            [] => Ok(BrowserConfig { allowed_origins: allowed.into(), strict_transport_security }),
            [one] => Err(one.clone()),
            all => Err(format!("[{}]", all.join(", "))),
        }
    }
}

fn check_directive(directive: &str) -> Result<(), String> {
    if directive.trim().is_empty() {
        return Err("empty value in strict-transport-security-directives".into());
    }
    let is_age = directive.split_once('=').is_some_and(|(name, age)| name == "max-age" && !age.contains('='));
    if matches!(directive, "includeSubDomains" | "preload") || is_age {
        return Ok(());
    }
    Err("--strict-transport-security-directives invalid, allowed values: max-age=expireTime, \
         includeSubDomains, preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information"
        .into())
}

/// One that matches a part of a host would let strangers in, so it must say where a host begins and ends.
fn origin(pattern: &str) -> Result<Regex, String> {
    if pattern.is_empty() {
        return Err(format!("empty value in --cors-allowed-origins, help: {ORIGINS_HELP}"));
    }
    let invalid = |why: &str| {
        format!("--cors-allowed-origins has an invalid regular expression: {why}, help: {ORIGINS_HELP}")
    };
    let regex = Regex::new(pattern).map_err(|_| invalid(&regexp_error(pattern)))?;
    let has = |marks: [&str; 2]| marks.iter().any(|mark| pattern.contains(mark));
    if !has(["^", "//"]) || !has(["$", ":"]) {
        return Err(invalid("regular expression does not pin to start/end of host in the origin header"));
    }
    Ok(regex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_the_flags_is_told() {
        let config = |origins: &[&str], directives: &[&str]| {
            let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
            BrowserConfig::new(&owned(origins), &owned(directives))
                .map_err(|error| error.replace(&format!(", help: {ORIGINS_HELP}"), ""))
        };
        let fine = config(&["//example\\.com(:|$)"], &["max-age=31536000", "includeSubDomains"]).unwrap();
        assert!(fine.allowed_origins[0].is_match("https://example.com:8443"));
        assert_eq!(fine.strict_transport_security.unwrap(), "max-age=31536000; includeSubDomains");
        let pins = "--cors-allowed-origins has an invalid regular expression: regular expression does not pin \
                    to start/end of host in the origin header";
        let syntax = "--cors-allowed-origins has an invalid regular expression: error parsing regexp: missing \
                      closing ): `^(:$`";
        let empty = "empty value in strict-transport-security-directives";
        for (origins, directives, wanted) in [
            (&["example.com"][..], &[][..], pins.to_owned()),
            (&["^example.com"], &[], pins.to_owned()),
            (&["^(:$"], &[], syntax.to_owned()),
            (&[""], &[" "], format!("[{empty}, empty value in --cors-allowed-origins]")),
        ] {
            assert_eq!(config(origins, directives).unwrap_err(), wanted);
        }
        assert!(config(&[], &["max-age"]).unwrap_err().starts_with("--strict-transport-security-directives"));
    }
}
