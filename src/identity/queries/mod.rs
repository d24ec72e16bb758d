//! All SQL of the domain, a file for each group of tables.

pub(super) mod accounts;
pub(super) mod callers;
pub(super) mod invitations;
pub(super) mod keys;
pub(super) mod mailed;
pub(super) mod members;
pub(super) mod sessions;

use crate::db::schema::{accounts as a, api_keys, entitlements, invitations as i, memberships, refresh_tokens, sessions as s, users};

diesel::allow_tables_to_appear_in_same_query!(a, api_keys, entitlements, i, memberships, refresh_tokens, s, users);
