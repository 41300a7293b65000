//! Programs that tell of the network that a container has: its interfaces, routes, names and open ports.
//! What they would change they may not, as in a container without `NET_ADMIN`.

use std::net::IpAddr;

use super::names::base_name;
use crate::interpreter::player::Player;
use crate::surroundings::OpenPort;

const PROGRAMS: &[&str] = &["ip", "ifconfig", "route", "hostname", "netstat", "ss"];
/// How much of an address is its node's, as the ranges of nodes are cut.
const NODE_PREFIX: u8 = 24;
const NODE_PREFIX_6: u8 = 64;
/// Words of `ip` that would change something.
const CHANGES: &[&str] =
    &["add", "a", "append", "change", "chg", "replace", "del", "delete", "set", "flush", "up", "down"];

pub(super) fn is_known(name: &str) -> bool {
    PROGRAMS.contains(&name)
}

/// Runs one of them.
pub(super) fn run(player: &mut Player<'_>, name: &str, words: &[&str]) {
    match base_name(name) {
        "ip" => ip(player, words),
        "ifconfig" => ifconfig(player),
        "route" => route(player),
        "hostname" => hostname(player, words),
        "netstat" if words.iter().any(|word| word.starts_with('-') && word.contains('r')) => route(player),
        "netstat" => netstat(player, words),
        _ => ss(player, words),
    }
}

/// The addresses that the pod's own hosts file has for its name.
pub(super) fn addresses(player: &Player<'_>) -> Vec<IpAddr> {
    let hosts = player.file("/etc/hosts").map(|file| file.text()).unwrap_or_default();
    let own = |line: &str| {
        let mut words = line.split_whitespace();
        let address = words.next()?.parse::<IpAddr>().ok()?;
        words.any(|name| name == player.around.hostname).then_some(address)
    };
    hosts.lines().filter_map(own).filter(|address| !address.is_loopback()).collect()
}

fn of_family(player: &Player<'_>, is_six: bool) -> Option<IpAddr> {
    addresses(player).into_iter().find(|address| address.is_ipv6() == is_six)
}

fn hostname(player: &mut Player<'_>, words: &[&str]) {
    let said = match words {
        ["-i", ..] => addresses(player).first().map(ToString::to_string).unwrap_or_default(),
        ["-I" | "--all-ip-addresses", ..] => {
            addresses(player).iter().map(|address| format!("{address} ")).collect()
        }
        ["-s" | "-f" | "--fqdn" | "--short", ..] | [] => player.around.hostname.clone(),
        ["-d", ..] => String::new(),
        _ => return player.fail("hostname: you must be root to change the host name\n"),
    };
    player.say(&format!("{said}\n"));
}

/// `ip [-4|-6] [-o] [-br] addr|link|route|neigh ...`
fn ip(player: &mut Player<'_>, words: &[&str]) {
    let (flags, rest): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('-'));
    let Some((object, rest)) = rest.split_first() else {
        return player.fail("Usage: ip [ OPTIONS ] OBJECT { COMMAND | help }\n");
    };
    if let Some(verb) = rest.first()
        && CHANGES.contains(verb)
    {
        player.complain("RTNETLINK answers: Operation not permitted\n");
        player.status = 2;
        return;
    }
    let is_wanted = |is_six: bool| !flags.contains(&if is_six { "-4" } else { "-6" });
    let is_brief = flags.iter().any(|flag| matches!(*flag, "-br" | "-brief"));
    let device = rest.iter().find(|word| matches!(**word, "lo" | "eth0")).copied();
    let unknown = rest.iter().skip_while(|word| **word != "dev").nth(1).filter(|name| device != Some(**name));
    if let Some(name) = unknown {
        return player.fail(&format!("Device \"{name}\" does not exist.\n"));
    }
    match *object {
        "a" | "ad" | "addr" | "address" => {
            let all = interfaces(player, device);
            let said: String = all.iter().map(|one| one.told(&is_wanted, &flags, is_brief)).collect();
            player.say(&said);
        }
        "l" | "li" | "link" => {
            let all = interfaces(player, device);
            let said: String =
                all.iter().map(|one| if is_brief { one.brief_link() } else { one.link() }).collect();
            player.say(&said);
        }
        "r" | "ro" | "route" if rest.first() == Some(&"get") => route_to(player, rest),
        "r" | "ro" | "route" => routes(player, flags.contains(&"-6")),
        "n" | "neigh" | "neighbour" | "rule" | "netns" | "maddr" => {}
        _ => player.fail(&format!("Object \"{object}\" is unknown, try \"ip help\".\n")),
    }
}

