//! All SQL of `reports`.

use diesel::{dsl::sql, prelude::*, sql_types};
use diesel_async::RunQueryDsl;

use super::model::Report;
use crate::{
    base::{
        Result,
        id::{AccountId, ReportId},
    },
    db::{
        Conn, Tx,
        schema::{accounts, reports},
    },
};

pub async fn report_insert(tx: &mut Tx<'_>, report: &Report) -> Result<()> {
    tx.note_public_change();
    diesel::insert_into(reports::table).values(report).execute(&mut **tx).await?;
    Ok(())
}

/// With the handle of whoever made it.
pub async fn report_fetch(conn: &mut Conn, id: ReportId) -> Result<Option<(Report, String)>> {
    let row = reports::table.inner_join(accounts::table).filter(reports::id.eq(id.uuid()));
    Ok(row.select((Report::as_select(), accounts::handle)).first(conn).await.optional()?)
}

/// `false` when it is not there or another's.
pub async fn report_delete(tx: &mut Tx<'_>, id: ReportId, account: AccountId) -> Result<bool> {
    tx.note_public_change();
    let own = reports::table.find(id.uuid()).filter(reports::account_id.eq(account.uuid()));
    Ok(diesel::delete(own).execute(&mut **tx).await? == 1)
}

/// Which reports to list; a model or hardware by the catalog's slug, or by the name that was typed.
#[derive(Debug, Clone, Default)]
pub struct ReportFilter {
    pub model: Option<String>,
    pub publisher: Option<String>,
    pub hardware: Option<String>,
    pub gpu_count: Option<i32>,
    pub engine: Option<String>,
    pub quantization: Option<String>,
    pub by: Option<AccountId>,
}

/// Newest first; ids follow the instants.
pub async fn report_list(conn: &mut Conn, filter: &ReportFilter, after: Option<ReportId>, limit: i64) -> Result<Vec<(Report, String)>> {
    let mut query = reports::table.inner_join(accounts::table).into_boxed();
    // As the indexes have them.
    if let Some(model) = &filter.model {
        query = query.filter(sql::<sql_types::Text>("coalesce(model_slug, model_name)").eq(model));
    }
    if let Some(hardware) = &filter.hardware {
        query = query.filter(sql::<sql_types::Text>("coalesce(hardware_slug, hardware_name)").eq(hardware));
    }
    if let Some(publisher) = &filter.publisher {
        query = query.filter(reports::publisher.eq(publisher));
    }
    if let Some(count) = filter.gpu_count {
        query = query.filter(reports::gpu_count.eq(count));
    }
    if let Some(engine) = &filter.engine {
        query = query.filter(reports::engine_name.eq(engine));
    }
    if let Some(quantization) = &filter.quantization {
        query = query.filter(reports::quantization.eq(quantization));
    }
    if let Some(by) = filter.by {
        query = query.filter(reports::account_id.eq(by.uuid()));
    }
    if let Some(after) = after {
        query = query.filter(reports::id.lt(after.uuid()));
    }
    Ok(query.order(reports::id.desc()).limit(limit).select((Report::as_select(), accounts::handle)).load(conn).await?)
}
