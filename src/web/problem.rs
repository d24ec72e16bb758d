//! `base::Error` on the wire: `application/problem+json` as RFC 9457 says, with `code`, `request_id` and `errors[]` of ours.
//!
//! The status follows from the code and from nothing else. What a problem looks like may differ by path (the endpoint imitates other APIs,
//! pages are HTML): whoever owns a path registers a [`Renderer`]; all else is [`render`].

use actix_web::{
    HttpRequest, HttpResponse, HttpResponseBuilder, Responder, ResponseError,
    error::{JsonPayloadError, PathError, PayloadError, QueryPayloadError},
    get,
    http::{StatusCode, header},
};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::json::Listed;
use crate::base::{Code, Error, FieldError, Result};

pub const CONTENT_TYPE: &str = "application/problem+json";

/// What an error answer holds. `code` is stable and from the list at `/problems`; some codes add members of their own.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProblemBody {
    /// Path of the page that explains the code.
    #[serde(rename = "type")]
    #[schema(example = "/problems/invalid_input")]
    pub kind: String,
    pub title: &'static str,
    #[schema(example = 422)]
    pub status: u16,
    pub detail: String,
    #[schema(value_type = crate::base::Code)]
    pub code: &'static str,
    /// Stands in the log beside what happened.
    pub request_id: String,
    /// The faulty fields, when the input was not valid.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<FieldError>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ProblemBody {
    pub fn new(error: &Error, request_id: &str) -> Self {
        let code = error.code();
        Self {
            kind: format!("/problems/{}", code.as_str()),
            title: code.title(),
            status: status(code).as_u16(),
            detail: error.detail().to_owned(),
            code: code.as_str(),
            request_id: request_id.to_owned(),
            errors: error.fields().to_vec(),
            extra: error.extra().clone(),
        }
    }
}

