//! `Delegated`: who asks a component at its own port, and whether he may, as the apiserver says it
//! (`DelegatingAuthenticationOptions`, `DelegatingAuthorizationOptions`): client certificates of its
//! authority, tokens by `TokenReview`, permissions by `SubjectAccessReview`. Nothing is remembered: a right
//! that is taken away counts with the next request.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::ApartError;
use apimachinery::status::Status;
use apimachinery::user::UserInfo;
use apimachinery::wire::ApiRequest;
use apis::authentication::TOKEN_REVIEWS;
use apis::authorization::review::SUBJECT_ACCESS_REVIEWS;
use apiserver::authentication::metrics::AuthenticationMetrics;
use apiserver::authentication::x509::{ClientAuthorities, ClientCertificate};
use apiserver::authentication::{RequestAuthenticator, bearer_token};
use client_go::client::Client;
use clock::Clock;

/// Asks in a component's own name, which needs `system:auth-delegator`.
pub(crate) struct Delegated {
    client: Client,
    certificates: Option<ClientCertificate>,
}

/// What somebody shows of who he is.
pub(crate) enum PresentedProof {
    /// That of an authority that is believed.
    Certificate(UserInfo),
    /// Of which the apiserver knows whose it is.
    Token(String),
    /// Nobody is let in without.
    Nothing,
}

/// The user of a `TokenReview`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ReviewedUser {
    username: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl Delegated {
    /// Believes client certificates that `authority` has signed, PEM; of nobody where it is empty.
    ///
    /// # Errors
    /// What cannot be read of it.
    pub(crate) fn new(client: Client, authority: &str, clock: &Clock) -> Result<Delegated, ApartError> {
        let certificates = if authority.is_empty() {
            None
        } else {
            let authorities = ClientAuthorities::new(&[authority.to_owned()], clock);
            let authorities = authorities.map_err(|why| ApartError(why.into()))?;
            Some(ClientCertificate::new(authorities, AuthenticationMetrics::default().expirations()))
        };
        Ok(Delegated { client, certificates })
    }

    /// What a request shows of who asks.
    pub(crate) fn presented(&self, request: &ApiRequest) -> PresentedProof {
        let by_certificate =
            self.certificates.as_ref().map(|certificates| certificates.authenticate(request));
        match by_certificate {
            Some(Ok(Some(user))) => PresentedProof::Certificate((*user).clone()),
            _ => bearer_token::of(request.headers()).map_or(PresentedProof::Nothing, PresentedProof::Token),
        }
    }

    /// Who asks.
    ///
    /// # Errors
    /// 401 for nobody; what the apiserver says when it cannot be asked.
    pub(crate) async fn authenticate(&self, presented: PresentedProof) -> Result<UserInfo, Status> {
        let token = match presented {
            PresentedProof::Certificate(user) => return Ok(user),
            PresentedProof::Nothing => return Err(Status::unauthorized()),
            PresentedProof::Token(token) => token,
        };
        let reviewed = self.client.review(&TOKEN_REVIEWS, json!({"spec": {"token": token}})).await?;
        if reviewed["status"]["authenticated"] != true {
            return Err(Status::unauthorized());
        }
        let user = ReviewedUser::deserialize(&reviewed["status"]["user"]).map_err(Status::internal)?;
        let ReviewedUser { username, uid, groups, extra } = user;
        let groups = groups.into_iter().map(Into::into).collect();
        Ok(UserInfo { name: username.into(), uid, groups, extra })
    }

    /// Whether `user` may do what `attributes` are, as `{"resourceAttributes": ...}`.
    ///
    /// # Errors
    /// What the apiserver says when it cannot be asked.
    pub(crate) async fn allows(&self, user: &UserInfo, attributes: &Value) -> Result<bool, Status> {
        let mut spec = attributes.clone();
        spec["user"] = (*user.name).into();
        spec["uid"] = user.uid.as_str().into();
        spec["groups"] = user.groups.iter().map(|group| Value::from(&**group)).collect();
        spec["extra"] = json!(user.extra);
        let reviewed = self.client.review(&SUBJECT_ACCESS_REVIEWS, json!({"spec": spec})).await?;
        Ok(reviewed["status"]["allowed"] == true)
    }
}
