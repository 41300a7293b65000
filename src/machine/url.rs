//! Addresses of pages, as programs and probes are told them.

/// `http://host:port/path?query`
#[derive(Clone, Debug, PartialEq)]
pub struct WebUrl {
    /// Over TLS.
    pub is_secure: bool,
    /// `user:password`
    pub user: Option<String>,
    /// A name, or an address; one of IPv6 in brackets.
    pub host: String,
    /// The usual one, where none is said.
    pub port: u16,
    /// With its query.
    pub target: String,
}

/// Why a text is none.
#[derive(Debug, PartialEq)]
pub enum BadUrl {
    /// It has no host, or a port that is none.
    Malformed,
    /// It is neither HTTP nor HTTPS.
    Protocol(String),
}

impl WebUrl {
    /// Without a protocol it is HTTP.
    ///
    /// # Errors
    /// [`BadUrl`]
    pub fn parse(text: &str) -> Result<WebUrl, BadUrl> {
        let (protocol, rest) = text.split_once("://").unwrap_or(("http", text));
        let is_secure = match protocol.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            other => return Err(BadUrl::Protocol(other.to_owned())),
        };
        let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(at);
        let target = target.split('#').next().unwrap_or_default();
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user.to_owned()), place),
            None => (None, authority),
        };
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().map_err(|_| BadUrl::Malformed)?),
            _ => (place, if is_secure { 443 } else { 80 }),
        };
        if host.is_empty() || host.contains(char::is_whitespace) {
            return Err(BadUrl::Malformed);
        }
        let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
        Ok(WebUrl { is_secure, user, host: host.to_owned(), port, target })
    }

    /// Where a redirect leads.
    ///
    /// # Errors
    /// [`BadUrl`]
    pub fn join(&self, location: &str) -> Result<WebUrl, BadUrl> {
        if location.starts_with("//") {
            let protocol = if self.is_secure { "https" } else { "http" };
            return WebUrl::parse(&format!("{protocol}:{location}"));
        }
        if location.contains("://") {
            return WebUrl::parse(location);
        }
        let folder = self.target.split('?').next().unwrap_or_default();
        let folder = folder.rsplit_once('/').map_or("", |(folder, _)| folder);
        let target =
            if location.starts_with('/') { location.to_owned() } else { format!("{folder}/{location}") };
        Ok(WebUrl { target, ..self.clone() })
    }

    /// The header `Host`: the usual port is left out.
    pub fn authority(&self) -> String {
        match (self.is_secure, self.port) {
            (false, 80) | (true, 443) => self.host.clone(),
            (_, port) => format!("{}:{port}", self.host),
        }
    }
}

impl std::fmt::Display for WebUrl {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let protocol = if self.is_secure { "https" } else { "http" };
        write!(formatter, "{protocol}://{}{}", self.authority(), self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        for (text, wanted) in [
            ("web", "http://web/"),
            ("web:8080/a?b=c#d", "http://web:8080/a?b=c"),
            ("HTTPS://u:p@web:443?x", "https://web/?x"),
            ("http://[fd00::1]:80/", "http://[fd00::1]/"),
        ] {
            assert_eq!(WebUrl::parse(text).unwrap().to_string(), wanted, "{text}");
        }
        let url = WebUrl::parse("http://web/a/b?c").unwrap();
        assert_eq!(url.join("d").unwrap().to_string(), "http://web/a/d");
        assert_eq!(url.join("https://x/y").unwrap().to_string(), "https://x/y");
        assert_eq!(url.join("//x/y").unwrap().to_string(), "http://x/y");
        assert_eq!(WebUrl::parse("ftp://x"), Err(BadUrl::Protocol("ftp".into())));
        assert_eq!(WebUrl::parse("http://a:b/"), Err(BadUrl::Malformed));
        assert_eq!(WebUrl::parse("http:///a"), Err(BadUrl::Malformed));
    }
}
