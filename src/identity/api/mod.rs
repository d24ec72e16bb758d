//! The HTTP of accounts, a file for each group of paths.

mod auth;
mod keys;
mod me;
mod organizations;

use actix_web::HttpRequest;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::email::Email;
use crate::{
    base::{Code, Result},
    ctx::Ctx,
    web::{
        Limit, client_address,
        rate_limit::{self, AUTH, AUTH_NAME, MAIL, REGISTER},
    },
};

pub use auth::*;
pub use keys::*;
pub use me::*;
pub use organizations::*;

/// A page of a list that has no filters.
#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    #[serde(default)]
    #[param(inline)]
    pub limit: Limit,
    pub cursor: Option<String>,
}

/// Tries of one password: by the client's address, and by the account that is tried.
pub(super) struct Tries {
    by_address: String,
    by_name: String,
}

impl Tries {
    /// Refuses when earlier failures have used a limit up. A try that succeeds costs nothing, so a hundred people behind one address can sign
    /// in at once.
    ///
    /// # Errors
    /// `rate_limited`.
    pub async fn begin(ctx: &Ctx, req: &HttpRequest, name: &str) -> Result<Self> {
        let tries = Self { by_address: client_address(req).to_string(), by_name: hashed(name) };
        rate_limit::charge(ctx, req, AUTH, &tries.by_address).await?;
        ctx.limits.give_back(AUTH, &tries.by_address).await;
        rate_limit::charge(ctx, req, AUTH_NAME, &tries.by_name).await?;
        ctx.limits.give_back(AUTH_NAME, &tries.by_name).await;
        Ok(tries)
    }

    /// Counts the try when the password was wrong.
    ///
    /// # Errors
    /// The try's own.
    pub async fn end<T>(self, ctx: &Ctx, outcome: Result<T>) -> Result<T> {
        if outcome.as_ref().is_err_and(|error| error.code() == Code::InvalidCredentials) {
            ctx.limits.take(AUTH, &self.by_address).await;
            ctx.limits.take(AUTH_NAME, &self.by_name).await;
        }
        outcome
    }
}

/// Counts a registration by the client's address.
async fn charge_registration(ctx: &Ctx, req: &HttpRequest) -> Result<()> {
    rate_limit::charge(ctx, req, REGISTER, &client_address(req).to_string()).await
}

/// Counts a letter by its receiver, known or not.
async fn charge_letter(ctx: &Ctx, req: &HttpRequest, receiver: &str) -> Result<()> {
    rate_limit::charge(ctx, req, MAIL, &hashed(receiver)).await
}

/// The key of a limit holds no address in clear; spellings of one address count as one.
fn hashed(name: &str) -> String {
    let name = name.parse::<Email>().map_or_else(|_| name.to_owned(), |email| email.expose().to_owned());
    data_encoding::HEXLOWER.encode(&super::token::sha256(&name))
}

/// What a cursor is bound to: the list, and whose it is.
fn binding(auth: &super::Caller, query: &crate::web::Query<ListQuery>) -> String {
    format!("{} {} {}", auth.account_id, auth.user_id, query.binding())
}
