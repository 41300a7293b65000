//! `nc`: looks whether anybody listens, or says to him what it reads.

use std::net::SocketAddr;
use std::time::Duration;

use super::resolver::{AddressFamily, resolve_of};
use crate::interpreter::player::{AfterCommand, Player};
use crate::listeners::{Listens, ScriptListener};
use crate::questions::{CONNECT_TIMEOUT, NetworkAsk, NetworkReply, Question};

#[derive(Default)]
struct NetcatOptions<'a> {
    only_looks: bool,
    is_verbose: bool,
    is_udp: bool,
    listens: bool,
    within: Option<Duration>,
    port: Option<u16>,
    words: Vec<&'a str>,
}

pub(super) fn run(player: &mut Player<'_>, words: &[&str]) -> Result<(), AfterCommand> {
    let options = parse(words);
    if options.listens {
        let port = options.port.or_else(|| options.words.last().and_then(|port| port.parse().ok()));
        let Some(port) = port else {
            player.fail("nc: missing port number\n");
            return Ok(());
        };
        // Whoever comes hears what it has read. That it ends with the first of them is not played, nor is
        // what they say.
        let says = if player.hears() { vec![] } else { player.input_bytes() };
        player.listen(ScriptListener { port, what: Listens::Says(says) });
        return Err(player.sleep(Duration::MAX));
    }
    let [host, port] = options.words.as_slice() else {
        player.fail("nc: usage: nc [-uvz] [-w SEC] HOST PORT\n");
        return Ok(());
    };
    let Ok(port) = port.parse::<u16>() else {
        player.fail(&format!("nc: bad port '{port}'\n"));
        return Ok(());
    };
    let Some(address) = resolve_of(player, host, AddressFamily::of(words))? else {
        player.fail(&format!("nc: bad address '{host}'\n"));
        return Ok(());
    };
    let to = SocketAddr::new(address, port);
    let send = if options.only_looks { vec![] } else { player.input_bytes() };
    let what = if options.is_udp {
        NetworkAsk::Udp { to, send }
    } else {
        NetworkAsk::Tcp { to, send, reads: !options.only_looks }
    };
    let within = options.within.unwrap_or(CONNECT_TIMEOUT);
    let reply = player.ask(Question { what, within })?;
    tell(player, &options, &reply, &format!("{host} ({to})"));
    Ok(())
}

fn tell(player: &mut Player<'_>, options: &NetcatOptions<'_>, reply: &NetworkReply, to: &str) {
    match reply {
        NetworkReply::Refused => player.fail(&format!("nc: {to}: Connection refused\n")),
        NetworkReply::Unreachable => player.fail(&format!("nc: {to}: Host is unreachable\n")),
        NetworkReply::TimedOut(false) if !options.is_udp && options.within.is_some() => {
            player.fail("nc: timed out\n")
        }
        NetworkReply::TimedOut(false) if !options.is_udp => {
            player.fail(&format!("nc: {to}: Operation timed out\n"))
        }
        reply => {
            if options.is_verbose {
                player.complain(&format!("{to} open\n"));
            }
            if let NetworkReply::Bytes(bytes) = reply {
                player.say_bytes(bytes);
            }
        }
    }
}

fn parse<'a>(words: &[&'a str]) -> NetcatOptions<'a> {
    let (mut options, mut words) = (NetcatOptions::default(), words.iter().copied());
    while let Some(word) = words.next() {
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            options.words.push(word);
            continue;
        };
        for (at, letter) in letters.char_indices() {
            let rest = Some(&letters[at + 1..]).filter(|rest| !rest.is_empty());
            match letter {
                'z' => options.only_looks = true,
                'v' => options.is_verbose = true,
                'u' => options.is_udp = true,
                'l' => options.listens = true,
                'w' | 'i' | 'q' | 'p' | 's' | 'e' => {
                    let value = rest.or_else(|| words.next()).unwrap_or_default();
                    match letter {
                        'w' => options.within = value.parse().ok().map(Duration::from_secs),
                        'p' => options.port = value.parse().ok(),
                        _ => {}
                    }
                    break;
                }
                _ => {}
            }
        }
    }
    options
}
