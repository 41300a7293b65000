//! How often somebody was known, and who (`endpoints/filters/metrics.go`).

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::apiserver::metrics::heading;

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// Somebody is known.
    Success,
    /// There was nothing to know anybody by.
    Failure,
    /// Credentials were wrong.
    Error,
}

/// Counters of one apiserver.
#[derive(Debug, Default)]
pub struct AuthenticationMetrics {
    attempts: [AtomicU64; ATTEMPTS.len()],
    users: [AtomicU64; USERS.len()],
}

/// In the order of [`Attempt`].
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

impl AuthenticationMetrics {
    /// Somebody is known; names are told apart as far as upstream does.
    pub fn succeeded(&self, user: &str) {
        let named = USERS[..5].iter().position(|known| *known == user);
        let at = named.unwrap_or(if user.contains('@') { 5 } else { 6 });
        self.users[at].fetch_add(1, Ordering::Relaxed);
        self.attempts[Attempt::Success as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Nobody is known.
    pub fn failed(&self, attempt: Attempt) {
        self.attempts[attempt as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// In Prometheus' text format.
    pub fn render(&self, out: &mut String) {
        let name = "authenticated_user_requests";
        let help = "Counter of authenticated requests broken out by username.";
        series(out, name, help, "username", USERS.iter().zip(&self.users));
        let name = "authentication_attempts";
        series(
            out,
            name,
            "Counter of authenticated attempts.",
            "result",
            ATTEMPTS.iter().zip(&self.attempts),
        );
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
            metrics.succeeded(user);
        }
        metrics.failed(Attempt::Error);
        let mut out = String::new();
        metrics.render(&mut out);
        let lines: Vec<&str> = out.lines().filter(|line| !line.starts_with('#')).collect();
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
