//! Apache and Caddy among files that configure them.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::agnhost::asking::{AskFirst, Backing};
use crate::file_system::{File, MountedVolume, View};
use crate::questions::{Answered, NetworkAsk, NetworkReply, WebReply};
use crate::requests::{WebAnswer, WebRequest};

/// A container with these files, each below a volume of its own folder.
fn around(files: &[(&str, &str)]) -> Surroundings {
    let file = |text: &str| File::new(text.to_owned(), 0o644);
    let tree = files.iter().map(|(path, text)| ((*path).to_owned(), file(text))).collect();
    let mount = |(path, _): &(&str, &str)| MountedVolume {
        path: path.rsplit_once('/').map_or("/", |(folder, _)| folder).to_owned(),
        sub_path: String::new(),
        volume: "v".to_owned(),
        is_read_only: true,
        memory_bytes: None,
        is_kept: false,
        group: None,
        is_device: false,
    };
    Surroundings {
        views: vec![View { after: Duration::ZERO, tree: Arc::new(tree) }],
        mounts: files.iter().map(mount).collect(),
        variables: [("PORT".to_owned(), "8081".to_owned())].into(),
        ..Surroundings::default()
    }
}

fn read_of(image: &str, around: &Surroundings) -> Result<ConfiguredWeb, BadConfig> {
    read(&Invocation::new(image, &[], &[]), around).expect("it is configured")
}

fn ask(
    rules: &WebRules,
    around: &Surroundings,
    (port, host, target): (i64, &str, &str),
    answers: Vec<Answered>,
) -> Result<WebAnswer, Box<AskFirst>> {
    let asked = WebRequest {
        method: "GET",
        target,
        headers: vec![("host", host)],
        from: "10.0.0.9:4000",
        ..WebRequest::default()
    };
    let answers = Arc::new(answers);
    rules.answer(port, &asked, Backing { around: Some(around), answers: &answers, client: None })
}

fn heard(reply: WebReply) -> Answered {
    Answered { reply: NetworkReply::Web(Arc::new(reply)), took: Duration::ZERO }
}

/// Code, body and place of an answer.
fn told(
    rules: &WebRules,
    around: &Surroundings,
    port: i64,
    host: &str,
    target: &str,
) -> (u16, String, String) {
    let answered = ask(rules, around, (port, host, target), vec![]).unwrap();
    let place = answered.headers.iter().find(|(name, _)| *name == "location");
    (answered.code, answered.body, place.map(|(_, place)| place.clone()).unwrap_or_default())
}

/// Whom somebody behind it is asked for what.
fn passed(rules: &WebRules, around: &Surroundings, port: i64, target: &str) -> String {
    let NetworkAsk::Http(question) = ask(rules, around, (port, "web", target), vec![]).unwrap_err().1.what
    else {
        panic!("no question")
    };
    format!("{} {}", question.to.unwrap(), question.target)
}

const CADDYFILE: &str = "/etc/caddy/Caddyfile";

fn caddy(text: &str) -> Result<(WebRules, Surroundings), String> {
    let around = around(&[(CADDYFILE, text), ("/srv/index.html", "home\n"), ("/srv/a.txt", "a\n")]);
    let read = read_of("caddy:2", &around).map_err(|bad| bad.says)?;
    Ok(((*read.rules).clone(), around))
}

