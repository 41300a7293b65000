//! nginx among files that configure it.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::agnhost::asking::{AskFirst, Backing};
use crate::byte_text;
use crate::file_system::{File, MountedVolume, View};
use crate::questions::{Answered, NetworkAsk, NetworkReply, WebReply};
use crate::requests::{WebAnswer, WebRequest};

/// A container with these files, each below a volume of its own folder.
fn around(files: &[(&str, &str)]) -> Surroundings {
    let file = |text| File::new(byte_text::bytes_of(text).into_owned(), 0o644);
    let tree = files.iter().map(|(path, text)| ((*path).to_owned(), file(text))).collect();
    let folder = |path: &str| path.rsplit_once('/').map_or("/", |(folder, _)| folder).to_owned();
    let mount = |(path, _): &(&str, &str)| MountedVolume {
        path: folder(path),
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
        ..Surroundings::default()
    }
}

fn site(around: &Surroundings) -> NginxSite {
    NginxSite::read(Some(around), "1.27.5".to_owned(), 80)
}

fn ask(
    around: &Surroundings,
    (method, port, target): (&str, i64, &str),
    headers: &[(&'static str, &'static str)],
    answers: Vec<Answered>,
) -> Result<WebAnswer, Box<AskFirst>> {
    let asked = WebRequest {
        method,
        target,
        headers: headers.to_vec(),
        from: "10.0.0.9:4000",
        host_name: "web-0",
        address: "10.0.0.1",
        ..WebRequest::default()
    };
    let answers = Arc::new(answers);
    site(around).answer(port, &asked, Backing { around: Some(around), answers: &answers, client: None })
}

fn get(around: &Surroundings, port: i64, host: &'static str, target: &str) -> WebAnswer {
    ask(around, ("GET", port, target), &[("host", host)], vec![]).unwrap()
}

fn header<'a>(answered: &'a WebAnswer, name: &str) -> Option<&'a str> {
    let own = answered.own_headers.iter().map(|(own, value)| (own.as_str(), value.as_str()));
    let all = answered.headers.iter().map(|(own, value)| (*own, value.as_str())).chain(own);
    all.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value).next_back()
}

const CONF: &str = "/etc/nginx/conf.d/site.conf";

#[test]
fn the_image_serves_its_pages_as_they_are_served() {
    let plain = Surroundings::default();
    let found = get(&plain, 80, "web", "/");
    assert_eq!((found.code, header(&found, "server")), (200, Some("nginx/1.27.5")));
    assert_eq!(header(&found, "last-modified"), Some("Wed, 16 Apr 2025 12:01:11 GMT"));
    assert_eq!(header(&found, "accept-ranges"), Some("bytes"));
    let tag: &'static str = Box::leak(header(&found, "etag").unwrap().to_owned().into_boxed_str());
    let known = ask(&plain, ("GET", 80, "/"), &[("if-none-match", tag)], vec![]).unwrap();
    assert_eq!((known.code, known.body.as_str()), (304, ""));
    let part = ask(&plain, ("GET", 80, "/"), &[("range", "bytes=0-8")], vec![]).unwrap();
    assert_eq!((part.code, part.body.as_str()), (206, "<!DOCTYPE"));
    let raw = around(&[("/usr/share/nginx/html/a.bin", "\u{eff0}\u{eff1}ab")]);
    let part = ask(&raw, ("GET", 80, "/a.bin"), &[("range", "bytes=1-2")], vec![]).unwrap();
    assert_eq!((part.body.as_str(), header(&part, "content-range")), ("\u{eff1}a", Some("bytes 1-2/4")));
    let missing = get(&plain, 80, "web", "/none");
    assert!(missing.body.contains("<h1>404 Not Found</h1>") && missing.body.contains("nginx/1.27.5"));
    assert_eq!(ask(&plain, ("POST", 80, "/"), &[], vec![]).unwrap().code, 405);
}

