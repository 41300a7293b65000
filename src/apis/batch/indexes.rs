//! Indexes of an Indexed Job as text: `1,3-5` (`validateIndexesFormat`).

golang::text_error! {
    /// What is no list of indexes; in upstream's words.
    pub(super) struct BadIndexes;
}

/// How many indexes there are; what is wrong, in upstream's words.
pub(super) fn count(text: &str, completions: i64) -> Result<i64, BadIndexes> {
    let mut total = 0;
    let mut last = None;
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (first, end) = interval(part, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}").into());
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

/// The first index that is in both; what is no interval is said elsewhere.
pub(super) fn overlap(one: &str, other: &str, completions: i64) -> Option<i64> {
    let intervals = |text: &str| -> Vec<(i64, i64)> {
        text.split(',').filter_map(|part| interval(part, completions).ok()).collect()
    };
    let others = intervals(other);
    let common = |(first, end): (i64, i64)| {
        let meets = others.iter().find(|(from, to)| first <= *to && *from <= end);
        meets.map(|(from, _)| first.max(*from))
    };
    intervals(one).into_iter().find_map(common)
}

fn interval(text: &str, completions: i64) -> Result<(i64, i64), String> {
    let number = |text: &str| match text.parse::<i64>() {
        Err(_) => Err(format!("cannot convert string to integer for index: {text:?}")),
        Ok(number) if number >= completions => Err(format!("too large index: {text:?}")),
        Ok(number) => Ok(number),
    };
    match text.split('-').collect::<Vec<_>>().as_slice() {
        [one] => number(one).map(|one| (one, one)),
        [first, last] => match (number(first)?, number(last)?) {
            (first, last) if first >= last => {
                Err(format!("non-increasing order, previous: {first}, current: {last}"))
            }
            both => Ok(both),
        },
        _ => Err(format!(
            "the fragment {text:?} violates the requirement that an index interval can have at most two parts \
             separated by '-'"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::{BadIndexes, count, overlap};

    #[test]
    fn indexes() {
        for (text, says) in [
            ("", Ok(0)),
            ("0,2-4", Ok(4)),
            ("4,2", Err("non-increasing order, previous: 4, current: 2")),
            ("3-3", Err("non-increasing order, previous: 3, current: 3")),
            ("5", Err("too large index: \"5\"")),
            ("a", Err("cannot convert string to integer for index: \"a\"")),
        ] {
            assert_eq!(count(text, 5), says.map_err(BadIndexes::from), "{text}");
        }
        assert!(count("1-2-3", 5).unwrap_err().starts_with("the fragment \"1-2-3\" violates"));
        assert_eq!((overlap("0,2-4", "1,3", 5), overlap("0", "1", 5)), (Some(3), None));
    }
}
