//! The engine's HTTP side: the paths of vLLM that clients and benchmarks use.

use std::net::TcpListener;
use std::sync::Arc;

use actix_web::dev::ServerHandle as ActixHandle;
use actix_web::http::StatusCode;
use actix_web::http::header::{AUTHORIZATION, CONTENT_TYPE};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use bytes::Bytes;
use futures::Stream;
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;

use super::driver::Driver;
use super::request::{CompletionRequest, Job, Refusal, StreamOptions};
use super::scheduler::Event;
use super::{SimulatedConfig, text};
use crate::base::clock::Clock;
use crate::base::{Error, Result};
use crate::engines::SIMULATED_OWNER;

const BODY_BYTES_MAX: usize = 64 << 20;

struct State {
    config: Arc<SimulatedConfig>,
    driver: Arc<Driver>,
    clock: Clock,
}

pub struct ServerHandle(ActixHandle);

impl ServerHandle {
    pub async fn stop(&self) {
        self.0.stop(false).await;
    }
    /// Tells the server to stop without waiting for it.
    pub fn abandon(&self) {
        // The command is sent when `stop` is called; the future only waits for the end.
        drop(self.0.stop(false));
    }
}

pub fn serve(config: Arc<SimulatedConfig>, driver: Arc<Driver>, listener: TcpListener) -> Result<ServerHandle> {
    let state = web::Data::new(State { config, driver, clock: Clock::default() });
    let server = HttpServer::new(move || {
        App::new()
            .app_data(state.clone())
            .app_data(web::PayloadConfig::new(BODY_BYTES_MAX))
            .route("/v1/models", web::get().to(models))
            .route("/v1/chat/completions", web::post().to(chat))
            .route("/v1/completions", web::post().to(complete))
            .route("/version", web::get().to(version))
            .route("/health", web::get().to(HttpResponse::Ok))
            .route("/metrics", web::get().to(metrics))
    })
    .workers(1)
    // Without it a connection's second write waits for the client's delayed acknowledgement (40 ms).
    .tcp_nodelay(true)
    // A client that closes its side has left, also while its request still waits for the first token.
    .h1_allow_half_closed(false)
    .disable_signals()
    .listen(listener)
    .map_err(Error::internal)?
    .run();
    let handle = ServerHandle(server.handle());
    tokio::spawn(server);
    Ok(handle)
}

fn refuse(refusal: &Refusal) -> HttpResponse {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_REQUEST);
    let error = json!({"message": refusal.message, "type": refusal.kind, "param": null, "code": refusal.status});
    HttpResponse::build(status).json(json!({"error": error}))
}

fn check_key(state: &State, request: &HttpRequest) -> std::result::Result<(), Refusal> {
    let Some(key) = &state.config.api_key else { return Ok(()) };
    let sent = request.headers().get(AUTHORIZATION).and_then(|v| v.to_str().ok()).and_then(|v| v.strip_prefix("Bearer "));
    if sent == Some(key.expose()) {
        return Ok(());
    }
    Err(Refusal { status: 401, kind: "AuthenticationError", message: "Unauthorized".to_owned() })
}

async fn models(state: web::Data<State>, request: HttpRequest) -> HttpResponse {
    if state.driver.is_stopped() {
        // On a connection that has outlived the port for a moment: a stopped engine is not alive.
        return HttpResponse::ServiceUnavailable().force_close().finish();
    }
    if let Err(refusal) = check_key(&state, &request) {
        return refuse(&refusal);
    }
    let model = json!({
        "id": state.config.model, "object": "model", "created": state.clock.wall_now().timestamp(), "owned_by": SIMULATED_OWNER,
        "root": state.config.model, "parent": null, "max_model_len": state.config.max_model_len, "permission": [],
    });
    HttpResponse::Ok().json(json!({"object": "list", "data": [model]}))
}

async fn version(state: web::Data<State>) -> HttpResponse {
    HttpResponse::Ok().json(json!({"version": state.config.version}))
}

