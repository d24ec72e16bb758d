//! Every migration can be undone and done again, and the schema keeps its house rules.

use std::collections::{BTreeMap, BTreeSet};

use diesel::sql_types::{Array, SmallInt, Text};
use diesel::{QueryableByName, sql_query};
use diesel_async::{AsyncMigrationHarness, AsyncPgConnection, RunQueryDsl};
use diesel_migrations::MigrationHarness;
use rigmark::db::MIGRATIONS;

use crate::support::{database, postgres};

/// One fact about the schema as text: `kind` and `name` say of what, `definition` is PostgreSQL's own words.
#[derive(QueryableByName, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fact {
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text)]
    definition: String,
}

/// All that migrations make, except what belongs to an extension. Columns without their position: a column that is dropped and added again
/// takes the next number.
const FACTS: &str = "
WITH own AS (
    SELECT c.oid, c.relname::text AS name, c.relkind FROM pg_class c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relname <> '__diesel_schema_migrations'
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass AND d.deptype = 'e')
)
SELECT 'relation' AS kind, name, relkind::text || ' ' || coalesce(obj_description(oid, 'pg_class'), '') AS definition
    FROM own WHERE relkind IN ('r', 'p', 'v', 'm', 'S')
UNION ALL SELECT 'column', own.name || '.' || a.attname,
    format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END || ' ' || a.attgenerated::text
    || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') || coalesce(' -- ' || col_description(own.oid, a.attnum), '')
    FROM own JOIN pg_attribute a ON a.attrelid = own.oid LEFT JOIN pg_attrdef d ON d.adrelid = own.oid AND d.adnum = a.attnum
    WHERE own.relkind IN ('r', 'p', 'v', 'm') AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL SELECT 'constraint', own.name || '.' || c.conname, pg_get_constraintdef(c.oid)
    FROM own JOIN pg_constraint c ON c.conrelid = own.oid
UNION ALL SELECT 'index', own.name || '.' || i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid)
    FROM own JOIN pg_index i ON i.indrelid = own.oid
UNION ALL SELECT 'trigger', own.name || '.' || t.tgname, pg_get_triggerdef(t.oid)
    FROM own JOIN pg_trigger t ON t.tgrelid = own.oid WHERE NOT t.tgisinternal
UNION ALL SELECT 'view', own.name, pg_get_viewdef(own.oid) FROM own WHERE relkind IN ('v', 'm')
UNION ALL SELECT 'function', p.oid::regprocedure::text, pg_get_functiondef(p.oid) FROM pg_proc p
    WHERE p.pronamespace = 'public'::regnamespace AND p.prokind IN ('f', 'p') AND p.proname !~ '^diesel_'
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e')
UNION ALL SELECT 'type', t.typname::text, t.typtype::text FROM pg_type t
    WHERE t.typnamespace = 'public'::regnamespace AND t.typtype IN ('e', 'd', 'r')
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = t.oid AND d.classid = 'pg_type'::regclass AND d.deptype = 'e')
UNION ALL SELECT 'extension', extname::text, '' FROM pg_extension WHERE extname <> 'plpgsql'
ORDER BY 1, 2, 3";

async fn facts(connection: &mut AsyncPgConnection) -> BTreeSet<Fact> {
    sql_query(FACTS).load(connection).await.unwrap().into_iter().collect()
}

