//! `Idempotency-Key`: one effect for one key, and the same answer to every repeat.
//!
//! A key belongs to an account and a route (method and path). It is *claimed* in a transaction of its own before the effect, so that a second
//! request sees it at once, and *completed* in the same transaction as the effect, so that there is never one without the other. A claim is a
//! lease in wall time: when the process dies the next attempt takes it over, and the dead one can no longer complete. Errors that may pass
//! (402, 409, 429, 5xx) forget the claim; other errors are answers like any other and are kept. An answer that came of speaking with a provider
//! may hold a secret of the provider's, and is kept sealed.

use std::time::Duration;

use actix_web::{
    FromRequest, HttpRequest, HttpResponse,
    dev::Payload,
    http::{StatusCode, header},
};
use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{
    json::Json,
    problem,
    queries::{self, KeyAnswer, KeyName, KeyRow, NewKey},
};
use crate::{
    base::{Code, Error, FieldError, Result, id::AccountId, seal::PurposeKey},
    ctx::Ctx,
    db::{Conn, Tx},
    jobs::Sweep,
};

const HEADER: &str = "idempotency-key";
const REPLAYED_HEADER: &str = "idempotency-replayed";
const KEY_CHARS_MAX: usize = 255;
/// Before a sealed answer; no JSON begins so.
const SEALED: &str = "sealed:";
const SEAL_PURPOSE: &str = "rigmark kept answer v1";
/// Clients may repeat a request for this long; a little more than the day they are told.
const KEPT_HOURS: i64 = 25;

/// The required header, with the route it came in on.
#[derive(Debug, Clone)]
pub struct Idem {
    key: String,
    route: String,
}

impl FromRequest for Idem {
    type Error = Error;
    type Future = std::future::Ready<Result<Self>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        std::future::ready(read_header(req))
    }
}

fn read_header(req: &HttpRequest) -> Result<Idem> {
    let wrong = |detail: &'static str| Error::new(Code::IdempotencyKeyRequired, detail);
    let mut values = req.headers().get_all(HEADER);
    let value = values.next().ok_or_else(|| wrong("Send an Idempotency-Key header, a new one for each intended effect."))?;
    let key = value.to_str().unwrap_or_default();
    let printable = key.bytes().all(|b| (b' '..=b'~').contains(&b));
    if values.next().is_some() || !(1..=KEY_CHARS_MAX).contains(&key.len()) || !printable {
        return Err(wrong("Idempotency-Key must be one value of 1 to 255 printable ASCII characters."));
    }
    Ok(Idem { key: key.to_owned(), route: format!("{} {}", req.method(), req.path()) })
}

impl Idem {
    /// The claim of `account` for this request with this body.
    pub fn claim<T, const LIMIT: usize>(&self, account: AccountId, body: &Json<T, LIMIT>) -> Claim {
        self.claim_of(account, body.fingerprint())
    }

    /// The claim for a request without a body.
    pub fn claim_empty(&self, account: AccountId) -> Claim {
        self.claim_of(account, Sha256::digest(b"null").into())
    }

    fn claim_of(&self, account: AccountId, body_sha256: [u8; 32]) -> Claim {
        Claim { account, route: self.route.clone(), key: self.key.clone(), body_sha256 }
    }
}

/// What a request wants to do once.
#[derive(Debug, Clone)]
pub struct Claim {
    pub account: AccountId,
    pub route: String,
    pub key: String,
    pub body_sha256: [u8; 32],
}

impl Claim {
    fn name(&self) -> KeyName<'_> {
        KeyName { account_id: self.account, route: &self.route, key: &self.key }
    }

    /// A key for a provider that has idempotency keys too: the same for every attempt at this claim, and for no other.
    pub fn derived_key(&self) -> String {
        let mut hash = Sha256::new();
        for part in [self.account.to_string().as_bytes(), self.route.as_bytes(), self.key.as_bytes()] {
            hash.update(Sha256::digest(part));
        }
        data_encoding::HEXLOWER.encode(&hash.finalize())
    }
}