async fn metrics(state: web::Data<State>) -> HttpResponse {
    let text = state.driver.totals().render(&state.config);
    HttpResponse::Ok().insert_header((CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")).body(text)
}

async fn chat(state: web::Data<State>, request: HttpRequest, body: Bytes) -> HttpResponse {
    answer(&state, &request, &body, true).await.unwrap_or_else(|refusal| refuse(&refusal))
}

async fn complete(state: web::Data<State>, request: HttpRequest, body: Bytes) -> HttpResponse {
    answer(&state, &request, &body, false).await.unwrap_or_else(|refusal| refuse(&refusal))
}

async fn answer(state: &State, request: &HttpRequest, body: &[u8], chat: bool) -> std::result::Result<HttpResponse, Refusal> {
    check_key(state, request)?;
    let parsed: CompletionRequest = serde_json::from_slice(body).map_err(|e| Refusal::bad_request(e.to_string()))?;
    let stream = parsed.stream;
    let options = parsed.stream_options.unwrap_or_default();
    let job = parsed.into_job(&state.config, chat)?;
    let events = state.driver.submit(job.clone());
    let writer = Writer::new(state, job, chat);
    if stream {
        let body = writer.stream(events, options);
        return Ok(HttpResponse::Ok().insert_header((CONTENT_TYPE, "text/event-stream; charset=utf-8")).streaming(body));
    }
    writer.whole(events).await
}

/// Writes one answer. A chunk is put together from fixed pieces: with hundreds of streams that is most of the engine's work.
struct Writer {
    job: Job,
    chat: bool,
    /// `{"id":…,"object":…,"created":…,"model":…` without the closing brace.
    head: String,
    whole_object: &'static str,
    id: String,
    created: i64,
    model: String,
    sent: u64,
    usage_factor: u64,
    cached_tokens: u64,
}

impl Writer {
    fn new(state: &State, job: Job, chat: bool) -> Self {
        let created = state.clock.wall_now().timestamp();
        let (prefix, object, whole_object) =
            if chat { ("chatcmpl", "chat.completion.chunk", "chat.completion") } else { ("cmpl", "text_completion", "text_completion") };
        let id = format!("{prefix}-{}", uuid::Uuid::new_v4().simple());
        let model = state.config.model.clone();
        let head = json!({"id": id, "object": object, "created": created, "model": model}).to_string();
        let head = head.trim_end_matches('}').to_owned();
        Self { job, chat, head, whole_object, id, created, model, sent: 0, usage_factor: state.config.usage_factor, cached_tokens: 0 }
    }

    fn usage(&self) -> String {
        let (prompt, sent) = (self.job.prompt_tokens, self.sent * self.usage_factor);
        format!(r#"{{"prompt_tokens":{prompt},"total_tokens":{},"completion_tokens":{sent}}}"#, prompt + sent)
    }

    fn final_usage(&self) -> String {
        let (prompt, sent, cached) = (self.job.prompt_tokens, self.sent * self.usage_factor, self.cached_tokens);
        format!(
            r#"{{"prompt_tokens":{prompt},"total_tokens":{},"completion_tokens":{sent},"prompt_tokens_details":{{"cached_tokens":{cached}}}}}"#,
            prompt + sent
        )
    }

    fn finish_reason(&self) -> &'static str {
        if self.job.ends_by_itself { "stop" } else { "length" }
    }

    fn event(&self, choices: &str, usage: Option<String>) -> String {
        let usage = usage.map(|usage| format!(r#","usage":{usage}"#)).unwrap_or_default();
        format!("data: {},\"choices\":[{choices}]{usage}}}\n\n", self.head)
    }

    fn choice(&self, content: &str, role: bool, finish: Option<&str>) -> String {
        let finish = finish.map_or("null".to_owned(), |reason| format!("\"{reason}\""));
        if !self.chat {
            return format!(r#"{{"index":0,"text":"{content}","logprobs":null,"finish_reason":{finish}}}"#);
        }
        let role = if role { r#""role":"assistant","# } else { "" };
        format!(r#"{{"index":0,"delta":{{{role}"content":"{content}"}},"logprobs":null,"finish_reason":{finish}}}"#)
    }

    fn next_text(&mut self) -> String {
        let opening = usize::try_from(self.sent).ok().and_then(|at| self.job.opening.get(at));
        let word = opening.map_or_else(|| text::token(self.job.seed, self.sent), |word| word.as_str());
        let text = if self.sent == 0 { word.to_owned() } else { format!(" {word}") };
        self.sent += 1;
        text
    }

    /// The events of a stream: role, one token a chunk, finish, usage, `[DONE]`.
    fn stream(self, events: UnboundedReceiver<Event>, options: StreamOptions) -> impl Stream<Item = std::result::Result<Bytes, StreamCut>> {
        let always = options.continuous_usage_stats && options.include_usage;
        futures::stream::unfold(Some((self, events)), move |state| async move {
            let (mut writer, mut events) = state?;
            let mut out = String::new();
            while out.is_empty() {
                match events.recv().await {
                    Some(Event::Admitted { cached_tokens }) => writer.cached_tokens = cached_tokens,
                    Some(Event::Token) => {
                        if writer.chat && writer.sent == 0 {
                            out = writer.event(&writer.choice("", true, None), always.then(|| writer.usage()));
                        }
                        let text = writer.next_text();
                        out += &writer.event(&writer.choice(&text, false, None), always.then(|| writer.usage()));
                    }
                    Some(Event::End) => {
                        let last = writer.choice("", false, Some(writer.finish_reason()));
                        out = writer.event(&last, always.then(|| writer.usage()));
                        if options.include_usage {
                            out += &writer.event("", Some(writer.final_usage()));
                        }
                        out += "data: [DONE]\n\n";
                        return Some((Ok(Bytes::from(out)), None));
                    }
                    // The engine was stopped: the answer breaks off, as it does when a real one dies.
                    None => return Some((Err(StreamCut), None)),
                }
            }
            Some((Ok(Bytes::from(out)), Some((writer, events))))
        })
    }

    async fn whole(mut self, mut events: UnboundedReceiver<Event>) -> std::result::Result<HttpResponse, Refusal> {
        let mut text = String::new();
        loop {
            match events.recv().await {
                Some(Event::Admitted { cached_tokens }) => self.cached_tokens = cached_tokens,
                Some(Event::Token) => text += &self.next_text(),
                Some(Event::End) => break,
                None => return Err(Refusal { status: 503, kind: "ServiceUnavailableError", message: "engine is stopping".to_owned() }),
            }
        }
        let reason = self.finish_reason();
        let choice = if self.chat {
            json!({"index": 0, "message": {"role": "assistant", "content": text}, "logprobs": null, "finish_reason": reason})
        } else {
            json!({"index": 0, "text": text, "logprobs": null, "finish_reason": reason})
        };
        let usage = json!({
            "prompt_tokens": self.job.prompt_tokens, "completion_tokens": self.sent, "total_tokens": self.job.prompt_tokens + self.sent,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
        });
        Ok(HttpResponse::Ok().json(json!({
            "id": self.id, "object": self.whole_object, "created": self.created, "model": self.model, "choices": [choice], "usage": usage,
        })))
    }
}

/// The body ends before its end.
#[derive(Debug, thiserror::Error)]
#[error("the engine was stopped")]
struct StreamCut;
