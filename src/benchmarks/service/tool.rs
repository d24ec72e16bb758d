//! Uploads of the benchmark tool, `lil-bench` (evidence.md 3): bare documents with a token of their own kind, and an id in place of an
//! idempotency key.
//!
//! Invariants: one id, one account, one content, one run; the same again gives the same run, and anything else with that id is refused. An id
//! is the account's whose run had it first, by whatever way it came in. The
//! level is `document`: the tool answers no challenge. A token that is bound to a machine binds every run to it, or lets nobody in.

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    super::{
        claim::Claim,
        document, json,
        model::{ToolUpload, UploadFields},
        queries,
        verdict::Verdict,
    },
    read::verdict,
    sha256_hex,
    upload::{Incoming, judge, take_in, unreadable},
};
use crate::{
    base::{
        Code, Error, Result,
        id::{MachineId, RunId},
        shape::HandleText,
    },
    ctx::Ctx,
    db::Conn,
    identity::{self, Caller, NewUploadToken, Uploader, service::CreateUploadToken},
    machines,
};

/// Whose token it is.
#[derive(Debug, Serialize, ToSchema)]
pub struct BenchLogin {
    /// Handle of the account that the runs will be of.
    #[schema(value_type = HandleText)]
    pub login: String,
    /// The machine that they will be bound to.
    pub machine_id: Option<MachineId>,
}

/// A document of the benchmark tool, plain or wrapped, of any known version.
#[derive(ToSchema)]
#[schema(value_type = Object)]
#[expect(dead_code, reason = "a name for the OpenAPI document")]
pub struct BenchDocument(Value);

/// An upload that was taken in.
#[derive(Debug, Serialize, ToSchema)]
pub struct BenchRun {
    pub id: RunId,
    /// The run's page.
    #[schema(format = "uri")]
    pub url: String,
    pub status: Verdict,
    /// For the status of the answer.
    #[serde(skip)]
    pub is_new: bool,
}

/// Makes an upload token for the account, bound to one of its machines or to none.
///
/// # Errors
/// `not_found` for a machine that is not the account's; else as `identity`'s.
pub async fn upload_token_create(ctx: &Ctx, caller: &Caller, form: CreateUploadToken) -> Result<NewUploadToken> {
    if let Some(id) = form.machine_id {
        let mut conn = ctx.db.conn().await?;
        machines::service::fetch_owned(&mut conn, caller, id).await?;
    }
    identity::service::create_upload_token(ctx, caller, form).await
}

/// # Errors
/// `forbidden` when the machine of the token is gone: the tool then stops before it measures.
pub async fn whoami(ctx: &Ctx, uploader: Uploader) -> Result<BenchLogin> {
    let mut conn = ctx.db.conn().await?;
    check_machine(&mut conn, &uploader).await?;
    Ok(BenchLogin { login: uploader.caller.account_handle, machine_id: uploader.machine_id })
}

async fn check_machine(conn: &mut Conn, uploader: &Uploader) -> Result<()> {
    let Some(id) = uploader.machine_id else { return Ok(()) };
    match machines::service::fetch_owned(conn, &uploader.caller, id).await {
        Err(error) if error.code() == Code::NotFound => {
            Err(Error::new(Code::Forbidden, "The machine that this upload token is bound to was deleted; make another token."))
        }
        other => other.map(|_| ()),
    }
}

