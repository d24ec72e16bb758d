//! Taking a run in: read, redacted and judged outside any transaction, then stored whole or not at all.

use std::sync::LazyLock;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{
    super::{
        assess::assess_value,
        boards,
        challenge::AnswerFacts,
        claim::{Claim, ClaimedHardware, ClaimedModel},
        document::{self, Envelope},
        history::{self, Doer, Event},
        json::Unreadable,
        matrix::{CellStatus, Matrix},
        model::{Challenge, Circumstances, EvidenceLevel, Run, RunCell, RunDetail, RunView, ToolUpload, UploadFields, Visibility},
        quantization::{Quantization, kv_cache_of_command},
        queries,
        verdict::{AssessContext, Assessment, HardwareUnseen, Verdict},
    },
    announce,
    copies::{self, Newcomer},
    gzip, read, sha256_hex, staleness, tool,
};
use crate::{
    base::{Code, Error, FieldError, Result, id::RunId, text},
    catalog::{Catalog, ModelMatch},
    ctx::Ctx,
    db::{Conn, JsonText, Tx},
    identity::{self, Caller},
    machines::{self, model::Machine},
};

const NOTES_CHARS_MAX: usize = 2_000;

/// Documents are judged two at a time: each may take 256 MiB while it is read.
static JUDGES: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(2));

/// The known members of the claim's objects; anything else is refused here (`rigmark verify --claim` ignores it).
const CLAIM_MEMBERS: [(&str, &[&str]); 3] = [
    ("hardware", &["gpu", "gpu_count", "vram_gib", "kind", "cpu", "ram_gib", "os", "driver", "power_limit_w"]),
    ("model", &["hf_id", "revision", "quantization"]),
    ("engine", &["name", "version", "build", "backend"]),
];

/// The upload as far as it can be read without the database.
pub(super) struct Incoming {
    pub fields: UploadFields,
    pub claim: Claim,
    pub document: Value,
    pub original: Vec<u8>,
    pub original_sha256: String,
    /// Where the document stands in the body, for pointers.
    pub document_pointer: &'static str,
}

/// A run that is stored now.
pub(super) struct Taken {
    pub view: RunView,
    /// It was not there before.
    pub is_new: bool,
}

/// Waits for the right to judge a document.
pub(super) async fn judge() -> Result<SemaphorePermit<'static>> {
    JUDGES.acquire().await.map_err(Error::internal)
}

/// Takes an upload's body and returns the run with its verdict; the same upload again gives the same run.
///
/// # Errors
/// `unreadable_document` or `invalid_input` with pointers, `not_found` for a machine or challenge that is not the caller's,
/// `challenge_used`, `challenge_expired`. A document that fails its checks is no error: its run is stored as `rejected`.
pub async fn upload(ctx: &Ctx, caller: &Caller, body: Bytes) -> Result<RunView> {
    let _judge = judge().await?;
    let read = move || read_body(&body).map(|incoming| (tool::wrapped(&incoming.document), incoming));
    let (tool, incoming) = tokio::task::spawn_blocking(read).await.map_err(Error::internal)??;
    // The tool's id is taken with the run, so that nobody else takes the id of a run that anyone can read.
    let taken = take_in(ctx, caller, incoming, tool.as_ref()).await?.ok_or_else(|| Error::internal("the run is gone"))?;
    Ok(taken.view)
}