#[test]
fn a_server_listens_where_its_files_say_and_returns_what_they_say() {
    let around = around(&[(
        CONF,
        "server { listen 8088; listen [::]:8088; server_name a.com *.b.com;
           add_header X-From $hostname always; server_tokens off;
           location / { return 200 \"hi $host $arg_x\\n\"; default_type text/plain; }
           location = /exact { return 204; }
           location /old { return 301 /new$is_args$args; }
           location ~ ^/user/(\\d+)$ { return 200 $1; }
           location ^~ /static/ { return 200 static; } }
         server { listen 8088; server_name other; return 503; }",
    )]);
    assert_eq!(site(&around).ports().into_keys().collect::<Vec<_>>(), [8088], "the image's own is hidden");
    assert_eq!(site(&around).problems(), [""; 0]);
    let hi = get(&around, 8088, "x.b.com:8088", "/any?x=1");
    assert_eq!((hi.code, hi.body.as_str()), (200, "hi x.b.com 1\n"));
    assert_eq!(header(&hi, "content-type"), Some("text/plain"));
    assert_eq!((header(&hi, "x-from"), header(&hi, "server")), (Some("web-0"), Some("nginx")));
    assert_eq!(get(&around, 8088, "a.com", "/exact").code, 204);
    let moved = get(&around, 8088, "a.com", "/old?b=c");
    assert_eq!((moved.code, header(&moved, "location")), (301, Some("http://a.com:8088/new?b=c")));
    let user = get(&around, 8088, "a.com", "/user/42");
    assert_eq!((user.body.as_str(), header(&user, "content-type")), ("42", Some("application/octet-stream")));
    assert_eq!(get(&around, 8088, "a.com", "/static/user/1").body, "static");
    assert_eq!(get(&around, 8088, "other", "/").code, 503);
    assert_eq!(get(&around, 8088, "nobody", "/exact").code, 204, "the first is the default");
}

#[test]
fn files_are_found_by_roots_aliases_and_tries() {
    let around = around(&[
        (
            CONF,
            "server { listen 80; root /www; index index.html; error_page 404 /missing.html;
               location /files/ { alias /data/; autoindex on; }
               location /app { try_files $uri $uri/ /app/index.html; }
               location /none { try_files $uri =410; }
               location /private { deny all; } }",
        ),
        ("/www/index.html", "home"),
        ("/www/missing.html", "nothing here"),
        ("/www/app/index.html", "app"),
        ("/www/app/a.js", "js"),
        ("/data/a.txt", "text"),
    ]);
    let said = |target: &str| {
        let answered = get(&around, 80, "web", target);
        (answered.code, answered.body)
    };
    assert_eq!(said("/"), (200, "home".to_owned()));
    assert_eq!(said("/what"), (404, "nothing here".to_owned()));
    assert_eq!(said("/files/a.txt"), (200, "text".to_owned()));
    assert!(said("/files/").1.contains("<a href=\"a.txt\">a.txt</a>"));
    assert_eq!(said("/app/deep/link"), (200, "app".to_owned()));
    let script = get(&around, 80, "web", "/app/a.js");
    assert_eq!(
        (script.body.as_str(), header(&script, "content-type")),
        ("js", Some("application/javascript"))
    );
    assert_eq!(said("/none/x").0, 410);
    assert_eq!(said("/private").0, 403);
    let folder = get(&around, 80, "web", "/app");
    assert_eq!((folder.code, header(&folder, "location")), (301, Some("http://web/app/")));
    assert_eq!(said("/app/"), (200, "app".to_owned()));
    let several = ask(&around, ("GET", 80, "/app/a.js"), &[("range", "bytes=0-0,1-1")], vec![]).unwrap();
    assert_eq!((several.code, several.body.as_str()), (200, "js"));
    assert_eq!(ask(&around, ("GET", 80, "/app/a.js"), &[("range", "bytes=0-x")], vec![]).unwrap().code, 416);
    assert_eq!(said("/../../etc/nginx/conf.d/site.conf").0, 404);
}

