//! How the types of `base` stand in PostgreSQL: an id is a uuid, an amount is a bigint of micro-dollars.
//!
//! `base` knows no SQL, so what Diesel's derives would write beside the type stands here.

use diesel::{
    Queryable,
    deserialize::{self, FromSql, FromSqlRow},
    expression::AsExpression,
    internal::derives::as_expression::Bound,
    pg::{Pg, PgValue},
    serialize::{self, IsNull, Output, ToSql},
    sql_types::{BigInt, Jsonb, Nullable, Uuid as SqlUuid},
};
use serde::{Serialize, de::DeserializeOwned};
use uuid::Uuid;

use crate::base::{Error, Id, Money, Result, id::Kind};

/// A `jsonb` as its text: read into its own type in one step, without a tree of values in between.
#[derive(Debug, Clone, AsExpression, FromSqlRow)]
#[diesel(sql_type = Jsonb)]
pub struct JsonText(String);

/// What `jsonb` begins with on the wire.
const JSONB_VERSION: u8 = 1;

impl JsonText {
    /// # Errors
    /// `internal` when the value cannot be written.
    pub fn of(value: &impl Serialize) -> Result<Self> {
        serde_json::to_string(value).map(Self).map_err(Error::internal)
    }

    /// # Errors
    /// `internal` when it is of another shape.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(&self.0).map_err(Error::internal)
    }
}

impl FromSql<Jsonb, Pg> for JsonText {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        match value.as_bytes().split_first() {
            Some((&JSONB_VERSION, text)) => Ok(Self(std::str::from_utf8(text)?.to_owned())),
            _ => Err("a version of jsonb that is not known".into()),
        }
    }
}
impl ToSql<Jsonb, Pg> for JsonText {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        use std::io::Write;
        out.write_all(&[JSONB_VERSION])?;
        out.write_all(self.0.as_bytes())?;
        Ok(IsNull::No)
    }
}

impl<K: Kind> FromSql<SqlUuid, Pg> for Id<K> {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        <Uuid as FromSql<SqlUuid, Pg>>::from_sql(value).map(Self::from_uuid)
    }
}
impl<K: Kind> Queryable<SqlUuid, Pg> for Id<K> {
    type Row = Self;
    fn build(row: Self) -> deserialize::Result<Self> {
        Ok(row)
    }
}
impl<K: Kind> ToSql<SqlUuid, Pg> for Id<K> {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        use std::io::Write;
        out.write_all(self.uuid().as_bytes())?;
        Ok(IsNull::No)
    }
}
impl<K: Kind> ToSql<Nullable<SqlUuid>, Pg> for Id<K> {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        ToSql::<SqlUuid, Pg>::to_sql(self, out)
    }
}

impl FromSql<BigInt, Pg> for Money {
    fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
        <i64 as FromSql<BigInt, Pg>>::from_sql(value).map(Self::usd_micros)
    }
}
impl Queryable<BigInt, Pg> for Money {
    type Row = Self;
    fn build(row: Self) -> deserialize::Result<Self> {
        Ok(row)
    }
}
impl ToSql<BigInt, Pg> for Money {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        <i64 as ToSql<BigInt, Pg>>::to_sql(&self.micros(), &mut out.reborrow())
    }
}
impl ToSql<Nullable<BigInt>, Pg> for Money {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        ToSql::<BigInt, Pg>::to_sql(self, out)
    }
}

macro_rules! as_expression {
    ([$($generics:tt)*] $type:ty, $sql:ty) => {
        impl<$($generics)*> AsExpression<$sql> for $type {
            type Expression = Bound<$sql, Self>;
            fn as_expression(self) -> Self::Expression {
                Bound::new(self)
            }
        }
        impl<'expr, $($generics)*> AsExpression<$sql> for &'expr $type {
            type Expression = Bound<$sql, Self>;
            fn as_expression(self) -> Self::Expression {
                Bound::new(self)
            }
        }
    };
}
as_expression!([K: Kind] Id<K>, SqlUuid);
as_expression!([K: Kind] Id<K>, Nullable<SqlUuid>);
as_expression!([] Money, BigInt);
as_expression!([] Money, Nullable<BigInt>);