/// Judges and stores what was read. `tool`: what the benchmark tool knows the run by, which is taken in the same transaction; none is returned
/// when the tool itself uploads and another upload has taken it.
pub(super) async fn take_in(ctx: &Ctx, caller: &Caller, incoming: Incoming, tool: Option<&ToolUpload>) -> Result<Option<Taken>> {
    let key = upload_key(caller, &incoming)?;
    let mut conn = ctx.db.conn().await?;
    if let Some(run) = queries::run_id_by_upload_key(&mut conn, &key).await? {
        drop(conn);
        let view = read::fetch(ctx, run).await?;
        let is_ours = ctx.db.tx("tool_upload", async |tx| tool_upload_claim(tx, caller, tool, &key).await).await?;
        return Ok(is_ours.then_some(Taken { view, is_new: false }));
    }
    let now = ctx.business_now(&mut conn).await?;
    if incoming.fields.visibility == Some(Visibility::Unlisted) {
        let has = identity::service::entitlements(ctx, &mut conn, caller.account_id).await?;
        has.require_pro("An unlisted run needs Pro; a public one does not.")?;
    }
    let machine = fetch_machine(&mut conn, caller, &incoming.fields).await?;
    let challenge = fetch_challenge(&mut conn, caller, &incoming.fields, machine.as_ref(), now).await?;
    let bytes_seen = queries::original_seen(&mut conn, &incoming.original_sha256, None).await?;
    drop(conn);

    let circumstances = Circumstances {
        machine_hardware: machine.as_ref().map(claimed_hardware),
        max_model_len: engine_limits(ctx, machine.as_ref(), challenge.is_some()).await,
    };
    let context = context(ctx, &circumstances, challenge.as_ref(), bytes_seen, now)?;
    let Incoming { fields, mut claim, document, original, original_sha256, document_pointer } = incoming;
    // A run of a machine is one of its hardware, whether the uploader repeats that or not.
    claim.hardware = claim.hardware.or_else(|| circumstances.machine_hardware.clone());
    let claim = with_challenged_model(claim, challenge.as_ref())?;
    let (assessment, document_gzip, original_gzip) = tokio::task::spawn_blocking(move || {
        let mut assessment = assess_value(document, &claim, &context).map_err(|u| unreadable(&u, document_pointer))?;
        let packed = gzip(&std::mem::take(&mut assessment.redacted))?;
        Ok::<_, Error>((assessment, packed, gzip(&original)?))
    })
    .await
    .map_err(Error::internal)??;

    let document = queries::NewDocument { redacted_gzip: &document_gzip, original_gzip: &original_gzip, original_sha256: &original_sha256 };
    let upload = Upload { ctx, caller, fields, machine, challenge, circumstances, key, now };
    let stored = ctx
        .db
        .tx("run_upload", async |tx| match tool_upload_claim(tx, caller, tool, &upload.key).await? {
            true => upload.store(tx, &assessment, &document).await.map(Some),
            false => Ok(None),
        })
        .await?;
    let Some(is_new) = stored else { return Ok(None) };
    let mut conn = ctx.db.conn().await?;
    let stored = queries::run_id_by_upload_key(&mut conn, &upload.key).await?.ok_or_else(|| Error::internal("the run is gone"))?;
    drop(conn);
    Ok(Some(Taken { view: read::fetch(ctx, stored).await?, is_new }))
}

/// Whether the run may be stored: always, but for an upload of the tool whose id is taken.
async fn tool_upload_claim(tx: &mut Tx<'_>, caller: &Caller, tool: Option<&ToolUpload>, upload_key: &str) -> Result<bool> {
    match tool {
        Some(tool) => Ok(queries::tool_upload_insert(tx, caller.account_id, tool, upload_key).await? || !tool.is_by_tool),
        None => Ok(true),
    }
}

/// All that is known of an upload apart from its document.
struct Upload<'a> {
    ctx: &'a Ctx,
    caller: &'a Caller,
    fields: UploadFields,
    machine: Option<Machine>,
    challenge: Option<Challenge>,
    circumstances: Circumstances,
    key: String,
    now: DateTime<Utc>,
}