#[test]
fn what_is_rewritten_mapped_or_asked_first() {
    let around = around(&[(
        "/etc/nginx/nginx.conf",
        "events {} http { map $http_x_kind $kind { default plain; ~^fan fancy; }
           server { listen 80; set $v 1;
             if ($request_method = DELETE) { return 405; }
             rewrite ^/a/(.*)$ /b/$1 last;
             rewrite ^/old/(.*)$ /new/$1 permanent;
             location /b/ { return 200 \"$uri $kind $v\"; } } }",
    )]);
    assert_eq!(get(&around, 80, "web", "/a/x").body, "/b/x plain 1");
    let fancy = ask(&around, ("GET", 80, "/b/"), &[("x-kind", "fantastic")], vec![]).unwrap();
    assert_eq!(fancy.body, "/b/ fancy 1");
    let moved = get(&around, 80, "web", "/old/x?q=1");
    assert_eq!((moved.code, header(&moved, "location")), (301, Some("http://web/new/x?q=1")));
    assert_eq!(ask(&around, ("DELETE", 80, "/b/"), &[], vec![]).unwrap().code, 405);
}

#[test]
fn what_is_not_understood_is_said_and_all_else_is_served() {
    let around = around(&[
        (CONF, "server { listen 81; lua_package_path x; location / { return 200 ok; } }"),
        ("/etc/nginx/conf.d/wrong.conf", "server { listen 82"),
    ]);
    assert_eq!(get(&around, 81, "web", "/").body, "ok");
    let wanted = [
        "[emerg] 1#1: unexpected end of file, expecting \";\" or \"}\" in /etc/nginx/conf.d/wrong.conf:1",
        "[warn] 1#1: directive \"lua_package_path\" is not simulated, and has no effect in \
         /etc/nginx/conf.d/site.conf:1",
    ];
    assert_eq!(site(&around).problems(), wanted);
}

#[test]
fn files_that_include_themselves_end_at_the_bound() {
    let whole = "include conf.d/site.conf;\n".repeat(3_000);
    let around = around(&[(CONF, &whole)]);
    assert_eq!(site(&around).problems()[0], "[emerg] 1#1: more than 20000 directives are not simulated");
    let few = around_itself("include conf.d/site.conf;\n".repeat(3));
    assert_eq!(site(&few).problems()[0], "[emerg] 1#1: more than 200 files are not simulated");
}

fn around_itself(text: String) -> Surroundings {
    around(&[(CONF, &text)])
}

#[test]
fn templates_are_filled_when_it_starts_and_tls_has_its_files() {
    let mut around = around(&[(
        "/etc/nginx/templates/a.conf.template",
        "server { listen ${PORT} ssl; ssl_certificate /tls/tls.crt; ssl_certificate_key /tls/tls.key; }",
    )]);
    around.variables.insert("PORT".to_owned(), "8443".to_owned());
    let site = site(&around);
    let ports: Vec<_> = site.ports().into_iter().collect();
    assert_eq!(ports, [(80, None), (8443, Some(("/tls/tls.crt", "/tls/tls.key")))]);
}

#[test]
fn somebody_behind_it_is_asked() {
    let around = around(&[(
        CONF,
        "upstream up { server 10.0.0.7:8080; }
         server { listen 80;
           location /api/ { proxy_pass http://up/v1/; proxy_set_header Host $host;
             proxy_set_header X-Real-IP $remote_addr; } }",
    )]);
    let request = ("POST", 80, "/api/a?b=c");
    let headers = [("host", "web"), ("x-own", "1")];
    let first = ask(&around, request, &headers, vec![]).unwrap_err();
    let NetworkAsk::Http(question) = first.1.what else { panic!("{first:?}") };
    assert_eq!((question.method.as_str(), question.target.as_str()), ("POST", "/v1/a?b=c"));
    assert_eq!(question.to.unwrap().to_string(), "10.0.0.7:8080");
    let sent = |name: &str| {
        let all = question.headers.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name));
        all.map(|(_, value)| value.as_str()).collect::<Vec<_>>()
    };
    assert_eq!((sent("host"), sent("x-real-ip"), sent("x-own")), (vec!["web"], vec!["10.0.0.9"], vec!["1"]));
    let reply = |reply| vec![Answered { reply, took: Duration::ZERO }];
    let web = WebReply {
        code: 201,
        headers: vec![("server".to_owned(), "other".to_owned()), ("x-a".to_owned(), "b".to_owned())],
        body: b"made\r\n\r\nit".to_vec(),
    };
    let answered = ask(&around, request, &headers, reply(NetworkReply::Web(Arc::new(web)))).unwrap();
    assert_eq!((answered.code, answered.body.as_str()), (201, "made\r\n\r\nit"));
    assert_eq!((header(&answered, "x-a"), header(&answered, "server")), (Some("b"), Some("nginx/1.27.5")));
    let refused = ask(&around, request, &headers, reply(NetworkReply::Refused)).unwrap();
    assert_eq!(refused.code, 502);
    assert!(refused.body.contains("502 Bad Gateway"));
}

