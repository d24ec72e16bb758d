//! Bodies at and beyond their limits, plain and compressed.

use std::io::Write;
use std::time::Duration;

use actix_web::web::{ServiceConfig, post};
use flate2::Compression;
use flate2::write::GzEncoder;
use rigmark::base::{Result, clock};
use rigmark::web::body::RUN_BYTES_MAX;
use rigmark::web::{Json, RawBody};
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::server::Server;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    text: String,
}

async fn small(body: Json<Document>) -> Result<String> {
    Ok(body.text.len().to_string())
}
async fn large(body: Json<Document, RUN_BYTES_MAX>) -> Result<String> {
    Ok(body.text.len().to_string())
}
async fn raw(body: RawBody<RUN_BYTES_MAX>) -> Result<String> {
    Ok(body.len().to_string())
}

fn routes(config: &mut ServiceConfig) {
    config.route("/api/v1/small", post().to(small)).route("/api/v1/large", post().to(large)).route("/api/v1/raw", post().to(raw));
}

fn document(text_bytes: usize) -> Vec<u8> {
    format!(r#"{{"text": "{}"}}"#, "x".repeat(text_bytes)).into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn brotli(bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    brotli::CompressorWriter::new(&mut packed, 4_096, 1, 22).write_all(bytes).unwrap();
    packed
}

/// Zeros, packed a thousandfold; never held unpacked by the test either.
fn gzip_bomb(bytes: usize) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let block = vec![0_u8; 1_000_000];
    for _ in 0..bytes / block.len() {
        encoder.write_all(&block).unwrap();
    }
    encoder.finish().unwrap()
}

#[actix_web::test]
async fn compressed_bodies_are_read() {
    let server = Server::start(routes);
    let plain = document(100_000);
    for (encoding, body) in [("gzip", gzip(&plain)), ("x-gzip", gzip(&plain)), ("br", brotli(&plain)), ("identity", plain.clone())] {
        let answer = server.http.post("/api/v1/small").header("content-encoding", encoding).body(body).answer().await;
        assert_eq!((answer.status.as_u16(), answer.body.as_str()), (200, "100000"), "{encoding}");
    }
    // Two members, as gzip allows.
    let (head, tail) = plain.split_at(50_000);
    let members = [gzip(head), gzip(tail)].concat();
    let answer = server.http.post("/api/v1/small").header("content-encoding", "gzip").body(members).answer().await;
    assert_eq!(answer.body, "100000");
}

#[actix_web::test]
async fn a_body_may_be_as_large_as_its_limit_and_no_larger() {
    let server = Server::start(routes);
    let fits = document(262_144 - 12);
    assert_eq!(fits.len(), 262_144);
    let beyond = document(262_144 - 11);
    assert_eq!(server.http.post("/api/v1/small").body(fits.clone()).answer().await.status, 200);
    assert_eq!(server.http.post("/api/v1/small").header("content-encoding", "gzip").body(gzip(&fits)).answer().await.status, 200);
    server.http.post("/api/v1/small").body(beyond.clone()).expect_problem(413, "payload_too_large").await;
    for (encoding, body) in [("gzip", gzip(&beyond)), ("br", brotli(&beyond))] {
        let request = server.http.post("/api/v1/small").header("content-encoding", encoding).body(body);
        request.expect_problem(413, "payload_too_large").await;
    }
}

#[actix_web::test]
async fn a_run_of_some_megabytes_is_read_packed_and_plain() {
    let server = Server::start(routes);
    let plain = document(20_000_000);
    for (encoding, body) in [("gzip", gzip(&plain)), ("identity", plain)] {
        let answer = server.http.post("/api/v1/large").header("content-encoding", encoding).body(body).answer().await;
        assert_eq!((answer.status.as_u16(), answer.body.as_str()), (200, "20000000"), "{encoding}");
    }
}