#[test]
fn caddys_directives_are_followed_in_their_order() {
    let (rules, around) = caddy(
        "{\n  auto_https off\n}\n(common) {\n  header X-Own yes\n}\n:80 {\n  import common\n  encode gzip\n  root * /srv\n  file_server\n\
         respond /health 204\n  respond /hi \"hi {host}\" 201\n  redir /old /new permanent\n\
         handle_path /api/* {\n    reverse_proxy 10.0.0.7:8080\n  }\n  handle /deep/* {\n    respond \"deep\"\n  }\n\
         @posts {\n    method POST\n    path /p*\n  }\n  respond @posts \"posted\"\n  header /a.txt -Server\n}\n\
         http://other.example:{$PORT} {\n  respond \"other\"\n}\n",
    )
    .unwrap();
    assert_eq!(rules.ports(), [80, 8081]);
    let told = |target: &str| told(&rules, &around, 80, "web", target);
    let plain = |code: u16, body: &str| (code, body.to_owned(), String::new());
    assert_eq!(told("/"), plain(200, "home\n"));
    assert_eq!(told("/a.txt"), plain(200, "a\n"));
    assert_eq!(told("/none"), plain(404, ""));
    assert_eq!(told("/health"), plain(204, ""));
    assert_eq!(told("/hi"), plain(201, "hi web"));
    assert_eq!(told("/old"), (301, String::new(), "/new".to_owned()));
    assert_eq!(told("/deep/er"), plain(200, "deep"));
    assert_eq!(passed(&rules, &around, 80, "/api/x?y=z"), "10.0.0.7:8080 /x?y=z");
    let answered = ask(&rules, &around, (80, "web", "/a.txt"), vec![]).unwrap();
    assert!(answered.own_headers.contains(&("X-Own".to_owned(), "yes".to_owned())));
    assert!(!answered.headers.iter().any(|(name, _)| *name == "server"));
    let web = WebReply { code: 418, headers: vec![], body: b"tea".to_vec() };
    let reply = |reply| vec![Answered { reply, took: Duration::ZERO }];
    let said = ask(&rules, &around, (80, "web", "/api/x"), reply(NetworkReply::Web(Arc::new(web)))).unwrap();
    assert_eq!((said.code, said.body.as_str()), (418, "tea"));
    let refused = ask(&rules, &around, (80, "web", "/api/x"), reply(NetworkReply::Refused)).unwrap();
    assert_eq!(refused.code, 502);
    let other = ask(&rules, &around, (8081, "other.example:8081", "/"), vec![]).unwrap();
    assert_eq!((other.code, other.body.as_str()), (200, "other"));
    // Nobody has said what is answered to others: nothing is.
    let nobody = ask(&rules, &around, (8081, "web", "/"), vec![]).unwrap();
    assert_eq!((nobody.code, nobody.body.as_str()), (200, ""));
}

#[test]
fn a_single_site_needs_no_braces_and_names_speak_tls() {
    let (rules, around) = caddy("example.com\nrespond \"safe\"\n").unwrap();
    assert_eq!(rules.ports(), [80, 443]);
    assert_eq!(told(&rules, &around, 80, "example.com", "/a?b").2, "https://example.com/a?b");
    assert!(rules.hosts.iter().any(|host| host.port == 443 && host.tls.is_some()));
}

#[test]
fn caddy_does_not_start_with_what_it_does_not_understand() {
    for (text, why) in [
        (":80 {\n  respnd hi\n}", "/etc/caddy/Caddyfile:2: unrecognized directive: respnd"),
        (":80 {\n  respond hi\n", "/etc/caddy/Caddyfile:2: unexpected EOF"),
        (
            ":80 {\n  redir\n}",
            "/etc/caddy/Caddyfile:2: wrong argument count or unexpected line ending after 'redir'",
        ),
        (":80 {\n  respond @who hi\n}", "/etc/caddy/Caddyfile:2: unrecognized matcher name: @who"),
        (":80 {\n  import none\n}", "/etc/caddy/Caddyfile:2: File to import not found: none"),
    ] {
        assert_eq!(
            caddy(text).unwrap_err(),
            format!("Error: adapting config using caddyfile: {why}"),
            "{text}"
        );
    }
    // What it has and is not followed here is told.
    let around = around(&[(CADDYFILE, ":80 {\n  php_fastcgi fpm:9000\n}")]);
    let says = read_of("caddy", &around).unwrap().says;
    assert!(
        says.contains(
            &"kubarium: line 2: the directive php_fastcgi of Caddy is not followed here".to_owned()
        )
    );
    let deep = ":80 {\n".to_owned() + &"handle {\n".repeat(100) + &"}\n".repeat(101);
    assert!(caddy(&deep).unwrap_err().contains("deeper"));
}

const MAIN: &str = "/usr/local/apache2/conf/httpd.conf";

fn apache(text: &str) -> Result<(WebRules, Surroundings), String> {
    let around = around(&[
        (MAIN, text),
        ("/usr/local/apache2/conf/extra/more.conf", "Alias /docs /srv/docs\n"),
        ("/srv/index.html", "home\n"),
        ("/srv/docs/index.html", "docs\n"),
        ("/srv/a.txt", "a\n"),
        ("/srv/a.html", "a\n"),
        ("/srv/sub/f", "f\n"),
    ]);
    let read = read_of("httpd:2.4", &around).map_err(|bad| bad.says)?;
    Ok(((*read.rules).clone(), around))
}

