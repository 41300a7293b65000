//! Programs that talk, with a network that a test plays.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::dns;
use crate::exec::{Executed, exec, exec_told};
use crate::file_system::{File, View};
use crate::invocation::Invocation;
use crate::process;
use crate::questions::{Answered, MAX_QUESTIONS, NetworkAsk, NetworkReply, Question, TlsPeer, WebReply};
use crate::surroundings::Surroundings;

const RESOLVER: &str =
    "nameserver 10.96.0.10\nsearch ns.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n";

pub(super) fn around() -> Surroundings {
    let file = |text: &str| File::new(text.as_bytes(), 0o644);
    let tree = BTreeMap::from([
        ("/etc/resolv.conf".to_owned(), file(RESOLVER)),
        ("/etc/hosts".to_owned(), file("127.0.0.1 localhost\n10.244.1.2 me\n")),
        ("/ca.crt".to_owned(), file("-----BEGIN CERTIFICATE-----\n")),
    ]);
    Surroundings {
        hostname: "me".into(),
        views: vec![View { after: Duration::ZERO, tree: Arc::new(tree) }],
        ..Surroundings::default()
    }
}

/// `web` is the only name that is known, in the namespace `ns`; at 10.96.0.1 pages are served at port 80.
fn network(question: &Question) -> NetworkReply {
    let at_web = |to: &std::net::SocketAddr| to.ip() == IpAddr::from([10, 96, 0, 1]);
    match &question.what {
        NetworkAsk::Udp { to, send } if to.port() == 53 => NetworkReply::Bytes(Arc::new(named(send))),
        NetworkAsk::Udp { send, .. } => NetworkReply::Bytes(Arc::new(send.clone())),
        NetworkAsk::Tls { to, .. } if to.port() == 81 => NetworkReply::NoTls,
        NetworkAsk::Tls { trust, .. } => NetworkReply::Peer(Arc::new(TlsPeer {
            chain: vec![der()],
            is_trusted: !trust.everybody,
            protocol: "TLSv1.3".into(),
            cipher: "TLS_AES_256_GCM_SHA384".into(),
        })),
        NetworkAsk::Ping(to) if *to == IpAddr::from([10, 96, 0, 1]) => NetworkReply::Echo,
        NetworkAsk::Ping(_) => NetworkReply::TimedOut(false),
        NetworkAsk::Tcp { to, send, .. } if to.port() == 53 => {
            let answer = many(&send[2..]).unwrap();
            let length = u16::try_from(answer.len()).unwrap().to_be_bytes();
            NetworkReply::Bytes(Arc::new([&length[..], &answer].concat()))
        }
        NetworkAsk::Tcp { to, .. } if to.port() == 81 => NetworkReply::Refused,
        NetworkAsk::Tcp { reads: false, .. } => NetworkReply::Bytes(Arc::default()),
        NetworkAsk::Tcp { send, .. } => NetworkReply::Bytes(Arc::new([b"heard ", &send[..]].concat())),
        NetworkAsk::Http(http) => match http.to.unwrap() {
            to if to.port() == 82 => NetworkReply::TimedOut(false),
            to if to.port() == 443 && !http.tls.as_ref().is_some_and(|tls| tls.everybody) => {
                NetworkReply::Untrusted
            }
            to if !at_web(&to) || to.port() == 81 => NetworkReply::Refused,
            _ => page(&http.method, &http.target, &http.body),
        },
    }
}

fn page(method: &str, target: &str, body: &[u8]) -> NetworkReply {
    let (code, location) = match target {
        "/none" => (404, None),
        "/moved" => (302, Some("/there")),
        "/round" => (302, Some("/round")),
        "/busy" => (503, None),
        _ => (200, None),
    };
    let mut headers = vec![("content-type".to_owned(), "text/plain".to_owned())];
    headers.extend(location.map(|location| ("location".to_owned(), location.to_owned())));
    let body = format!("{method} {target} {}\n", String::from_utf8_lossy(body)).into_bytes();
    NetworkReply::Web(Arc::new(WebReply { code, headers, body }))
}

