//! `src/db/schema.rs` is what the migrations make. It is generated: `RIGMARK_UPDATE_SCHEMA=1 cargo test schema`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use diesel::sql_types::{Array, Bool, Text};
use diesel::{QueryableByName, sql_query};
use diesel_async::RunQueryDsl;

use crate::support::database;

const HEAD: &str = "//! Generated from the database by `RIGMARK_UPDATE_SCHEMA=1 cargo test schema`; never edited by hand.\n";

#[derive(QueryableByName)]
struct Column {
    #[diesel(sql_type = Text)]
    table_name: String,
    #[diesel(sql_type = Text)]
    column_name: String,
    #[diesel(sql_type = Text)]
    type_name: String,
    #[diesel(sql_type = Bool)]
    nullable: bool,
    #[diesel(sql_type = Bool)]
    in_primary_key: bool,
}

/// By position in the table. The primary key's columns are marked; their order in the key is the order in the table.
const COLUMNS: &str = "
SELECT c.relname::text AS table_name, a.attname::text AS column_name, t.typname::text AS type_name, NOT a.attnotnull AS nullable,
       EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND a.attnum = ANY (i.indkey)) AS in_primary_key
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> '__diesel_schema_migrations'
  AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY c.relname COLLATE \"C\", a.attnum";

#[derive(QueryableByName)]
struct ForeignKey {
    #[diesel(sql_type = Text)]
    child: String,
    #[diesel(sql_type = Text)]
    parent: String,
    #[diesel(sql_type = Array<Text>)]
    columns: Vec<String>,
    #[diesel(sql_type = Bool)]
    to_primary_key: bool,
}

const FOREIGN_KEYS: &str = "
SELECT c.relname::text AS child, p.relname::text AS parent,
       ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = ANY (k.conkey)) AS columns,
       EXISTS (SELECT FROM pg_index i WHERE i.indrelid = p.oid AND i.indisprimary AND i.indexrelid = k.conindid) AS to_primary_key
FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class p ON p.oid = k.confrelid
WHERE k.contype = 'f' AND c.relnamespace = 'public'::regnamespace";

#[tokio::test]
async fn schema_rs_is_what_the_migrations_make() {
    let database = database().await;
    let mut connection = database.connect().await;
    let columns: Vec<Column> = sql_query(COLUMNS).load(&mut connection).await.unwrap();
    let keys: Vec<ForeignKey> = sql_query(FOREIGN_KEYS).load(&mut connection).await.unwrap();
    let text = schema_text(&columns, &keys);

    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/db/schema.rs");
    if std::env::var_os("RIGMARK_UPDATE_SCHEMA").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let checked_in = std::fs::read_to_string(&file).unwrap();
    assert!(
        checked_in == text,
        "src/db/schema.rs is not what the migrations make. RIGMARK_UPDATE_SCHEMA=1 cargo test schema writes it anew."
    );
}

fn schema_text(columns: &[Column], keys: &[ForeignKey]) -> String {
    let mut tables: BTreeMap<&str, Vec<&Column>> = BTreeMap::new();
    for column in columns {
        tables.entry(&column.table_name).or_default().push(column);
    }
    let mut text = HEAD.to_owned();
    for (table, columns) in &tables {
        write_table(&mut text, table, columns);
    }
    let joins = joinable(keys);
    if !joins.is_empty() {
        text.push('\n');
    }
    for (child, parent, column) in joins {
        writeln!(text, "diesel::joinable!({child} -> {parent} ({column}));").unwrap();
    }
    for group in related(keys) {
        text.push_str("\ndiesel::allow_tables_to_appear_in_same_query! {\n");
        for table in group {
            writeln!(text, "    {table},").unwrap();
        }
        text.push_str("}\n");
    }
    text
}

fn write_table(text: &mut String, table: &str, columns: &[&Column]) {
    let key: Vec<&str> = columns.iter().filter(|column| column.in_primary_key).map(|column| column.column_name.as_str()).collect();
    assert!(!key.is_empty(), "{table} has no primary key");
    write!(text, "\ndiesel::table! {{\n    {table} ({}) {{\n", key.join(", ")).unwrap();
    for column in columns {
        let name = &column.column_name;
        let Some(mut kind) = diesel_type(&column.type_name) else {
            panic!("{table}.{name}: no Diesel type is known here for {}", column.type_name)
        };
        if column.nullable {
            kind = format!("Nullable<{kind}>");
        }
        if ["type", "match", "ref", "move", "use", "where", "as", "in", "mod", "box"].contains(&name.as_str()) {
            writeln!(text, "        #[sql_name = \"{name}\"]\n        {name}_ -> {kind},").unwrap();
        } else {
            writeln!(text, "        {name} -> {kind},").unwrap();
        }
    }
    text.push_str("    }\n}\n");
}

