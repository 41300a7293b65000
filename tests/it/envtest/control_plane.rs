//! What envtest does, step by step: the flags that it passes, in its form and order, what it polls, and how it
//! stops (`pkg/internal/testing/controlplane` of controller-runtime).

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use pki::{Authority, Identity};
use tempfile::TempDir;

use crate::support::programs::free_port;
use crate::support::wire::{Target, Wire};
use crate::support::{at_home, command, eventually, texts};

/// Two programs, their folders, and who is believed.
pub(crate) struct ControlPlane {
    home: TempDir,
    assets: PathBuf,
    environment: Vec<(&'static str, String)>,
    serving: Authority,
    admin: Identity,
    ports: [u16; 2],
    etcd: Option<Child>,
    apiserver: Option<Child>,
}

impl ControlPlane {
    /// Folders and certificates; nothing runs yet.
    pub(crate) fn new(environment: &[(&'static str, &str)]) -> ControlPlane {
        let home = tempfile::tempdir().unwrap();
        let printed = command(home.path()).arg("assets").output().unwrap();
        assert!(printed.status.success(), "{}", texts(&printed).1);
        let assets = PathBuf::from(texts(&printed).0.trim_end());
        let now = clock::Clock::real().now();
        let [serving, clients] = [(); 2].map(|()| Authority::generate(now).unwrap());
        let plane = ControlPlane {
            assets,
            environment: environment.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
            ports: [free_port(), free_port()],
            admin: clients.client("default", "system:masters", now).unwrap(),
            serving,
            etcd: None,
            apiserver: None,
            home,
        };
        for folder in ["etcd", "certs"] {
            fs::create_dir(plane.home.path().join(folder)).unwrap();
        }
        let shown = plane.serving.server(&["localhost"], &[IpAddr::V4(Ipv4Addr::LOCALHOST)], now).unwrap();
        let signer = clients.client("sa-signer", "sa-signer", now).unwrap();
        for (file, text) in [
            ("apiserver.crt", &*shown.certificate_pem),
            ("apiserver.key", &shown.key_pem),
            ("client-cert-auth-ca.crt", clients.certificate_pem()),
            ("sa-signer.crt", &signer.certificate_pem),
            ("sa-signer.key", &signer.key_pem),
        ] {
            fs::write(plane.cert(file), text).unwrap();
        }
        plane
    }

    fn cert(&self, file: &str) -> PathBuf {
        self.home.path().join("certs").join(file)
    }

    /// One of the programs.
    pub(crate) fn program(&self, name: &str) -> Command {
        self.at_home(Command::new(self.assets.join(name)))
    }

    /// A command in the test's own environment.
    pub(crate) fn at_home(&self, program: Command) -> Command {
        let mut program = at_home(program, self.home.path());
        program.envs(self.environment.iter().cloned()).stdin(Stdio::null());
        program
    }

    /// The help of a program, which must come with success.
    pub(crate) fn help(&self, name: &str) -> String {
        let output = self.program(name).arg("--help").output().unwrap();
        assert!(output.status.success(), "{name} --help: {}", texts(&output).1);
        texts(&output).0
    }

    /// `Etcd.Start`
    pub(crate) fn start_etcd(&mut self) {
        let url = self.etcd_url();
        let mut flags = vec![
            format!("--advertise-client-urls={url}"),
            format!("--data-dir={}", self.home.path().join("etcd").display()),
            format!("--listen-client-urls={url}"),
            format!("--listen-peer-urls=http://127.0.0.1:{}", free_port()),
        ];
        if self.help("etcd").lines().any(|line| line.trim_start().starts_with("--unsafe-no-fsync")) {
            flags.push("--unsafe-no-fsync=true".into());
        }
        let child = self.spawn("etcd", &flags);
        self.etcd = Some(child);
        let port = self.ports[0];
        eventually("etcd to be well", || {
            get(port, "/health").filter(|answer| answer.starts_with("HTTP/1.1 200"))
        });
    }

    fn etcd_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports[0])
    }

    /// The port of etcd.
    pub(crate) fn etcd_port(&self) -> u16 {
        self.ports[0]
    }