/// One interface of a container: there are two in each.
struct Interface {
    name: &'static str,
    hardware: String,
    addresses: Vec<IpAddr>,
}

fn interfaces(player: &Player<'_>, device: Option<&str>) -> Vec<Interface> {
    let loopback = ["127.0.0.1", "::1"].iter().filter_map(|text| text.parse().ok()).collect();
    let all = [
        Interface { name: "lo", hardware: "00:00:00:00:00:00".into(), addresses: loopback },
        Interface { name: "eth0", hardware: hardware(player), addresses: addresses(player) },
    ];
    all.into_iter().filter(|one| device.is_none_or(|device| device == one.name)).collect()
}

/// Whether a container has a device of this name.
pub(super) fn has_device(player: &Player<'_>, name: &str) -> bool {
    !interfaces(player, Some(name)).is_empty()
}

/// As the bridge plugin of CNI makes it from the address.
fn hardware(player: &Player<'_>) -> String {
    match of_family(player, false) {
        Some(IpAddr::V4(address)) => {
            let hex: Vec<String> = address.octets().iter().map(|byte| format!("{byte:02x}")).collect();
            format!("0a:58:{}", hex.join(":"))
        }
        _ => "0a:58:00:00:00:01".into(),
    }
}

fn prefix(address: IpAddr) -> u8 {
    match (address.is_loopback(), address.is_ipv6()) {
        (true, true) => 128,
        (true, false) => 8,
        (false, true) => NODE_PREFIX_6,
        (false, false) => NODE_PREFIX,
    }
}

impl Interface {
    fn is_loopback(&self) -> bool {
        self.name == "lo"
    }

    fn link(&self) -> String {
        if self.is_loopback() {
            return "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000\n    \
                    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00\n"
                .into();
        }
        format!(
            "2: eth0@if3: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default \n    \
             link/ether {} brd ff:ff:ff:ff:ff:ff link-netnsid 0\n",
            self.hardware
        )
    }

    fn brief_name(&self) -> String {
        let (name, state) = if self.is_loopback() { ("lo", "UNKNOWN") } else { ("eth0@if3", "UP") };
        format!("{name:<16} {state:<14} ")
    }

    fn brief_link(&self) -> String {
        let flags = if self.is_loopback() { "LOOPBACK" } else { "BROADCAST,MULTICAST" };
        format!("{}{} <{flags},UP,LOWER_UP> \n", self.brief_name(), self.hardware)
    }

    fn told(&self, is_wanted: &dyn Fn(bool) -> bool, flags: &[&str], is_brief: bool) -> String {
        let wanted = || self.addresses.iter().copied().filter(|address| is_wanted(address.is_ipv6()));
        if is_brief {
            let own: String = wanted().map(|address| format!("{address}/{} ", prefix(address))).collect();
            return format!("{}{own}\n", self.brief_name());
        }
        if flags.iter().any(|flag| matches!(*flag, "-o" | "-oneline")) {
            let number = if self.is_loopback() { 1 } else { 2 };
            let line = |address| format!("{number}: {}    {}\n", self.name, self.address(address, "\\   "));
            return wanted().map(line).collect();
        }
        let own: String =
            wanted().map(|address| format!("    {}\n", self.address(address, "\n   "))).collect();
        self.link() + &own
    }