impl Upload<'_> {
    /// Stores the run with what only the runs before it can say of it; false when it is there already.
    async fn store(&self, tx: &mut Tx<'_>, assessment: &Assessment, document: &queries::NewDocument<'_>) -> Result<bool> {
        // One newcomer at a time: of two copies that come at once one must see the other.
        queries::copies_lock(tx).await?;
        let newcomer = Newcomer { run: RunId::new(), account: self.caller.account_id, machine: self.machine.as_ref().map(|m| m.id) };
        let findings = copies::findings(tx, &newcomer, self.challenge.is_some(), assessment).await?;
        let assessment = assessment.clone().with_findings(findings);
        let run = self.row(newcomer.run, &assessment)?;
        let cells = cells(run.id, &assessment.matrix);
        let is_new = queries::run_insert(tx, &run, document, &cells, &copies::marks(&assessment)).await?;
        if is_new {
            use_challenge(tx, self.challenge.as_ref(), self.now).await?;
            history::append(tx, run.id, Doer::caller(self.caller), &Event::Uploaded, self.now).await?;
            let ruling = Event::Verdict {
                verdict: assessment.verdict,
                rules_version: assessment.rules_version.clone(),
                findings: history::counted(&assessment.findings),
            };
            history::append(tx, run.id, Doer::SYSTEM, &ruling, self.now).await?;
            staleness::note_document(self.ctx, tx, &run, self.now).await?;
            boards::run_changed(tx, run.id).await?;
            announce::verdict(self.ctx, tx, run.id).await?;
        }
        Ok(is_new)
    }

    fn row(&self, id: RunId, assessment: &Assessment) -> Result<Run> {
        let claim = &assessment.claim;
        let asked_for = claim.model.as_ref().map(|m| m.hf_id.clone()).or_else(|| assessment.run.served_model.clone());
        let model_name = asked_for.unwrap_or_else(|| "unknown".to_owned());
        let model = match Catalog::builtin().resolve_model(&model_name) {
            ModelMatch::One(model) => Some(model),
            _ => None,
        };
        let challenged_quantization = self.challenge.as_ref().map(Challenge::spec).transpose()?.and_then(|s| s.quantization);
        let (hardware_slug, gpu_count) = hardware_of(self.machine.as_ref(), claim);
        let best = best_figures(&assessment.matrix);
        let is_answer = self.challenge.is_some() && assessment.verdict == Verdict::Verified;
        let level = if is_answer { EvidenceLevel::Challenged } else { EvidenceLevel::Document };
        Ok(Run {
            id,
            account_id: self.caller.account_id,
            machine_id: self.machine.as_ref().map(|m| m.id),
            challenge_id: self.challenge.as_ref().map(|c| c.id),
            status: assessment.verdict.as_str().to_owned(),
            evidence_level: level.as_str().to_owned(),
            visibility: self.fields.visibility.unwrap_or_default().as_str().to_owned(),
            model_slug: model.map(|m| m.slug.clone()),
            publisher: model.map(|m| m.publisher.clone()),
            model_name,
            quantization: claim.quantization().map(|q| q.as_str().to_owned()).or(challenged_quantization),
            hardware_slug,
            gpu_count,
            engine_name: claim.engine.as_ref().map(|e| e.name.clone()).or_else(|| assessment.run.engine.clone()),
            kv_cache_dtype: claim.launch_command.as_deref().and_then(kv_cache_of_command),
            title: assessment.title.clone(),
            summary: summary(assessment),
            detail: JsonText::of(&detail(self.fields.notes.clone(), self.circumstances.clone(), assessment))?,
            rules_version: assessment.rules_version.clone(),
            document_sha256: assessment.document_sha256.clone(),
            decode_single_tokens_per_second: best.single,
            decode_peak_tokens_per_second: best.peak,
            prefill_peak_tokens_per_second: best.prefill,
            upload_key: self.key.clone(),
            created_at: self.now,
            expires_at: self.now + TimeDelta::days(self.ctx.config.tunables.evidence_valid_days),
            stale_at: None,
            stale_reason: None,
            reviewed_at: None,
            reviewed_by: None,
            review_reason: None,
        })
    }
}

