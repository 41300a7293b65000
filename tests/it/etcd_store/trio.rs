//! An etcd of three members on loopback, each a process that can be killed.

use super::peers::PeerWays;
use super::*;

const MEMBERS: usize = 3;

/// Killed when dropped.
pub(super) struct EtcdOfThree {
    folder: TempDir,
    members: Vec<TrioMember>,
    ways: PeerWays,
    flags: Vec<String>,
}

struct TrioMember {
    child: Option<Child>,
    address: SocketAddr,
    peers: SocketAddr,
}

impl EtcdOfThree {
    pub(super) fn start() -> EtcdOfThree {
        EtcdOfThree::start_with(&[])
    }

    /// With what all of them are told beside.
    pub(super) fn start_with(flags: &[&str]) -> EtcdOfThree {
        for _ in 0..TRIES {
            let mut etcd = EtcdOfThree::begin(flags);
            let begun = (0..MEMBERS).all(|at| etcd.listens(at));
            if begun {
                etcd.leader();
                let ids = (0..MEMBERS).map(|at| eventually("its number", || etcd.id(at)));
                etcd.ways.set_ids(ids.collect());
                return etcd;
            }
        }
        panic!("no six ports are free");
    }

    fn begin(flags: &[&str]) -> EtcdOfThree {
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let folder = tempfile::tempdir().unwrap();
        let member = |_| TrioMember { child: None, address: free_address(), peers: free_address() };
        let members: Vec<TrioMember> = (0..MEMBERS).map(member).collect();
        let peers: Vec<SocketAddr> = members.iter().map(|member| member.peers).collect();
        let mut etcd = EtcdOfThree { folder, members, ways: PeerWays::to(&peers), flags };
        (0..MEMBERS).for_each(|at| etcd.run(at));
        etcd
    }

    fn run(&mut self, at: usize) {
        let name = |at: usize| format!("member-{at}");
        let others = self.ways.addresses.iter().enumerate();
        let cluster: Vec<String> = others.map(|(at, way)| format!("{}=http://{way}", name(at))).collect();
        let advertised = format!("http://{}", self.ways.addresses[at]);
        let data = self.folder.path().join(name(at));
        let member = &mut self.members[at];
        let [clients, peers] = [member.address, member.peers].map(|address| format!("http://{address}"));
        let urls = [&*clients, &*peers, &*advertised];
        member.child = Some(super::member(&name(at), &data, urls, &cluster.join(","), &self.flags));
    }

    fn listens(&mut self, at: usize) -> bool {
        let TrioMember { child, address, .. } = &mut self.members[at];
        child.as_mut().is_some_and(|child| listens(child, *address))
    }

    /// Where clients reach each.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.members.iter().map(|member| member.address).collect()
    }

    /// As a power cut would, but for the disk.
    pub(super) fn kill(&mut self, at: usize) {
        if let Some(mut child) = self.members[at].child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// With what it had.
    pub(super) fn start_again(&mut self, at: usize) {
        self.run(at);
        assert!(self.listens(at), "its port is somebody else's by now");
    }

    /// Which member leads.
    pub(super) fn leader(&self) -> usize {
        eventually("a leader", || (0..MEMBERS).find(|at| self.leads(*at)))
    }

    /// Parts a member from the others, or nobody. Clients reach it all the same.
    pub(super) fn part(&self, apart: Option<usize>) {
        self.ways.part(apart);
    }

    fn leads(&self, at: usize) -> bool {
        let Some(status) = self.status(at) else { return false };
        status["leader"] == status["header"]["member_id"] && !status["leader"].is_null()
    }

    /// What it calls itself before other members.
    fn id(&self, at: usize) -> Option<String> {
        Some(format!("{:x}", self.status(at)?["header"]["member_id"].as_u64()?))
    }

    fn status(&self, at: usize) -> Option<serde_json::Value> {
        let status = self.ask(at, &["endpoint", "status", "--write-out=json"])?;
        let mut status: serde_json::Value = serde_json::from_str(&status).unwrap();
        Some(status[0]["Status"].take())
    }

    /// What etcdctl prints that asks one member, if it answers.
    pub(super) fn ask(&self, at: usize, words: &[&str]) -> Option<String> {
        let member = &self.members[at];
        member.child.as_ref()?;
        ctl(&format!("http://{}", member.address), words).ok()
    }

    /// What each prints, when it answers.
    pub(super) fn ask_each(&self, words: &[&str]) {
        for at in 0..MEMBERS {
            eventually("each member to answer", || self.ask(at, words));
        }
    }

    /// What somebody prints who answers.
    pub(super) fn ask_any(&self, words: &[&str]) -> String {
        eventually("a member to answer", || (0..MEMBERS).find_map(|at| self.ask(at, words)))
    }
}

impl Drop for EtcdOfThree {
    fn drop(&mut self) {
        (0..MEMBERS).for_each(|at| self.kill(at));
    }
}
