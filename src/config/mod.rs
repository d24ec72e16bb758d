//! Configuration: the only reader of the environment. Everything is checked at start, and a mistake stops the program with a sentence.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::Args;
use ipnet::IpNet;

use crate::base::{Error, Result, secret::Secret};

/// Which of the three modes of design.md this process runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Play money and a business clock that can be moved.
    Sandbox,
    /// Stripe test keys.
    Test,
    /// Stripe live keys.
    Live,
}

impl Mode {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Test => "test",
            Self::Live => "live",
        }
    }
    pub const fn is_sandbox(self) -> bool {
        matches!(self, Self::Sandbox)
    }
}

/// How a machine's evidence must have come about before it may be listed (evidence.md 0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum ListingEvidence {
    Challenged,
    Remeasured,
}

/// What `rigmark serve` and `worker` read from flags and the environment.
#[derive(Args, Debug, Clone)]
pub struct ServeArgs {
    /// PostgreSQL (15 or newer). Without it Rigmark runs a private cluster in the data directory.
    #[arg(long, help_heading = "Database", env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// A read replica for public reads.
    #[arg(long, help_heading = "Database", env = "DATABASE_REPLICA_URL", hide_env_values = true)]
    pub database_replica_url: Option<String>,
    /// Redis or Valkey for rate limits and live events between replicas. Without it they are in-process.
    #[arg(long, help_heading = "Database", env = "REDIS_URL", hide_env_values = true)]
    pub redis_url: Option<String>,
    /// Address of the API and the pages.
    #[arg(long, help_heading = "Addresses and files", env = "RIGMARK_BIND", default_value = "127.0.0.1:8080")]
    pub bind: SocketAddr,
    /// Address of /metrics (Prometheus). Without it metrics are not served.
    #[arg(long, help_heading = "Addresses and files", env = "RIGMARK_METRICS_BIND")]
    pub metrics_bind: Option<SocketAddr>,
    /// Where Rigmark keeps its own files: the private cluster, generated secrets, mail.
    #[arg(long, help_heading = "Addresses and files", env = "RIGMARK_DATA_DIR", default_value = "var")]
    pub data_dir: PathBuf,
    /// The address users see, without a trailing slash. Default: http:// and the bind address.
    #[arg(long, help_heading = "Addresses and files", env = "RIGMARK_PUBLIC_URL")]
    pub public_url: Option<String>,
    /// Reverse proxies in front, as addresses or networks separated by commas (10.0.0.0/8): from them X-Forwarded-For is believed, so that
    /// rate limits go by the client's address.
    #[arg(long, help_heading = "Addresses and files", env = "RIGMARK_TRUSTED_PROXIES", value_delimiter = ',', value_parser = parse_network)]
    pub trusted_proxies: Vec<IpNet>,
    /// Keys that sign access tokens: `kid:secret` separated by commas, the first signs; or one bare secret of at least 32 characters.
    #[arg(long, help_heading = "Mode and secrets", env = "RIGMARK_JWT_SECRET", hide_env_values = true)]
    pub jwt_secret: Option<String>,
    /// Encrypts engine keys at rest and seals cursors and quotes; at least 32 characters.
    #[arg(long, help_heading = "Mode and secrets", env = "RIGMARK_ENCRYPTION_KEY", hide_env_values = true)]
    pub encryption_key: Option<String>,
    /// Decides the mode: none is the sandbox, sk_test_… is test, sk_live_… is live.
    #[arg(long, help_heading = "Mode and secrets", env = "STRIPE_SECRET_KEY", hide_env_values = true)]
    pub stripe_secret_key: Option<String>,
    /// What Stripe signs its webhooks with (whsec_…); several, separated by commas, while one is being replaced.
    #[arg(long, help_heading = "Mode and secrets", env = "STRIPE_WEBHOOK_SECRET", hide_env_values = true)]
    pub stripe_webhook_secret: Option<String>,
    /// Where Stripe's API is. Default: Stripe's own. Anything else is for test mode: https, or http on loopback.
    #[arg(long, help_heading = "Mode and secrets", env = "STRIPE_API_BASE")]
    pub stripe_api_base: Option<String>,
    /// What a seat of Pro costs a month: a price of Stripe's (price_…) in US dollars. Without it and the yearly one Pro is not for sale.
    #[arg(long, help_heading = "Mode and secrets", env = "STRIPE_PRICE_PRO_MONTHLY")]
    pub stripe_price_pro_monthly: Option<String>,
    /// What a seat of Pro costs a year.
    #[arg(long, help_heading = "Mode and secrets", env = "STRIPE_PRICE_PRO_YEARLY")]
    pub stripe_price_pro_yearly: Option<String>,
    /// Whether engines at private addresses may be reached. Sandbox only, and only while the server is bound to loopback.
    #[arg(long, help_heading = "Mode and secrets", env = "RIGMARK_ALLOW_PRIVATE_ENDPOINTS")]
    pub allow_private_endpoints: Option<bool>,
    /// The evidence a listing needs. Default: challenged in the sandbox, otherwise remeasured.
    #[arg(long, help_heading = "Mode and secrets", env = "RIGMARK_LISTING_EVIDENCE", value_enum)]
    pub listing_evidence: Option<ListingEvidence>,
    /// Folder of the PostgreSQL server programs for the private cluster.
    #[arg(long, help_heading = "Database", env = "PG_BIN_DIR")]
    pub pg_bin_dir: Option<PathBuf>,
    /// Connections to PostgreSQL; searches may take as many again.
    #[arg(long, help_heading = "Database", env = "RIGMARK_DATABASE_CONNECTIONS", default_value_t = 16)]
    pub database_connections: u32,
}