pub(super) fn unreadable(fault: &Unreadable, prefix: &str) -> Error {
    let pointer = format!("{prefix}{}", fault.pointer);
    Error::new(Code::UnreadableDocument, fault.detail.clone()).with_fields(vec![FieldError::new(
        pointer,
        fault.code.as_str(),
        fault.detail.clone(),
    )])
}

fn read_body(body: &[u8]) -> Result<Incoming> {
    let Envelope { fields, document, document_span } = document::read_envelope(body).map_err(|u| unreadable(&u, ""))?;
    let faults = unknown_members(&fields);
    if !faults.is_empty() {
        return Err(Error::invalid_fields(faults));
    }
    let fields: UploadFields = serde_path_to_error::deserialize(Value::Object(fields)).map_err(|error| {
        let path = error.path().to_string();
        let pointer = if path == "." { String::new() } else { format!("/{}", path.replace('.', "/")) };
        Error::invalid(pointer, "wrong_type", error.inner().to_string())
    })?;
    let claim = Claim {
        hardware: fields.hardware.clone(),
        model: fields.model.clone(),
        engine: fields.engine.clone(),
        launch_command: fields.launch_command.clone(),
    };
    let mut faults = claim.faults();
    if fields.notes.as_deref().is_some_and(|n| n.chars().count() > NOTES_CHARS_MAX) {
        faults.push(FieldError::new("/notes", "wrong_length", format!("At most {NOTES_CHARS_MAX} characters.")));
    }
    faults.extend(fields.notes.as_deref().and_then(|notes| text::prose_fault("/notes", notes)));
    if fields.challenge_id.is_some() && fields.machine_id.is_none() {
        faults.push(FieldError::new("/machine_id", "missing_field", "A challenge belongs to a machine: give machine_id."));
    }
    if !faults.is_empty() {
        return Err(Error::invalid_fields(faults));
    }
    let original = body.get(document_span).unwrap_or_default().to_vec();
    let original_sha256 = sha256_hex(&original);
    Ok(Incoming { fields, claim, document, original, original_sha256, document_pointer: "/document" })
}

fn unknown_members(fields: &Map<String, Value>) -> Vec<FieldError> {
    const TOP: [&str; 8] = ["machine_id", "challenge_id", "hardware", "model", "engine", "launch_command", "notes", "visibility"];
    let unknown = |pointer: String| FieldError::new(pointer, "unknown_field", "There is no such field.");
    let top = fields.keys().filter(|k| !TOP.contains(&k.as_str())).map(|k| unknown(format!("/{k}")));
    let nested = CLAIM_MEMBERS.iter().flat_map(|(name, known)| {
        let object = fields.get(*name).and_then(Value::as_object);
        let keys = object.into_iter().flat_map(|o| o.keys());
        keys.filter(|k| !known.contains(&k.as_str())).map(move |k| unknown(format!("/{name}/{k}")))
    });
    top.chain(nested).collect()
}

/// One text for everything that makes an upload the same as another.
fn upload_key(caller: &Caller, incoming: &Incoming) -> Result<String> {
    let fields = &incoming.fields;
    let claim = serde_json::to_string(&incoming.claim).map_err(Error::internal)?;
    let parts = [
        caller.account_id.to_string(),
        fields.machine_id.map(|m| m.to_string()).unwrap_or_default(),
        fields.challenge_id.map(|c| c.to_string()).unwrap_or_default(),
        claim,
        fields.visibility.unwrap_or_default().as_str().to_owned(),
        incoming.original_sha256.clone(),
    ];
    Ok(sha256_hex(parts.join("\n").as_bytes()))
}

async fn fetch_machine(conn: &mut Conn, caller: &Caller, fields: &UploadFields) -> Result<Option<Machine>> {
    match fields.machine_id {
        Some(id) => Ok(Some(machines::service::fetch_owned(conn, caller, id).await?)),
        None => Ok(None),
    }
}