/// `web.ns.svc.cluster.local` is 10.96.0.1, and no other name is any.
fn named(query: &[u8]) -> Vec<u8> {
    let mut message = query.to_vec();
    let known = dns::query(1, "web.ns.svc.cluster.local", 1).unwrap();
    message[2] = 0x81;
    if many(query).is_some() {
        // Not one record fits.
        message[2] |= 0x02;
    } else if message[12..] == known[12..] {
        message[7] = 1;
        message.extend(b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04\x0a\x60\x00\x01");
    } else {
        message[3] = 3;
        message[9] = 1;
        message.extend(b"\x01z\x00\x00\x06\x00\x01\x00\x00\x00\x1e\x00\x1c\x01m\x00\x01h\x01z\x00");
        (1u32..=5).for_each(|number| message.extend(number.to_be_bytes()));
    }
    message
}

/// The certificate of `CN=web, O=me`.
fn der() -> Vec<u8> {
    let pem = include_bytes!("../openssl/certificate.pem");
    x509_parser::pem::parse_x509_pem(pem).unwrap().1.contents
}

/// `many.ns.svc.cluster.local` has 50 addresses, which are said over TCP alone.
fn many(query: &[u8]) -> Option<Vec<u8>> {
    let known = dns::query(1, "many.ns.svc.cluster.local", 1).unwrap();
    let mut message = (query[12..] == known[12..]).then(|| query.to_vec())?;
    (message[2], message[7]) = (0x81, 50);
    for last in 1..=50 {
        message.extend(b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04\x0a\xf4\x01");
        message.push(last);
    }
    Some(message)
}

fn run_in(around: &Surroundings, script: &str) -> Executed {
    let words = ["sh", "-c", script].map(str::to_owned);
    answered(around, |around| exec(&words, around, vec![], Some(vec![])).unwrap())
}

/// With answers to all that is asked.
pub(super) fn answered(around: &Surroundings, run: impl Fn(&Surroundings) -> Executed) -> Executed {
    let mut around = around.clone();
    loop {
        let executed = run(&around);
        let Some((_, question)) = &executed.question else { return executed };
        let reply = network(question);
        let took = if matches!(reply, NetworkReply::TimedOut(_)) {
            question.within
        } else {
            Duration::from_millis(2)
        };
        Arc::make_mut(&mut around.answers).push(Answered { reply, took });
    }
}

fn run(script: &str) -> (i32, String, String) {
    let executed = run_in(&around(), script);
    (executed.end.unwrap().1, executed.out, executed.errors)
}

/// What a form looks like between its boundaries.
const FORM: &str = "Content-Disposition: form-data; name=\"a\"\n\nb\n\
    Content-Disposition: form-data; name=\"c\"; filename=\"f\"\nContent-Type: text/x\n\na\nb\n\n\n";

#[test]
fn curl_says_what_the_real_one_says() {
    let out = |script: &str| run(script).1;
    assert_eq!(out("curl -s web"), "GET / \n");
    assert_eq!(
        out("curl -s -o /dev/null -w '%{http_code} %{remote_ip}\\n' http://web/none"),
        "404 10.96.0.1\n"
    );
    assert_eq!(out("curl -sX PUT -d a=b -d c http://web/x"), "PUT /x a=b&c\n");
    assert_eq!(out("curl -sG -d a=b http://web/x"), "GET /x?a=b \n");
    assert_eq!(out("curl -sL http://web/moved"), "GET /there \n");
    assert_eq!(out("curl -sL -d a=b http://web/moved"), "GET /there \n", "what was posted is sent once");
    assert_eq!(out("curl -sL -X PUT -d a=b http://web/moved"), "PUT /there \n");
    assert_eq!(out("printf a | curl -sL -T - http://web/moved"), "PUT /there a\n");
    assert_eq!(out("curl -s -X GET -d a=b http://web/x"), "GET /x a=b\n");
    assert_eq!(out("curl -sG --data-urlencode \"x=$(printf '\\377 ')\" web/"), "GET /?x=%FF%20 \n");
    assert_eq!(out("curl -sI web"), "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n");
    assert_eq!(out("curl -so /tmp/x web; cat /tmp/x"), "GET / \n");
    assert_eq!(out("curl -sk https://web/"), "GET / \n");
    assert_eq!(out("curl -s --resolve other:80:10.96.0.1 http://other/"), "GET / \n");
    for (script, code, errors) in [
        ("curl -sS http://nobody/", 6, "curl: (6) Could not resolve host: nobody\n"),
        (
            "curl -sS web:81",
            7,
            "curl: (7) Failed to connect to web port 81 after 4 ms: Could not connect to server\n",
        ),
        ("curl -sS -m 3 10.96.0.1:82", 28, "curl: (28) Connection timed out after 3000 milliseconds\n"),
        (
            "curl -sS --connect-timeout 1 10.96.0.1:82",
            28,
            "curl: (28) Connection timed out after 1000 milliseconds\n",
        ),
        ("curl -sSf http://web/none", 22, "curl: (22) The requested URL returned error: 404\n"),
        ("curl -sSL --max-redirs 2 web/round", 47, "curl: (47) Maximum (2) redirects followed\n"),
        ("curl -sS ftp://web", 1, "curl: (1) Protocol \"ftp\" not supported\n"),
    ] {
        assert_eq!(run(script), (code, String::new(), errors.to_owned()), "{script}");
    }
    let sends = [
        ("curl -sd @/tmp/f web/x", "POST /x ab\n"),
        ("curl -s --data-binary @/tmp/f web/x", "POST /x a\nb\n\n"),
        ("curl -s --data-raw @f web/x", "POST /x @f\n"),
        ("curl -s --data-urlencode 'a=b c&d' web/x", "POST /x a=b%20c%26d\n"),
        ("curl -sT /tmp/f web/x/", "PUT /x/f a\nb\n\n"),
        ("curl -s -D - -o /dev/null web", "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n"),
        ("curl -s -o /dev/null -w '%{json}' web | grep -o '\"http_code\":200'", "\"http_code\":200\n"),
        ("curl -s -o /dev/null -w '%header{content-type} %{nothing}%%' web", "text/plain %"),
        ("curl -sF a=b -F 'c=@/tmp/f;type=text/x' web/x | tr -d '\\r' | grep -v -- ---", FORM),
        ("curl --version | cut -d' ' -f1-2 | head -1", "curl 8.14.1\n"),
    ];
    for (script, wanted) in sends {
        assert_eq!(out(&format!("printf 'a\\nb\\n' > /tmp/f; {script}")), wanted, "{script}");
    }
    assert_eq!(run("curl -sT /none web/x").0, 26);
    let (_, _, told) = run("curl -svd a=b web/x");
    let lines =
        ["*   Trying 10.96.0.1:80...", "> POST /x HTTP/1.1", "> Content-Length: 3", "< HTTP/1.1 200 OK"];
    for line in lines {
        assert!(told.lines().any(|own| own == line), "{line}: {told}");
    }
    let untrusted = run("curl -sS https://web/");
    assert!(
        untrusted.0 == 60 && untrusted.2.starts_with("curl: (60) SSL certificate problem"),
        "{untrusted:?}"
    );
    let unknown = run("curl --what web");
    assert!(unknown.0 == 2 && unknown.2.starts_with("curl: option --what: is unknown\n"), "{unknown:?}");
    assert!(run("curl web").2.contains("% Total    % Received"));
}

#[test]
fn curl_asks_from_where_it_is_told_to() {
    for (script, wanted) in [
        ("curl -s --interface eth0 web", "GET / \n"),
        ("curl -s --interface 'if!eth0' web", "GET / \n"),
        ("curl -s --interface 10.244.1.2 web", "GET / \n"),
        ("curl -s --interface 'host!me' web", "GET / \n"),
    ] {
        assert_eq!(run(script), (0, wanted.to_owned(), String::new()), "{script}");
    }
    for (script, code, errors) in [
        ("curl -sS --interface eth1 web", 45, "curl: (45) Couldn't bind to 'eth1'\n"),
        ("curl -sS --interface 'if!eth1' web", 45, "curl: (45) Couldn't bind to interface 'eth1'\n"),
        (
            "curl -sS --interface 10.244.1.3 web",
            45,
            "curl: (45) bind failed with errno 99: Address not available\n",
        ),
        ("curl -sS --interface fd00::1 web", 45, "curl: (45) Couldn't bind to 'fd00::1'\n"),
        (
            "curl -sS --interface lo! web; curl -sS --interface 127.0.0.1 web",
            7,
            "curl: (45) Couldn't bind to 'lo!'\n\
             curl: (7) Failed to connect to web port 80 after 0 ms: Could not connect to server\n",
        ),
    ] {
        assert_eq!(run(script), (code, String::new(), errors.to_owned()), "{script}");
    }
}

#[test]
fn curl_tries_again_and_waits_longer_each_time() {
    let executed = run_in(&around(), "curl -s --retry 2 -w '%{http_code}' -o /dev/null web/busy");
    let (took, code) = executed.end.unwrap();
    assert_eq!((code, executed.out.as_str()), (0, "503"));
    assert_eq!(took.as_secs(), 3);
    let once = run_in(&around(), "curl -s --retry 2 web:81").end.unwrap();
    assert_eq!((once.0.as_secs(), once.1), (0, 7));
    assert_eq!(run_in(&around(), "curl -s --retry 2 --retry-connrefused web:81").end.unwrap().0.as_secs(), 3);
}

#[test]
fn wget_says_what_busybox_says() {
    assert_eq!(run("wget -qO- web"), (0, "GET / \n".into(), String::new()));
    let (code, _, errors) = run("wget web -O /tmp/x && cat /tmp/x");
    assert!(
        code == 0 && errors.starts_with("Connecting to web (10.96.0.1:80)\nsaving to '/tmp/x'\n"),
        "{errors}"
    );
    assert_eq!(run("wget -q --post-data a=b -O - web/p").1, "POST /p a=b\n");
    assert_eq!(run("wget --spider -q web").0, 0);
    for (script, errors) in [
        ("wget -qO- 10.96.0.1:81", "wget: can't connect to remote host (10.96.0.1): Connection refused\n"),
        ("wget -qO- nobody", "wget: bad address 'nobody'\n"),
        ("wget -qO- web/none", "wget: server returned error: HTTP/1.1 404 Not Found\n"),
        ("wget -qO- -T 2 web:82", "wget: download timed out\n"),
        ("wget -qO- web/round", "wget: too many redirections\n"),
    ] {
        assert_eq!(run(script), (1, String::new(), errors.to_owned()), "{script}");
    }
}

#[test]
fn netcat_and_ping_reach_whoever_is_there() {
    assert_eq!(run("nc -zv web 80"), (0, String::new(), "web (10.96.0.1:80) open\n".into()));
    assert_eq!(
        run("nc -z web 81"),
        (1, String::new(), "nc: web (10.96.0.1:81): Connection refused\n".into())
    );
    assert_eq!(run("echo hi | nc web 6379").1, "heard hi\n");
    assert_eq!(run("echo hi | nc -u -w 1 web 7").1, "hi\n");
    assert_eq!(run("nc -z nobody 80").2, "nc: bad address 'nobody'\n");
    let (code, out, _) = run("ping -c 2 web");
    assert!(code == 0 && out.contains("2 packets transmitted, 2 packets received, 0% packet loss"), "{out}");
    let (code, out, _) = run("ping -c 1 -W 1 10.0.0.9");
    assert!(
        code == 1 && out.ends_with("1 packets transmitted, 0 packets received, 100% packet loss\n"),
        "{out}"
    );
    assert_eq!(run("ping nobody").2, "ping: bad address 'nobody'\n");
}

#[test]
fn names_are_looked_up_through_the_search_list() {
    let full = "web.ns.svc.cluster.local";
    let found =
        format!("Server:\t\t10.96.0.10\nAddress:\t10.96.0.10:53\n\nName:\t{full}\nAddress: 10.96.0.1\n\n");
    assert_eq!(run("nslookup web"), (0, found.clone(), String::new()));
    assert_eq!(run(&format!("nslookup {full}.")).1, found);
    let (code, out, _) = run("nslookup nobody");
    assert!(code == 1 && out.ends_with("** server can't find nobody: NXDOMAIN\n\n"), "{out}");
    assert_eq!(run("dig +short +search web").1, "10.96.0.1\n");
    assert_eq!(run("dig +noall +answer +search web A").1, format!("{full}. 5\tIN\tA\t10.96.0.1\n"));
    assert!(run("dig nobody").1.contains("status: NXDOMAIN"));
    assert_eq!(run("host web").1, format!("{full} has address 10.96.0.1\n"));
    assert_eq!(run("host nobody"), (1, String::new(), "Host nobody not found: 3(NXDOMAIN)\n".into()));
    assert_eq!(
        run("getent hosts web me").1,
        "10.96.0.1       web.ns.svc.cluster.local\n10.244.1.2      me\n"
    );
    assert_eq!(run("getent hosts nobody").0, 2);
    assert_eq!(
        run("getent ahosts web").1.lines().next(),
        Some("10.96.0.1       STREAM web.ns.svc.cluster.local")
    );
    let page = run("dig nobody").1;
    let soa = ";; AUTHORITY SECTION:\nz.\t\t\t30\tIN\tSOA\tm. h.z. 1 2 3 4 5\n\n;; Query time: ";
    assert!(page.contains("AUTHORITY: 1") && page.contains(soa), "{page}");
    assert!(page.contains(";; QUESTION SECTION:\n;nobody.\t\t\tIN\tA\n"), "{page}");
    let nobody = Surroundings::default();
    let silent = run_in(&nobody, "nslookup web");
    assert_eq!(silent.out, ";; connection timed out; no servers could be reached\n\n");
}

#[test]
fn a_name_with_many_addresses_is_asked_for_again_over_tcp() {
    assert_eq!(run("dig +short +search many").1.lines().count(), 50);
    assert_eq!(run("nc -zv many 80").2, "many (10.244.1.1:80) open\n");
}

#[test]
fn a_process_goes_on_with_each_answer_and_asks_when_its_time_comes() {
    let words =
        ["sh", "-c", "until nc -z 10.0.0.1 81; do sleep 5; done; wget -qO- 10.96.0.1"].map(str::to_owned);
    let invocation = Invocation::new("busybox", &words, &[]);
    let mut around = around();
    let asked_at = |around: &Surroundings| {
        let played = process::play(&invocation, around, None).unwrap();
        (played.question.is_some(), played.until.as_secs(), played.end.is_some())
    };
    assert_eq!(asked_at(&around), (true, 0, false));
    let took = Duration::ZERO;
    Arc::make_mut(&mut around.answers).push(Answered { reply: NetworkReply::Refused, took });
    assert_eq!(asked_at(&around), (true, 5, false));
    Arc::make_mut(&mut around.answers).push(Answered { reply: NetworkReply::Bytes(Arc::default()), took });
    Arc::make_mut(&mut around.answers).push(Answered { reply: page("GET", "/", b""), took });
    let played = process::play(&invocation, &around, None).unwrap();
    assert_eq!(played.end, Some((Duration::from_secs(5), 0)));
    assert_eq!(played.lines.last().unwrap().text, "GET / ");
}

#[test]
fn questions_are_answered_up_to_a_bound() {
    let mut around = around();
    let answered = Answered { reply: NetworkReply::Refused, took: Duration::ZERO };
    around.answers = Arc::new(vec![answered; MAX_QUESTIONS + 1]);
    let words = ["sh", "-c", "while true; do nc -z 10.0.0.1 81 2>/dev/null; echo no; sleep 1; done"]
        .map(str::to_owned);
    let played = process::play(&Invocation::new("busybox", &words, &[]), &around, None).unwrap();
    // It waits for ever, and asks no more.
    assert!(played.end.is_none() && played.question.is_none() && played.fault.is_none());
    assert_eq!(played.lines.len(), MAX_QUESTIONS + 1);
    let last = &played.lines.last().unwrap().text;
    assert!(last.starts_with("kubarium: this process has asked the network 1000 times"), "{last}");
}

#[test]
fn certificates_that_are_shown_are_told_and_handed_on() {
    let (code, said, _) = run("openssl s_client -connect web:443 -servername web </dev/null");
    assert_eq!(code, 0, "{said}");
    for line in [
        "CONNECTED(00000003)\n",
        " 0 s:CN = web, O = me\n   i:CN = web, O = me\n",
        "New, TLSv1.3, Cipher is TLS_AES_256_GCM_SHA384\nVerify return code: 18 (self-signed certificate)\n",
    ] {
        assert!(said.contains(line), "{said}");
    }
    let handed =
        run("echo | openssl s_client -showcerts -connect web:443 2>/dev/null | openssl x509 -noout -subject");
    assert_eq!((handed.0, &*handed.1), (0, "subject=CN = web, O = me\n"));
    let trusted = run("openssl s_client -connect web:443 -CAfile /ca.crt -brief </dev/null");
    assert!(trusted.1.contains("Verification: OK\n"), "{}", trusted.1);
    assert_eq!(run("openssl s_client -connect web:443 -verify_return_error </dev/null").0, 1);
    let plain = run("openssl s_client -connect web:81 </dev/null");
    assert!(plain.0 == 1 && plain.1.contains("no peer certificate available"), "{}", plain.1);
    assert!(run("openssl s_client -connect nobody:443 </dev/null").2.contains("Name or service not known"));
}

#[test]
fn clients_of_databases_say_whether_somebody_is_there() {
    let direct = |line: &str| {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let told = |around: &Surroundings| exec_told(&words, around, vec![], Some(vec![])).unwrap();
        let executed = answered(&around(), told);
        executed.end.map(|(_, code)| (code, executed.out))
    };
    for (line, wanted) in [
        ("pg_isready -h web -p 80", (0, "web:80 - accepting connections\n")),
        ("pg_isready -h web -p 81", (2, "web:81 - no response\n")),
        ("pg_isready -q -h nobody", (2, "")),
        ("mysqladmin ping -h web -P 80 -uroot -psecret", (0, "mysqld is alive\n")),
        ("mysqladmin ping -hweb --port=81", (1, "")),
        ("redis-cli -h web -p 80 set a b", (0, "heard *3\nset\na\nb\n")),
        ("redis-cli -h web -p 80 -a pw get a", (0, "heard *2\nAUTH\npw\nget\na\n")),
        ("redis-cli -u redis://web:81 ping", (1, "")),
    ] {
        assert_eq!(direct(line), Some((wanted.0, wanted.1.to_owned())), "{line}");
    }
    for (line, wanted) in [
        ("pg_isready -U postgres", "/var/run/postgresql:5432 - accepting connections\n"),
        (
            "/usr/bin/mariadb-admin status -u root",
            "Uptime: 0  Threads: 2  Questions: 1  Slow queries: 0  Opens: 1\n",
        ),
    ] {
        assert_eq!(direct(line), Some((0, wanted.to_owned())), "{line}");
    }
    // Of a probe nobody knows what its image serves. Others are asked, by scripts, too.
    let command = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    for words in [&["redis-cli", "ping"][..], &["sh", "-c", "until pg_isready; do sleep 1; done"]] {
        assert!(exec(&command(words), &Surroundings::default(), vec![], None).is_none(), "{words:?}");
    }
    assert!(exec(&command(&["redis-cli", "-h", "10.0.0.1", "ping"]), &around(), vec![], None).is_some());
    for script in [
        "until pg_isready -h web -p 80 -U me; do echo waiting; sleep 1; done",
        "DB=web; while ! mysqladmin ping -h \"$DB\" -P 80 --silent; do sleep 1; done",
    ] {
        let executed = answered(&around(), |around| {
            exec(&command(&["sh", "-c", script]), around, vec![], Some(vec![])).expect("it is played")
        });
        assert_eq!(executed.end.map(|(_, code)| code), Some(0), "{script}");
    }
}
