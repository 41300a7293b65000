//! agnhost's `port-forward-tester`: it takes one connection, hears what it is to hear, says what it is to
//! say, and ends.

use std::time::Duration;

/// What its variables say.
#[derive(Clone, Debug, PartialEq)]
pub struct ForwardTester {
    /// What whoever connects has to say first.
    pub expected: Vec<u8>,
    /// How many pieces are said, how long each is, and what passes between two. Where a variable is no
    /// number, what is said of that.
    pub says: Result<Chunks, String>,
    /// It says nothing at all and that at once, and stays.
    pub closes: Option<HalfClosing>,
}

/// What agnhost's `nat-closewait-server` does with the one who comes.
#[derive(Clone, Debug, PartialEq)]
pub struct HalfClosing {
    /// So long it stays.
    pub stays: Duration,
    /// What it has said by then.
    pub output: String,
    /// A server runs it for whoever asked, and goes on behind it (`net --serve`); else its process ends.
    pub is_run: bool,
}

/// See [`ForwardTester::says`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chunks {
    /// How many.
    pub count: usize,
    /// Of so many bytes each.
    pub bytes: usize,
    /// So long after each other.
    pub interval: Duration,
}

impl ForwardTester {
    /// One that half closes its connection and stays.
    pub(crate) fn closing(how: HalfClosing) -> ForwardTester {
        let says = Ok(Chunks { count: 0, bytes: 0, interval: Duration::ZERO });
        ForwardTester { expected: vec![], says, closes: Some(how) }
    }

    /// With its port.
    pub(crate) fn of(variables: &[(&str, &str)]) -> Option<(i64, ForwardTester)> {
        let variable = |wanted: &str| {
            let found = variables.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| *value).unwrap_or_default()
        };
        let number = |name: &str| {
            let text = variable(name);
            let wrong =
                format!("Error parsing {name} {text:?}: strconv.Atoi: parsing {text:?}: invalid syntax");
            text.parse::<u32>().map_err(|_| wrong)
        };
        let says = || {
            let (count, bytes) = (number("CHUNKS")?, number("CHUNK_SIZE")?);
            let interval = Duration::from_millis(number("CHUNK_INTERVAL")?.into());
            Ok(Chunks { count: count as usize, bytes: bytes as usize, interval })
        };
        let port = variable("BIND_PORT").parse().ok()?;
        let expected = variable("EXPECTED_CLIENT_DATA").as_bytes().to_vec();
        Some((port, ForwardTester { expected, says: says(), closes: None }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_by_its_variables() {
        let told = [
            ("BIND_PORT", "80"),
            ("EXPECTED_CLIENT_DATA", "abc"),
            ("CHUNKS", "10"),
            ("CHUNK_SIZE", "4"),
            ("CHUNK_INTERVAL", "500"),
        ];
        let says = Chunks { count: 10, bytes: 4, interval: Duration::from_millis(500) };
        let wanted = ForwardTester { expected: b"abc".to_vec(), says: Ok(says), closes: None };
        assert_eq!(ForwardTester::of(&told), Some((80, wanted)));
        let wrong = ForwardTester::of(&told[..2]).unwrap().1.says.unwrap_err();
        assert_eq!(wrong, "Error parsing CHUNKS \"\": strconv.Atoi: parsing \"\": invalid syntax");
        assert_eq!(ForwardTester::of(&told[1..]), None);
    }
}
