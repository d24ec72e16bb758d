//! SQL written by hand with its parameters, kept prepared.
//!
//! Diesel never caches what `sql_query` sends: each time it is parsed and planned anew, in two round trips instead of one, and rows are read by
//! comparing column names. A [`Statement`] is kept by its text like any other query, and its rows are read by position into the tuple of SQL
//! types in its own type. For hot reads; `make bench` says what it brings (the market's searches: 1.6 to 2 times as many a second).
//!
//! Invariant: what is kept is bounded. PostgreSQL and the pool hold a kept statement on every connection for as long as that lives, so texts
//! that depend on a request are kept only while [`Shapes`] has room for them.

use std::{
    collections::{HashMap, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
    marker::PhantomData,
    sync::{Mutex, PoisonError},
};

use chrono::{DateTime, Utc};
use diesel::{
    QueryResult,
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types as sql,
};
use uuid::Uuid;

/// A value of a parameter.
#[derive(Debug, Clone)]
pub enum Bind {
    Text(String),
    Integer(i32),
    BigInt(i64),
    Double(f64),
    Instant(DateTime<Utc>),
    Id(Uuid),
}

/// A text with `$1`, `$2` … and their values, whose rows have the types of the tuple `Row`.
pub struct Statement<Row> {
    text: String,
    binds: Vec<Bind>,
    is_kept: bool,
    row: PhantomData<fn() -> Row>,
}

impl<Row> Statement<Row> {
    /// One whose text is always the same.
    pub fn kept(text: String, binds: Vec<Bind>) -> Self {
        Self { text, binds, is_kept: true, row: PhantomData }
    }

    /// One whose text depends on the request.
    pub fn of_shape(shapes: &Shapes, text: String, binds: Vec<Bind>) -> Self {
        let is_kept = shapes.keeps(&text);
        Self { text, binds, is_kept, row: PhantomData }
    }
}

impl<Row> QueryId for Statement<Row> {
    type QueryId = ();
    // Kept by its text.
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<Row> Query for Statement<Row> {
    type SqlType = Row;
}

impl<Row> QueryFragment<Pg> for Statement<Row> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        if !self.is_kept {
            out.unsafe_to_cache_prepared();
        }
        // Parameters are numbered as they appear; one that stands twice is sent twice.
        let mut parts = self.text.split('$');
        out.push_sql(parts.next().unwrap_or_default());
        for part in parts {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = part.split_at(digits);
            let bind = number.parse::<usize>().ok().and_then(|number| self.binds.get(number.checked_sub(1)?));
            match bind.ok_or_else(|| diesel::result::Error::QueryBuilderError("a parameter without a value".into()))? {
                Bind::Text(value) => out.push_bind_param::<sql::Text, _>(value)?,
                Bind::Integer(value) => out.push_bind_param::<sql::Integer, _>(value)?,
                Bind::BigInt(value) => out.push_bind_param::<sql::BigInt, _>(value)?,
                Bind::Double(value) => out.push_bind_param::<sql::Double, _>(value)?,
                Bind::Instant(value) => out.push_bind_param::<sql::Timestamptz, _>(value)?,
                Bind::Id(value) => out.push_bind_param::<sql::Uuid, _>(value)?,
            }
            out.push_sql(rest);
        }
        Ok(())
    }
}

/// SQL text under construction: conditions that belong together, and the values of the parameters in all of it.
#[derive(Default)]
pub struct Draft {
    pub conditions: Vec<String>,
    pub binds: Vec<Bind>,
}

impl Draft {
    /// The parameter that stands for the value.
    pub fn bind(&mut self, value: Bind) -> String {
        self.binds.push(value);
        format!("${}", self.binds.len())
    }
    pub fn and(&mut self, condition: impl Into<String>) {
        self.conditions.push(condition.into());
    }
    pub fn conditions(&self) -> String {
        self.conditions.join(" AND ")
    }
}

/// Texts kept at once in a process; each may stand on every connection, at some hundred kilobytes in PostgreSQL.
const KEPT_MAX: usize = 48;
/// A text is kept from this sighting on, so that one that nobody repeats takes no room.
const SIGHTINGS: u32 = 3;
const COUNTED_MAX: usize = 1_024;

/// Which of the texts that depend on a request are kept: those asked for again and again, while there is room.
#[derive(Default)]
pub struct Shapes(Mutex<Counted>);

#[derive(Default)]
struct Counted {
    sightings: HashMap<u64, u32>,
    kept: Vec<u64>,
}

impl Shapes {
    fn keeps(&self, text: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let hash = hasher.finish();
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.kept.contains(&hash) {
            return true;
        }
        if counted.kept.len() >= KEPT_MAX {
            return false;
        }
        if counted.sightings.len() >= COUNTED_MAX {
            counted.sightings.clear();
        }
        let sightings = counted.sightings.entry(hash).or_insert(0);
        *sightings += 1;
        let is_kept = *sightings >= SIGHTINGS;
        if is_kept {
            counted.sightings.remove(&hash);
            counted.kept.push(hash);
        }
        is_kept
    }
}

/// A query of Diesel's that is kept prepared by its text, though Diesel would prepare it anew each time: what `sql_query` sends, every `UPDATE`,
/// and inserts of several rows. Only for texts that are few.
pub struct Kept<Query>(Query);

/// `.kept()` before `.load` or `.execute`.
pub trait KeptDsl: Sized {
    fn kept(self) -> Kept<Self> {
        Kept(self)
    }
}
impl<Query: QueryFragment<Pg>> KeptDsl for Query {}

impl<Inner> QueryId for Kept<Inner> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}
impl<Inner: Query> Query for Kept<Inner> {
    type SqlType = Inner::SqlType;
}
impl<Inner: QueryFragment<Pg>> QueryFragment<Pg> for Kept<Inner> {
    fn walk_ast<'b>(&'b self, pass: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        self.0.walk_ast(pass)
    }
    fn is_safe_to_cache_prepared(&self, _: &Pg) -> QueryResult<bool> {
        Ok(true)
    }
}
