//! The right to an answer while it is being given: whoever loses it (the rental is over, the key revoked, the member removed) loses the answer
//! within a second.

use std::time::Duration;

use bytes::Bytes;
use futures::{
    FutureExt, StreamExt,
    future::LocalBoxFuture,
    stream::{self, LocalBoxStream},
};

use super::error::OpenAiError;
use crate::{
    base::{Code, Error, Result, id::RentalId},
    ctx::Ctx,
    engines::BodyStream,
    identity::{self, Caller},
    rentals,
};

/// How often an open answer asks whether it may go on.
const CHECK_EVERY: Duration = Duration::from_millis(900);

/// Time for the last words before a connection is cut.
const FLUSH: Duration = Duration::from_millis(20);

/// An answer as it goes out.
pub type Answer = LocalBoxStream<'static, Result<Bytes>>;

/// Comes when the right is lost, and says how.
pub type Lost = LocalBoxFuture<'static, Error>;

/// Watches the caller's right to the machine; by the rental, or as its owner.
pub fn watch(ctx: Ctx, caller: Caller, rental: Option<RentalId>) -> Lost {
    async move {
        loop {
            tokio::time::sleep(CHECK_EVERY).await;
            match check(&ctx, &caller, rental).await {
                Ok(None) => {}
                Ok(Some(lost)) => return lost,
                // The database is away for a moment: that ends no answer.
                Err(error) => tracing::warn!(error = ?error, "the right to an answer could not be checked"),
            }
        }
    }
    .boxed_local()
}

async fn check(ctx: &Ctx, caller: &Caller, rental: Option<RentalId>) -> Result<Option<Error>> {
    {
        let mut conn = ctx.db.conn().await?;
        match identity::caller_refresh(ctx, &mut conn, caller).await {
            Ok(now) if now.require(identity::scope::Need::Scope(identity::scope::Scope::Inference)).is_ok() => {}
            Ok(_) => return Ok(Some(Error::new(Code::Forbidden, "The caller may no longer use the endpoint."))),
            Err(error) if matches!(error.code(), Code::Unauthenticated | Code::NotFound) => return Ok(Some(error)),
            Err(error) => return Err(error),
        }
    }
    match rental {
        Some(id) if !rentals::service::is_active(ctx, id).await? => Ok(Some(Error::new(Code::Forbidden, "The rental is over."))),
        _ => Ok(None),
    }
}

/// Passes the engine's answer on until it ends or the right is lost. An event stream then says why it ends; anything else is broken off.
pub fn guard(body: BodyStream, lost: Lost, is_event_stream: bool) -> Answer {
    let state = Some((body, lost, None));
    let pass = move |state: Option<(BodyStream, Lost, Option<Error>)>| async move {
        let (mut body, mut lost, last) = state?;
        if let Some(error) = last {
            // Breaking off at once would take what was said with it.
            tokio::time::sleep(FLUSH).await;
            return Some((Err(error), None));
        }
        let (error, is_ours) = tokio::select! {
            chunk = body.next() => match chunk? {
                Ok(chunk) => return Some((Ok(chunk), Some((body, lost, None)))),
                Err(error) => (error, false),
            },
            error = &mut lost => (error, true),
        };
        if !is_event_stream {
            return Some((Err(error), None));
        }
        let text = serde_json::to_string(&OpenAiError::from_error(&error)).unwrap_or_default();
        // What the engine broke off is broken off here too, after it was said.
        let next = if is_ours { None } else { Some((body, lost, Some(error))) };
        Some((Ok(Bytes::from(format!("data: {text}\n\n"))), next))
    };
    stream::unfold(state, pass).boxed_local()
}