/// What is asked behind `location` for a request, and what is answered when it says 302 to that place.
fn passed(
    location: &str,
    (method, target): (&str, &str),
    body: &[u8],
    place: &str,
) -> (Box<crate::questions::HttpQuestion>, WebAnswer) {
    let conf = format!("server {{ listen 80; {location} }}");
    let around = around(&[(CONF, &conf)]);
    let asked = WebRequest { method, target, headers: vec![("host", "web")], body, ..WebRequest::default() };
    let answer = |answers: Vec<Answered>| {
        site(&around).answer(
            80,
            &asked,
            Backing { around: Some(&around), answers: &Arc::new(answers), client: None },
        )
    };
    let NetworkAsk::Http(question) = answer(vec![]).unwrap_err().1.what else { panic!("no question") };
    let headers = vec![("location".to_owned(), place.to_owned())];
    let web = WebReply { code: 302, headers, body: vec![] };
    let reply = Answered { reply: NetworkReply::Web(Arc::new(web)), took: Duration::ZERO };
    (question, answer(vec![reply]).unwrap())
}

#[test]
fn places_behind_it_are_named_as_they_are_before_it() {
    let led = |location: &str, target: &str, place: &str| {
        let (_, answered) = passed(location, ("GET", target), b"", place);
        header(&answered, "location").unwrap().to_owned()
    };
    let plain = "location / { proxy_pass http://10.0.0.7; }";
    assert_eq!(led(plain, "/a", "http://10.0.0.7/login"), "http://web/login");
    assert_eq!(led(plain, "/a", "/login"), "/login");
    assert_eq!(led(plain, "/a", "http://10.0.0.77/login"), "http://10.0.0.77/login");
    let app = "location /app/ { proxy_pass http://10.0.0.7; }";
    assert_eq!(led(app, "/app/", "http://10.0.0.7/app/x"), "http://web/app/x");
    let under = "location /app/ { proxy_pass http://10.0.0.7/v1/; }";
    assert_eq!(led(under, "/app/", "http://10.0.0.7/v1/x"), "http://web/app/x");
    assert_eq!(led(under, "/app/", "http://10.0.0.7/v2/x"), "http://10.0.0.7/v2/x");
    let off = "location / { proxy_pass http://10.0.0.7; proxy_redirect off; }";
    assert_eq!(led(off, "/", "http://10.0.0.7/login"), "http://10.0.0.7/login");
    let pair = "location / { proxy_pass http://10.0.0.7; proxy_redirect http://inner/ http://$host/out/; }";
    assert_eq!(led(pair, "/", "http://inner/x"), "http://web/out/x");
}