async fn fetch_challenge(
    conn: &mut Conn,
    caller: &Caller,
    fields: &UploadFields,
    machine: Option<&Machine>,
    now: DateTime<Utc>,
) -> Result<Option<Challenge>> {
    let Some(id) = fields.challenge_id else { return Ok(None) };
    let found = queries::challenge_fetch(conn, id).await?;
    let challenge = found.filter(|c| c.account_id == caller.account_id).ok_or_else(|| Error::not_found("challenge"))?;
    if machine.is_none_or(|m| m.id != challenge.machine_id) {
        return Err(Error::invalid("/challenge_id", "other_machine", "The challenge was issued for another machine."));
    }
    if challenge.used_at.is_some() {
        return Err(Error::new(Code::ChallengeUsed, "This challenge has been answered; ask for a new one."));
    }
    if challenge.expires_at <= now {
        return Err(Error::new(Code::ChallengeExpired, "This challenge has expired; ask for a new one."));
    }
    Ok(Some(challenge))
}

/// The challenge fixes model and quantization: an upload that leaves them out has the challenge's, one that names others is refused.
fn with_challenged_model(mut claim: Claim, challenge: Option<&Challenge>) -> Result<Claim> {
    let Some(challenge) = challenge else { return Ok(claim) };
    let Some(asked) = &challenge.model else { return Ok(claim) };
    let asked_quantization = challenge.spec()?.quantization;
    let model = claim.model.get_or_insert_with(|| ClaimedModel { hf_id: asked.clone(), revision: None, quantization: None });
    if !is_same_model(asked, &model.hf_id) {
        return Err(Error::invalid("/model/hf_id", "other_model", format!("The challenge was issued for {asked}.")));
    }
    if let Some(asked) = asked_quantization {
        let claimed = model.quantization.get_or_insert_with(|| asked.clone());
        if Quantization::parse(claimed) != Quantization::parse(&asked) {
            return Err(Error::invalid("/model/quantization", "other_quantization", format!("The challenge was issued for {asked}.")));
        }
    }
    Ok(claim)
}

fn is_same_model(a: &str, b: &str) -> bool {
    let slug = |name: &str| Catalog::builtin().resolve_model(name).one().map(|m| m.slug.as_str());
    a == b || slug(a).is_some_and(|found| Some(found) == slug(b))
}

async fn use_challenge(tx: &mut Tx<'_>, challenge: Option<&Challenge>, now: DateTime<Utc>) -> Result<()> {
    match challenge {
        Some(challenge) if !queries::challenge_use(tx, challenge.id, now).await? => {
            Err(Error::new(Code::ChallengeUsed, "This challenge has been answered; ask for a new one."))
        }
        _ => Ok(()),
    }
}

/// What the machine's engine says of its own limits, where it can be asked: they explain cells that an answer lacks.
async fn engine_limits(ctx: &Ctx, machine: Option<&Machine>, is_answer: bool) -> Option<u64> {
    let machine = machine.filter(|m| is_answer && m.endpoint_url.is_some())?;
    let target = machines::service::target(ctx, machine).ok()?;
    let description = ctx.engines.describe(&target).await.ok()?;
    description.models.iter().filter_map(|m| m.max_model_len).max()
}

/// What surrounds a document when it is judged, at its upload and whenever the rules change.
pub(super) fn context(
    ctx: &Ctx,
    circumstances: &Circumstances,
    challenge: Option<&Challenge>,
    bytes_seen: bool,
    uploaded_at: DateTime<Utc>,
) -> Result<AssessContext> {
    let max_model_len = circumstances.max_model_len;
    let answer = match challenge {
        Some(challenge) => {
            let facts =
                AnswerFacts { uploaded_at, bytes_seen, nonce_seen: None, max_running_requests: None, max_model_len, kv_tokens: None };
            Some((challenge.spec()?, facts))
        }
        None => None,
    };
    let sandbox = ctx.config.mode.is_sandbox();
    Ok(AssessContext {
        challenge: answer,
        machine_hardware: circumstances.machine_hardware.clone(),
        hardware_unseen: if sandbox { HardwareUnseen::Note } else { HardwareUnseen::Suspicious },
        uploaded_at: Some(uploaded_at),
    })
}