/// By the name in `pg_type`; an array's begins with an underscore. Elements are never null in our tables.
fn diesel_type(name: &str) -> Option<String> {
    if let Some(element) = name.strip_prefix('_') {
        return diesel_type(element).map(|element| format!("Array<{element}>"));
    }
    let kind = match name {
        "uuid" => "Uuid",
        "text" => "Text",
        "bool" => "Bool",
        "int2" => "Int2",
        "int4" => "Int4",
        "int8" => "Int8",
        "float8" => "Float8",
        "timestamptz" => "Timestamptz",
        "date" => "Date",
        "jsonb" => "Jsonb",
        "bytea" => "Bytea",
        "tstzrange" => "Tstzrange",
        "int4range" => "Int4range",
        "int8range" => "Int8range",
        _ => return None,
    };
    Some(kind.to_owned())
}

/// One join a pair of tables: with two keys between them the column must be said in the query.
fn joinable(keys: &[ForeignKey]) -> Vec<(&str, &str, &str)> {
    let mut pairs: BTreeMap<(&str, &str), Vec<&ForeignKey>> = BTreeMap::new();
    for key in keys.iter().filter(|key| key.child != key.parent) {
        pairs.entry((&key.child, &key.parent)).or_default().push(key);
    }
    // Diesel takes a join in either direction for one: a pair that refers to each other counts as ambiguous too.
    let ambiguous: BTreeSet<(&str, &str)> =
        pairs.keys().filter(|(child, parent)| pairs.contains_key(&(*parent, *child))).copied().collect();
    let single = pairs.into_iter().filter_map(|(pair, keys)| match keys.as_slice() {
        [key] if key.to_primary_key && !ambiguous.contains(&pair) => match key.columns.as_slice() {
            [column] => Some((pair.0, pair.1, column.as_str())),
            _ => None,
        },
        _ => None,
    });
    single.collect()
}

/// Groups of tables that foreign keys connect, directly or through others.
fn related(keys: &[ForeignKey]) -> Vec<BTreeSet<&str>> {
    let mut groups: Vec<BTreeSet<&str>> = Vec::new();
    for key in keys.iter().filter(|key| key.child != key.parent) {
        let mut joined = BTreeSet::from([key.child.as_str(), key.parent.as_str()]);
        groups.retain(|group| {
            let apart = group.is_disjoint(&joined);
            if !apart {
                joined.extend(group);
            }
            apart
        });
        groups.push(joined);
    }
    groups.sort();
    groups
}

#[test]
fn the_generator_writes_tables_joins_and_groups() {
    let column = |table: &str, column: &str, kind: &str, nullable, in_primary_key| Column {
        table_name: table.to_owned(),
        column_name: column.to_owned(),
        type_name: kind.to_owned(),
        nullable,
        in_primary_key,
    };
    let key = |child: &str, parent: &str, column: &str| ForeignKey {
        child: child.to_owned(),
        parent: parent.to_owned(),
        columns: vec![column.to_owned()],
        to_primary_key: true,
    };
    let columns =
        [column("a", "id", "uuid", false, true), column("a", "type", "_text", true, false), column("b", "id", "int8", false, true)];
    let keys = [key("b", "a", "a_id"), key("c", "b", "x_id"), key("c", "b", "y_id"), key("a", "a", "parent_id"), key("e", "d", "d_id")];
    let expected = "
diesel::table! {
    a (id) {
        id -> Uuid,
        #[sql_name = \"type\"]
        type_ -> Nullable<Array<Text>>,
    }
}

diesel::table! {
    b (id) {
        id -> Int8,
    }
}

diesel::joinable!(b -> a (a_id));
diesel::joinable!(e -> d (d_id));

diesel::allow_tables_to_appear_in_same_query! {
    a,
    b,
    c,
}

diesel::allow_tables_to_appear_in_same_query! {
    d,
    e,
}
";
    assert_eq!(schema_text(&columns, &keys), format!("{HEAD}{expected}"));
    assert_eq!(diesel_type("money"), None);
}