#[test]
fn apaches_commands_lead_where_they_say() {
    let (rules, around) = apache(
        "ServerName own\nListen 80\nListen 0.0.0.0:8080\nLoadModule proxy_module modules/mod_proxy.so\n\
         LoadModule proxy_http_module modules/mod_proxy_http.so\nDocumentRoot \"/srv\"\n\
         <Directory \"/srv\">\n  Require all granted\n</Directory>\n<IfModule none_module>\n  Nonsense\n<If \"nothing\">\n</If>\n<Nothing>\n</Nothing>\n\
         </IfModule>\n\
         Include conf/extra/*.conf\nRedirect permanent /old http://new.example/at\nRedirect /moved /here\n\
         ProxyPass /api http://10.0.0.7:8080/v1\nProxyPassReverse /api http://10.0.0.7:8080/v1\n\
         <Location /inner>\n  ProxyPass http://10.0.0.8\n</Location>\nHeader set X-Own \"a b\"\n\
         <VirtualHost *:8080>\n  ServerName a.example\n  ServerAlias b.example\n  DocumentRoot /srv/docs\n</VirtualHost>\n\
         <VirtualHost *:8080>\n  ServerName c.example\n  Redirect / http://elsewhere/\n</VirtualHost>\n",
    )
    .unwrap();
    assert_eq!(rules.ports(), [80, 8080]);
    let at = |port: i64, host: &str, target: &str| told(&rules, &around, port, host, target);
    let plain = |code: u16, body: &str| (code, body.to_owned(), String::new());
    assert_eq!(at(80, "web", "/"), plain(200, "home\n"));
    assert_eq!(at(80, "web", "/docs/"), plain(200, "docs\n"));
    assert_eq!(at(80, "web", "/docs.txt").0, 404);
    assert_eq!(at(80, "web", "/old/x"), (301, String::new(), "http://new.example/at/x".to_owned()));
    assert_eq!(at(80, "web", "/moved"), (302, String::new(), "/here".to_owned()));
    assert_eq!(passed(&rules, &around, 80, "/api/x?y"), "10.0.0.7:8080 /v1/x?y");
    assert_eq!(passed(&rules, &around, 80, "/inner/x"), "10.0.0.8:80 /x");
    assert_eq!(at(8080, "b.example:8080", "/"), plain(200, "docs\n"));
    assert_eq!(at(8080, "other", "/"), plain(200, "docs\n"));
    assert_eq!(at(8080, "c.example", "/x").2, "http://elsewhere/x");
    let answered = ask(&rules, &around, (80, "web", "/"), vec![]).unwrap();
    assert!(answered.own_headers.contains(&("X-Own".to_owned(), "a b".to_owned())));
    assert!(answered.headers.contains(&("server", "Apache/2.4.66 (Unix)".to_owned())));
}

#[test]
fn apaches_headers_stand_in_all_answers_or_in_those_that_are_no_errors() {
    let (rules, around) = apache(
        "Listen 80\nLoadModule proxy_module modules/mod_proxy.so\nLoadModule proxy_http_module \
         modules/mod_proxy_http.so\nDocumentRoot /srv\nProxyPass /api http://10.0.0.7/\nRedirect /old /new\n\
         Header set X-Own own\nHeader always set X-Always first\nHeader always set X-Always last\nHeader unset X-Theirs\n\
         Header append X-List b\nHeader always add X-Both always\nHeader onsuccess add X-Both own\n\
         <Location /api>\n  Header setifempty X-Empty set\n</Location>\n",
    )
    .unwrap();
    let headers = |target: &str, replies: Vec<WebReply>| {
        let answered = ask(&rules, &around, (80, "web", target), replies.into_iter().map(heard).collect());
        let mut named: Vec<String> =
            answered.unwrap().own_headers.iter().map(|(name, value)| format!("{name}={value}")).collect();
        named.retain(|text| text.starts_with("X-"));
        named
    };
    let own = ["X-Own=own", "X-List=b", "X-Both=own", "X-Always=last", "X-Both=always"];
    assert_eq!(headers("/", vec![]), own);
    // What Apache says itself and is no success has the one table alone.
    for target in ["/old/x", "/missing"] {
        assert_eq!(headers(target, vec![]), ["X-Always=last", "X-Both=always"], "{target}");
    }
    let theirs = [("X-Theirs", "gone"), ("X-List", "a"), ("X-Empty", "theirs"), ("X-Always", "theirs")];
    let theirs = theirs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    for code in [200, 404, 302] {
        let reply = WebReply { code, headers: theirs.clone(), body: vec![] };
        let mut said = headers("/api/x", vec![reply]);
        said.sort();
        let expected = [
            "X-Always=last",
            "X-Always=theirs",
            "X-Both=always",
            "X-Both=own",
            "X-Empty=theirs",
            "X-List=a, b",
            "X-Own=own",
        ];
        assert_eq!(said, expected, "{code}");
    }
}

