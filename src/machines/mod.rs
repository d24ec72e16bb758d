//! stub
pub mod model {
    use crate::base::id::*;
    use chrono::*;
    #[derive(Debug, Clone)]
    pub struct Machine {
        pub id: MachineId,
        pub account_id: AccountId,
        pub name: String,
        pub hardware_slug: String,
        pub gpu_count: i32,
        pub vram_gib: Option<f64>,
        pub kind: String,
        pub cpu: Option<String>,
        pub ram_gib: Option<f64>,
        pub os: Option<String>,
        pub driver: Option<String>,
        pub power_limit_w: Option<f64>,
        pub endpoint_url: Option<String>,
        pub last_seen_at: Option<DateTime<Utc>>,
        pub probe_failed_at: Option<DateTime<Utc>>,
        pub created_at: DateTime<Utc>,
    }
}
pub mod service {
    use super::model::*;
    use crate::{
        base::{Error, Result, id::{AccountId, MachineId}},
        ctx::Ctx,
        db::*,
        engines::Target,
        identity::Caller,
    };
    fn no<T>() -> Result<T> {
        Err(Error::internal("stub"))
    }
    pub async fn fetch_owned(_: &mut Conn, _: &Caller, _: MachineId) -> Result<Machine> {
        no()
    }
    pub async fn fetch(_: &mut Conn, _: MachineId) -> Result<Machine> {
        no()
    }
    pub async fn list_with_endpoint(_: &mut Conn, _: AccountId, _: i64) -> Result<Vec<Machine>> {
        no()
    }
    pub fn target(_: &Ctx, _: &Machine) -> Result<Target> {
        no()
    }
    pub async fn watch(_: &mut Tx<'_>, _: MachineId, _: &str) -> Result<()> {
        no()
    }
    pub async fn unwatch(_: &mut Tx<'_>, _: MachineId, _: &str) -> Result<()> {
        no()
    }
    pub async fn note_start_failure(_: &mut Tx<'_>, _: MachineId) -> Result<()> {
        no()
    }
    pub async fn note_seen(_: &mut Tx<'_>, _: MachineId, _: chrono::DateTime<chrono::Utc>) -> Result<()> {
        no()
    }
}