#[test]
fn what_is_passed_is_what_was_asked_and_nothing_of_it_is_a_command() {
    let under = "location /api/ { proxy_pass http://10.0.0.7/v1/; }";
    let target = |target: &str| passed(under, ("GET", target), b"", "/").0.target;
    assert_eq!(target("/api/a%20b%3Fc"), "/v1/a%20b%3Fc");
    assert_eq!(target("/api/%25/%ff/%C3%A4?q=%20"), "/v1/%25/%FF/%C3%A4?q=%20");
    let php = "root /www; index index.php; location / { try_files $uri /i.php; } \
        location ~ \\.php$ { proxy_pass http://10.0.0.7; }";
    assert_eq!(passed(php, ("GET", "/a b"), b"", "/").0.target, "/i.php");
    let (question, _) = passed(under, ("POST", "/api/"), b"@/etc/nginx/nginx.conf", "/");
    assert_eq!(question.body, b"@/etc/nginx/nginx.conf");
    assert!(!question.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")));
    let (question, _) = passed(under, ("GET|reboot'$(x)", "/api/"), b"", "/");
    assert_eq!(question.method, "GET|reboot'$(x)");
}

#[test]
fn an_if_asks_for_files_and_a_location_does_not_begin_with_the_server_again() {
    let around = around(&[
        (
            CONF,
            "server { listen 80; root /www; charset utf-8; set $n \"${n}s\";
               location / { if (!-e $request_filename) { rewrite ^ /index.html last; } }
               location /dir { if (-d $request_filename) { return 200 folder; } }
               location /run { if (-x $request_filename) { return 200 program; } }
               location /again { rewrite ^ /said last; }
               location /said { return 200 $n; }
               location /put { client_max_body_size 3; return 200 taken; }
               location /odd { if ($host -z x) { return 200 x; } } }",
        ),
        ("/www/index.html", "front"),
        ("/www/dir/a", "a"),
        ("/www/run", "no program"),
    ]);
    let front = get(&around, 80, "web", "/any/where");
    let kind = header(&front, "content-type");
    assert_eq!((front.body.as_str(), kind), ("front", Some("text/html; charset=utf-8")));
    assert_eq!(get(&around, 80, "web", "/dir").body, "folder");
    assert_eq!(get(&around, 80, "web", "/run").body, "no program");
    assert_eq!(get(&around, 80, "web", "/again").body, "s");
    let put = |body: &'static [u8]| {
        let asked = WebRequest { method: "PUT", target: "/put", body, ..WebRequest::default() };
        let nothing = Arc::default();
        site(&around)
            .answer(80, &asked, Backing { around: Some(&around), answers: &nothing, client: None })
            .unwrap()
    };
    assert_eq!((put(b"abc").code, put(b"abcd").code), (200, 413));
    assert!(put(b"abcd").body.contains("<h1>413 Request Entity Too Large</h1>"));
    let said = site(&around).problems().to_vec();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("directive \"if\" is not simulated"), "{said:?}");
}

#[test]
fn patterns_are_compiled_once_and_counted() {
    let many = |count: usize| {
        let lines: String = (0..count).map(|at| format!("~^a{at}$ found{at};")).collect();
        let conf = format!(
            "events {{}} http {{ map $arg_x $y {{ {lines} ~*^B$ upper; default none; }} \
             server {{ listen 80; location / {{ return 200 $y; }} }} }}"
        );
        around(&[("/etc/nginx/nginx.conf", &conf)])
    };
    let few = many(3);
    assert_eq!(get(&few, 80, "web", "/?x=a2").body, "found2");
    assert_eq!(get(&few, 80, "web", "/?x=b").body, "upper");
    assert_eq!(get(&few, 80, "web", "/?x=A1").body, "none");
    let over = many(300);
    assert_eq!(get(&over, 80, "web", "/?x=a255").body, "found255");
    assert_eq!(get(&over, 80, "web", "/?x=a256").body, "none");
    assert_eq!(site(&over).problems(), ["[emerg] 1#1: more than 256 patterns are not simulated"]);
    let wrong = around(&[(CONF, "server { listen 80; location ~ a(?=b) { return 200 x; } }")]);
    let why = "[warn] 1#1: pattern \"a(?=b)\" is not simulated, and fits nothing in \
        /etc/nginx/conf.d/site.conf:1";
    assert_eq!(site(&wrong).problems(), [why]);
}

#[test]
fn its_log_is_written_as_it_is_formatted() {
    let around = around(&[(
        CONF,
        "log_format mine '$request_method $status ' $body_bytes_sent;
         server { listen 80; access_log /dev/stdout mine; location /quiet { access_log off; } }",
    )]);
    let line = |target: &str| {
        let asked = WebRequest { method: "GET", target, from: "10.0.0.9:1", ..WebRequest::default() };
        let answered = WebAnswer { code: 404, body: "gone".into(), ..WebAnswer::default() };
        site(&around).log_line(80, &asked, &answered, chrono::DateTime::UNIX_EPOCH)
    };
    assert_eq!(line("/a").as_deref(), Some("GET 404 4"));
    assert_eq!(line("/quiet"), None);
}