#[test]
fn apaches_headers_depend_on_variables_and_on_what_is_asked_and_answered() {
    let (rules, around) = apache(
        "Listen 80\nDocumentRoot /srv\nSetEnv fixed\nPassEnv PORT\nPassEnv NOTHING\n\
         SetEnvIf Host ^we(b) named=$1 !fixed\nSetEnvIfNoCase Request_URI \\.TXT$ is_text\n\
         Header set X-Fixed a env=fixed\nHeader set X-Named a env=named\nHeader set X-Unnamed a env=!named\n\
         Header set X-Port a env=PORT\nHeader set X-Nothing a env=NOTHING\nHeader set X-Text a env=is_text\n\
         Header always set X-Missing a \"expr=%{REQUEST_STATUS} == 404\"\n\
         Header always set X-B a \"expr=%{reqenv:named} == \\\"b\\\"\"\n\
         Header set X-Page a \"expr=%{REQUEST_URI} =~ m#^/a# && !(-z %{HTTP:Host})\"\n\
         <If \"%{HTTP_HOST} == 'other'\">\nHeader set X-Other a\n</If>\n\
         <Location /sub>\nUnsetEnv named\nHeader set X-Sub a env=!named\n</Location>\n\
         Header unset X-Page env=is_text\nHeader set X-Not-Followed a \"expr=%{TIME} > 1\"\n",
    )
    .unwrap();
    let headers = |host: &str, target: &str| {
        let answered = ask(&rules, &around, (80, host, target), vec![]).unwrap();
        let names =
            answered.own_headers.into_iter().map(|(name, _)| name).filter(|name| name.starts_with("X-"));
        names.collect::<Vec<String>>().join(" ")
    };
    assert_eq!(headers("web", "/"), "X-Fixed X-Named X-Port X-B");
    assert_eq!(headers("web", "/a.txt"), "X-Fixed X-Named X-Port X-Text X-B");
    assert_eq!(headers("other", "/a.html"), "X-Fixed X-Unnamed X-Port X-Page X-Other");
    assert_eq!(headers("web", "/missing"), "X-Missing X-B");
    assert_eq!(headers("web", "/sub/f"), "X-Fixed X-Unnamed X-Port X-Sub");
    let read = read_of("httpd", &self::around(&[(MAIN, "Listen 80\nHeader edit X a b\n")])).unwrap();
    let told = format!("kubarium: line 2 of {MAIN}: Header edit is not followed here");
    assert!(read.says.contains(&told), "{:?}", read.says);
}

#[test]
fn apache_does_not_start_with_what_it_does_not_understand() {
    let line = |at: usize, why: &str| format!("AH00526: Syntax error on line {at} of {MAIN}:\n{why}");
    let unknown = "perhaps misspelled or defined by a module not included in the server configuration";
    for (text, why) in [
        ("Listen 80\nNonsense on", line(2, &format!("Invalid command 'Nonsense', {unknown}"))),
        ("Listen 80\nProxyPass / http://a/", line(2, &format!("Invalid command 'ProxyPass', {unknown}"))),
        ("<Nothing>\n</Nothing>", line(1, &format!("Invalid command '<Nothing', {unknown}"))),
        (
            "Header put A b",
            line(
                1,
                "first argument must be 'add', 'set', 'setifempty', 'append', 'merge', 'unset', 'echo', 'note', 'edit', or 'edit*'.",
            ),
        ),
        ("Header set A", line(1, "Header requires three arguments")),
        (
            "Header set A b env=",
            line(1, "error: missing environment variable name. envclause should be in the form env=envar "),
        ),
        ("Header set A b if=c", line(1, "Unknown parameter: if=c")),
        ("Header set A b c d", line(1, "Too many arguments to directive")),
        (
            "Header set A b expr=%{REQUEST_STATUS}==",
            line(1, "Can't parse envclause/expression: syntax error, unexpected end of file"),
        ),
        (
            "<If \"nothing\">\nHeader set A b\n</If>",
            line(1, "Cannot parse condition clause: syntax error, unexpected identifier"),
        ),
        ("SetEnvIf Host", line(1, "Missing regular expression for SetEnvIf")),
        ("<Directory />\n</Location>", line(2, "Expected </Directory> but saw </Location>")),
        ("<Directory />\n", format!("AH00526: Syntax error in {MAIN}:\n<Directory> was not closed.")),
        (
            "DocumentRoot /srv",
            "no listening sockets available, shutting down\nAH00015: Unable to open logs".to_owned(),
        ),
    ] {
        assert_eq!(apache(text).unwrap_err(), why, "{text}");
    }
}

#[test]
fn images_as_they_come_are_not_read() {
    let plain = Surroundings::default();
    assert!(read(&Invocation::new("httpd", &[], &[]), &plain).is_none());
    assert!(read(&Invocation::new("nginx", &[], &[]), &plain).is_none());
    let pages = around(&[("/usr/share/caddy/index.html", "mine\n")]);
    let read = read_of("caddy", &pages).unwrap();
    assert_eq!(told(&read.rules, &pages, 80, "web", "/"), (200, "mine\n".to_owned(), String::new()));
}
