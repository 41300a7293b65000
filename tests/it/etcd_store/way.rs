//! A way to a server over TCP that can be cut, or swallow what is sent.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What a way does with connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passage {
    /// It carries.
    Open,
    /// Connections break, and new ones do, too.
    Cut,
    /// Connections stay, and nothing arrives, as behind a network that has failed.
    Silent,
    /// What is sent arrives, and no answer does.
    Unanswered,
}

/// Which way something goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    There,
    Back,
}

/// A listener that leads to another one; closed when dropped.
pub(super) struct Way {
    pub(super) address: SocketAddr,
    passage: watch::Sender<Passage>,
    accepting: JoinHandle<()>,
}

impl Way {
    /// Which is open.
    pub(super) async fn to(target: SocketAddr) -> Way {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let passage = watch::Sender::new(Passage::Open);
        let accepting = tokio::spawn(accept(listener, target, passage.subscribe()));
        Way { address, passage, accepting }
    }

    /// From now on.
    pub(super) fn set(&self, passage: Passage) {
        self.passage.send_replace(passage);
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.accepting.abort();
        self.set(Passage::Cut);
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, passage: watch::Receiver<Passage>) {
    while let Ok((near, _)) = listener.accept().await {
        if *passage.borrow() == Passage::Cut {
            continue;
        }
        tokio::spawn(connect(near, target, passage.clone()));
    }
}

async fn connect(near: TcpStream, target: SocketAddr, mut passage: watch::Receiver<Passage>) {
    if !may_pass(&mut passage, Direction::There).await {
        return;
    }
    let Ok(far) = TcpStream::connect(target).await else { return };
    for end in [&near, &far] {
        let _ = end.set_nodelay(true);
    }
    let ((near_out, near_in), (far_out, far_in)) = (near.into_split(), far.into_split());
    let there = carry(near_out, far_in, passage.clone(), Direction::There);
    let back = carry(far_out, near_in, passage, Direction::Back);
    // Where one direction has ended the other is of no use.
    tokio::select! {
        () = there => {}
        () = back => {}
    }
}

/// Waits while nothing arrives; false when it is cut.
async fn may_pass(passage: &mut watch::Receiver<Passage>, direction: Direction) -> bool {
    let is_held = |passage: Passage| match passage {
        Passage::Silent => true,
        Passage::Unanswered => direction == Direction::Back,
        Passage::Open | Passage::Cut => false,
    };
    let passes = passage.wait_for(|passage| !is_held(*passage)).await;
    passes.is_ok_and(|passage| *passage != Passage::Cut)
}

async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut passage: watch::Receiver<Passage>,
    direction: Direction,
) {
    let mut buffer = vec![0; 1 << 16];
    let mut cut = passage.clone();
    loop {
        let read = tokio::select! {
            read = from.read(&mut buffer) => read,
            _ = cut.wait_for(|passage| *passage == Passage::Cut) => return,
        };
        let Ok(length @ 1..) = read else { return };
        if !may_pass(&mut passage, direction).await || to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn a_way_carries_breaks_and_swallows() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let way = Way::to(server.local_addr().unwrap()).await;
    let mut near = TcpStream::connect(way.address).await.unwrap();
    let (mut far, _) = server.accept().await.unwrap();
    near.write_all(b"a").await.unwrap();
    assert_eq!(far.read_u8().await.unwrap(), b'a');
    way.set(Passage::Silent);
    near.write_all(b"b").await.unwrap();
    let mut byte = [0];
    assert!(far.try_read(&mut byte).is_err(), "nothing arrives");
    way.set(Passage::Open);
    assert_eq!(far.read_u8().await.unwrap(), b'b', "nothing is lost");
    way.set(Passage::Cut);
    assert_eq!(near.read(&mut byte).await.unwrap_or(0), 0);
    let mut refused = TcpStream::connect(way.address).await.unwrap();
    assert_eq!(refused.read(&mut byte).await.unwrap_or(0), 0);
}