/// Runs `effect` once for the claim and answers with its status and body, or with the stored answer of the first time.
///
/// `effect` runs inside one transaction, which may be tried again: it must talk to nothing but its `Tx`.
///
/// # Errors
/// `idempotency_key_reused`, `idempotency_in_progress`, or what `effect` returns.
pub async fn once<T, F>(ctx: &Ctx, claim: Claim, effect: F) -> Result<HttpResponse>
where
    T: Serialize,
    F: AsyncFn(&mut Tx<'_>) -> Result<(StatusCode, T)>,
{
    let lease = match begin(ctx, claim).await? {
        Begun::Replay(answer) => return answer.replayed(),
        Begun::Claimed(lease) => lease,
    };
    let done = ctx
        .db
        .tx("idempotent", async |tx| {
            let (status, body) = effect(tx).await?;
            lease.complete(tx, status, &body).await
        })
        .await;
    match done {
        Ok(answer) => Ok(answer.response()),
        Err(error) => {
            lease.fail(ctx, &error).await;
            Err(error)
        }
    }
}

/// As [`once`], for an effect that has to speak with a provider first: `prepare` does so, outside any transaction, and must find what an earlier
/// attempt at the same claim has done; `effect` then writes what came of it.
///
/// # Errors
/// As [`once`], or what `prepare` returns.
pub async fn once_prepared<P, T>(
    ctx: &Ctx,
    claim: Claim,
    prepare: impl AsyncFnOnce(&Claim) -> Result<P>,
    effect: impl AsyncFn(&mut Tx<'_>, &P) -> Result<(StatusCode, T)>,
) -> Result<HttpResponse>
where
    T: Serialize,
{
    let lease = match begin(ctx, claim).await? {
        Begun::Replay(answer) => return answer.replayed(),
        Begun::Claimed(lease) => lease,
    };
    let done = async {
        let prepared = prepare(lease.claim()).await?;
        let write = async |tx: &mut Tx<'_>| {
            let (status, body) = effect(tx, &prepared).await?;
            lease.complete_sealed(tx, status, &body).await
        };
        ctx.db.tx("idempotent_prepared", write).await
    };
    match done.await {
        Ok(answer) => Ok(answer.response()),
        Err(error) => {
            lease.fail(ctx, &error).await;
            Err(error)
        }
    }
}

/// What [`begin`] found.
pub enum Begun {
    /// The request was answered before.
    Replay(Answer),
    /// It is the caller's to run.
    Claimed(Lease),
}

/// Claims the key, for effects that cannot be one transaction (a call to Stripe between two). The caller then ends in [`Lease::complete`] or
/// [`Lease::fail`].
///
/// # Errors
/// `idempotency_key_reused`, `idempotency_in_progress`.
pub async fn begin(ctx: &Ctx, claim: Claim) -> Result<Begun> {
    let lease_id = Uuid::new_v4();
    let now = ctx.clock.wall_now();
    let lease_until = now + TimeDelta::seconds(ctx.config.tunables.idempotency_lease_seconds);
    let found = ctx
        .db
        .tx("idempotency_claim", async |tx| {
            let new = NewKey {
                account_id: claim.account,
                route: &claim.route,
                key: &claim.key,
                body_sha256: &claim.body_sha256,
                lease_id,
                lease_until,
                created_at: now,
            };
            if queries::key_insert(tx, &new).await? {
                return Ok(None);
            }
            // Released between the two statements: the other attempt has just failed, and a repeat will find the key free.
            let row = queries::key_fetch_locked(tx, &claim.name()).await?.ok_or_else(|| in_progress(now, now))?;
            let answer = decide(row, &claim, now)?;
            if answer.is_none() {
                queries::key_take_over(tx, &claim.name(), lease_id, lease_until).await?;
            }
            Ok(answer)
        })
        .await?;
    let key = PurposeKey::derive(&ctx.config.keys.root, SEAL_PURPOSE)?;
    Ok(match found {
        Some(answer) => Begun::Replay(answer.opened(&key, &claim)?),
        None => Begun::Claimed(Lease { claim, id: lease_id, key }),
    })
}

/// The stored answer, or nothing when the claim may be taken over.
fn decide(row: KeyRow, claim: &Claim, now: DateTime<Utc>) -> Result<Option<Answer>> {
    if row.body_sha256 != claim.body_sha256 {
        return Err(Error::new(Code::IdempotencyKeyReused, "This Idempotency-Key came with another body before."));
    }
    match (row.status, row.response) {
        (Some(status), Some(text)) => {
            let status = u16::try_from(status).ok().and_then(|s| StatusCode::from_u16(s).ok()).unwrap_or(StatusCode::OK);
            Ok(Some(Answer { status, text }))
        }
        _ if row.lease_until > now => Err(in_progress(now, row.lease_until)),
        _ => Ok(None),
    }
}

fn in_progress(now: DateTime<Utc>, lease_until: DateTime<Utc>) -> Error {
    // Most effects take far less than the lease.
    let seconds = (lease_until - now).num_seconds().clamp(1, 2).unsigned_abs();
    Error::new(Code::IdempotencyInProgress, "Try again in a moment with the same key.").with_retry_after(seconds)
}

/// The right to run a claim, until its time is over.
pub struct Lease {
    claim: Claim,
    id: Uuid,
    key: PurposeKey,
}

impl Lease {
    pub const fn claim(&self) -> &Claim {
        &self.claim
    }

    /// Stores the answer; in the transaction of the effect.
    ///
    /// # Errors
    /// `idempotency_in_progress` when the lease ran out and another attempt took over; the effect is then undone with the transaction.
    pub async fn complete(&self, tx: &mut Tx<'_>, status: StatusCode, body: &impl Serialize) -> Result<Answer> {
        let text = serde_json::to_string(body).map_err(Error::internal)?;
        self.store(tx, Answer { status, text }).await
    }

    /// As [`Self::complete`], for an answer that may hold a secret: what is stored can be read with the root key alone.
    ///
    /// # Errors
    /// As there.
    pub async fn complete_sealed(&self, tx: &mut Tx<'_>, status: StatusCode, body: &impl Serialize) -> Result<Answer> {
        let text = serde_json::to_string(body).map_err(Error::internal)?;
        let sealed = self.key.seal(self.claim.derived_key().as_bytes(), text.as_bytes())?;
        let kept = format!("{SEALED}{}", data_encoding::BASE64URL_NOPAD.encode(&sealed));
        self.store(tx, Answer { status, text: kept }).await?;
        Ok(Answer { status, text })
    }

    async fn store(&self, conn: &mut Conn, answer: Answer) -> Result<Answer> {
        let status = i16::try_from(answer.status.as_u16()).map_err(Error::internal)?;
        let row = KeyAnswer { state: "done", status, response: &answer.text };
        if queries::key_complete(conn, &self.claim.name(), self.id, &row).await? {
            return Ok(answer);
        }
        Err(Error::new(Code::IdempotencyInProgress, "Another attempt with this key took over.").with_retry_after(1))
    }

    /// After the effect was undone: keeps the error as the answer, or forgets the claim when a repeat may fare better. When even that fails the
    /// lease runs out by itself.
    pub async fn fail(&self, ctx: &Ctx, error: &Error) {
        let status = problem::status(error.code());
        let passing = status.is_server_error()
            || matches!(status, StatusCode::PAYMENT_REQUIRED | StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS);
        let ended = async {
            let mut conn = ctx.db.conn().await?;
            if passing {
                return queries::key_release(&mut conn, &self.claim.name(), self.id).await;
            }
            let text = serde_json::to_string(&KeptError::of(error)).map_err(Error::internal)?;
            self.store(&mut conn, Answer { status, text }).await.map(drop)
        };
        if let Err(error) = ended.await {
            tracing::warn!(%error, route = %self.claim.route, "an idempotency claim is left to its lease");
        }
    }
}

/// A stored answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    status: StatusCode,
    text: String,
}

