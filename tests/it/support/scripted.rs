//! An engine that does as a test says: answers, keeps its callers waiting, or fails in some way.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// How requests to one path are met.
#[derive(Debug, Clone, PartialEq)]
pub enum Manner {
    /// This status and body.
    Answer(u16, String),
    /// With a header beside it.
    With(u16, &'static str, String),
    /// Nothing until the manner changes; then as that says.
    Wait,
    /// The head and these pieces of an event stream, then nothing more until the client leaves.
    Trickle(Vec<String>),
    /// The same, then the connection is cut in the middle of the body.
    Cut(Vec<String>),
}

struct Shared {
    models: Mutex<Manner>,
    chat: Mutex<Manner>,
    /// Bodies of chat requests.
    bodies: Mutex<Vec<String>>,
    /// Heads of all requests.
    heads: Mutex<Vec<String>>,
    /// Chat requests whose client is there.
    open: Mutex<usize>,
}

/// Stops when dropped.
pub struct Scripted {
    pub url: String,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

pub fn model_list(names: &[&str]) -> String {
    let data: Vec<Value> = names.iter().map(|name| json!({ "id": name, "object": "model", "owned_by": "test" })).collect();
    json!({ "object": "list", "data": data }).to_string()
}

pub fn completion(text: &str) -> String {
    let usage = json!({ "prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8 });
    let choice = json!({ "index": 0, "message": { "role": "assistant", "content": text }, "finish_reason": "stop" });
    json!({ "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage }).to_string()
}

impl Scripted {
    /// Serves these models and answers every chat with one token.
    pub async fn start(models: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            models: Mutex::new(Manner::Answer(200, model_list(models))),
            chat: Mutex::new(Manner::Answer(200, completion("yes"))),
            bodies: Mutex::default(),
            heads: Mutex::default(),
            open: Mutex::default(),
        });
        let mut tasks = JoinSet::new();
        let served = shared.clone();
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                open.spawn(serve(stream, served.clone()));
            }
        });
        Self { url, shared, _tasks: tasks }
    }

    pub fn models(&self, manner: Manner) {
        *self.shared.models.lock().unwrap() = manner;
    }
    pub fn chat(&self, manner: Manner) {
        *self.shared.chat.lock().unwrap() = manner;
    }
    pub fn bodies(&self) -> Vec<String> {
        self.shared.bodies.lock().unwrap().clone()
    }
    pub fn heads(&self) -> Vec<String> {
        self.shared.heads.lock().unwrap().clone()
    }
    /// Chat requests that are being answered or kept waiting.
    pub fn open(&self) -> usize {
        *self.shared.open.lock().unwrap()
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    while let Some((head, body)) = read(&mut stream).await {
        let is_chat = head.starts_with("POST");
        shared.heads.lock().unwrap().push(head);
        let of = || if is_chat { &shared.chat } else { &shared.models };
        if is_chat {
            shared.bodies.lock().unwrap().push(body);
            *shared.open.lock().unwrap() += 1;
        }
        let goes_on = answer(&mut stream, of()).await;
        if is_chat {
            *shared.open.lock().unwrap() -= 1;
        }
        if !goes_on {
            return;
        }
    }
}

/// False when the connection is to be closed.
async fn answer(stream: &mut TcpStream, manner: &Mutex<Manner>) -> bool {
    loop {
        let now = manner.lock().unwrap().clone();
        let (text, then) = match now {
            Manner::Wait => {
                // Notices a client that leaves.
                let mut byte = [0];
                tokio::select! {
                    read = stream.peek(&mut byte) => if !matches!(read, Ok(1)) { return false },
                    () = tokio::time::sleep(Duration::from_millis(5)) => {}
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            }
            Manner::Answer(status, body) => (plain(status, "", &body), true),
            Manner::With(status, header, body) => (plain(status, &format!("{header}\r\n"), &body), true),
            Manner::Trickle(pieces) | Manner::Cut(pieces) => (events(&pieces), false),
        };
        if stream.write_all(text.as_bytes()).await.is_err() {
            return false;
        }
        if !then && matches!(*manner.lock().unwrap(), Manner::Trickle(_)) {
            let mut byte = [0];
            while let Ok(1..) = stream.read(&mut byte).await {}
        }
        return then;
    }
}

fn plain(status: u16, header: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} Told\r\ncontent-type: application/json\r\n{header}content-length: {}\r\n\r\n{body}", body.len())
}

fn events(pieces: &[String]) -> String {
    let mut text = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
    for piece in pieces {
        text.push_str(&format!("{:x}\r\n{piece}\r\n", piece.len()));
    }
    text
}

/// Head and body of one request, by Content-Length.
async fn read(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut all = Vec::new();
    loop {
        if let Some(end) = all.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&all[..end]).into_owned();
            let headers: BTreeMap<String, String> =
                head.lines().filter_map(|l| l.split_once(':')).map(|(k, v)| (k.to_lowercase(), v.trim().to_owned())).collect();
            let length: usize = headers.get("content-length").map_or(0, |text| text.parse().unwrap());
            if all.len() >= end + 4 + length {
                return Some((head, String::from_utf8_lossy(&all[end + 4..]).into_owned()));
            }
        }
        let mut piece = [0; 16_384];
        match stream.read(&mut piece).await {
            Ok(read) if read > 0 => all.extend_from_slice(&piece[..read]),
            _ => return None,
        }
    }
}
