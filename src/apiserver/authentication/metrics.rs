//! How often somebody was known, who, and how long it took (`endpoints/filters/metrics.go`,
//! `token/cache/stats.go`, `request/x509`).

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::service_account::TokenUses;
use crate::metrics::heading;
use component_base::metrics::{DEFAULT_BUCKETS, FROM_A_MILLISECOND, Histogram};

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthenticationAttempt {
    /// Somebody is known.
    Success,
    /// There was nothing to know anybody by.
    Failure,
    /// Credentials were wrong.
    Error,
}

/// Counters of one apiserver.
#[derive(Debug)]
pub struct AuthenticationMetrics {
    /// In the order of [`AuthenticationAttempt`].
    attempts: [Histogram; ATTEMPTS.len()],
    users: [AtomicU64; USERS.len()],
    /// In the order of [`LOOK_UPS`].
    cache: [Histogram; LOOK_UPS.len()],
    /// Of what the cache did not know: whether somebody did, in the order of [`FETCHES`].
    fetches: [AtomicU64; FETCHES.len()],
    expirations: Arc<Histogram>,
    token_uses: Arc<TokenUses>,
}

/// Whether a token was known from before.
const LOOK_UPS: [&str; 2] = ["hit", "miss"];
const FETCHES: [&str; 2] = ["ok", "error"];
/// From none left over half an hour and days to a year, in seconds.
const EXPIRATION_BUCKETS: [f64; 14] = [
    0.0,
    1_800.0,
    3_600.0,
    7_200.0,
    21_600.0,
    43_200.0,
    86_400.0,
    172_800.0,
    345_600.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    15_552_000.0,
    31_104_000.0,
];

/// In the order of [`AuthenticationAttempt`].
const ATTEMPTS: [&str; 3] = ["success", "failure", "error"];
/// The last one is everybody else.
const USERS: [&str; 7] = [
    "admin",
    "client",
    "kube_proxy",
    "kubelet",
    "system:serviceaccount:kube-system:default",
    "email_id",
    "other",
];

impl Default for AuthenticationMetrics {
    fn default() -> AuthenticationMetrics {
        AuthenticationMetrics {
            attempts: ATTEMPTS.map(|_| Histogram::new(&FROM_A_MILLISECOND)),
            users: Default::default(),
            cache: LOOK_UPS.map(|_| Histogram::new(&DEFAULT_BUCKETS)),
            fetches: Default::default(),
            expirations: Arc::new(Histogram::new(&EXPIRATION_BUCKETS)),
            token_uses: Arc::default(),
        }
    }
}

impl AuthenticationMetrics {
    /// Somebody is known; names are told apart as far as upstream does.
    pub fn succeeded(&self, user: &str, duration: Duration) {
        let named = USERS[..5].iter().position(|known| *known == user);
        let at = named.unwrap_or(if user.contains('@') { 5 } else { 6 });
        self.users[at].fetch_add(1, Ordering::Relaxed);
        self.attempts[AuthenticationAttempt::Success as usize].observe(duration);
    }

    /// Nobody is known.
    pub fn failed(&self, attempt: AuthenticationAttempt, duration: Duration) {
        self.attempts[attempt as usize].observe(duration);
    }

    /// A token was looked up among those that are remembered; what is not, is asked for.
    pub fn looked_up(&self, is_hit: bool, duration: Duration) {
        self.cache[usize::from(!is_hit)].observe(duration);
    }

    /// Somebody was asked whose a token is; nobody knowing it is an error.
    pub fn fetched(&self, is_known: bool) {
        self.fetches[usize::from(!is_known)].fetch_add(1, Ordering::Relaxed);
    }

    /// Where it is counted how long the client certificates that were used are good for yet.
    pub fn expirations(&self) -> Arc<Histogram> {
        self.expirations.clone()
    }

    /// Where it is counted how tokens of service accounts are used.
    pub fn token_uses(&self) -> Arc<TokenUses> {
        self.token_uses.clone()
    }

    /// In Prometheus' text format.
    pub fn render(&self, out: &mut String) {
        let name = "authenticated_user_requests";
        let help = "[ALPHA] Counter of authenticated requests broken out by username.";
        series(out, name, help, "username", USERS.iter().zip(&self.users));
        let name = "authentication_attempts";
        let attempts = self.attempts.each_ref().map(|attempts| AtomicU64::new(attempts.count()));
        series(
            out,
            name,
            "[ALPHA] Counter of authenticated attempts.",
            "result",
            ATTEMPTS.iter().zip(&attempts),
        );
        let name = "authentication_duration_seconds";
        let help = "[ALPHA] Authentication duration in seconds broken out by result.";
        histograms(out, name, help, "result", ATTEMPTS.iter().zip(&self.attempts));
        let name = "authentication_token_cache_request_duration_seconds";
        histograms(out, name, "[ALPHA] ", "status", LOOK_UPS.iter().zip(&self.cache));
        let look_ups = self.cache.each_ref().map(|look_ups| AtomicU64::new(look_ups.count()));
        let name = "authentication_token_cache_request_total";
        series(out, name, "[ALPHA] ", "status", LOOK_UPS.iter().zip(&look_ups));
        let name = "authentication_token_cache_fetch_total";
        series(out, name, "[ALPHA] ", "status", FETCHES.iter().zip(&self.fetches));
        let name = "apiserver_client_certificate_expiration_seconds";
        let help = "[ALPHA] Distribution of the remaining lifetime on the certificate used to authenticate a request.";
        heading(out, name, "histogram", help);
        self.expirations.render(out, name, "");
        self.token_uses.render(out);
    }
}

fn histograms<'a>(
    out: &mut String,
    name: &str,
    help: &str,
    label: &str,
    samples: impl Iterator<Item = (&'a &'static str, &'a Histogram)>,
) {
    heading(out, name, "histogram", help);
    for (value, histogram) in samples {
        histogram.render(out, name, &format!("{label}={value:?}"));
    }
}

fn series<'a>(
    out: &mut String,
    name: &str,
    help: &str,
    label: &str,
    counters: impl Iterator<Item = (&'a &'static str, &'a AtomicU64)>,
) {
    heading(out, name, "counter", help);
    for (value, counter) in counters {
        let count = counter.load(Ordering::Relaxed);
        if count > 0 {
            let _ = writeln!(out, "{name}{{{label}=\"{value}\"}} {count}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_as_far_as_upstream_does() {
        let metrics = AuthenticationMetrics::default();
        for user in ["admin", "jane@example.com", "jane", "joe"] {
            metrics.succeeded(user, Duration::ZERO);
        }
        metrics.failed(AuthenticationAttempt::Error, Duration::ZERO);
        let mut out = String::new();
        metrics.render(&mut out);
        let is_counter = |line: &&str| line.starts_with("authentica") && !line.contains("_duration_seconds");
        let lines: Vec<&str> = out.lines().filter(is_counter).collect();
        assert_eq!(
            lines,
            [
                "authenticated_user_requests{username=\"admin\"} 1",
                "authenticated_user_requests{username=\"email_id\"} 1",
                "authenticated_user_requests{username=\"other\"} 2",
                "authentication_attempts{result=\"success\"} 4",
                "authentication_attempts{result=\"error\"} 1",
            ]
        );
    }
}