/// Limits, times, fees and tolerances that the operator of a service may change.
#[derive(Debug, Clone, serde::Serialize, utoipa::ToSchema)]
pub struct Tunables {
    pub quote_valid_seconds: i64,
    pub boot_timeout_seconds: i64,
    pub host_silent_pause_seconds: i64,
    pub host_silent_end_seconds: i64,
    pub challenge_valid_seconds: i64,
    pub evidence_valid_days: i64,
    pub earnings_hold_days: i64,
    pub fee_basis_points: u16,
    pub fee_basis_points_pro: u16,
    /// Rate limits of an account with Pro are this many times those of others.
    pub pro_rate_factor: u32,
    /// How far ahead a rental may start: without Pro, and with it.
    pub reservation_hours_ahead: i64,
    pub pro_reservation_hours_ahead: i64,
    /// How long Pro goes on while a payment for it is due.
    pub pro_past_due_days: i64,
    /// What a seat costs in play money, in the sandbox.
    pub pro_sandbox_monthly_cents: i64,
    pub pro_sandbox_yearly_cents: i64,
    pub idempotency_lease_seconds: i64,
    /// How long a run whose machine has changed still backs a listing.
    pub stale_valid_days: i64,
    /// Mean of the random time between two re-measurements of a listed machine.
    pub remeasure_mean_days: u32,
    /// How long each re-measured cell is counted; in the sandbox no longer than 2 s.
    pub remeasure_window_milliseconds: u32,
    /// By how much a machine may be slower than its matrix before the server disagrees.
    pub remeasure_time_between_tokens_percent: u32,
    pub remeasure_total_percent: u32,
    pub remeasure_cold_ttft_percent: u32,
    /// Share of the streams of a re-measurement that must answer right.
    pub remeasure_right_answers_percent: u32,
    /// Bounds of one top-up, in whole cents.
    pub top_up_min_cents: i64,
    pub top_up_max_cents: i64,
    /// After this a top-up that nobody has paid is canceled.
    pub top_up_unpaid_days: i64,
    /// Automatic top-up pauses after this many failures in a row.
    pub automatic_top_up_failures_max: i32,
    /// The least that a host may ask to be paid out, and the least that the weekly payout pays, in whole cents.
    pub payout_min_cents: i64,
    pub payout_weekly_min_cents: i64,
}

