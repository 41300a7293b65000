//! `dig`, as BIND 9.18 prints what it hears.

use super::lookups::reversed;
use super::resolver::{Resolved, Resolver, resolve};
use crate::dns::{self, DnsAnswer, DnsAnswerRecord};
use crate::interpreter::player::{AfterCommand, Player};

/// Where the parts of a record stand: behind its name, its seconds, its class and its type.
const COLUMNS: [usize; 4] = [24, 32, 40, 48];
const TAB: usize = 8;

#[derive(Default)]
struct DigOptions<'a> {
    name: String,
    kind: Option<&'a str>,
    server: Option<&'a str>,
    is_short: bool,
    searches: bool,
    /// Nothing but what is asked for by name.
    is_bare: bool,
    shows_answer: bool,
}

fn dig_options<'a>(words: &[&'a str]) -> DigOptions<'a> {
    let (mut options, mut words) = (DigOptions::default(), words.iter().copied());
    while let Some(word) = words.next() {
        match word {
            "+short" => options.is_short = true,
            "+search" => options.searches = true,
            "+noall" => options.is_bare = true,
            "+answer" => options.shows_answer = true,
            "-t" | "-q" => match words.next() {
                Some(value) if word == "-t" => options.kind = Some(value),
                value => options.name = value.unwrap_or_default().to_owned(),
            },
            "-p" | "-b" | "-k" | "-y" | "-f" => drop(words.next()),
            "-x" => {
                let address = words.next().and_then(|address| address.parse().ok());
                options.name = address.map(reversed).unwrap_or_default();
                options.kind = Some("PTR");
            }
            word if word.starts_with('@') => options.server = Some(&word[1..]),
            word if word.starts_with(['+', '-']) => {}
            word if dns::type_of(word).is_some() && !options.name.is_empty() => options.kind = Some(word),
            "IN" => {}
            word if dns::type_of(word).is_some() => options.kind = Some(word),
            word => options.name = word.to_owned(),
        }
    }
    options
}

pub(super) fn dig(player: &mut Player<'_>, words: &[&str]) -> Result<(), AfterCommand> {
    let options = dig_options(words);
    let mut resolver = Resolver::of(player);
    if let Some(server) = options.server {
        resolver.server = resolve(player, server)?;
    }
    if let [high, low] = player.random_bytes(2)[..] {
        resolver.id = u16::from_be_bytes([high, low]);
    }
    let kind = options.kind.unwrap_or("A");
    let number = dns::type_of(kind).unwrap_or(1);
    let begun = player.elapsed;
    let found = if options.searches {
        resolver.search(player, &options.name, number)?
    } else {
        let answer = resolver.ask(player, &options.name, number)?;
        answer.map_or(Resolved::Silence, |answer| Resolved::Answer(options.name.clone(), answer))
    };
    let (Resolved::Answer(full, answer), Some(server)) = (found, resolver.server) else {
        player.say(";; communications error: timed out\n;; no servers could be reached\n");
        player.status = 9;
        return Ok(());
    };
    let took = player.elapsed.saturating_sub(begun).as_millis();
    let said = if options.is_short {
        answer.records.iter().map(|record| format!("{}\n", record.data)).collect()
    } else if options.is_bare {
        if options.shows_answer { lines(&answer.records) } else { String::new() }
    } else {
        let when = player.now().format("%a %b %d %H:%M:%S UTC %Y");
        let words = words.join(" ");
        page(&words, &full, kind, &answer)
            + &format!(
                ";; Query time: {took} msec\n;; SERVER: {server}#53({server}) (UDP)\n;; WHEN: {when}\n\
                 ;; MSG SIZE  rcvd: {}\n\n",
                answer.bytes
            )
    };
    player.say(&said);
    Ok(())
}

/// All but what is said of the way to the server.
fn page(words: &str, name: &str, kind: &str, answer: &DnsAnswer) -> String {
    let DnsAnswer { records, authorities, additional, .. } = answer;
    let [answers, authority, more] = [records, authorities, additional].map(Vec::len);
    let flags: Vec<&str> = answer.flags().collect();
    let asked = format!(";{}.", name.trim_end_matches('.'));
    let question = format!("{}IN\t{kind}\n", to_column(&asked, asked.len(), COLUMNS[1]).0);
    let section = |title: &str, records: &[DnsAnswerRecord]| match records {
        [] => String::new(),
        records => format!(";; {title} SECTION:\n{}\n", lines(records)),
    };
    let unanswered = if flags.contains(&"ra") || !flags.contains(&"rd") {
        ""
    } else {
        ";; WARNING: recursion requested but not available\n"
    };
    format!(
        "\n; <<>> DiG 9.18.41 <<>> {words}\n;; global options: +cmd\n;; Got answer:\n\
         ;; ->>HEADER<<- opcode: QUERY, status: {}, id: {}\n\
         ;; flags: {}; QUERY: 1, ANSWER: {answers}, AUTHORITY: {authority}, ADDITIONAL: {more}\n{unanswered}\n\
         ;; QUESTION SECTION:\n{question}\n{}{}{}",
        answer.status(),
        answer.id,
        flags.join(" "),
        section("ANSWER", records),
        section("AUTHORITY", authorities),
        section("ADDITIONAL", additional),
    )
}

fn lines(records: &[DnsAnswerRecord]) -> String {
    records.iter().map(line).collect()
}

fn line(record: &DnsAnswerRecord) -> String {
    let DnsAnswerRecord { name, kind, ttl, data } = record;
    let mut line = String::new();
    let mut column = 0;
    let parts = [format!("{name}."), ttl.to_string(), "IN".to_owned(), (*kind).to_owned()];
    for (part, wanted) in parts.iter().zip(COLUMNS) {
        column += part.chars().count();
        let (part, reached) = to_column(part, column, wanted);
        line.push_str(&part);
        column = reached;
    }
    format!("{line}{data}\n")
}

/// A text that ends in a column, filled up with tabs as far as another one; a blank where that is behind it.
/// Also where it ends then.
fn to_column(text: &str, column: usize, wanted: usize) -> (String, usize) {
    if column >= wanted {
        return (format!("{text} "), column + 1);
    }
    let tabs = (wanted - column).div_ceil(TAB);
    (format!("{text}{}", "\t".repeat(tabs)), wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_stand_in_columns() {
        let record =
            |name: &str, kind| DnsAnswerRecord { name: name.into(), kind, ttl: 30, data: "x".into() };
        assert_eq!(line(&record("web", "A")), "web.\t\t\t30\tIN\tA\tx\n");
        assert_eq!(
            line(&record("web.default.svc.cluster.local", "A")),
            "web.default.svc.cluster.local. 30 IN\tA\tx\n"
        );
    }
}
