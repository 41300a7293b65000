//! `OtlpEndpoint`: the address of a collector of OpenTelemetry.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use axum::body::Body;
use http::Uri;
use http::uri::Scheme;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use apiserver::webhook::{TlsFilesError, http2_tls};

/// Speaks to a collector, with TLS where its address says so.
pub(super) type CollectorClient = HttpClient<HttpsConnector<HttpConnector>, Body>;

/// Where collectors take traces, below their address.
const TRACES: &str = "/v1/traces";

/// Where spans go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpEndpoint {
    uri: Uri,
    /// Whom to believe that it is the collector, PEM; else those whom the system believes.
    authorities: Option<Arc<[u8]>>,
}

impl FromStr for OtlpEndpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<OtlpEndpoint, String> {
        let wrong = "must be the address of a collector's HTTP receiver, as http://127.0.0.1:4318 or https://collector:4318";
        let uri: Uri = text.parse().map_err(|_| wrong.to_owned())?;
        let is_spoken = uri.scheme().is_some_and(|one| *one == Scheme::HTTP || *one == Scheme::HTTPS);
        if !is_spoken || uri.host().is_none_or(str::is_empty) || uri.query().is_some() {
            return Err(wrong.into());
        }
        let base = text.trim_end_matches('/').trim_end_matches(TRACES);
        let uri = format!("{base}{TRACES}").parse().map_err(|_| wrong.to_owned())?;
        Ok(OtlpEndpoint { uri, authorities: None })
    }
}

impl OtlpEndpoint {
    /// Where messages are sent.
    pub(super) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// With whom to believe that it is the collector, where that is asked over TLS: certificates in PEM.
    ///
    /// # Errors
    /// No certificate can be read.
    pub fn trusting(self, pem: Vec<u8>) -> Result<OtlpEndpoint, TlsFilesError> {
        http2_tls(Some(pem.clone()), None)?;
        Ok(OtlpEndpoint { authorities: Some(pem.into()), ..self })
    }

    /// Who speaks to it.
    pub(super) fn client(&self) -> Result<CollectorClient, TlsFilesError> {
        let authorities = self.authorities.as_ref().map(|pem| pem.to_vec());
        let mut tls = http2_tls(authorities, None)?;
        tls.alpn_protocols.clear();
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        Ok(HttpClient::builder(TokioExecutor::new()).build(connector))
    }
}

impl fmt::Display for OtlpEndpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.uri.fmt(out)
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
            ("https://a:4318", "https://a:4318/v1/traces"),
        ] {
            assert_eq!(given.parse::<OtlpEndpoint>().unwrap().to_string(), meant);
        }
        for wrong in ["127.0.0.1:4318", "", "http://", "grpc://a:4317", "http://a?b=c"] {
            let why = wrong.parse::<OtlpEndpoint>().unwrap_err();
            assert!(why.contains("http://127.0.0.1:4318"), "{wrong}: {why}");
        }
        let endpoint: OtlpEndpoint = "https://a:4318".parse().unwrap();
        let why = endpoint.trusting(b"no PEM".to_vec()).unwrap_err().to_string();
        assert!(why.contains("unable to load root certificates"), "{why}");
    }
}