impl Answer {
    /// The answer as it was given, whether it was kept sealed or not.
    fn opened(self, key: &PurposeKey, claim: &Claim) -> Result<Self> {
        let Some(sealed) = self.text.strip_prefix(SEALED) else { return Ok(self) };
        let bytes = data_encoding::BASE64URL_NOPAD.decode(sealed.as_bytes()).map_err(Error::internal)?;
        let text = key.open(claim.derived_key().as_bytes(), &bytes)?;
        Ok(Self { text: String::from_utf8(text).map_err(Error::internal)?, ..self })
    }

    pub fn response(self) -> HttpResponse {
        HttpResponse::build(self.status).content_type("application/json").insert_header((header::CACHE_CONTROL, "no-store")).body(self.text)
    }

    /// The answer to a repeat; says so in a header.
    ///
    /// # Errors
    /// `internal` when what was stored cannot be read.
    pub fn replayed(self) -> Result<HttpResponse> {
        let mut response = if self.status.is_success() {
            self.response()
        } else {
            let kept: KeptError = serde_json::from_str(&self.text).map_err(Error::internal)?;
            HttpResponse::from_error(kept.into_error()?)
        };
        let name = header::HeaderName::from_static(REPLAYED_HEADER);
        response.headers_mut().insert(name, header::HeaderValue::from_static("true"));
        Ok(response)
    }
}

