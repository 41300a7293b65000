//! `TraceParent`: the trace that a client's request belongs to, as W3C's Trace Context writes it in the
//! header `traceparent`.

/// Whose span led to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace.
    pub trace: u128,
    /// The span of the client.
    pub span: u64,
    /// Whether the client sends its own spans anywhere.
    pub is_sampled: bool,
}

impl TraceParent {
    /// As `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`; nothing of what is not of that form,
    /// which is as good as none. Later versions may have more behind it.
    pub fn parse(text: &str) -> Option<TraceParent> {
        let mut parts = text.split('-');
        let version = hex(parts.next()?, 2)?;
        let (trace, span) = (hex(parts.next()?, 32)?, hex(parts.next()?, 16)?);
        let flags = hex(parts.next()?, 2)?;
        let has_more = parts.next().is_some();
        let is_version = version != 0xff && (version != 0 || !has_more);
        let known = TraceParent { trace, span: u64::try_from(span).ok()?, is_sampled: flags & 1 == 1 };
        (is_version && known.trace != 0 && known.span != 0).then_some(known)
    }
}

/// So many small hexadecimal digits.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_it = text.len() == digits && text.bytes().all(is_digit);
    is_it.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_this_form_and_no_other() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let parsed = TraceParent::parse(&format!("00-{trace}-00f067aa0ba902b7-01")).unwrap();
        assert_eq!((format!("{:x}", parsed.trace).as_str(), parsed.is_sampled), (trace, true));
        assert_eq!(parsed.span, 0x00f0_67aa_0ba9_02b7);
        assert!(!TraceParent::parse(&format!("01-{trace}-00f067aa0ba902b7-00-more")).unwrap().is_sampled);
        let zeros = "0".repeat(32);
        for wrong in [
            "",
            "00",
            &format!("00-{trace}-00f067aa0ba902b7"),
            &format!("00-{trace}-00f067aa0ba902b7-01-more"),
            &format!("ff-{trace}-00f067aa0ba902b7-01"),
            &format!("00-{zeros}-00f067aa0ba902b7-01"),
            &format!("00-{trace}-0000000000000000-01"),
            &format!("00-{}-00f067aa0ba902b7-01", trace.to_uppercase()),
            &format!("00-+{}-00f067aa0ba902b7-01", &trace[1..]),
        ] {
            assert_eq!(TraceParent::parse(wrong), None, "{wrong}");
        }
    }
}
