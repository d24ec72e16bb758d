//! One `POST` to a receiver of somebody else's: a webhook. What it answers beyond its status is of no interest and is not kept.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use reqwest::header::HeaderMap;
use reqwest::redirect;
use url::{Host, Url};

use super::resolver::{self, CheckedResolver, ForbiddenName, LookUp, Reach};
use crate::base::{Error, Result, clock};

const CONNECT_SECONDS: u64 = 5;
/// Until the head of the answer is here, the look-up and the connection included.
const ANSWER_SECONDS: u64 = 10;
/// A receiver that is cut off while it writes its answer may take that for a failure, so a little of it is read.
const BODY_BYTES_MAX: usize = 4_096;
const BODY_SECONDS: u64 = 2;

/// What to send, and how far.
#[derive(Debug, Clone)]
pub struct PostRequest {
    pub url: Url,
    pub reach: Reach,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Why there was no answer, as one word for the receiver's owner. No address: they may not be who runs the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PostFault {
    #[error("forbidden_address")]
    ForbiddenAddress,
    #[error("unreachable")]
    Unreachable,
    #[error("timeout")]
    Timeout,
    #[error("bad_answer")]
    BadAnswer,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posted {
    pub status: std::result::Result<u16, PostFault>,
    pub took: Duration,
}

/// Cheap to clone. It keeps no connection: every request looks its name up and checks what it finds.
#[derive(Clone)]
pub struct PostClient {
    public: reqwest::Client,
    public_or_loopback: reqwest::Client,
    loopback: reqwest::Client,
}

impl PostClient {
    /// # Errors
    /// `internal` when TLS cannot be set up.
    pub fn new() -> Result<Self> {
        Self::with_look_up(&resolver::system())
    }

    /// With another way from names to addresses. Every answer of it is checked as the system's are.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_look_up(look_up: &LookUp) -> Result<Self> {
        // Installed by main already; a second installation is refused and that is fine.
        let _already = rustls::crypto::ring::default_provider().install_default();
        Ok(Self {
            public: build(Reach::Public, look_up)?,
            public_or_loopback: build(Reach::PublicOrLoopback, look_up)?,
            loopback: build(Reach::Loopback, look_up)?,
        })
    }

    /// Sends the request once. Redirects are answers like any other.
    pub async fn post(&self, request: PostRequest) -> Posted {
        let started = clock::monotonic();
        let sent = tokio::time::timeout(Duration::from_secs(ANSWER_SECONDS), self.send(request)).await;
        let took = started.elapsed();
        let status = match sent {
            Err(_) => Err(PostFault::Timeout),
            Ok(Err(fault)) => Err(fault),
            Ok(Ok(response)) => {
                let status = response.status().as_u16();
                // Its status is what counts, however the body goes on.
                let _ = tokio::time::timeout(Duration::from_secs(BODY_SECONDS), drain(response.bytes_stream())).await;
                Ok(status)
            }
        };
        Posted { status, took }
    }

    async fn send(&self, request: PostRequest) -> std::result::Result<reqwest::Response, PostFault> {
        // The connector never asks the resolver about a literal address.
        if literal(&request.url).is_some_and(|ip| request.reach.forbids(ip).is_some()) {
            return Err(PostFault::ForbiddenAddress);
        }
        let client = match request.reach {
            Reach::Public => &self.public,
            Reach::PublicOrLoopback => &self.public_or_loopback,
            Reach::Loopback => &self.loopback,
            // Nothing that is posted may go to any private address.
            Reach::Any => return Err(PostFault::ForbiddenAddress),
        };
        client.post(request.url).headers(request.headers).body(request.body).send().await.map_err(|error| fault(&error))
    }
}

fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(v4) => Some(v4.into()),
        Host::Ipv6(v6) => Some(v6.into()),
        Host::Domain(_) => None,
    }
}

async fn drain(body: impl Stream<Item = reqwest::Result<Bytes>>) {
    let mut body = std::pin::pin!(body);
    let mut read = 0;
    while let Some(Ok(piece)) = body.next().await {
        read += piece.len();
        if read >= BODY_BYTES_MAX {
            return;
        }
    }
}

fn fault(error: &reqwest::Error) -> PostFault {
    if ForbiddenName::among(error).is_some() {
        PostFault::ForbiddenAddress
    } else if error.is_timeout() && !error.is_connect() {
        PostFault::Timeout
    } else if error.is_connect() {
        PostFault::Unreachable
    } else {
        PostFault::BadAnswer
    }
}

fn build(reach: Reach, look_up: &LookUp) -> Result<reqwest::Client> {
    let builder = || {
        reqwest::Client::builder()
            .user_agent(concat!("rigmark-webhooks/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .referer(false)
            .connect_timeout(Duration::from_secs(CONNECT_SECONDS))
            .pool_max_idle_per_host(0)
            .dns_resolver(CheckedResolver { reach, look_up: look_up.clone() })
    };
    // A container without certificates of authorities can still start; https then fails by itself.
    builder().build().or_else(|_| builder().tls_certs_only([]).build()).map_err(Error::internal)
}
