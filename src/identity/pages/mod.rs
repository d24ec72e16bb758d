//! Signing in and out on the pages, and the extractors of pages that know their reader.
//!
//! A page that needs somebody names [`SignedIn`] or [`OperatorReader`] first; a stranger is led to `/{lang}/sign-in?next=` and back. Every form
//! that is sent by POST is read by [`Posted`], which refuses what no page of ours sent.
//!
//! Invariants: the cookie is read for pages and for nothing else; an address to go to after signing in is one of our own pages.

mod posted;
mod reader;
mod sign_in;

use actix_web::{
    HttpRequest, HttpResponse, Responder,
    cookie::{Cookie, SameSite, time::Duration},
    get,
    http::{
        StatusCode,
        header::{CACHE_CONTROL, SET_COOKIE},
    },
    post,
};

use super::{api::Tries, service};
use crate::{
    base::{Code, Error, Result, secret::Secret},
    ctx::Ctx,
    web::{
        Query,
        html::{self, Reader, form::Form},
    },
};

pub use posted::Posted;
pub(super) use reader::identify;
use reader::{MaybeSignedIn, cookie_name, is_https};
pub use reader::{OperatorReader, SignedIn};
use sign_in::{SignInPage, SignOutPage};

/// Where people go who were on the way to nowhere else.
const HOME: &str = "runs";
const COOKIE_DAYS: i64 = super::token::REFRESH_VALID.num_days();

/// The page to go on to: a path of ours in a language that is served, or the list of runs.
fn next(reader: &Reader, given: &str) -> String {
    let is_ours = html::Language::is_of_page(given) && !given.contains(['\\', '\0']) && !given.chars().any(char::is_control);
    if is_ours { given.to_owned() } else { reader.path_of(HOME) }
}

/// The form to sign in with.
#[get("/{lang}/sign-in")]
pub async fn sign_in_page(ctx: Ctx, reader: Reader, known: MaybeSignedIn, given: Query<Vec<(String, String)>>) -> Result<HttpResponse> {
    let form = Form::of(reader.path_of("sign-in"), &given);
    if known.caller.is_some() {
        return Ok(html::redirect(&next(&reader, form.value("next"))));
    }
    let mut response = html::page(&SignInPage::new(&ctx, &reader, &form))?;
    response.headers_mut().insert(CACHE_CONTROL, actix_web::http::header::HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Signs in. The form has no session yet that it could be bound to; that it is our own page's is said by the browser.
#[post("/{lang}/sign-in")]
pub async fn sign_in_send(ctx: Ctx, reader: Reader, known: MaybeSignedIn, posted: Posted<false>, req: HttpRequest) -> Result<HttpResponse> {
    let mut form = Form::of(reader.path_of("sign-in"), &posted.pairs);
    let until_now = known.caller.and_then(|caller| caller.session_id);
    let error = match enter(&ctx, &req, &posted, until_now).await {
        Ok(secret) => {
            let mut response = html::redirect_after(&next(&reader, form.value("next")));
            set_cookie(&ctx, &mut response, secret.expose(), Duration::days(COOKIE_DAYS))?;
            return Ok(response);
        }
        Err(error) => error,
    };
    let (status, retry_after) = (sign_in::status(&error), error.retry_after_seconds());
    form.refuse(sign_in::as_fault(error))?;
    let mut response = html::page_with(status, &SignInPage::new(&ctx, &reader, &form))?;
    if let Some(seconds) = retry_after.and_then(|seconds| seconds.to_string().parse().ok()) {
        response.headers_mut().insert(actix_web::http::header::RETRY_AFTER, seconds);
    }
    Ok(response)
}

/// With the same limits as `POST /api/v1/auth/login`, by the account that is tried however it is named.
async fn enter(
    ctx: &Ctx,
    req: &HttpRequest,
    posted: &Posted<false>,
    until_now: Option<crate::base::id::SessionId>,
) -> Result<Secret<String>> {
    let (name, password) = (posted.value("name").trim(), posted.value("password"));
    let missing = |field: &str, value: &str| {
        value.is_empty().then(|| crate::base::FieldError::new(format!("?{field}"), "missing_field", "It is empty."))
    };
    let faults: Vec<_> = [missing("name", name), missing("password", password)].into_iter().flatten().collect();
    if !faults.is_empty() {
        return Err(Error::invalid_fields(faults));
    }
    let typed = service::typed_name(ctx, name).await?;
    let tries = Tries::begin(ctx, req, &typed.counted_by).await?;
    let outcome = service::sign_in(ctx, typed, &Secret::new(password.to_owned()), until_now).await;
    tries.end(ctx, outcome).await
}

/// Asks whether to sign out: a link alone ends nothing.
#[get("/{lang}/sign-out")]
pub async fn sign_out_page(_known: SignedIn, ctx: Ctx, reader: Reader) -> Result<impl Responder> {
    html::page(&SignOutPage::new(&ctx, &reader))
}

/// Signs out: the session ends, and its cookie is taken back.
#[post("/{lang}/sign-out")]
pub async fn sign_out_send(known: SignedIn, ctx: Ctx, reader: Reader, _posted: Posted) -> Result<HttpResponse> {
    let session = known.caller.session_id.ok_or_else(|| Error::internal("a page's caller without a session"))?;
    service::sign_out(&ctx, session).await?;
    let mut response = html::redirect_after(&reader.path_of(HOME));
    set_cookie(&ctx, &mut response, "", Duration::ZERO)?;
    Ok(response)
}

fn set_cookie(ctx: &Ctx, response: &mut HttpResponse, value: &str, age: Duration) -> Result<()> {
    let cookie =
        Cookie::build(cookie_name(ctx), value).path("/").http_only(true).same_site(SameSite::Lax).secure(is_https(ctx)).max_age(age);
    let text = cookie.finish().to_string().parse().map_err(Error::internal)?;
    response.headers_mut().append(SET_COOKIE, text);
    Ok(())
}

const fn status_of(code: Code) -> StatusCode {
    match code {
        Code::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    }
}
