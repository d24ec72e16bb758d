//! A server that answers every request with fixed bytes: for answers no decent engine gives.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Stops when dropped.
pub struct RawServer {
    pub url: String,
    pub connections: Arc<AtomicUsize>,
    /// Each request, head and body.
    pub requests: Arc<Mutex<Vec<Vec<u8>>>>,
    _tasks: JoinSet<()>,
}

impl RawServer {
    /// `answer` makes the bytes of the answer from the request; `None` leaves the client waiting.
    pub async fn start(answer: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (connections, requests) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (count, log, answer) = (connections.clone(), requests.clone(), Arc::new(answer));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, SeqCst);
                let (log, answer) = (log.clone(), answer.clone());
                open.spawn(async move { serve(stream, &log, answer.as_ref()).await });
            }
        });
        Self { url, connections, requests, _tasks: tasks }
    }
}

async fn serve(mut stream: TcpStream, log: &Mutex<Vec<Vec<u8>>>, answer: &(dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync)) {
    while let Some(request) = read(&mut stream).await {
        let text = String::from_utf8_lossy(&request).into_owned();
        log.lock().unwrap().push(request);
        match answer(&text) {
            Some(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            None => std::future::pending().await,
        }
    }
}

/// One request with its body, by Content-Length.
async fn read(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        if let Some(end) = all.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&all[..end]).to_lowercase();
            let length = head.lines().find_map(|l| l.strip_prefix("content-length:")?.trim().parse::<usize>().ok()).unwrap_or(0);
            if all.len() >= end + 4 + length {
                return Some(all);
            }
        }
        let mut piece = [0; 16384];
        match stream.read(&mut piece).await {
            Ok(read) if read > 0 => all.extend_from_slice(&piece[..read]),
            _ => return None,
        }
    }
}

/// An answer with a JSON body.
pub fn json_answer(status: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}