/// An error as it is stored: without the request id, which is that of each request.
#[derive(Serialize, Deserialize)]
struct KeptError {
    code: String,
    detail: String,
    #[serde(default)]
    fields: Vec<KeptField>,
    #[serde(default)]
    extra: serde_json::Map<String, serde_json::Value>,
}

#[derive(Serialize, Deserialize)]
struct KeptField {
    pointer: String,
    code: String,
    detail: String,
}

impl KeptError {
    fn of(error: &Error) -> Self {
        let field = |f: &FieldError| KeptField { pointer: f.pointer.clone(), code: f.code.to_string(), detail: f.detail.clone() };
        Self {
            code: error.code().as_str().to_owned(),
            detail: error.detail().to_owned(),
            fields: error.fields().iter().map(field).collect(),
            extra: error.extra().clone(),
        }
    }

    fn into_error(self) -> Result<Error> {
        let known = Code::ALL.iter().copied().find(|code| code.as_str() == self.code);
        let code = known.ok_or_else(|| Error::internal(format!("stored error of unknown code {}", self.code)))?;
        let fields = self.fields.into_iter().map(|f| FieldError::new(f.pointer, f.code, f.detail)).collect();
        let error = Error::new(code, self.detail).with_fields(fields);
        Ok(self.extra.into_iter().fold(error, |error, (name, value)| error.with_extra(&name, value)))
    }
}

/// The sweep that calls [`expire`].
pub struct ExpireKeys;

#[async_trait(?Send)]
impl Sweep for ExpireKeys {
    fn name(&self) -> &'static str {
        "idempotency_keys_expire"
    }
    fn every(&self) -> Duration {
        Duration::from_secs(600)
    }
    /// By wall time: moving the business clock must not make a key reusable.
    async fn run(&self, ctx: &Ctx, _now: DateTime<Utc>) -> Result<()> {
        let mut conn = ctx.db.conn().await?;
        expire(&mut conn, ctx.clock.wall_now()).await.map(drop)
    }
}

/// Forgets keys older than a day. Returns how many.
///
/// # Errors
/// The database's own faults.
pub async fn expire(conn: &mut Conn, wall_now: DateTime<Utc>) -> Result<usize> {
    queries::keys_delete_before(conn, wall_now - TimeDelta::hours(KEPT_HOURS)).await
}
