//! `Cluster`: one member, for ever (`v3rpc/member.go`).

use axum::body::Body;
use http::Response;

use crate::messages::{Empty, Member, MemberListResponse, Repeated};
use crate::server::{EtcdServer, MEMBER_ID, header};
use crate::status::{EtcdStatus, UNIMPLEMENTED};
use crate::unary::{failed, unary};

pub(crate) async fn serve(server: &EtcdServer, method: &str, body: Body) -> Response<Body> {
    match method {
        "MemberList" => unary(body, async |request, _| members(server, &request)).await,
        _ => failed(&EtcdStatus::new(
            UNIMPLEMENTED,
            "kubarium: this etcd is one process: members are not added, changed or removed",
        )),
    }
}

fn members(server: &EtcdServer, _request: &Empty) -> Result<MemberListResponse, EtcdStatus> {
    let member = Member {
        id: MEMBER_ID,
        name: server.name().to_owned(),
        peer_urls: vec!["http://localhost:2380".to_owned()],
        client_urls: server.client_urls().to_vec(),
        is_learner: false,
    };
    Ok(MemberListResponse { header: header(0), members: Repeated(vec![member]) })
}