/// Takes a document in, plain or wrapped, and gives the run of it.
///
/// # Errors
/// `unreadable_document`; `forbidden` as [`whoami`]; `invalid_state` when the document's id was taken by another account or with other
/// content. A document that fails its checks is no error.
pub async fn bench_upload(ctx: &Ctx, uploader: &Uploader, body: Bytes) -> Result<BenchRun> {
    let caller = &uploader.caller;
    check_machine(&mut *ctx.db.conn().await?, uploader).await?;
    let _judge = judge().await?;
    let machine_id = uploader.machine_id;
    let (incoming, tool) = tokio::task::spawn_blocking(move || read_bare(&body, machine_id)).await.map_err(Error::internal)??;
    let mut conn = ctx.db.conn().await?;
    if let Some(known) = known(ctx, &mut conn, caller, &tool).await? {
        return Ok(known);
    }
    drop(conn);
    if let Some(taken) = take_in(ctx, caller, incoming, Some(&tool)).await? {
        return Ok(answer(ctx, taken.view.id, taken.view.status, taken.is_new));
    }
    // Another upload took the id meanwhile.
    let mut conn = ctx.db.conn().await?;
    known(ctx, &mut conn, caller, &tool).await?.ok_or_else(|| Error::internal("an id is taken by nobody"))
}

fn answer(ctx: &Ctx, id: RunId, status: Verdict, is_new: bool) -> BenchRun {
    BenchRun { id, url: format!("{}/en/runs/{id}", ctx.public_url), status, is_new }
}

/// The run that this very upload gave before.
async fn known(ctx: &Ctx, conn: &mut Conn, caller: &Caller, tool: &ToolUpload) -> Result<Option<BenchRun>> {
    let held = queries::tool_upload_fetch(conn, &tool.id).await?;
    let first = match &tool.run_id {
        Some(id) => queries::run_first_of_tool(conn, id).await?,
        None => None,
    };
    let refused = |what: &str| Err(Error::new(Code::InvalidState, format!("This run was uploaded before {what}.")));
    let is_held_by_other = held.as_ref().is_some_and(|(owner, ..)| *owner != caller.account_id);
    match first {
        // Whoever showed the run first keeps its id, whatever somebody posted under it since they could read it.
        Some((owner, run, status)) if owner == caller.account_id && is_held_by_other => {
            return Ok(Some(answer(ctx, run, verdict(&status)?, false)));
        }
        Some((owner, ..)) if owner != caller.account_id && held.is_none() => return refused("by another account"),
        _ => {}
    }
    let Some((_, content_sha256, run, status)) = held else { return Ok(None) };
    if is_held_by_other {
        return refused("by another account");
    }
    if content_sha256 != tool.content_sha256 {
        return refused("with other content");
    }
    Ok(Some(answer(ctx, run, verdict(&status)?, false)))
}

fn read_bare(body: &[u8], machine_id: Option<MachineId>) -> Result<(Incoming, ToolUpload)> {
    let text = document::unpack(body).map_err(|fault| unreadable(&fault, ""))?;
    let document = json::parse(&text).map_err(|fault| unreadable(&fault, ""))?;
    let content_sha256 = sha256_hex(&json::canonical_bytes(&document));
    let tool = ToolUpload { id: tool_id(&document, &content_sha256), content_sha256, run_id: kept_id(&document), is_by_tool: true };
    let original_sha256 = sha256_hex(&text);
    let incoming = Incoming {
        fields: UploadFields { machine_id, ..UploadFields::default() },
        claim: Claim::default(),
        document,
        original: text.into_owned(),
        original_sha256,
        document_pointer: "",
    };
    Ok((incoming, tool))
}

/// The id and content of a wrapped document, which has an id of its own.
pub(super) fn wrapped(document: &Value) -> Option<ToolUpload> {
    run_id(document)?;
    let content_sha256 = sha256_hex(&json::canonical_bytes(document));
    Some(ToolUpload { id: tool_id(document, &content_sha256), content_sha256, run_id: kept_id(document), is_by_tool: false })
}

fn kept_id(document: &Value) -> Option<String> {
    run_id(document).map(document::clean).filter(|id| !id.is_empty())
}

/// Only the wrapper has a `run_id`.
fn run_id(document: &Value) -> Option<&str> {
    document.get("schema").and_then(|_| document.get("run_id")).and_then(Value::as_str).filter(|id| !id.is_empty())
}

fn tool_id(document: &Value, content_sha256: &str) -> String {
    run_id(document).map_or_else(|| format!("body:{content_sha256}"), |id| format!("run:{}", sha256_hex(id.as_bytes())))
}