    /// The flags of kube-apiserver.
    pub(crate) fn apiserver_flags(&self) -> Vec<String> {
        let shown = |file: &str| self.cert(file).display().to_string();
        let port = self.ports[1];
        vec![
            "--allow-privileged=true".into(),
            "--authorization-mode=RBAC".into(),
            "--bind-address=127.0.0.1".into(),
            format!("--cert-dir={}", self.home.path().join("certs").display()),
            format!("--client-ca-file={}", shown("client-cert-auth-ca.crt")),
            "--disable-admission-plugins=ServiceAccount".into(),
            format!("--etcd-servers={}", self.etcd_url()),
            format!("--secure-port={port}"),
            format!("--service-account-issuer=https://127.0.0.1:{port}/"),
            format!("--service-account-key-file={}", shown("sa-signer.crt")),
            format!("--service-account-signing-key-file={}", shown("sa-signer.key")),
            "--service-cluster-ip-range=10.0.0.0/24".into(),
        ]
    }

    /// `APIServer.Start`: until the health check of nobody in particular is answered, and `default` is there.
    pub(crate) async fn start_apiserver(&mut self) -> Wire {
        self.start_apiserver_with(&[]).await
    }

    /// The same with flags of the user's own.
    pub(crate) async fn start_apiserver_with(&mut self, own: &[String]) -> Wire {
        let mut flags = self.apiserver_flags();
        flags.extend_from_slice(own);
        flags.sort();
        let child = self.spawn("kube-apiserver", &flags);
        self.apiserver = Some(child);
        let mut nobody = self.connect(None).await;
        loop {
            if nobody.get("/healthz").await.unwrap().code == 200 {
                break;
            }
            tokio::task::yield_now().await;
        }
        let identity = [&self.admin.certificate_pem, &self.admin.key_pem].map(|pem| pem.clone().into_bytes());
        let mut admin = self.connect(Some(identity)).await;
        assert_eq!(admin.get("/api/v1/namespaces/default").await.unwrap().code, 200);
        admin
    }

    async fn connect(&mut self, identity: Option<[Vec<u8>; 2]>) -> Wire {
        let server = format!("https://127.0.0.1:{}", self.ports[1]);
        let target = Target::new(&server, self.serving.certificate_pem().as_bytes(), identity);
        loop {
            if let Ok(wire) = target.http2().await {
                return wire;
            }
            let ended = self.apiserver.as_mut().and_then(|child| child.try_wait().unwrap());
            assert!(ended.is_none(), "kube-apiserver ended with {ended:?}:\n{}", self.log("kube-apiserver"));
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    fn spawn(&self, name: &str, flags: &[String]) -> Child {
        assert!(flags.is_sorted(), "as envtest sorts them");
        let log = fs::File::create(self.home.path().join(format!("{name}.log"))).unwrap();
        let mut program = self.program(name);
        program.args(flags).stdout(log.try_clone().unwrap()).stderr(log).process_group(0).spawn().unwrap()
    }

    /// What a program has said.
    pub(crate) fn log(&self, name: &str) -> String {
        fs::read_to_string(self.home.path().join(format!("{name}.log"))).unwrap_or_default()
    }

    /// `APIServer.Stop`
    pub(crate) fn stop_apiserver(&mut self) -> ExitStatus {
        stop(self.apiserver.take().unwrap())
    }

    /// Asks it to end, and does not wait for that.
    pub(crate) fn ask_apiserver_to_end(&self) {
        terminate(self.apiserver.as_ref().unwrap());
    }

    /// `Etcd.Stop`
    pub(crate) fn stop_etcd(&mut self) -> ExitStatus {
        stop(self.etcd.take().unwrap())
    }

    /// What is in the folder of the programs.
    pub(crate) fn assets(&self) -> &Path {
        &self.assets
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        for mut child in self.apiserver.take().into_iter().chain(self.etcd.take()) {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!(
                "--- kube-apiserver ---\n{}\n--- etcd ---\n{}",
                self.log("kube-apiserver"),
                self.log("etcd")
            );
        }
    }
}

/// To the group, as envtest sends it; then the end is waited for.
fn stop(mut child: Child) -> ExitStatus {
    terminate(&child);
    eventually("a program to end", || child.try_wait().unwrap())
}

fn terminate(child: &Child) {
    let group = format!("-{}", child.id());
    assert!(Command::new("kill").args(["-TERM", "--", &group]).status().unwrap().success());
}

/// A plain GET, whole.
pub(crate) fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}
