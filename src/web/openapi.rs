//! Pieces of the OpenAPI document that every domain needs: the bearer scheme, and the problem answers in sets, so that a handler names a set
//! instead of each status.

use std::collections::BTreeMap;

use utoipa::{
    IntoResponses, PartialSchema, ToSchema,
    openapi::{
        Content, OpenApi, Ref, RefOr, Response, ResponseBuilder,
        security::{Http, HttpAuthScheme, SecurityScheme},
    },
};

use super::problem::{self, ProblemBody};

/// The name of the security scheme: `security(("bearer" = []))` on each operation that needs a caller.
pub const BEARER: &str = "bearer";

/// The same for the routes of the benchmark tool.
pub const UPLOAD_TOKEN: &str = "upload_token";

/// Adds what the sets below refer to.
pub fn add_common(document: &mut OpenApi) {
    let components = document.components.get_or_insert_default();
    let mut scheme = Http::new(HttpAuthScheme::Bearer);
    scheme.description = Some("An access token from `POST /api/v1/auth/login`, or an API key `rmk_…`.".to_owned());
    components.security_schemes.insert(BEARER.to_owned(), SecurityScheme::Http(scheme).into());
    let mut token = Http::new(HttpAuthScheme::Bearer);
    token.description = Some("An upload token `lilb_…`, which opens the benchmark tool's routes and no other.".to_owned());
    components.security_schemes.insert(UPLOAD_TOKEN.to_owned(), SecurityScheme::Http(token).into());
    components.schemas.insert(ProblemBody::name().into_owned(), ProblemBody::schema());
    let mut nested = Vec::new();
    <ProblemBody as ToSchema>::schemas(&mut nested);
    components.schemas.extend(nested);
}

fn answers(all: &[(u16, &str)]) -> BTreeMap<String, RefOr<Response>> {
    let answer = |text: &str| {
        let schema = Ref::from_schema_name(ProblemBody::name());
        ResponseBuilder::new().description(text).content(problem::CONTENT_TYPE, Content::new(Some(schema))).build()
    };
    all.iter().map(|(status, text)| (status.to_string(), RefOr::T(answer(text)))).collect()
}

macro_rules! sets {
    ($($(#[$doc:meta])* $name:ident [$(($status:literal, $text:literal)),*];)*) => {$(
        $(#[$doc])*
        pub struct $name;
        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                answers(&[$(($status, $text)),*])
            }
        }
    )*};
}

sets! {
    /// For an operation that needs a caller.
    AuthProblems [(401, "No valid token or key."), (403, "The key's scope or the caller's role does not allow this."), (429, "Too many requests.")];
    /// For an operation that proves who somebody is by what is in its body.
    SignInProblems [(401, "The credentials are not good."), (429, "Too many failed tries.")];
    /// For an operation with a JSON body.
    InputProblems [(400, "The body is not JSON."), (413, "The body is too large."), (415, "The body is not JSON, or its encoding is not known."), (422, "The body is not valid; `errors` says where.")];
    /// For an operation with parameters in the query.
    QueryProblems [(400, "The cursor is not of this list."), (422, "A parameter is unknown or not valid."), (429, "Too many requests.")];
    NotFoundProblem [(404, "There is no such thing, or it is private.")];
    ForbiddenProblem [(403, "The caller may not do this.")];
    ConflictProblem [(409, "The state of things does not allow this; `code` says why.")];
    FundsProblem [(402, "The available balance is too small.")];
    /// For an operation with an `Idempotency-Key`.
    IdempotencyProblems [(400, "No Idempotency-Key, or the body is not JSON."), (409, "The first request with this key is still running, or `code` says why."), (422, "The key came with another body, or the body is not valid.")];
}
