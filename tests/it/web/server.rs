//! A server with a few handlers of the test's own behind the program's middleware.

use std::net::TcpListener;

use actix_web::dev::ServerHandle;
use actix_web::middleware::{Compress, from_fn};
use actix_web::web::{Data, ServiceConfig, to};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use clap::Parser;
use rigmark::app;
use rigmark::base::Error;
use rigmark::config::ServeArgs;
use rigmark::ctx::Ctx;
use rigmark::web::{
    api::api,
    edge::edge,
    not_found::not_found,
    problem::{self, Renderers},
};

use crate::support::TempDir;
use crate::support::http::{Http, install_tls_provider};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    serve: ServeArgs,
}

pub struct Server {
    pub http: Http,
    pub ctx: Ctx,
    pub port: u16,
    handle: ServerHandle,
}

/// No database answers here; for tests that need none.
pub const NO_DATABASE: &str = "postgres://127.0.0.1:1/none";

/// A context by itself.
pub fn ctx(database_url: &str, redis_url: &str) -> Ctx {
    ctx_with(database_url, redis_url, &[])
}

/// The same, with more flags of `serve`.
pub fn ctx_with(database_url: &str, redis_url: &str, more: &[&str]) -> Ctx {
    install_tls_provider();
    let data_dir = TempDir::new();
    let path = data_dir.path().to_str().unwrap();
    let flags = ["test", "--bind", "127.0.0.1:0", "--database-url", database_url, "--data-dir", path, "--redis-url", redis_url];
    let none = ["--stripe-secret-key=", "--database-replica-url=", "--jwt-secret=", "--encryption-key="];
    let all = flags.into_iter().chain(none).chain(more.iter().copied());
    let config = Command::parse_from(all).serve.into_config().unwrap();
    app::build_ctx(config, database_url, "http://rigmark.test").unwrap()
}

/// How the paths below `/v1` write their errors here.
fn plain_error(_: &HttpRequest, error: &Error, _request_id: &str) -> HttpResponse {
    plain(error)
}

fn plain(error: &Error) -> HttpResponse {
    HttpResponse::build(problem::status(error.code())).body(format!("error: {}", error.code().as_str()))
}

/// How those below `/api/plain` are written when there is no request any more.
fn plain_late(error: &Error, _request_id: &str) -> HttpResponse {
    plain(error)
}

impl Server {
    pub fn start(routes: fn(&mut ServiceConfig)) -> Self {
        Self::with(ctx(NO_DATABASE, ""), routes)
    }

    pub fn with(ctx: Ctx, routes: fn(&mut ServiceConfig)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let data = Data::new(ctx.clone());
        let server = HttpServer::new(move || {
            App::new()
                .app_data(data.clone())
                .app_data(Renderers::default().at("/v1", plain_error).at_late("/api/plain", plain_late))
                .configure(routes)
                .default_service(to(not_found))
                .wrap(from_fn(api))
                .wrap(Compress::default())
                .wrap(from_fn(edge))
        })
        .workers(2)
        .tcp_nodelay(true)
        .disable_signals()
        .listen(listener)
        .unwrap()
        .run();
        let handle = server.handle();
        tokio::spawn(server);
        Self { http: Http::new(format!("http://127.0.0.1:{port}")), ctx, port, handle }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The command is sent at once; nobody waits for the answer.
        drop(self.handle.stop(false));
    }
}