    fn address(&self, address: IpAddr, end: &str) -> String {
        let family = if address.is_ipv6() { "inet6" } else { "inet" };
        let broadcast = match address {
            IpAddr::V4(four) if !self.is_loopback() => {
                let [a, b, c, _] = four.octets();
                format!(" brd {a}.{b}.{c}.255")
            }
            _ => String::new(),
        };
        let scope = if self.is_loopback() { "host" } else { "global" };
        let name = if address.is_ipv6() { "" } else { self.name };
        format!(
            "{family} {address}/{}{broadcast} scope {scope} {name}{end}    valid_lft forever preferred_lft forever",
            prefix(address)
        )
    }
}

/// The first of a node's range, which leads out, and the range.
fn gateway(address: IpAddr) -> (IpAddr, String) {
    match address {
        IpAddr::V4(four) => {
            let [a, b, c, _] = four.octets();
            (IpAddr::from([a, b, c, 1]), format!("{a}.{b}.{c}.0"))
        }
        IpAddr::V6(six) => {
            let [a, b, c, d, ..] = six.segments();
            let network = IpAddr::from([a, b, c, d, 0, 0, 0, 0]);
            (IpAddr::from([a, b, c, d, 0, 0, 0, 1]), network.to_string())
        }
    }
}

fn routes(player: &mut Player<'_>, is_six: bool) {
    let Some(own) = of_family(player, is_six) else { return };
    let (gateway, network) = gateway(own);
    let source = if is_six { " metric 256 pref medium".into() } else { format!(" scope link src {own}") };
    player.say(&format!(
        "default via {gateway} dev eth0 \n{network}/{} dev eth0 proto kernel{source} \n",
        prefix(own)
    ));
}

fn route_to(player: &mut Player<'_>, words: &[&str]) {
    let text = words.get(1).copied().unwrap_or_default();
    let Ok(to) = text.parse::<IpAddr>() else {
        return player.fail(&format!("Error: any valid prefix is expected rather than \"{text}\".\n"));
    };
    let user = player.around.user;
    let Some(own) = of_family(player, to.is_ipv6()) else {
        player.complain("RTNETLINK answers: Network is unreachable\n");
        player.status = 2;
        return;
    };
    let way = match to {
        to if to.is_loopback() || to == own => format!("local {to} dev lo src {to}"),
        to => format!("{to} via {} dev eth0 src {own}", gateway(own).0),
    };
    player.say(&format!("{way} uid {user} \n    cache \n"));
}

fn ifconfig(player: &mut Player<'_>) {
    let mut said = String::new();
    for one in interfaces(player, None) {
        let kind = if one.is_loopback() {
            "Local Loopback".into()
        } else {
            format!("Ethernet  HWaddr {}", one.hardware)
        };
        said.push_str(&format!("{:<10}Link encap:{kind}  \n", one.name));
        for address in &one.addresses {
            said.push_str(&match address {
                IpAddr::V4(four) if one.is_loopback() => {
                    format!("          inet addr:{four}  Mask:255.0.0.0\n")
                }
                IpAddr::V4(four) => {
                    let [a, b, c, _] = four.octets();
                    format!("          inet addr:{four}  Bcast:{a}.{b}.{c}.255  Mask:255.255.255.0\n")
                }
                IpAddr::V6(six) => {
                    let scope = if one.is_loopback() { "Host" } else { "Global" };
                    format!("          inet6 addr: {six}/{} Scope:{scope}\n", prefix(*address))
                }
            });
        }
        let (flags, mtu) = if one.is_loopback() { ("LOOPBACK", 65_536) } else { ("BROADCAST", 1500) };
        let multicast = if one.is_loopback() { "" } else { " MULTICAST" };
        said.push_str(&format!("          UP {flags} RUNNING{multicast}  MTU:{mtu}  Metric:1\n\n"));
    }
    player.say(&said);
}