impl Default for Tunables {
    fn default() -> Self {
        Self {
            quote_valid_seconds: 120,
            boot_timeout_seconds: 600,
            host_silent_pause_seconds: 60,
            host_silent_end_seconds: 900,
            challenge_valid_seconds: 86_400,
            evidence_valid_days: 90,
            earnings_hold_days: 7,
            fee_basis_points: 1_000,
            fee_basis_points_pro: 500,
            pro_rate_factor: 10,
            reservation_hours_ahead: 24,
            pro_reservation_hours_ahead: 720,
            pro_past_due_days: 7,
            pro_sandbox_monthly_cents: 3_000,
            pro_sandbox_yearly_cents: 30_000,
            idempotency_lease_seconds: 60,
            stale_valid_days: 7,
            remeasure_mean_days: 7,
            remeasure_window_milliseconds: 15_000,
            remeasure_time_between_tokens_percent: 15,
            remeasure_total_percent: 20,
            remeasure_cold_ttft_percent: 25,
            remeasure_right_answers_percent: 60,
            top_up_min_cents: 500,
            top_up_max_cents: 1_000_000,
            top_up_unpaid_days: 30,
            automatic_top_up_failures_max: 3,
            payout_min_cents: 100,
            payout_weekly_min_cents: 2_500,
        }
    }
}

/// Keys derived from or given as secrets. Several JWT keys may be valid; the first signs.
#[derive(Debug, Clone)]
pub struct Keys {
    pub jwt: Vec<JwtKey>,
    /// Seals cursors and quotes, encrypts engine keys; split by purpose before use (`base::secret`).
    pub root: Secret<Vec<u8>>,
}

#[derive(Debug, Clone)]
pub struct JwtKey {
    pub kid: String,
    pub secret: Secret<Vec<u8>>,
}

/// The checked configuration of a process.
#[derive(Debug, Clone)]
pub struct Config {
    pub mode: Mode,
    /// None: the private cluster under `data_dir`.
    pub database_url: Option<Secret<String>>,
    pub database_replica_url: Option<Secret<String>>,
    pub redis_url: Option<Secret<String>>,
    pub bind: SocketAddr,
    pub metrics_bind: Option<SocketAddr>,
    pub data_dir: PathBuf,
    pub public_url: Option<String>,
    pub trusted_proxies: Vec<IpNet>,
    pub keys: Keys,
    /// None in the sandbox.
    pub stripe: Option<StripeConfig>,
    pub allow_private_endpoints: bool,
    pub listing_evidence: ListingEvidence,
    pub pg_bin_dir: Option<PathBuf>,
    pub database_connections: u32,
    pub tunables: Tunables,
    /// argon2id memory; lower only in tests.
    pub argon2_memory_kib: u32,
    /// How long an answer to a public search may be served again; other processes' changes show after it.
    pub answers_kept: Duration,
}

fn wrong(detail: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(crate::base::Code::InvalidInput, detail)
}

/// A network, or one address as the network of itself.
fn parse_network(text: &str) -> std::result::Result<IpNet, String> {
    let text = text.trim();
    let address = || text.parse::<std::net::IpAddr>().map(IpNet::from);
    text.parse::<IpNet>().or_else(|_| address()).map_err(|_| "neither an address nor a network, such as 10.0.0.0/8".to_owned())
}

