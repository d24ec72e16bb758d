//! Builds a process: the private cluster when no database is given, the schema, `Ctx`, the HTTP servers and the workers; and takes it down
//! in the opposite order, letting requests in hand finish.

use std::{
    collections::HashSet,
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use actix_web::{
    App, HttpServer,
    dev::ServerHandle,
    middleware::{Compress, from_fn},
    web::{Data, ServiceConfig, to},
};

use crate::{
    base::{Error, Result, answers::Answers, clock::Clock, offload::Offload},
    benchmarks::{self, tool},
    billing,
    catalog::{self, Catalog},
    config::{Config, Mode},
    ctx::{Ctx, Inner},
    db::{self, Db, embedded},
    endpoint,
    engines::{EngineClient, PostClient},
    identity::{self, extract::identify},
    integrations::{limits::Limits, pubsub::PubSub, redis::Redis, stripe::Stripe},
    jobs::Workers,
    openapi, routes,
    web::{
        api::api,
        edge::edge,
        html, metrics,
        not_found::{Paths, not_found},
        problem::Renderers,
    },
    worker,
};

/// How long requests in hand may take when the server is told to stop.
const SHUTDOWN_SECONDS: u64 = 10;
/// About three seconds of hashing on two cores; who comes later is told to try again.
const PASSWORD_HASHES_WAITING: usize = 128;
const DATABASE_NAME: &str = "rigmark";

/// Which parts of the program this process runs.
#[derive(Debug, Clone, Copy)]
pub struct Parts {
    pub http: bool,
    pub workers: bool,
}

/// A running process.
pub struct Running {
    pub ctx: Ctx,
    /// Where the API listens, without a trailing slash.
    pub base_url: String,
    server: Option<ServerHandle>,
    metrics_server: Option<ServerHandle>,
    workers: Option<Workers>,
    embedded: Option<embedded::Embedded>,
}

/// Starts everything and returns when it answers.
///
/// # Errors
/// A sentence for the operator when something it needs cannot be had.
pub async fn start(config: Config, parts: Parts) -> Result<Running> {
    start_with(config, parts, |_| {}).await
}

/// The same with routes beside the program's own, for the benchmarks' peers: behind the same middleware, on the same threads.
///
/// # Errors
/// As [`start`].
pub async fn start_with<F>(config: Config, parts: Parts, more: F) -> Result<Running>
where
    F: Fn(&mut ServiceConfig) + Clone + Send + 'static,
{
    let embedded = match &config.database_url {
        Some(_) => None,
        None => Some(start_embedded(&config).await?),
    };
    let url = match (&config.database_url, &embedded) {
        (Some(url), _) => url.expose().clone(),
        (None, Some(cluster)) => cluster.url(DATABASE_NAME),
        (None, None) => return Err(Error::internal("no database")),
    };
    db::migrate(&url).await?;
    let listener = parts.http.then(|| TcpListener::bind(config.bind)).transpose().map_err(|e| cannot_bind(config.bind, &e))?;
    let base_url = match &listener {
        Some(listener) => format!("http://{}", listener.local_addr().map_err(Error::internal)?),
        None => format!("http://{}", config.bind),
    };
    let ctx = build_ctx(config, &url, &base_url)?;
    let mut conn = ctx.db.conn().await?;
    if parts.http || parts.workers {
        claim_database(&mut conn, ctx.config.mode).await?;
    }
    catalog::service::load(&mut conn).await?;
    drop(conn);
    if (parts.http || parts.workers) && benchmarks::service::has_runs_of_other_rules(&ctx).await? {
        tracing::warn!("Some runs were judged by other rules than this program's. Run `rigmark reverify` once.");
    }
    billing::pro::service::check_prices(&ctx).await?;
    let server = listener.map(|listener| start_http(&ctx, listener, more)).transpose()?;
    let metrics_server = ctx.config.metrics_bind.map(|bind| start_metrics(&ctx, bind)).transpose()?;
    let workers = if parts.workers { Some(Workers::start(&ctx)?) } else { None };
    Ok(Running { ctx, base_url, server, metrics_server, workers, embedded })
}

/// Play money must not become money, nor Stripe's test money real money: a database is of one mode for good.
async fn claim_database(conn: &mut db::Conn, mode: Mode) -> Result<()> {
    let of = db::mode_claim(conn, mode.as_str()).await?;
    if of == mode.as_str() {
        return Ok(());
    }
    let detail = format!("This database is of {of} mode, and this server is of {}. Use another database or data directory.", mode.as_str());
    Err(Error::new(crate::base::Code::InvalidState, detail))
}

async fn start_embedded(config: &Config) -> Result<embedded::Embedded> {
    embedded::Embedded::start(embedded::EmbeddedConfig {
        data_dir: config.data_dir.join("postgres"),
        bin_dir: config.pg_bin_dir.clone(),
        fsync: true,
    })
    .await
}

fn cannot_bind(bind: SocketAddr, error: &std::io::Error) -> Error {
    Error::new(crate::base::Code::Unavailable, format!("{bind} cannot be used: {error}. Set RIGMARK_BIND (--bind) to a free address."))
}

/// What services use, by itself: nothing is connected or started yet.
///
/// # Errors
/// `internal` when an address in the configuration is none.
pub fn build_ctx(config: Config, url: &str, base_url: &str) -> Result<Ctx> {
    let replica = config.database_replica_url.as_ref().map(|u| u.expose().as_str());
    let db = Db::new(url, replica, config.database_connections)?;
    let redis = config.redis_url.as_ref().map(|url| Redis::new(url, "rigmark:")).transpose()?;
    metrics::install();
    Ok(Ctx::new(Inner {
        public_url: config.public_url.clone().unwrap_or_else(|| base_url.to_owned()),
        answers: Answers::new(config.answers_kept),
        clock: Clock::new(config.mode.is_sandbox()),
        reserved_handles: reserved_handles(),
        engines: EngineClient::new()?,
        posts: PostClient::new()?,
        stripe: config.stripe.as_ref().map(Stripe::new).transpose()?,
        limits: Limits::new(redis.clone()),
        notices: PubSub::new(redis),
        registry: worker::registry(),
        clock_moves: tokio::sync::Mutex::default(),
        password_hashing: Offload::per_core(PASSWORD_HASHES_WAITING),
        db,
        config,
    }))
}

/// The words of our own paths, and publishers: their names are theirs.
fn reserved_handles() -> HashSet<String> {
    let own = identity::RESERVED_HANDLES.iter().map(|h| (*h).to_owned());
    own.chain(Catalog::builtin().publishers().iter().map(|p| p.slug.clone())).collect()
}

/// Prometheus' address, apart from the public one.
fn start_metrics(ctx: &Ctx, bind: SocketAddr) -> Result<ServerHandle> {
    let data = Data::new(ctx.clone());
    let listener = TcpListener::bind(bind).map_err(|e| cannot_bind(bind, &e))?;
    let server = HttpServer::new(move || App::new().app_data(data.clone()).service(metrics::metrics_show))
        .workers(1)
        .disable_signals()
        .listen(listener)
        .map_err(Error::internal)?
        .run();
    let handle = server.handle();
    tokio::spawn(server);
    Ok(handle)
}

fn start_http<F>(ctx: &Ctx, listener: TcpListener, more: F) -> Result<ServerHandle>
where
    F: Fn(&mut ServiceConfig) + Clone + Send + 'static,
{
    let data = Data::new(ctx.clone());
    let paths = Data::new(Paths::of(&openapi::collected()));
    let renderers = Renderers::default().at("/v1", endpoint::api::render_error).for_browsers(html::error_page);
    let renderers = renderers.at(tool::api::PREFIX, tool::api::render_error).at_late(tool::api::PREFIX, tool::api::error_answer);
    let renderers = html::LANGUAGES.iter().fold(renderers, |all, language| all.at(language.prefix, html::error_page));
    let server = HttpServer::new(move || {
        let app = App::new().app_data(data.clone()).app_data(paths.clone()).app_data(renderers.clone());
        let app = app.configure(routes::api).configure(routes::pages).configure(more.clone());
        // The last wrapped is outermost.
        app.default_service(to(not_found)).wrap(from_fn(identify)).wrap(from_fn(api)).wrap(Compress::default()).wrap(from_fn(edge))
    })
    // Nagle's algorithm would hold back the second small write of a stream for 40 ms.
    .tcp_nodelay(true)
    // Otherwise a client that has left goes unnoticed while its handler waits for an engine.
    .h1_allow_half_closed(false)
    .client_request_timeout(Duration::from_secs(10))
    .shutdown_timeout(SHUTDOWN_SECONDS)
    .disable_signals()
    .listen(listener)
    .map_err(Error::internal)?
    .run();
    let handle = server.handle();
    tokio::spawn(server);
    Ok(handle)
}

impl Running {
    /// Stops listening, lets requests in hand and workers finish, then stops the private cluster.
    ///
    /// # Errors
    /// `internal` when the cluster cannot be stopped.
    pub async fn stop(self) -> Result<()> {
        for server in [self.server, self.metrics_server].into_iter().flatten() {
            server.stop(true).await;
        }
        if let Some(workers) = self.workers {
            workers.stop().await;
        }
        match self.embedded {
            Some(cluster) => cluster.stop().await,
            None => Ok(()),
        }
    }
}