fn route(player: &mut Player<'_>) {
    let mut said = "Kernel IP routing table\n\
                    Destination     Gateway         Genmask         Flags Metric Ref    Use Iface\n"
        .to_owned();
    if let Some(own) = of_family(player, false) {
        let (gateway, network) = gateway(own);
        for (to, by, mask, flags) in [
            ("0.0.0.0", gateway.to_string(), "0.0.0.0", "UG"),
            (&*network, "0.0.0.0".into(), "255.255.255.0", "U"),
        ] {
            said.push_str(&format!("{to:<15} {by:<15} {mask:<15} {flags:<5} 0      0        0 eth0\n"));
        }
    }
    player.say(&said);
}

/// What of `-tuln` asks for kinds of sockets.
struct AskedSockets {
    tcp: bool,
    udp: bool,
    /// Those that listen, alone or among others.
    listening: bool,
    processes: bool,
}

impl AskedSockets {
    fn read(words: &[&str]) -> AskedSockets {
        let has = |letter: char, long: &str| {
            let is_short =
                |word: &&str| word.starts_with('-') && !word.starts_with("--") && word.contains(letter);
            words.iter().any(|word| is_short(word) || *word == long)
        };
        let (tcp, udp) = (has('t', "--tcp"), has('u', "--udp"));
        AskedSockets {
            tcp: tcp || !udp,
            udp: udp || !tcp,
            listening: has('l', "--listening") || has('a', "--all"),
            processes: has('p', "--processes"),
        }
    }

    fn ports<'a>(&self, player: &'a Player<'_>) -> Vec<&'a OpenPort> {
        let of_family = |port: &&OpenPort| if port.is_udp { self.udp } else { self.tcp };
        player.around.listens.iter().filter(of_family).filter(|_| self.listening).collect()
    }
}

fn netstat(player: &mut Player<'_>, words: &[&str]) {
    let asked = AskedSockets::read(words);
    let servers = if asked.listening { "only servers" } else { "w/o servers" };
    let owner = if asked.processes { "PID/Program name    " } else { "" };
    let mut said = format!(
        "Active Internet connections ({servers})\n\
         Proto Recv-Q Send-Q Local Address           Foreign Address         State       {owner}\n"
    );
    for port in asked.ports(player) {
        let (kind, state) = if port.is_udp { ("udp", "") } else { ("tcp", "LISTEN") };
        let local = format!("0.0.0.0:{}", port.port);
        let owner = if asked.processes { format!("1/{:<18}", port.program) } else { String::new() };
        said.push_str(&format!(
            "{kind:<5}      0      0 {local:<23} {:<23} {state:<11} {owner}\n",
            "0.0.0.0:*"
        ));
    }
    player.say(&said);
}