impl ServeArgs {
    /// Checks the arguments and reads or makes the secrets.
    ///
    /// # Errors
    /// A sentence for the operator: which variable, and what it must be.
    pub fn into_config(self) -> Result<Config> {
        let mode = match self.stripe_secret_key.as_deref() {
            None | Some("") => Mode::Sandbox,
            Some(key) if key.starts_with("sk_test_") || key.starts_with("rk_test_") => Mode::Test,
            Some(key) if key.starts_with("sk_live_") || key.starts_with("rk_live_") => Mode::Live,
            Some(_) => return Err(wrong("STRIPE_SECRET_KEY must start with sk_test_ or sk_live_.")),
        };
        let loopback = self.bind.ip().is_loopback();
        let allow_private_endpoints = match (self.allow_private_endpoints, mode.is_sandbox()) {
            (Some(true), false) => return Err(wrong("RIGMARK_ALLOW_PRIVATE_ENDPOINTS is for the sandbox only.")),
            (Some(true), true) if !loopback => {
                return Err(wrong("RIGMARK_ALLOW_PRIVATE_ENDPOINTS needs RIGMARK_BIND to be a loopback address."));
            }
            (choice, sandbox) => choice.unwrap_or(sandbox && loopback),
        };
        let listing_evidence =
            self.listing_evidence.unwrap_or(if mode.is_sandbox() { ListingEvidence::Challenged } else { ListingEvidence::Remeasured });
        if !mode.is_sandbox() && listing_evidence < ListingEvidence::Remeasured {
            return Err(wrong("RIGMARK_LISTING_EVIDENCE must be remeasured outside the sandbox."));
        }
        if let Some(url) = &self.public_url {
            let ok = url::Url::parse(url).is_ok_and(|u| matches!(u.scheme(), "http" | "https")) && !url.ends_with('/');
            if !ok {
                return Err(wrong("RIGMARK_PUBLIC_URL must be an http or https address without a trailing slash."));
            }
        }
        let given = stripe_config::Given {
            key: self.stripe_secret_key,
            webhook: self.stripe_webhook_secret,
            api_base: self.stripe_api_base,
            price_monthly: self.stripe_price_pro_monthly,
            price_yearly: self.stripe_price_pro_yearly,
        };
        let stripe = stripe_config::read(mode, given)?;
        let keys = secrets::load(mode, &self.data_dir, self.jwt_secret.as_deref(), self.encryption_key.as_deref())?;
        Ok(Config {
            mode,
            database_url: self.database_url.filter(|u| !u.is_empty()).map(Secret::new),
            database_replica_url: self.database_replica_url.filter(|u| !u.is_empty()).map(Secret::new),
            redis_url: self.redis_url.filter(|u| !u.is_empty()).map(Secret::new),
            bind: self.bind,
            metrics_bind: self.metrics_bind,
            data_dir: self.data_dir,
            public_url: self.public_url,
            trusted_proxies: self.trusted_proxies,
            keys,
            stripe,
            allow_private_endpoints,
            listing_evidence,
            pg_bin_dir: self.pg_bin_dir,
            database_connections: self.database_connections.clamp(4, 512),
            tunables: Tunables::default(),
            argon2_memory_kib: 19_456,
            answers_kept: Duration::from_secs(1),
        })
    }
}

mod secrets;
mod stripe_config;

pub use stripe_config::{ProPriceIds, StripeConfig};

const LOG: &str = "info,actix_server=warn,tokio_postgres=warn";
const LOG_CALM: &str = "warn";

/// How a process logs.
#[derive(Args, Debug, Clone)]
pub struct LogArgs {
    /// What is logged, in the syntax of tracing's `EnvFilter`: `warn`, `info` (every request), `info,rigmark::jobs=debug`. Default: info;
    /// warn with the demo.
    #[arg(long, help_heading = "Log", env = "RIGMARK_LOG")]
    log: Option<String>,
    /// One JSON object a line instead of text.
    #[arg(long, help_heading = "Log", env = "RIGMARK_LOG_JSON")]
    log_json: bool,
}

impl LogArgs {
    /// Installs the log's subscriber on standard error; a second call changes nothing. `calm`: unless told otherwise log warnings only.
    pub fn install(&self, calm: bool) {
        let default = if calm { LOG_CALM } else { LOG };
        let wanted = self.log.as_deref().unwrap_or(default);
        let filter = tracing_subscriber::EnvFilter::try_new(wanted).unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(default));
        let builder = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()));
        let installed = if self.log_json { builder.json().try_init() } else { builder.with_target(false).try_init() };
        if installed.is_err() {
            tracing::debug!("a log subscriber is installed already");
        }
    }
}
