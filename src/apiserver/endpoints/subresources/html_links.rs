//! Links of pages that come through a proxy (`apimachinery/pkg/util/proxy/transport.go`): those that lead to
//! the same host are led through the proxy. Everything else of a page stays as it is.

/// Which attributes of which elements are links.
const LINKS: &[(&str, &[&str])] = &[
    ("a", &["href"]),
    ("applet", &["codebase"]),
    ("area", &["href"]),
    ("audio", &["src"]),
    ("base", &["href"]),
    ("blockquote", &["cite"]),
    ("body", &["background"]),
    ("button", &["formaction"]),
    ("command", &["icon"]),
    ("del", &["cite"]),
    ("embed", &["src"]),
    ("form", &["action"]),
    ("frame", &["longdesc", "src"]),
    ("head", &["profile"]),
    ("html", &["manifest"]),
    ("iframe", &["longdesc", "src"]),
    ("img", &["longdesc", "src", "usemap"]),
    ("input", &["src", "usemap", "formaction"]),
    ("ins", &["cite"]),
    ("link", &["href"]),
    ("object", &["classid", "codebase", "data", "usemap"]),
    ("q", &["cite"]),
    ("script", &["src"]),
    ("source", &["src"]),
    ("video", &["poster", "src"]),
];
/// What is within these is no markup.
const RAW: &[&str] = &["script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"];

/// A page whose links are rewritten; of those that `rewrite` says nothing of, nothing changes.
pub(super) fn rewrite_links(page: &str, rewrite: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(page.len());
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        if let Some(comment) = tag.strip_prefix("<!--") {
            let end = comment.find("-->").map_or(tag.len(), |end| end + 7);
            out.push_str(&tag[..end]);
            rest = &tag[end..];
            continue;
        }
        let name_length = tag[1..].bytes().take_while(u8::is_ascii_alphanumeric).count();
        if name_length == 0 {
            out.push('<');
            rest = &tag[1..];
            continue;
        }
        let name = tag[1..=name_length].to_ascii_lowercase();
        let end = end_of_tag(tag);
        push_tag(&mut out, &tag[..end], &name, &rewrite);
        rest = &tag[end..];
        if RAW.contains(&name.as_str()) {
            let raw = end_of_raw(rest, &name);
            out.push_str(&rest[..raw]);
            rest = &rest[raw..];
        }
    }
    out + rest
}

/// Where the element that is no markup ends.
fn end_of_raw(rest: &str, name: &str) -> usize {
    let is_end = |at: &usize| {
        let own = rest.as_bytes().get(at + 2..at + 2 + name.len());
        own.is_some_and(|own| own.eq_ignore_ascii_case(name.as_bytes()))
    };
    rest.match_indices("</").map(|(at, _)| at).find(is_end).unwrap_or(rest.len())
}

/// Behind its `>`, of which there may be more within quotes.
fn end_of_tag(tag: &str) -> usize {
    let mut quote = None;
    for (at, byte) in tag.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at + 1,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    tag.len()
}

/// Adds a tag with its links rewritten.
fn push_tag(out: &mut String, tag: &str, name: &str, rewrite: &impl Fn(&str) -> Option<String>) {
    let links = LINKS.iter().find(|(element, _)| *element == name).map_or(&[][..], |(_, links)| links);
    let mut copied = 0;
    let mut at = 1 + name.len();
    while let Some((attribute, value)) = next_attribute(tag, &mut at) {
        let is_link = links.contains(&attribute.to_ascii_lowercase().as_str());
        if let Some(link) = Some(&tag[value.clone()]).filter(|_| is_link).and_then(rewrite) {
            out.push_str(&tag[copied..value.start]);
            out.push_str(&link.replace('"', "&#34;").replace('\'', "&#39;"));
            copied = value.end;
        }
    }
    out.push_str(&tag[copied..]);
}

/// The next attribute from `at` on that has a value, and where that is.
fn next_attribute<'a>(tag: &'a str, at: &mut usize) -> Option<(&'a str, std::ops::Range<usize>)> {
    let bytes = tag.as_bytes();
    let skip = |from: usize, is_wanted: fn(&u8) -> bool| {
        from + bytes[from.min(bytes.len())..].iter().take_while(|byte| is_wanted(byte)).count()
    };
    loop {
        let start =
            skip(*at, |byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'"' | b'\'' | b'='));
        let end = skip(start, |byte| !byte.is_ascii_whitespace() && !matches!(byte, b'=' | b'>' | b'/'));
        if end == start {
            return None;
        }
        *at = skip(end, u8::is_ascii_whitespace);
        if bytes.get(*at) != Some(&b'=') {
            continue;
        }
        let from = skip(*at + 1, u8::is_ascii_whitespace);
        let value = match bytes.get(from) {
            Some(quote @ (b'"' | b'\'')) => {
                let length = bytes[from + 1..].iter().take_while(|byte| *byte != quote).count();
                from + 1..from + 1 + length
            }
            _ => from..skip(from, |byte| !byte.is_ascii_whitespace() && *byte != b'>'),
        };
        *at = value.end;
        return Some((&tag[start..end], value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(page: &str) -> String {
        rewrite_links(page, |link| link.starts_with('/').then(|| format!("/proxy{link}")))
    }

    #[test]
    fn links_of_the_same_host_go_through_the_proxy() {
        for (page, wanted) in [
            (r#"<A HREF="/a">x</A>"#, r#"<A HREF="/proxy/a">x</A>"#),
            ("<a href=/a>x</a> <a href='/b' >", "<a href=/proxy/a>x</a> <a href='/proxy/b' >"),
            (r#"<img alt="a > b" src="/i.png"/>"#, r#"<img alt="a > b" src="/proxy/i.png"/>"#),
            (r#"<link rel=x href = "/s.css">"#, r#"<link rel=x href = "/proxy/s.css">"#),
            (r#"<a href="/it's">"#, r#"<a href="/proxy/it&#39;s">"#),
        ] {
            assert_eq!(rewritten(page), wanted);
        }
    }

    #[test]
    fn a_large_page_of_small_elements_is_read_once() {
        let page = "<title></TITLE>".repeat((4 << 20) / 15) + "<a href=\"/a\">";
        let wanted = page.replace("\"/a", "\"/proxy/a");
        assert!(rewritten(&page) == wanted, "the page came out changed");
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        for page in [
            "<a href=\"b\">",
            "<p href=\"/a\">",
            "<!-- <a href=\"/a\"> -->",
            "<script>x = '<a href=\"/a\">'</script>",
            "a < b",
            "<",
            "<a",
            "<a href",
            "<a href=",
            "<a href=\"/a",
            "</a href=\"/a\">",
            "",
            "\u{e9}<\u{e9}>",
            "<title><a href=\"/a\"></title>",
            "<a title=\"/a\">",
        ] {
            let kept = rewritten(page);
            let is_open = page == "<a href=\"/a";
            assert!(kept == page || is_open, "{page}: {kept}");
        }
    }
}
