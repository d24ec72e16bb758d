//! The tables that mirror the rows, and names as input of other domains.

use diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use rigmark::base::Code;
use rigmark::catalog::Catalog;
use rigmark::catalog::service::{Loaded, hardware_input, hardware_resolve, load, model_input};
use rigmark::db::schema::{hardware_models, models};

use crate::support::postgres;

async fn slugs(conn: &mut AsyncPgConnection) -> (Vec<String>, Vec<String>) {
    let hardware = hardware_models::table.select(hardware_models::slug).load(conn).await.unwrap();
    (hardware, models::table.select(models::slug).load(conn).await.unwrap())
}

#[tokio::test]
async fn loading_twice_writes_once() {
    let database = postgres().database().await;
    let mut conn = database.connect().await;
    let catalog = Catalog::builtin();
    let all = Loaded { hardware_models: catalog.hardware_models().len(), models: catalog.models().len() };
    assert_eq!(load(&mut conn).await.unwrap(), all);
    assert_eq!(load(&mut conn).await.unwrap(), Loaded { hardware_models: 0, models: 0 });
    let (mut hardware, mut models) = slugs(&mut conn).await;
    let mut wanted: Vec<&String> = catalog.hardware_models().iter().map(|row| &row.slug).collect();
    hardware.sort_unstable();
    wanted.sort_unstable();
    assert!(hardware.iter().eq(wanted));
    let mut wanted: Vec<&String> = catalog.models().iter().map(|row| &row.slug).collect();
    models.sort_unstable();
    wanted.sort_unstable();
    assert!(models.iter().eq(wanted));
}

#[tokio::test]
async fn loading_repairs_what_differs_and_removes_nothing() {
    let database = postgres().database().await;
    let mut conn = database.connect().await;
    load(&mut conn).await.unwrap();
    conn.batch_execute(
        "UPDATE hardware_models SET memory_gib = NULL WHERE slug = 'rtx-3090'; UPDATE models SET name = 'x' WHERE slug = 'gpt-oss-20b';
         INSERT INTO hardware_models VALUES ('rtx-1', 'RTX 1', 'NVIDIA', 'discrete_gpu', 'Old', 1, 1, false)",
    )
    .await
    .unwrap();
    assert_eq!(load(&mut conn).await.unwrap(), Loaded { hardware_models: 1, models: 1 });
    let memory: Option<f64> = hardware_models::table.find("rtx-3090").select(hardware_models::memory_gib).first(&mut conn).await.unwrap();
    assert_eq!(memory, Some(24.0));
    let kept: i64 = hardware_models::table.filter(hardware_models::slug.eq("rtx-1")).count().get_result(&mut conn).await.unwrap();
    assert_eq!(kept, 1);
}

#[tokio::test]
async fn two_processes_may_load_at_once() {
    let database = postgres().database().await;
    let (mut first, mut second) = (database.connect().await, database.connect().await);
    let (one, other) = tokio::join!(load(&mut first), load(&mut second));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(one.hardware_models + other.hardware_models, Catalog::builtin().hardware_models().len());
    assert_eq!(one.models + other.models, Catalog::builtin().models().len());
}

#[test]
fn names_as_input_name_the_field_and_the_candidates() {
    let error = hardware_input("/hardware/gpu", "RTX 6000", None).unwrap_err();
    assert_eq!(error.code(), Code::InvalidInput);
    assert_eq!((error.fields()[0].pointer.as_str(), error.fields()[0].code.as_ref()), ("/hardware/gpu", "ambiguous_name"));
    let candidates = error.extra()["candidates"].as_array().unwrap();
    assert_eq!(candidates.len(), 5);
    assert_eq!(candidates[0], serde_json::json!({"slug": "quadro-rtx-6000", "name": "Quadro RTX 6000"}));
    assert_eq!(hardware_input("/hardware/gpu", "RTX 6000", Some(48.0)).unwrap().slug, "rtx-6000-ada");
    assert_eq!(hardware_input("/hardware/gpu", "Voodoo 2", None).unwrap_err().fields()[0].code, "unknown_hardware");
    assert_eq!(model_input("/model/hf_id", "somebody/no-such-model").unwrap_err().fields()[0].code, "unknown_model");
    assert_eq!(hardware_resolve("RTX 6000", None).unwrap_err().code(), Code::AmbiguousName);
    assert_eq!(hardware_resolve("Voodoo 2", None).unwrap_err().code(), Code::NotFound);
}
