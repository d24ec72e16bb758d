//! The peers inside the server: handlers that send what was recorded through the bare tokio-postgres driver and write the same bytes. They
//! pass the same middleware, and neither read the rows nor build the answer; so what a ratio to them costs is everything between.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use actix_web::{
    HttpResponse,
    error::ErrorInternalServerError,
    http::header::ContentType,
    web::{self, Data, Path, ServiceConfig},
};
use anyhow::{Context as _, Result};
use bytes::{BufMut, Bytes, BytesMut};
use deadpool::managed;
use futures::TryStreamExt;
use tokio_postgres::{
    Client, NoTls, Statement,
    types::{IsNull, ToSql, Type, to_sql_checked},
};
use uuid::Uuid;

use crate::record::Sent;

/// Parameters as they are.
#[derive(Debug)]
pub struct Raw(pub Option<Vec<u8>>);

impl ToSql for Raw {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match &self.0 {
            None => Ok(IsNull::Yes),
            Some(bytes) => {
                out.put_slice(bytes);
                Ok(IsNull::No)
            }
        }
    }
    fn accepts(_: &Type) -> bool {
        true
    }
    to_sql_checked!();
}

struct Bare {
    client: Client,
    plans_once: bool,
    prepared: HashMap<String, Statement>,
}

impl Bare {
    async fn send(&mut self, sent: &Sent, fresh: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        match sent {
            Sent::Simple(sql) => self.client.batch_execute(sql).await?,
            Sent::Execute { sql, types, values } => {
                let statement = match self.prepared.get(sql) {
                    Some(statement) => statement.clone(),
                    None => {
                        let types = types.iter().map(|oid| Type::from_oid(*oid).context("an unknown type")).collect::<Result<Vec<_>>>()?;
                        let statement = self.client.prepare_typed(sql, &types).await?;
                        self.prepared.insert(sql.clone(), statement.clone());
                        statement
                    }
                };
                let values = values.iter().map(|value| Raw(value.as_ref().map(|bytes| replaced(bytes, fresh))));
                let rows = self.client.query_raw(&statement, values).await?;
                rows.try_for_each(|_| std::future::ready(Ok(()))).await?;
            }
        }
        Ok(())
    }
}

/// `bytes` with every recorded value that must be new each time replaced by this time's.
fn replaced(bytes: &[u8], fresh: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (old, new) in fresh {
        let Some(at) = bytes.windows(old.len()).position(|window| window == old.as_slice()) else { continue };
        bytes.splice(at..at + old.len(), new.iter().copied());
    }
    bytes
}

#[derive(Debug)]
struct Manager(String);

impl managed::Manager for Manager {
    type Type = Bare;
    type Error = anyhow::Error;

    async fn create(&self) -> Result<Bare> {
        let (client, connection) = tokio_postgres::connect(&self.0, NoTls).await?;
        tokio::spawn(connection);
        Ok(Bare { client, plans_once: false, prepared: HashMap::new() })
    }
    async fn recycle(&self, bare: &mut Bare, _: &managed::Metrics) -> managed::RecycleResult<anyhow::Error> {
        if bare.client.is_closed() { Err(managed::RecycleError::message("closed")) } else { Ok(()) }
    }
}

/// What each peer sends, and the answer it gives.
#[derive(Default)]
pub struct Script {
    pub sent: Vec<Sent>,
    pub answer: Bytes,
    /// As on the server's connections for searches.
    pub plans_once: bool,
}

/// A rental's two requests by one client, and the recorded values that are new each time.
pub struct Rent {
    pub steps: [Script; 2],
    pub fresh: Vec<Vec<u8>>,
    pub key: Vec<u8>,
}

type Fresh = Vec<(Vec<u8>, Vec<u8>)>;

pub struct Peers {
    pool: managed::Pool<Manager>,
    reads: HashMap<String, Script>,
    statics: HashMap<String, Bytes>,
    rents: Vec<(Rent, Mutex<Fresh>)>,
}

impl Peers {
    pub fn new(
        url: &str,
        connections: usize,
        reads: HashMap<String, Script>,
        statics: HashMap<String, Bytes>,
        rents: Vec<Rent>,
    ) -> Result<Arc<Self>> {
        let pool = managed::Pool::builder(Manager(url.to_owned())).max_size(connections).build()?;
        let rents = rents.into_iter().map(|rent| (rent, Mutex::default())).collect();
        Ok(Arc::new(Self { pool, reads, statics, rents }))
    }

    async fn send(&self, script: &Script, fresh: &Fresh) -> Result<Bytes> {
        let mut bare = self.pool.get().await.map_err(|error| anyhow::anyhow!("{error}"))?;
        if bare.plans_once != script.plans_once {
            let mode = if script.plans_once { "force_generic_plan" } else { "auto" };
            bare.client.batch_execute(&format!("SET plan_cache_mode = {mode}")).await?;
            bare.plans_once = script.plans_once;
        }
        for sent in &script.sent {
            bare.send(sent, fresh).await?;
        }
        Ok(script.answer.clone())
    }
}

async fn read(peers: Data<Arc<Peers>>, name: Path<String>) -> actix_web::Result<HttpResponse> {
    let script = peers.reads.get(name.as_str()).ok_or_else(|| ErrorInternalServerError("no such peer"))?;
    answer(peers.send(script, &Vec::new()).await)
}

async fn fixed(peers: Data<Arc<Peers>>, name: Path<String>) -> actix_web::Result<HttpResponse> {
    let bytes = peers.statics.get(name.as_str()).ok_or_else(|| ErrorInternalServerError("no such peer"))?;
    answer(Ok(bytes.clone()))
}

async fn rent(peers: Data<Arc<Peers>>, at: Path<(usize, usize)>) -> actix_web::Result<HttpResponse> {
    let (client, step) = at.into_inner();
    let (rent, fresh) = peers.rents.get(client).ok_or_else(|| ErrorInternalServerError("no such peer"))?;
    let fresh = {
        let mut fresh = fresh.lock().unwrap_or_else(PoisonError::into_inner);
        if step == 0 {
            *fresh = rent.fresh.iter().map(|old| (old.clone(), Uuid::new_v4().as_bytes().to_vec())).collect();
            let key = format!("{:0width$}", crate::load::unique(), width = rent.key.len());
            fresh.push((rent.key.clone(), key.into_bytes()));
        }
        fresh.clone()
    };
    let script = rent.steps.get(step).ok_or_else(|| ErrorInternalServerError("no such step"))?;
    answer(peers.send(script, &fresh).await)
}

fn answer(bytes: Result<Bytes>) -> actix_web::Result<HttpResponse> {
    let bytes = bytes.map_err(|error| ErrorInternalServerError(format!("{error:#}")))?;
    Ok(HttpResponse::Ok().content_type(ContentType::json()).body(bytes))
}

/// The routes of the peers, below `/api/v1` so that everything around a handler is the same.
pub fn routes(peers: Arc<Peers>) -> impl Fn(&mut ServiceConfig) + Clone + Send + 'static {
    move |config| {
        config
            .app_data(Data::new(Arc::clone(&peers)))
            .route("/api/v1/bench/read/{name}", web::get().to(read))
            .route("/api/v1/bench/static/{name}", web::get().to(fixed))
            .route("/api/v1/bench/rent/{client}/{step}", web::post().to(rent));
    }
}
