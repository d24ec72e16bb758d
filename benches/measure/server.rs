//! A server that emits tokens at a stated rate, in lockstep as an engine does, and writes down the instant at which it sent each. What it
//! planned counts for nothing: a busy computer delays its steps, and the client is right when it says so.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

/// How the server answers.
#[derive(Clone, Copy)]
pub struct Pace {
    /// Between two tokens of a stream.
    pub step: Duration,
    /// Between reading a request and its first token.
    pub first_token: Duration,
}

/// What was sent to one stream.
#[derive(Clone)]
pub struct Sent {
    /// When its request had been read.
    pub asked: Instant,
    /// When each token was sent.
    pub tokens: Vec<Instant>,
}

struct Stream {
    id: u64,
    socket: TcpStream,
    tokens_max: usize,
    sent: Sent,
}

#[derive(Default)]
struct State {
    open: Mutex<Vec<Stream>>,
    ended: Mutex<Vec<Sent>>,
    tokens: AtomicU64,
    ids: AtomicU64,
    is_stopped: AtomicBool,
}

/// Stops when dropped.
pub struct RateServer {
    pub address: SocketAddr,
    state: Arc<State>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RateServer {
    pub fn start(pace: Pace) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let state = Arc::new(State::default());
        let (accepting, pacing) = (state.clone(), state.clone());
        thread::spawn(move || {
            for socket in listener.incoming().map_while(|socket| socket.ok().filter(|_| !accepting.is_stopped.load(Relaxed))) {
                let state = accepting.clone();
                thread::spawn(move || serve(&state, &socket));
            }
        });
        thread::spawn(move || run(&pacing, pace));
        Ok(Self { address, state })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Streams that are being answered, and the tokens sent to all there ever were.
    pub fn load(&self) -> (usize, u64) {
        (lock(&self.state.open).len(), self.state.tokens.load(Relaxed))
    }

    /// What was sent to the streams that have ended since the last call.
    pub fn take_ended(&self) -> Vec<Sent> {
        std::mem::take(&mut *lock(&self.state.ended))
    }
}

impl Drop for RateServer {
    fn drop(&mut self) {
        self.state.is_stopped.store(true, Relaxed);
        // The listener waits for a connection; this one wakes it.
        drop(TcpStream::connect(self.address));
    }
}

/// The steps: one token for every stream whose first is due.
fn run(state: &State, pace: Pace) {
    let mut next = Instant::now();
    while !state.is_stopped.load(Relaxed) {
        next += pace.step;
        thread::sleep(next.saturating_duration_since(Instant::now()));
        let mut open = lock(&state.open);
        let now = Instant::now();
        let mut place = 0;
        while let Some(stream) = open.get_mut(place) {
            if stream.sent.asked + pace.first_token > now || send_token(state, stream).unwrap_or(false) {
                place += 1;
            } else {
                lock(&state.ended).push(open.swap_remove(place).sent);
            }
        }
    }
}

/// One token as vLLM sends it; whether there are more to come.
fn send_token(state: &State, stream: &mut Stream) -> std::io::Result<bool> {
    let number = stream.sent.tokens.len() + 1;
    let mut bytes = Vec::with_capacity(512);
    if number == 1 {
        event(&mut bytes, stream.id, r#"{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}"#, 0)?;
    }
    event(&mut bytes, stream.id, r#"{"index":0,"delta":{"content":" lighthouse"},"logprobs":null,"finish_reason":null}"#, number)?;
    if number == stream.tokens_max {
        event(&mut bytes, stream.id, r#"{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":"length"}"#, number)?;
        chunk(&mut bytes, "data: [DONE]\n\n")?;
        bytes.extend_from_slice(b"0\r\n\r\n");
    }
    let at = Instant::now();
    stream.socket.write_all(&bytes)?;
    stream.sent.tokens.push(at);
    state.tokens.fetch_add(1, Relaxed);
    Ok(number < stream.tokens_max)
}

fn event(out: &mut Vec<u8>, id: u64, choice: &str, tokens: usize) -> std::io::Result<()> {
    let usage = format!(r#"{{"prompt_tokens":100,"total_tokens":{},"completion_tokens":{tokens}}}"#, 100 + tokens);
    chunk(
        out,
        &format!(
            "data: {{\"id\":\"chatcmpl-{id:032}\",\"object\":\"chat.completion.chunk\",\"created\":1796000000,\"model\":\"paced\",\"choices\":[{choice}],\"usage\":{usage}}}\n\n"
        ),
    )
}

fn chunk(out: &mut Vec<u8>, text: &str) -> std::io::Result<()> {
    write!(out, "{:x}\r\n{text}\r\n", text.len())
}

/// One connection: reads requests until the client leaves.
fn serve(state: &State, socket: &TcpStream) {
    let mut id = None;
    // A client that leaves in the middle is no fault.
    let _left = answer_all(state, socket, &mut id);
    let mut open = lock(&state.open);
    if let Some(place) = open.iter().position(|stream| Some(stream.id) == id) {
        lock(&state.ended).push(open.swap_remove(place).sent);
    }
    let _closed = socket.shutdown(Shutdown::Both);
}

fn answer_all(state: &State, mut socket: &TcpStream, id: &mut Option<u64>) -> Result<()> {
    socket.set_nodelay(true)?;
    let mut reader = BufReader::new(socket.try_clone()?);
    loop {
        let (mut first, mut length) = (String::new(), 0);
        if reader.read_line(&mut first)? == 0 {
            return Ok(());
        }
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let asked = Instant::now();
        if first.starts_with("POST") {
            let request: serde_json::Value = serde_json::from_slice(&body)?;
            let tokens_max = request["max_tokens"].as_u64().context("no max_tokens")?.try_into()?;
            socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")?;
            let number = state.ids.fetch_add(1, Relaxed);
            *id = Some(number);
            let sent = Sent { asked, tokens: Vec::new() };
            lock(&state.open).push(Stream { id: number, socket: socket.try_clone()?, tokens_max, sent });
        } else {
            let models = r#"{"object":"list","data":[{"id":"paced","object":"model","owned_by":"bench"}]}"#;
            let (status, text) = if first.contains("/v1/models") { ("200 OK", models) } else { ("404 Not Found", "{}") };
            write!(socket, "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{text}", text.len())?;
        }
    }
}
