//! `OtlpEndpoint`: the address of a collector of OpenTelemetry.

use std::fmt;
use std::str::FromStr;

use http::Uri;
use http::uri::Scheme;

/// Where collectors take traces, below their address.
const TRACES: &str = "/v1/traces";

/// Where spans go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpEndpoint(Uri);

impl FromStr for OtlpEndpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<OtlpEndpoint, String> {
        let wrong = "must be the address of a collector's HTTP receiver, as http://127.0.0.1:4318";
        let uri: Uri = text.parse().map_err(|_| wrong.to_owned())?;
        if uri.scheme() == Some(&Scheme::HTTPS) {
            return Err(format!("{wrong}; https is not spoken: put a collector on this machine between"));
        }
        if uri.scheme() != Some(&Scheme::HTTP)
            || uri.host().is_none_or(str::is_empty)
            || uri.query().is_some()
        {
            return Err(wrong.into());
        }
        let base = text.trim_end_matches('/').trim_end_matches(TRACES);
        format!("{base}{TRACES}").parse().map(OtlpEndpoint).map_err(|_| wrong.into())
    }
}

impl OtlpEndpoint {
    /// Where messages are sent.
    pub(super) fn uri(&self) -> &Uri {
        &self.0
    }
}

impl fmt::Display for OtlpEndpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_an_address_and_may_have_a_path() {
        for (given, meant) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://collector:4318/", "http://collector:4318/v1/traces"),
            ("http://collector/otel/v1/traces", "http://collector/otel/v1/traces"),
        ] {
            assert_eq!(given.parse::<OtlpEndpoint>().unwrap().to_string(), meant);
        }
        for wrong in ["127.0.0.1:4318", "", "http://", "grpc://a:4317", "http://a?b=c"] {
            let why = wrong.parse::<OtlpEndpoint>().unwrap_err();
            assert!(why.contains("http://127.0.0.1:4318"), "{wrong}: {why}");
        }
        assert!("https://a:4318".parse::<OtlpEndpoint>().unwrap_err().contains("https is not spoken"));
    }
}