/// Runs `work` on a blocking thread, as Diesel's harness needs it.
async fn migrate(connection: AsyncPgConnection, work: fn(&mut AsyncMigrationHarness<AsyncPgConnection>)) -> AsyncPgConnection {
    let mut harness = AsyncMigrationHarness::new(connection);
    tokio::task::spawn_blocking(move || {
        work(&mut harness);
        harness.into_inner()
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_up_all_down_and_up_again_gives_the_same_schema() {
    let database = postgres().empty_database().await;
    let mut connection = database.connect().await;
    let before = facts(&mut connection).await;
    assert_eq!(before, BTreeSet::new());

    let mut connection = migrate(connection, |harness| drop(harness.run_pending_migrations(MIGRATIONS).unwrap())).await;
    let once = facts(&mut connection).await;
    assert!(once.iter().any(|fact| fact.kind == "relation" && fact.name == "jobs"), "{once:#?}");

    let mut connection = migrate(connection, |harness| drop(harness.revert_all_migrations(MIGRATIONS).unwrap())).await;
    let left: Vec<Fact> = facts(&mut connection).await.into_iter().collect();
    assert!(left.is_empty(), "the down.sql files leave this behind: {left:#?}");

    let mut connection = migrate(connection, |harness| drop(harness.run_pending_migrations(MIGRATIONS).unwrap())).await;
    let again = facts(&mut connection).await;
    let differences: Vec<_> = once.symmetric_difference(&again).collect();
    assert!(differences.is_empty(), "{differences:#?}");
}

/// A migration's own down.sql takes back exactly what its up.sql made, so that the last one can be rolled back alone.
#[tokio::test(flavor = "multi_thread")]
async fn each_migration_takes_back_what_it_made() {
    let database = postgres().empty_database().await;
    let mut connection = database.connect().await;
    let mut stages = Vec::new();
    loop {
        stages.push(facts(&mut connection).await);
        let mut harness = AsyncMigrationHarness::new(connection);
        let (more, inner) = tokio::task::spawn_blocking(move || {
            let more = harness.has_pending_migration(MIGRATIONS).unwrap();
            if more {
                harness.run_next_migration(MIGRATIONS).unwrap();
            }
            (more, harness.into_inner())
        })
        .await
        .unwrap();
        connection = inner;
        if !more {
            break;
        }
    }
    // The last stage was taken twice: after the last migration, and before noticing that there is no more.
    while let Some(expected) = stages.pop() {
        let now = facts(&mut connection).await;
        let differences: Vec<_> = expected.symmetric_difference(&now).collect();
        assert!(differences.is_empty(), "after going back to migration {}: {differences:#?}", stages.len());
        if !stages.is_empty() {
            connection = migrate(connection, |harness| drop(harness.revert_last_migration(MIGRATIONS).unwrap())).await;
        }
    }
}

#[derive(QueryableByName)]
struct Named {
    #[diesel(sql_type = Text)]
    name: String,
}

async fn names(query: &str) -> Vec<String> {
    let database = database().await;
    let rows: Vec<Named> = sql_query(query).load(&mut database.connect().await).await.unwrap();
    rows.into_iter().map(|row| row.name).collect()
}

const OWN_TABLES: &str =
    "c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> '__diesel_schema_migrations'";

#[tokio::test]
async fn every_table_says_what_it_is() {
    let silent = names(&format!(
        "SELECT c.relname::text AS name FROM pg_class c WHERE {OWN_TABLES} AND coalesce(obj_description(c.oid, 'pg_class'), '') = '' ORDER BY 1"
    ))
    .await;
    assert!(silent.is_empty(), "COMMENT ON TABLE is missing for {silent:?}");
}

/// 32 is what Diesel is built for; more would multiply its compile time.
#[tokio::test]
async fn no_table_is_wider_than_diesel_is_built_for() {
    let wide = names(&format!(
        "SELECT c.relname::text AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
         WHERE {OWN_TABLES} GROUP BY 1 HAVING count(*) > 32"
    ))
    .await;
    assert!(wide.is_empty(), "{wide:?}");
}

/// Constraints are turned into answers by name (`on_constraint`), so each has a name of ours: PostgreSQL numbers its own on a clash.
#[tokio::test]
async fn no_constraint_has_a_numbered_name() {
    let numbered = names(&format!(
        "SELECT c.relname || '.' || k.conname AS name FROM pg_class c JOIN pg_constraint k ON k.conrelid = c.oid
         WHERE {OWN_TABLES} AND k.conname ~ '_(check|key|fkey|excl)[0-9]+$' ORDER BY 1"
    ))
    .await;
    assert!(numbered.is_empty(), "name these yourself: {numbered:?}");
}

#[derive(QueryableByName)]
struct ForeignKey {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text)]
    table_name: String,
    #[diesel(sql_type = Array<SmallInt>)]
    columns: Vec<i16>,
}

#[derive(QueryableByName)]
struct Index {
    #[diesel(sql_type = Text)]
    table_name: String,
    #[diesel(sql_type = Array<SmallInt>)]
    columns: Vec<i16>,
}

/// Without one, deleting or re-keying the referenced row scans the referencing table under a lock. A partial index counts only when it leaves
/// out nothing but nulls.
#[tokio::test]
async fn every_foreign_key_is_indexed() {
    let database = database().await;
    let mut connection = database.connect().await;
    let keys: Vec<ForeignKey> = sql_query(format!(
        "SELECT c.relname || '.' || k.conname AS name, c.relname::text AS table_name, k.conkey AS columns
         FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid WHERE k.contype = 'f' AND {OWN_TABLES}"
    ))
    .load(&mut connection)
    .await
    .unwrap();
    let indexes: Vec<Index> = sql_query(format!(
        "SELECT c.relname::text AS table_name, string_to_array(i.indkey::text, ' ')::smallint[] AS columns
         FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am m ON m.oid = x.relam
         WHERE {OWN_TABLES} AND m.amname IN ('btree', 'gist')
           AND (i.indpred IS NULL OR pg_get_expr(i.indpred, i.indrelid) ~ '^\\(\\w+ IS NOT NULL\\)$')"
    ))
    .load(&mut connection)
    .await
    .unwrap();
    let mut by_table: BTreeMap<&str, Vec<&[i16]>> = BTreeMap::new();
    for index in &indexes {
        by_table.entry(&index.table_name).or_default().push(&index.columns);
    }
    let bare: Vec<&str> = keys
        .iter()
        .filter(|key| !by_table[key.table_name.as_str()].iter().any(|index| leads_with(index, &key.columns)))
        .map(|key| key.name.as_str())
        .collect();
    assert!(bare.is_empty(), "foreign keys without an index: {bare:?}");
}

/// Whether the first columns of the index are those of the key, in any order.
fn leads_with(index: &[i16], key: &[i16]) -> bool {
    index.get(..key.len()).is_some_and(|head| key.iter().all(|column| head.contains(column)))
}

#[test]
fn an_index_serves_a_key_only_by_its_first_columns() {
    assert!(leads_with(&[2, 1, 3], &[1, 2]));
    assert!(!leads_with(&[3, 1], &[1]));
    assert!(!leads_with(&[1], &[1, 2]));
}
