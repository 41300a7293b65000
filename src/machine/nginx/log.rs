//! nginx's access log.

use chrono::{DateTime, Utc};

use super::NginxSite;
use super::exchange::NginxExchange;
use crate::agnhost::asking::Backing;
use crate::byte_text;
use crate::requests::{WebAnswer, WebRequest};

const COMBINED: &str = "$remote_addr - - [$time_local] \"$request\" $status $body_bytes_sent \
    \"$http_referer\" \"$http_user_agent\"";
/// What the image's own configuration adds.
const MAIN_END: &str = " \"$http_x_forwarded_for\"";

impl NginxSite {
    /// The line of a request; nothing where its location has no log.
    pub(crate) fn log_line(
        &self,
        port: i64,
        asked: &WebRequest<'_>,
        answered: &WebAnswer,
        at: DateTime<Utc>,
    ) -> Option<String> {
        let nothing = std::sync::Arc::default();
        let mut exchange =
            NginxExchange::new(self, port, asked, Backing { around: None, answers: &nothing })?;
        let location = exchange.location();
        let scope = location.map_or(&exchange.host.scope, |location| &location.scope);
        let name = scope.log.as_deref()?;
        let own = self.config.formats.get(name).cloned();
        let format = own.unwrap_or_else(|| match name {
            "main" => format!("{COMBINED}{MAIN_END}"),
            _ => COMBINED.to_owned(),
        });
        exchange.code = answered.code;
        exchange.sent = if asked.method == "HEAD" { 0 } else { byte_text::byte_count(&answered.body) };
        let local = at.format("%d/%b/%Y:%H:%M:%S +0000").to_string();
        exchange.set.insert("time_local".to_owned(), local);
        // A header that is not there is a dash.
        for name in ["referer", "user-agent", "x-forwarded-for"] {
            let value = asked.header(name).unwrap_or("-").replace('"', "\\x22");
            exchange.set.insert(format!("http_{}", name.replace('-', "_")), value);
        }
        exchange.set.entry("remote_user".to_owned()).or_insert_with(|| "-".to_owned());
        Some(exchange.filled(&format))
    }
}
