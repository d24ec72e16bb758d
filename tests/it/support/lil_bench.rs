//! The benchmark tool's uploader as its authors wrote it (evidence.md 3): Python's urllib, which packs the body, closes each connection, follows
//! no redirect of a POST to the end, tries again after network errors, 429 and 5xx only, and reads JSON objects and nothing else.

use std::io::{self, Write};
use std::net::SocketAddr;

use flate2::{Compression, write::GzEncoder};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const TRIES: u32 = 3;

/// What one call came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The status of the last try; 0 when the network failed every time.
    pub status: u16,
    /// The object that was read.
    pub body: Value,
    pub tries: u32,
}

impl Outcome {
    /// What the tool prints of a failure.
    #[track_caller]
    pub fn error(&self) -> &str {
        self.body["error"].as_str().unwrap_or_else(|| panic!("the tool has no text to show: {self:?}"))
    }
    #[track_caller]
    pub fn url(&self) -> &str {
        self.body["url"].as_str().unwrap_or_else(|| panic!("no url: {self:?}"))
    }
}

/// `lil-bench` with `--site` and `--token`.
#[derive(Clone)]
pub struct LilBench {
    address: SocketAddr,
    token: String,
}

/// An answer as it stands on the wire.
pub struct Wire {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl LilBench {
    pub fn new(site: &str, token: &str) -> Self {
        Self { address: site.trim_start_matches("http://").parse().unwrap(), token: token.to_owned() }
    }

    pub async fn whoami(&self) -> Outcome {
        let request = self.head("GET", "/api/bench/whoami", &[]);
        self.call(request).await
    }

    pub async fn upload(&self, document: &Value) -> Outcome {
        self.call(self.upload_bytes(document)).await
    }

    /// The whole request, to be sent in parts.
    pub fn upload_bytes(&self, document: &Value) -> Vec<u8> {
        self.post("application/json", Some("gzip"), &gzip(document.to_string().as_bytes()))
    }

    pub fn post(&self, content_type: &str, encoding: Option<&str>, body: &[u8]) -> Vec<u8> {
        let length = body.len().to_string();
        let mut headers = vec![("Content-type", content_type), ("Content-length", length.as_str())];
        headers.extend(encoding.map(|encoding| ("Content-encoding", encoding)));
        let mut request = self.head("POST", "/api/bench/runs", &headers);
        request.extend(body);
        request
    }

    pub fn head(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
        let mut text = format!("{method} {path} HTTP/1.1\r\nAccept-Encoding: identity\r\nHost: {}\r\n", self.address);
        text.push_str("User-agent: lil-bench/1.4\r\nAccept: application/json\r\nConnection: close\r\n");
        if !self.token.is_empty() {
            text.push_str(&format!("Authorization: Bearer {}\r\n", self.token));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        text.into_bytes()
    }

    /// The tool's loop, without its waits of 3 and 9 seconds.
    pub async fn call(&self, request: Vec<u8>) -> Outcome {
        let mut last = Outcome { status: 0, body: Value::Null, tries: 0 };
        for tries in 1..=TRIES {
            last.tries = tries;
            let Ok(wire) = self.once(&request).await else { continue };
            assert!(!(300..400).contains(&wire.status), "a redirect: a POST would become a GET, or fail");
            last = Outcome { status: wire.status, body: object(&wire), tries };
            if wire.status != 429 && wire.status < 500 {
                return last;
            }
        }
        last
    }

    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    pub async fn once(&self, request: &[u8]) -> io::Result<Wire> {
        let mut stream = TcpStream::connect(self.address).await?;
        // A server that refuses a body may close before it has read all of it; what it said is there all the same.
        let written = stream.write_all(request).await;
        let mut all = Vec::new();
        let read = stream.read_to_end(&mut all).await;
        match wire(&all) {
            Some(wire) => Ok(wire),
            None => Err(written.err().or(read.err()).unwrap_or_else(|| io::Error::other("no answer"))),
        }
    }
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn wire(all: &[u8]) -> Option<Wire> {
    let end = all.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&all[..end]).to_ascii_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    assert!(!head.contains("transfer-encoding"), "in pieces: {head}");
    Some(Wire { status, head, body: all[end + 4..].to_vec() })
}

/// As the tool reads it: nothing is an empty object, and what is no object it cannot survive.
fn object(wire: &Wire) -> Value {
    assert!(!wire.head.contains("content-encoding"), "the tool cannot unpack: {}", wire.head);
    let text = String::from_utf8_lossy(&wire.body).into_owned();
    if text.is_empty() && (200..300).contains(&wire.status) {
        return Value::Object(serde_json::Map::new());
    }
    let value: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{} is no JSON: {text}", wire.status));
    assert!(value.is_object(), "{} is no object: {text}", wire.status);
    value
}
