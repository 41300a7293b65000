//! The ways between the members of an etcd, so that one can be parted from the others: everything that a
//! member sends to another goes through here, and says whose it is (`X-Server-From`).

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use sync::Mutex;

/// What connections say whose they are with.
const FROM: &str = "x-server-from: ";
/// A head of a request is no longer.
const HEAD_BYTES: usize = 16 << 10;

/// A way to each member; closed when dropped.
pub(super) struct PeerWays {
    /// Where the others reach each.
    pub(super) addresses: Vec<SocketAddr>,
    state: Arc<Mutex<PeerState>>,
}

#[derive(Default)]
struct PeerState {
    /// What members call themselves, in their order.
    ids: Vec<String>,
    /// Who is parted from all others.
    apart: Option<usize>,
    connections: Vec<PeerConnection>,
    is_over: bool,
}

struct PeerConnection {
    /// As it calls itself: what members call themselves is known only when they have spoken to each other.
    from: Option<String>,
    to: usize,
    ends: [TcpStream; 2],
}

impl PeerState {
    /// Whoever says nothing of himself belongs to nobody, and passes.
    fn may_pass(&self, from: Option<&str>, to: usize) -> bool {
        let from = from.and_then(|from| self.ids.iter().position(|id| id == from));
        let Some((from, apart)) = from.zip(self.apart) else { return true };
        from == to || (from != apart && to != apart)
    }
}

impl PeerWays {
    /// To members that listen there, or will.
    pub(super) fn to(targets: &[SocketAddr]) -> PeerWays {
        let state = Arc::<Mutex<PeerState>>::default();
        let way = |(to, target): (usize, &SocketAddr)| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let (state, target) = (state.clone(), *target);
            thread::spawn(move || accept(&listener, to, target, &state));
            address
        };
        let addresses = targets.iter().enumerate().map(way).collect();
        PeerWays { addresses, state }
    }

    /// What the members call themselves; until that is known all pass.
    pub(super) fn set_ids(&self, ids: Vec<String>) {
        self.state.lock().ids = ids;
    }

    /// Parts one from all others, or nobody: connections between them break, and new ones do, too.
    pub(super) fn part(&self, apart: Option<usize>) {
        let mut state = self.state.lock();
        state.apart = apart;
        let connections = std::mem::take(&mut state.connections);
        let (kept, broken) =
            connections.into_iter().partition(|one| state.may_pass(one.from.as_deref(), one.to));
        state.connections = kept;
        drop(state);
        broken.iter().for_each(PeerConnection::close);
    }
}

impl PeerConnection {
    fn close(&self) {
        for end in &self.ends {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for PeerWays {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        state.is_over = true;
        state.connections.iter().for_each(PeerConnection::close);
        drop(state);
        // Those that accept see that it is over.
        self.addresses.iter().for_each(|address| drop(TcpStream::connect(address)));
    }
}

fn accept(listener: &TcpListener, to: usize, target: SocketAddr, state: &Arc<Mutex<PeerState>>) {
    for near in listener.incoming() {
        if state.lock().is_over {
            return;
        }
        let (Ok(near), state) = (near, state.clone()) else { continue };
        thread::spawn(move || drop(carry(near, to, target, &state)));
    }
}

/// Reads who it is, and then carries both ways until one end is closed.
fn carry(
    mut near: TcpStream,
    to: usize,
    target: SocketAddr,
    state: &Mutex<PeerState>,
) -> std::io::Result<()> {
    let head = read_head(&mut near)?;
    let mut far = TcpStream::connect(target)?;
    for end in [&near, &far] {
        end.set_nodelay(true)?;
    }
    {
        let mut state = state.lock();
        let said = String::from_utf8_lossy(&head).to_lowercase();
        let from = said.lines().find_map(|line| line.strip_prefix(FROM)).map(str::to_owned);
        if state.is_over || !state.may_pass(from.as_deref(), to) {
            return Ok(());
        }
        let ends = [near.try_clone()?, far.try_clone()?];
        state.connections.retain(|one| one.ends.iter().all(|end| end.peer_addr().is_ok()));
        state.connections.push(PeerConnection { from, to, ends });
    }
    far.write_all(&head)?;
    let (mut back_from, mut back_to) = (far.try_clone()?, near.try_clone()?);
    let back = thread::spawn(move || pass_on(&mut back_from, &mut back_to));
    pass_on(&mut near, &mut far);
    let _ = back.join();
    Ok(())
}

fn read_head(near: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let (mut head, mut buffer) = (Vec::new(), [0; 4096]);
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        let length = near.read(&mut buffer)?;
        if length == 0 || head.len() > HEAD_BYTES {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&buffer[..length]);
    }
    Ok(head)
}

/// Until one of the two is closed, and then both are.
fn pass_on(from: &mut TcpStream, to: &mut TcpStream) {
    let _ = std::io::copy(from, to);
    for end in [from, to] {
        let _ = end.shutdown(Shutdown::Both);
    }
}

#[test]
fn one_is_parted_from_the_others_and_comes_back() {
    let servers = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let ways = PeerWays::to(&servers.each_ref().map(|server| server.local_addr().unwrap()));
    let open = |from: &str, to: usize| {
        let mut near = TcpStream::connect(ways.addresses[to]).unwrap();
        write!(near, "POST /raft HTTP/1.1\r\nX-Server-From: {from}\r\n\r\n").unwrap();
        near
    };
    let is_closed = |near: &mut TcpStream| near.read(&mut [0]).is_ok_and(|length| length == 0);
    let mut kept = open("c2", 1);
    let (mut of_kept, _) = servers[1].accept().unwrap();
    let mut broken = open("c2", 0);
    let (mut of_broken, _) = servers[0].accept().unwrap();
    assert!(read_head(&mut of_kept).unwrap().ends_with(b"X-Server-From: c2\r\n\r\n"));
    read_head(&mut of_broken).unwrap();
    // As with members: they are connected before it is known what they call themselves.
    ways.set_ids(["a0", "b1", "c2"].map(str::to_owned).to_vec());
    ways.part(Some(0));
    assert!(is_closed(&mut broken) && is_closed(&mut open("b1", 0)) && is_closed(&mut open("a0", 1)));
    kept.write_all(b"x").unwrap();
    let mut byte = [0];
    of_kept.read_exact(&mut byte).unwrap();
    assert_eq!(&byte, b"x");
    ways.part(None);
    // What is refused was perhaps connected before.
    let _again = open("b1", 0);
    let found = || read_head(&mut servers[0].accept().unwrap().0);
    while found().is_err() {}
}