/// A machine's hardware in the words of a claim.
pub(super) fn claimed_hardware(machine: &Machine) -> ClaimedHardware {
    let name = Catalog::builtin().hardware(&machine.hardware_slug).map_or(machine.hardware_slug.as_str(), |h| h.name.as_str());
    ClaimedHardware {
        gpu: name.to_owned(),
        gpu_count: u32::try_from(machine.gpu_count).ok(),
        vram_gib: machine.vram_gib,
        kind: Some(machine.kind.clone()),
        cpu: machine.cpu.clone(),
        ram_gib: machine.ram_gib,
        os: machine.os.clone(),
        driver: machine.driver.clone(),
        power_limit_w: machine.power_limit_w,
    }
}

/// What the assessment alone says, in the words of lists and pages.
pub(super) fn summary(assessment: &Assessment) -> String {
    let parts = [assessment.engine_summary.as_str(), assessment.matrix_summary.as_str()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

pub(super) fn detail(notes: Option<String>, circumstances: Circumstances, assessment: &Assessment) -> RunDetail {
    RunDetail {
        claim: assessment.claim.clone(),
        tool: assessment.tool.clone(),
        run: assessment.run.clone(),
        hardware_seen: assessment.hardware_seen.clone(),
        engine_summary: assessment.engine_summary.clone(),
        matrix_summary: assessment.matrix_summary.clone(),
        matrix: assessment.matrix.clone(),
        findings: assessment.findings.clone(),
        notes,
        circumstances,
    }
}

fn hardware_of(machine: Option<&Machine>, claim: &Claim) -> (Option<String>, Option<i32>) {
    if let Some(machine) = machine {
        return (Some(machine.hardware_slug.clone()), Some(machine.gpu_count));
    }
    let Some(hardware) = &claim.hardware else { return (None, None) };
    let found = Catalog::builtin().resolve_hardware(&hardware.gpu, hardware.vram_gib);
    let count = i32::try_from(hardware.gpu_count.unwrap_or(1)).ok();
    (found.one().map(|h| h.slug.clone()), count)
}

pub(super) struct Best {
    pub single: Option<f64>,
    pub peak: Option<f64>,
    pub prefill: Option<f64>,
}

/// A queued cell is never a reading (look.md).
pub(super) fn best_figures(matrix: &Matrix) -> Best {
    let valid = |c: &&super::super::matrix::Cell| c.status == CellStatus::Valid;
    let max = |values: &mut dyn Iterator<Item = f64>| values.fold(None, |best: Option<f64>, v| Some(best.map_or(v, |b| b.max(v))));
    Best {
        single: matrix.cell(0, 1).filter(valid).and_then(|c| c.total_tokens_per_second),
        peak: max(&mut matrix.decode.iter().filter(valid).filter_map(|c| c.total_tokens_per_second)),
        prefill: max(&mut matrix.prefill.iter().filter_map(|p| p.tokens_per_second)),
    }
}

pub(super) fn cells(run_id: RunId, matrix: &Matrix) -> Vec<RunCell> {
    matrix
        .decode
        .iter()
        .filter_map(|cell| {
            let cold = if cell.context_tokens == 0 { cell.ttft_ms } else { matrix.cold_ttft_ms(cell.context_tokens) };
            Some(RunCell {
                run_id,
                context_tokens: i32::try_from(cell.context_tokens).ok()?,
                concurrency: i32::try_from(cell.concurrency).ok()?,
                status: cell.status.as_str().to_owned(),
                total_tokens_per_second: cell.total_tokens_per_second,
                per_request_tokens_per_second: cell.per_request_tokens_per_second,
                ttft_ms: cell.ttft_ms,
                itl_ms: cell.itl_ms,
                cold_ttft_ms: cold,
            })
        })
        .collect()
}