#[actix_web::test]
async fn bombs_are_refused_before_they_go_off() {
    let server = Server::start(routes);
    // Ten times the limit, in less than a megabyte.
    let bomb = gzip_bomb(640_000_000);
    assert!(bomb.len() < 1_000_000);
    let start = clock::monotonic();
    for path in ["/api/v1/small", "/api/v1/large", "/api/v1/raw"] {
        let request = server.http.post(path).header("content-encoding", "gzip").body(bomb.clone());
        request.expect_problem(413, "payload_too_large").await;
    }
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    // The process holds no more than the limit at any time; the peak of the whole test process shows an unbounded buffer.
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak_kib: u64 = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap().trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak_kib < 2_000_000, "{peak_kib} KiB");
}

#[actix_web::test]
async fn sixty_four_megabytes_are_the_end() {
    let server = Server::start(routes);
    let raw = |bytes: usize| server.http.post("/api/v1/raw").header("content-encoding", "gzip").body(gzip_bomb(bytes));
    assert_eq!(raw(64_000_000).answer().await.body, "64000000");
    raw(65_000_000).expect_problem(413, "payload_too_large").await;
}

#[actix_web::test]
async fn more_than_sixteen_megabytes_packed_are_refused_by_their_length_alone() {
    let server = Server::start(routes);
    let answer = declared(&server, "content-encoding: gzip\r\ncontent-length: 16000001\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("payload_too_large"), "{answer}");
    let answer = declared(&server, "content-length: 64000001\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("payload_too_large"), "{answer}");
}

/// Sends a head and no body.
async fn declared(server: &Server, headers: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", server.port)).await.unwrap();
    let head = format!("POST /api/v1/raw HTTP/1.1\r\nhost: x\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4_096];
    let count = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut answer)).await.expect("answered at once").unwrap();
    answer.truncate(count);
    String::from_utf8(answer).unwrap()
}

/// Many clients write their whole body before they read anything.
#[actix_web::test]
async fn a_client_that_writes_to_the_end_still_reads_the_refusal() {
    let server = Server::start(routes);
    for framing in ["content-length: 20000000\r\n", "transfer-encoding: chunked\r\n"] {
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", server.port)).await.unwrap();
        stream.write_all(format!("POST /api/v1/small HTTP/1.1\r\nhost: x\r\n{framing}\r\n").as_bytes()).await.unwrap();
        let block = vec![b'x'; 1_000_000];
        for _ in 0..20 {
            if framing.starts_with("transfer") {
                stream.write_all(b"F4240\r\n").await.unwrap();
            }
            stream.write_all(&block).await.unwrap();
            if framing.starts_with("transfer") {
                stream.write_all(b"\r\n").await.unwrap();
            }
        }
        let mut answer = vec![0; 4_096];
        let count = tokio::time::timeout(Duration::from_secs(10), stream.read(&mut answer)).await.expect("answered").unwrap();
        let answer = String::from_utf8_lossy(&answer[..count]).into_owned();
        assert!(answer.starts_with("HTTP/1.1 413 "), "{framing}: {answer}");
    }
}

#[actix_web::test]
async fn damaged_and_unknown_encodings_are_refused() {
    let server = Server::start(routes);
    let packed = gzip(&document(1_000));
    let post = |encoding: &'static str, body: Vec<u8>| server.http.post("/api/v1/small").header("content-encoding", encoding).body(body);
    post("gzip", packed[..packed.len() - 10].to_vec()).expect_problem(400, "malformed_request").await;
    post("gzip", document(10)).expect_problem(400, "malformed_request").await;
    let mut wrong_sum = packed.clone();
    let at = wrong_sum.len() - 6;
    wrong_sum[at] ^= 1;
    post("gzip", wrong_sum).expect_problem(400, "malformed_request").await;
    let packed = brotli(&document(1_000));
    post("br", packed[..packed.len() - 5].to_vec()).expect_problem(400, "malformed_request").await;
    // The header of a "large window" stream with a window of 2^30.
    post("br", vec![0x11, 0x1e, 0, 0]).expect_problem(400, "malformed_request").await;
    for encoding in ["zstd", "deflate", "gzip, gzip", "compress"] {
        post(encoding, document(10)).expect_problem(415, "unsupported_encoding").await;
    }
}
