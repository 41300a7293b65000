//! Anchors, tags and directives among the tokens.

use super::scanner::{Scanner, YamlFault, YamlToken};

/// Digits of a version number.
const MAX_VERSION_DIGITS: usize = 2;
/// How long a handle, a prefix or what a tag adds to it may be, in bytes: a tag repeats the prefix, so its
/// length would count once for each node. go-yaml has no bound; what is in use has a few dozen.
const MAX_TAG_BYTES: usize = 1024;
/// As go-yaml says it of a version number.
const LONG_TAG: &str = "found extremely long tag";

impl Scanner<'_> {
    /// `&name` or `*name`.
    pub(super) fn scan_anchor(&mut self) -> Result<YamlToken, YamlFault> {
        let is_alias = self.cursor.byte(0) == b'*';
        self.cursor.skip();
        let name = self.cursor.take_word();
        let ends = self.cursor.is_gap(0) || b"?:,]}%@`".contains(&self.cursor.byte(0));
        if name.is_empty() || !ends {
            return Err(self.fault("did not find expected alphabetic or numeric character"));
        }
        Ok(if is_alias { YamlToken::Alias(name) } else { YamlToken::Anchor(name) })
    }

    /// `!<uri>`, `!!suffix`, `!handle!suffix`, `!suffix` or `!`.
    pub(super) fn scan_tag(&mut self) -> Result<YamlToken, YamlFault> {
        let token = if self.cursor.byte(1) == b'<' {
            self.cursor.skip_many(2);
            let uri = self.scan_uri("")?;
            if self.cursor.byte(0) != b'>' {
                return Err(self.fault("did not find the expected '>'"));
            }
            self.cursor.skip();
            YamlToken::Tag(String::new(), uri)
        } else {
            let handle = self.scan_handle(false)?;
            if handle.len() > 1 && handle.ends_with('!') {
                let suffix = self.scan_uri("")?;
                YamlToken::Tag(handle, suffix)
            } else {
                match self.scan_uri(&handle)? {
                    suffix if suffix.is_empty() => YamlToken::Tag(suffix, "!".to_owned()),
                    suffix => YamlToken::Tag("!".to_owned(), suffix),
                }
            }
        };
        if !self.cursor.is_gap(0) {
            return Err(self.fault("did not find expected whitespace or line break"));
        }
        Ok(token)
    }

    fn scan_handle(&mut self, is_directive: bool) -> Result<String, YamlFault> {
        if self.cursor.byte(0) != b'!' {
            return Err(self.fault("did not find expected '!'"));
        }
        let mut handle = String::new();
        self.cursor.take(&mut handle);
        handle.push_str(&self.cursor.take_word());
        if handle.len() > MAX_TAG_BYTES {
            return Err(self.fault(LONG_TAG));
        }
        if self.cursor.byte(0) == b'!' {
            self.cursor.take(&mut handle);
        } else if is_directive && handle != "!" {
            return Err(self.fault("did not find expected '!'"));
        }
        Ok(handle)
    }

    /// What was read as a handle and is none begins the URI, but for its `!`.
    fn scan_uri(&mut self, head: &str) -> Result<String, YamlFault> {
        let mut uri = head.get(1..).unwrap_or_default().as_bytes().to_vec();
        let mut has_any = !head.is_empty();
        loop {
            if uri.len() > MAX_TAG_BYTES {
                return Err(self.fault(LONG_TAG));
            }
            match self.cursor.byte(0) {
                b'%' => uri.extend(self.scan_octets()?),
                byte if byte.is_ascii_alphanumeric() || b"_-;/?:@&=+$,.!~*'()[]".contains(&byte) => {
                    uri.push(byte);
                    self.cursor.skip();
                }
                _ => break,
            }
            has_any = true;
        }
        match String::from_utf8(uri) {
            Ok(uri) if has_any => Ok(uri),
            Ok(_) => Err(self.fault("did not find expected tag URI")),
            Err(_) => Err(self.fault("found an incorrect trailing UTF-8 octet")),
        }
    }

    /// A character as `%xx`, so often as it has bytes.
    fn scan_octets(&mut self) -> Result<Vec<u8>, YamlFault> {
        let mut octets = Vec::new();
        let mut width = 1;
        while octets.len() < width {
            let digit = |ahead: usize| (self.cursor.byte(ahead) as char).to_digit(16);
            let octet = match (self.cursor.byte(0), digit(1), digit(2)) {
                (b'%', Some(high), Some(low)) => (high * 16 + low) as u8,
                _ => return Err(self.fault("did not find URI escaped octet")),
            };
            if octets.is_empty() {
                width = match octet {
                    0..0x80 => 1,
                    0xc0..0xe0 => 2,
                    0xe0..0xf0 => 3,
                    0xf0..0xf8 => 4,
                    _ => return Err(self.fault("found an incorrect leading UTF-8 octet")),
                };
            } else if octet & 0xc0 != 0x80 {
                return Err(self.fault("found an incorrect trailing UTF-8 octet"));
            }
            octets.push(octet);
            self.cursor.skip_many(3);
        }
        Ok(octets)
    }

    pub(super) fn scan_directive(&mut self) -> Result<YamlToken, YamlFault> {
        self.cursor.skip();
        let name = self.cursor.take_word();
        if name.is_empty() {
            return Err(self.fault("could not find expected directive name"));
        }
        if !self.cursor.is_gap(0) {
            return Err(self.fault("found unexpected non-alphabetical character"));
        }
        let token = match name.as_str() {
            "YAML" => self.scan_version()?,
            "TAG" => self.scan_tag_directive()?,
            _ => return Err(self.fault("found unknown directive name")),
        };
        self.cursor.skip_blanks();
        self.cursor.skip_comment();
        if !self.cursor.is_line_end(0) {
            return Err(self.fault("did not find expected comment or line break"));
        }
        if self.cursor.is_break(0) {
            self.cursor.skip_break();
        }
        Ok(token)
    }

    fn scan_version(&mut self) -> Result<YamlToken, YamlFault> {
        self.cursor.skip_blanks();
        let major = self.scan_version_number()?;
        if self.cursor.byte(0) != b'.' {
            return Err(self.fault("did not find expected digit or '.' character"));
        }
        self.cursor.skip();
        Ok(YamlToken::Version(major, self.scan_version_number()?))
    }

    fn scan_version_number(&mut self) -> Result<u8, YamlFault> {
        let mut digits = String::new();
        while self.cursor.byte(0).is_ascii_digit() {
            if digits.len() == MAX_VERSION_DIGITS {
                return Err(self.fault("found extremely long version number"));
            }
            self.cursor.take(&mut digits);
        }
        digits.parse().map_err(|_| self.fault("did not find expected version number"))
    }

    fn scan_tag_directive(&mut self) -> Result<YamlToken, YamlFault> {
        self.cursor.skip_blanks();
        let handle = self.scan_handle(true)?;
        if !self.cursor.is_blank(0) {
            return Err(self.fault("did not find expected whitespace"));
        }
        self.cursor.skip_blanks();
        let prefix = self.scan_uri("")?;
        if !self.cursor.is_gap(0) {
            return Err(self.fault("did not find expected whitespace or line break"));
        }
        Ok(YamlToken::TagDirective(handle, prefix))
    }
}