fn ss(player: &mut Player<'_>, words: &[&str]) {
    let asked = AskedSockets::read(words);
    let is_both = asked.tcp && asked.udp;
    let kind = if is_both { "Netid " } else { "" };
    let mut said = format!(
        "{kind}State  Recv-Q Send-Q Local Address:Port Peer Address:Port{}\n",
        if asked.processes { "Process" } else { "" }
    );
    for port in asked.ports(player) {
        let (name, state) = if port.is_udp { ("udp", "UNCONN") } else { ("tcp", "LISTEN") };
        let kind = if is_both { format!("{name:<6}") } else { String::new() };
        let backlog = if port.is_udp { 0 } else { 4096 };
        let owner = if asked.processes {
            format!("    users:((\"{}\",pid=1,fd=3))", port.program)
        } else {
            String::new()
        };
        let local = format!("0.0.0.0:{}", port.port);
        said.push_str(&format!(
            "{kind}{state:<6} 0      {backlog:<6} {local:>18} {:>17}{owner}\n",
            "0.0.0.0:*"
        ));
    }
    player.say(&said);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::time::Duration;

    use crate::exec::exec;
    use crate::file_system::{File, View};
    use crate::surroundings::{OpenPort, Surroundings};

    fn run(line: &str) -> (i32, String) {
        let hosts = "127.0.0.1\tlocalhost\n::1\tlocalhost\n10.244.1.7\tweb-0.web.ns.svc.cluster.local\tweb-0\n\
                     fd00:10:244:1::7\tweb-0\n";
        let tree = BTreeMap::from([("/etc/hosts".to_owned(), File::new(hosts, 0o644))]);
        let open = |port: u16, is_udp: bool| OpenPort { port, is_udp, program: "nginx".into() };
        let around = Surroundings {
            hostname: "web-0".into(),
            views: vec![View { after: Duration::ZERO, tree: Arc::new(tree) }],
            listens: vec![open(80, false), open(53, true)],
            ..Surroundings::default()
        };
        let words = ["sh".to_owned(), "-c".to_owned(), line.to_owned()];
        let ran = exec(&words, &around, vec![], None).expect("it is understood");
        (ran.end.unwrap().1, ran.out + &ran.errors)
    }

    #[test]
    fn a_container_knows_its_addresses() {
        for (line, wanted) in [
            ("hostname", "web-0\n"),
            ("hostname -i", "10.244.1.7\n"),
            ("hostname -I", "10.244.1.7 fd00:10:244:1::7 \n"),
            ("ip -4 -o addr show eth0 | awk '{print $4}' | cut -d/ -f1", "10.244.1.7\n"),
            ("ip addr show dev eth0 | grep 'inet ' | awk '{print $2}'", "10.244.1.7/24\n"),
            ("ip -6 a | grep -c inet6", "2\n"),
            (
                "ip -br addr",
                "lo               UNKNOWN        127.0.0.1/8 ::1/128 \n\
              eth0@if3         UP             10.244.1.7/24 fd00:10:244:1::7/64 \n",
            ),
            ("ip route | head -1", "default via 10.244.1.1 dev eth0 \n"),
            ("ip route get 1.1.1.1", "1.1.1.1 via 10.244.1.1 dev eth0 src 10.244.1.7 uid 0 \n    cache \n"),
            (
                "ip link | grep ether",
                "    link/ether 0a:58:0a:f4:01:07 brd ff:ff:ff:ff:ff:ff link-netnsid 0\n",
            ),
            (
                "route -n | tail -1",
                "10.244.1.0      0.0.0.0         255.255.255.0   U     0      0        0 eth0\n",
            ),
            (
                "ifconfig eth0 | grep 'inet addr'",
                "          inet addr:127.0.0.1  Mask:255.0.0.0\n          \
              inet addr:10.244.1.7  Bcast:10.244.1.255  Mask:255.255.255.0\n",
            ),
        ] {
            assert_eq!(run(line), (0, wanted.to_owned()), "{line}");
        }
        let (code, said) = run("ip link add dummy0 type dummy");
        assert_eq!((code, &*said), (2, "RTNETLINK answers: Operation not permitted\n"));
        assert_eq!(run("ip addr show dev eth7").1, "Device \"eth7\" does not exist.\n");
    }

    #[test]
    fn ports_that_are_open_are_told() {
        assert_eq!(
            run("netstat -tln | tail -1").1,
            "tcp        0      0 0.0.0.0:80              0.0.0.0:*               LISTEN      \n"
        );
        assert_eq!(run("netstat -ulnp | grep -c '1/nginx'").1, "1\n");
        assert_eq!(run("netstat -tn | wc -l").1.trim(), "2");
        assert_eq!(run("ss -tln | tail -1").1, "LISTEN 0      4096           0.0.0.0:80         0.0.0.0:*\n");
        assert_eq!(run("ss -tulpn | grep -c pid=1").1, "2\n");
        assert_eq!(run("ss -tn | wc -l").1.trim(), "1");
    }
}