/// The status of each code. No `_` arm: a new code has to choose.
pub const fn status(code: Code) -> StatusCode {
    use Code as C;
    match code {
        C::MalformedRequest | C::InvalidCursor | C::InvalidSignature | C::IdempotencyKeyRequired => StatusCode::BAD_REQUEST,
        C::Unauthenticated | C::InvalidCredentials | C::RefreshTokenReused => StatusCode::UNAUTHORIZED,
        C::InsufficientFunds | C::CardDeclined => StatusCode::PAYMENT_REQUIRED,
        C::InsufficientScope | C::Forbidden | C::ProRequired | C::ConflictOfInterest | C::ForgedRequest => StatusCode::FORBIDDEN,
        C::NotFound => StatusCode::NOT_FOUND,
        C::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        C::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
        C::HandleTaken
        | C::EmailTaken
        | C::AmbiguousName
        | C::InvalidState
        | C::AlreadyRented
        | C::ListingNotMeasured
        | C::ListingNotAvailable
        | C::AlreadyListed
        | C::MachineInUse
        | C::NoVerifiedRun
        | C::NoEndpoint
        | C::QuoteExpired
        | C::LastOwner
        | C::AlreadyMember
        | C::AlreadyDecided
        | C::AlreadyAnswered
        | C::AccountFrozen
        | C::IdempotencyInProgress
        | C::ChallengeUsed
        | C::ChallengeExpired
        | C::PayoutsNotEnabled
        | C::AlreadySubscribed
        | C::NoFreeSeat
        | C::NoPaymentProvider => StatusCode::CONFLICT,
        C::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        C::UnsupportedMediaType | C::UnsupportedEncoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        C::InvalidInput | C::UnreadableDocument | C::InvalidQuote | C::IdempotencyKeyReused | C::ForbiddenAddress => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        C::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        C::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        C::EngineUnreachable | C::EngineError => StatusCode::BAD_GATEWAY,
        C::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// How the errors of some paths are written; the last argument is the request id. The text must show nothing but what `Error` offers.
pub type Renderer = fn(&HttpRequest, &Error, &str) -> HttpResponse;

/// The same without the request, for what came past every handler: a panic, say.
pub type LateRenderer = fn(&Error, &str) -> HttpResponse;

/// Renderers by the beginning of the path; the longest that fits is taken. Goes into the app as `app_data`.
#[derive(Clone, Default)]
pub struct Renderers {
    by_prefix: Vec<(&'static str, Renderer)>,
    late: Vec<(&'static str, LateRenderer)>,
    for_browsers: Option<Renderer>,
}

impl Renderers {
    #[must_use]
    pub fn at(mut self, prefix: &'static str, renderer: Renderer) -> Self {
        self.by_prefix.push((prefix, renderer));
        self
    }

    /// For clients that can read errors of one shape only, whatever has happened.
    #[must_use]
    pub fn at_late(mut self, prefix: &'static str, renderer: LateRenderer) -> Self {
        self.late.push((prefix, renderer));
        self
    }

    pub(super) fn find_late(&self, path: &str) -> LateRenderer {
        self.late.iter().find(|(prefix, _)| is_below(path, prefix)).map_or(render, |(_, renderer)| *renderer)
    }

    /// For a path that has none of its own, outside `/api`, when the request asks for HTML: a person has mistyped an address.
    #[must_use]
    pub fn for_browsers(mut self, renderer: Renderer) -> Self {
        self.for_browsers = Some(renderer);
        self
    }

    fn find(&self, req: &HttpRequest) -> Option<Renderer> {
        let path = req.path();
        let fits = |prefix: &str| is_below(path, prefix);
        let own = self.by_prefix.iter().filter(|(prefix, _)| fits(prefix)).max_by_key(|(prefix, _)| prefix.len());
        let accept = req.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let asks_for_html = accept.contains("text/html") && !fits("/api");
        own.map(|(_, renderer)| *renderer).or(self.for_browsers.filter(|_| asks_for_html))
    }
}

fn is_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The error as an answer to `req`.
pub(super) fn answer(req: &HttpRequest, error: &Error, request_id: &str) -> HttpResponse {
    match req.app_data::<Renderers>().and_then(|renderers| renderers.find(req)) {
        Some(renderer) => renderer(req, error, request_id),
        None => render(error, request_id),
    }
}

/// The problem body with the headers that belong to it.
pub fn render(error: &Error, request_id: &str) -> HttpResponse {
    let mut response = HttpResponse::build(status(error.code()));
    insert_headers(&mut response, error);
    response.insert_header((header::CACHE_CONTROL, "no-store"));
    let text = serde_json::to_string(&ProblemBody::new(error, request_id)).unwrap_or_default();
    response.content_type(CONTENT_TYPE).body(text)
}

/// `Retry-After` and `WWW-Authenticate`, for renderers of other shapes too.
pub fn insert_headers(response: &mut HttpResponseBuilder, error: &Error) {
    if let Some(seconds) = error.retry_after_seconds() {
        response.insert_header((header::RETRY_AFTER, seconds));
    }
    match error.code() {
        Code::Unauthenticated => {
            response.insert_header((header::WWW_AUTHENTICATE, "Bearer realm=\"rigmark\""));
        }
        Code::InvalidCredentials | Code::RefreshTokenReused => {
            response.insert_header((header::WWW_AUTHENTICATE, "Bearer realm=\"rigmark\", error=\"invalid_token\""));
        }
        Code::InsufficientScope => {
            response.insert_header((header::WWW_AUTHENTICATE, "Bearer realm=\"rigmark\", error=\"insufficient_scope\""));
        }
        _ => {}
    }
}

/// Without a request id: `edge` writes the answer again with it.
impl ResponseError for Error {
    fn status_code(&self) -> StatusCode {
        status(self.code())
    }
    fn error_response(&self) -> HttpResponse {
        render(self, "")
    }
}

/// An error of actix's own as ours.
pub(super) fn from_actix(error: &actix_web::Error) -> Error {
    if let Some(error) = error.as_error::<PayloadError>() {
        return super::body::from_payload_error(error);
    }
    match error.as_error() {
        Some(JsonPayloadError::Overflow { .. } | JsonPayloadError::OverflowKnownLength { .. }) => {
            return Error::new(Code::PayloadTooLarge, "The body is too large.");
        }
        Some(JsonPayloadError::ContentType) => return Error::new(Code::UnsupportedMediaType, "Content-Type must be application/json."),
        _ => {}
    }
    if error.as_error::<PathError>().is_some() {
        return Error::new(Code::NotFound, "There is nothing at this path.");
    }
    if error.as_error::<QueryPayloadError>().is_some() {
        return Error::new(Code::MalformedRequest, "The query could not be read.");
    }
    match error.as_response_error().status_code() {
        status if status.is_server_error() => Error::internal(error.to_string()),
        status => from_status(status),
    }
}

/// An answer that has a status and nothing to say.
pub(super) fn from_status(status: StatusCode) -> Error {
    let code = match status {
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::Forbidden,
        StatusCode::NOT_FOUND => Code::NotFound,
        StatusCode::METHOD_NOT_ALLOWED => Code::MethodNotAllowed,
        StatusCode::REQUEST_TIMEOUT => Code::RequestTimeout,
        StatusCode::CONFLICT => Code::InvalidState,
        StatusCode::PAYLOAD_TOO_LARGE => Code::PayloadTooLarge,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Code::UnsupportedMediaType,
        StatusCode::TOO_MANY_REQUESTS => Code::RateLimited,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => Code::Unavailable,
        status if status.is_server_error() => return Error::internal(format!("bare status {status}")),
        _ => Code::MalformedRequest,
    };
    Error::new(code, code.title())
}

/// One row of the page that lists the codes.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProblemKind {
    #[serde(rename = "type")]
    pub kind: String,
    #[schema(value_type = crate::base::Code)]
    pub code: &'static str,
    pub status: u16,
    pub title: &'static str,
}

/// Every code, with its status and title.
pub fn problems() -> Vec<ProblemKind> {
    let kind = |code: &Code| ProblemKind {
        kind: format!("/problems/{}", code.as_str()),
        code: code.as_str(),
        status: status(*code).as_u16(),
        title: code.title(),
    };
    Code::ALL.iter().map(kind).collect()
}

/// List problem codes
///
/// The closed list.
#[utoipa::path(tag = "Service", responses((status = 200, body = Listed<ProblemKind>)))]
#[get("/problems")]
pub async fn problem_list() -> impl Responder {
    actix_web::web::Json(Listed { data: problems() })
}

/// Read a problem code
#[utoipa::path(tag = "Service", params(("code" = String, Path, description = "A problem code")), responses((status = 200, body = ProblemKind), super::NotFoundProblem))]
#[get("/problems/{code}")]
pub async fn problem_show(code: super::Path<String>) -> Result<impl Responder> {
    let found = problems().into_iter().find(|problem| problem.code == *code);
    found.map(actix_web::web::Json).ok_or_else(|| Error::not_found("problem code"))
}
