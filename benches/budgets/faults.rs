//! What a fault costs those whom it is not about.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use kubarium::apimachinery::user::UserInfo;
use kubarium::apiserver::filters::interceptor::Interceptor;
use kubarium::apiserver::filters::passed::Passed;
use kubarium::apiserver::request::RequestInfo;
use kubarium::{Clock, Entropy, Fault, Faults};

use crate::table::Row;

const REQUESTS: u32 = 1_000_000;
const PATH: &str = "/api/v1/namespaces/default/configmaps/settings";

/// Without a rule, and with one about somebody else.
pub(crate) fn measure() -> Vec<Row> {
    let faults = Faults::new(Clock::real(), Entropy::seeded(7));
    let without = nanoseconds(&faults);
    let rule = Fault::answer(409).user("system:serviceaccount:default:operator").resource("configmaps");
    faults.add(rule).expect("it can be meant");
    vec![
        Row::new("a request, no fault rule", without, "ns"),
        Row::new("a request, a fault rule that does not match", nanoseconds(&faults), "ns").budget(200.0),
    ]
}

fn nanoseconds(faults: &Faults) -> f64 {
    let request = http::Request::get(PATH).body(Body::empty()).expect("a request");
    let mut request = Passed::new(request);
    request.ctx.info = Arc::new(RequestInfo::new(&http::Method::GET, PATH, "").expect("a path"));
    request.ctx.user = Arc::new(UserInfo::authenticated("kubernetes-admin", &["system:masters"]));
    let start = Instant::now();
    for _ in 0..REQUESTS {
        assert!(!faults.wants(black_box(&request)));
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(REQUESTS)
}
