//! The HTTP of accounts, a file for each group of paths.

mod auth;
mod keys;
mod me;
mod organizations;

use std::net::IpAddr;

use actix_web::HttpRequest;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{email::Email, service};
use crate::{
    base::{Code, Result},
    ctx::Ctx,
    integrations::limits::Quota,
    web::{
        Limit, client_address,
        rate_limit::{self, AUTH, AUTH_NAME, AUTH_PAIR, MAIL, REGISTER},
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

/// Tries of one password: by the client's address, by that address and the account that is tried, and by the account alone.
///
/// The last is what a guesser with many addresses meets; a stranger could hold the owner out with it, so it is loose, and does not count where
/// the account has signed in before: such an address has only the budget that its own failures use up.
pub(super) struct Tries {
    address: IpAddr,
    by_pair: String,
    /// None: no e-mail address is tried, but the password of a session that is open.
    name: Option<String>,
    /// None: the address is known.
    by_name: Option<String>,
}

impl Tries {
    /// Refuses when earlier failures have used a limit up. A try that succeeds costs nothing, so a hundred people behind one address can sign
    /// in at once.
    ///
    /// # Errors
    /// `rate_limited`.
    pub async fn begin(ctx: &Ctx, req: &HttpRequest, name: &str) -> Result<Self> {
        let address = client_address(req);
        let is_known = service::is_known_address(ctx, name, address).await?;
        let by_name = (!is_known).then(|| hashed(name));
        Self { address, by_pair: hashed_pair(name, &address.to_string()), name: Some(name.to_owned()), by_name }.check(ctx, req).await
    }

    /// For the password of somebody who is signed in: whoever guesses at it has their session, so all addresses have one budget.
    ///
    /// # Errors
    /// `rate_limited`.
    pub async fn begin_in_session(ctx: &Ctx, req: &HttpRequest, user: &str) -> Result<Self> {
        Self { address: client_address(req), by_pair: hashed_pair(user, ""), name: None, by_name: None }.check(ctx, req).await
    }

    async fn check(self, ctx: &Ctx, req: &HttpRequest) -> Result<Self> {
        for (quota, key) in self.counters() {
            rate_limit::charge(ctx, req, quota, &key).await?;
            ctx.limits.give_back(quota, &key).await;
        }
        Ok(self)
    }

    fn counters(&self) -> Vec<(Quota, String)> {
        let mut counters = vec![(AUTH, self.address.to_string()), (AUTH_PAIR, self.by_pair.clone())];
        counters.extend(self.by_name.iter().map(|key| (AUTH_NAME, key.clone())));
        counters
    }

    /// Counts the try when the password was wrong, and remembers the address when it was right.
    ///
    /// # Errors
    /// The try's own.
    pub async fn end<T>(self, ctx: &Ctx, outcome: Result<T>) -> Result<T> {
        match (&outcome, &self.name) {
            (Err(error), _) if error.code() == Code::InvalidCredentials => {
                for (quota, key) in self.counters() {
                    ctx.limits.take(quota, &key).await;
                }
            }
            (Ok(_), Some(name)) => service::remember_address(ctx, name, self.address).await,
            _ => {}
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

fn hashed_pair(name: &str, address: &str) -> String {
    format!("{}@{address}", hashed(name))
}

/// What a cursor is bound to: the list, and whose it is.
fn binding(auth: &super::Caller, query: &crate::web::Query<ListQuery>) -> String {
    format!("{} {} {}", auth.account_id, auth.user_id, query.binding())
}
