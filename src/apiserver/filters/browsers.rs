//! What browsers are told: which pages of other servers may ask this one, and that it is asked over TLS only
//! (`--cors-allowed-origins`, `--strict-transport-security-directives`).

use std::sync::Arc;

use clap::Args;
use http::HeaderValue;
use regex::Regex;

use super::cors::allowed_origin;
use super::hsts::check_directive;

golang::text_error! {
    /// What is wrong with the flags about browsers; in upstream's words.
    pub struct BadBrowserConfig;
}

/// What the flags say (`GenericServerRunOptions`).
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "APIs")]
pub struct BrowserOptions {
    /// Web pages of these origins may ask: regular expressions of whole origins, as //example\.com(:|$).
    #[arg(long, value_delimiter = ',', value_name = "REGEXP")]
    pub cors_allowed_origins: Vec<String>,
    /// Directives that make browsers come over TLS only: max-age=31536000,includeSubDomains,preload.
    #[arg(long, value_delimiter = ',', value_name = "DIRECTIVE")]
    pub strict_transport_security_directives: Vec<String>,
}

impl BrowserOptions {
    /// Made ready for requests.
    ///
    /// # Errors
    /// As [`BrowserConfig::new`].
    pub fn complete(&self) -> Result<BrowserConfig, BadBrowserConfig> {
        BrowserConfig::new(&self.cors_allowed_origins, &self.strict_transport_security_directives)
    }
}

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
    pub fn new(origins: &[String], directives: &[String]) -> Result<BrowserConfig, BadBrowserConfig> {
        let mut errors: Vec<String> =
            directives.iter().filter_map(|one| check_directive(one).err()).map(String::from).collect();
        let mut allowed = Vec::new();
        for pattern in origins {
            match allowed_origin(pattern) {
                Ok(regex) => allowed.push(regex),
                Err(error) => errors.push(error.into()),
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
            [one] => Err(one.clone().into()),
            all => Err(format!("[{}]", all.join(", ")).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cors::ORIGINS_HELP;
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
