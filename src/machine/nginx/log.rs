//! nginx's access log.

use chrono::{DateTime, Utc};

use super::NginxSite;
use super::exchange::NginxExchange;
use crate::agnhost::asking::Backing;
use crate::byte_text;
use crate::requests::{WebAnswer, WebRequest};

const COMBINED: &str = "$remote_addr - - [$time_local] \"$request\" $status $body_bytes_sent \
    \"$http_referer\" \"$http_user_agent\"";
/// The image's own configuration adds something.
const MAIN: &str = "$remote_addr - - [$time_local] \"$request\" $status $body_bytes_sent \
    \"$http_referer\" \"$http_user_agent\" \"$http_x_forwarded_for\"";

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
            NginxExchange::new(self, port, asked, Backing { around: None, answers: &nothing, client: None })?;
        let location = exchange.location();
        let scope = location.map_or(&exchange.host.scope, |location| &location.scope);
        let name = scope.log.as_deref()?;
        let usual = if name == "main" { MAIN } else { COMBINED };
        let format = self.config.formats.get(name).map_or(usual, String::as_str);
        exchange.code = answered.code;
        exchange.sent = if asked.method == "HEAD" { 0 } else { byte_text::byte_count(&answered.body) };
        exchange.logged_at = Some(at);
        Some(exchange.filled(format))
    }
}
