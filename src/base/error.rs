//! One error type for every layer, free of HTTP. `web::problem` maps [`Code`] to a status; the internal cause is logged once, at that boundary,
//! and never shown.

use std::{borrow::Cow, error::Error as StdError, fmt};

pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident $text:literal $title:literal;)*) => {
        /// The closed list of problem codes. A code is stable: clients branch on it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[$doc])* $name),* }
        impl Code {
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
            /// The code as it stands on the wire.
            pub const fn as_str(self) -> &'static str { match self { $(Self::$name => $text),* } }
            /// One short sentence, the same for every occurrence.
            pub const fn title(self) -> &'static str { match self { $(Self::$name => $title),* } }
        }
    };
}

impl utoipa::PartialSchema for Code {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        super::shape::closed(
            Self::ALL.iter().map(|code| code.as_str()),
            "A stable problem code; `GET /problems` lists them with their status.",
        )
    }
}
impl utoipa::ToSchema for Code {
    fn name() -> Cow<'static, str> {
        "ProblemCode".into()
    }
}

codes! {
    // 400
    MalformedRequest "malformed_request" "The request could not be read.";
    InvalidCursor "invalid_cursor" "The cursor is not one of this list.";
    InvalidSignature "invalid_signature" "The signature does not fit the body, or is too old.";
    IdempotencyKeyRequired "idempotency_key_required" "This request needs an Idempotency-Key.";
    // 401, 403
    Unauthenticated "unauthenticated" "Sign in or send a valid key.";
    InvalidCredentials "invalid_credentials" "The e-mail address or the password is wrong.";
    RefreshTokenReused "refresh_token_reused" "This refresh token was used before; the session has ended.";
    InsufficientScope "insufficient_scope" "The key does not have the scope for this.";
    Forbidden "forbidden" "The account may not do this.";
    ConflictOfInterest "conflict_of_interest" "Nobody decides on a run of their own account.";
    ForgedRequest "forged_request" "The form was not sent from a page of ours.";
    // 402
    InsufficientFunds "insufficient_funds" "The available balance is too small.";
    CardDeclined "card_declined" "The card was declined.";
    ProRequired "pro_required" "This is for accounts with Pro.";
    // 404, 405, 406
    NotFound "not_found" "There is nothing here.";
    MethodNotAllowed "method_not_allowed" "The path does not take this method.";
    // 408
    RequestTimeout "request_timeout" "The request did not arrive in time.";
    // 409
    HandleTaken "handle_taken" "The handle is taken or too like another.";
    EmailTaken "email_taken" "The e-mail address has an account.";
    AmbiguousName "ambiguous_name" "The name fits more than one row.";
    InvalidState "invalid_state" "The resource is not in a state that allows this.";
    AlreadyRented "already_rented" "The machine is taken for this time.";
    ListingNotMeasured "listing_not_measured" "The listing does not meet the conditions for publishing.";
    ListingNotAvailable "listing_not_available" "The listing is not on the market.";
    AlreadyListed "already_listed" "The machine has a listing.";
    MachineInUse "machine_in_use" "The machine is rented or listed.";
    QuoteExpired "quote_expired" "The quote is no longer valid.";
    LastOwner "last_owner" "An organization keeps at least one owner.";
    AlreadyMember "already_member" "The account is a member.";
    AlreadyDecided "already_decided" "A person has decided on the run.";
    AlreadyAnswered "already_answered" "The run has been answered.";
    NoPaymentProvider "no_payment_provider" "This server takes no payments.";
    AccountFrozen "account_frozen" "The account may rent nothing while a payment of it is disputed.";
    PayoutsNotEnabled "payouts_not_enabled" "The account has no payout account that can be paid.";
    IdempotencyInProgress "idempotency_in_progress" "The first request with this Idempotency-Key is still running.";
    ChallengeUsed "challenge_used" "The challenge has been answered.";
    NoVerifiedRun "no_verified_run" "The machine has no verified run to compare with.";
    NoEndpoint "no_endpoint" "The machine has no endpoint.";
    AlreadySubscribed "already_subscribed" "The account has a subscription.";
    NoFreeSeat "no_free_seat" "Every seat of the organization's Pro is taken.";
    ChallengeExpired "challenge_expired" "The challenge has expired.";
    // 413, 415
    PayloadTooLarge "payload_too_large" "The body is too large.";
    UnsupportedMediaType "unsupported_media_type" "The body is not of a type this path takes.";
    UnsupportedEncoding "unsupported_encoding" "The body's Content-Encoding is not known.";
    // 422
    InvalidInput "invalid_input" "The request is well formed but not valid.";
    UnreadableDocument "unreadable_document" "The document is no run document.";
    InvalidQuote "invalid_quote" "The quote was not made here.";
    IdempotencyKeyReused "idempotency_key_reused" "The Idempotency-Key was used with another body.";
    ForbiddenAddress "forbidden_address" "The address must not be reached from here.";
    // 429
    RateLimited "rate_limited" "Too many requests.";
    // 5xx
    Internal "internal" "Something went wrong on our side.";
    EngineUnreachable "engine_unreachable" "The machine's engine could not be reached.";
    EngineError "engine_error" "The machine's engine gave no usable answer.";
    Unavailable "unavailable" "The service cannot answer right now.";
}

/// One fault in the input: `pointer` is a JSON pointer into the body, or `?name` for a query parameter, or `/path/name`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
pub struct FieldError {
    pub pointer: String,
    pub code: Cow<'static, str>,
    pub detail: String,
}

impl FieldError {
    pub fn new(pointer: impl Into<String>, code: impl Into<Cow<'static, str>>, detail: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), code: code.into(), detail: detail.into() }
    }
}

/// An error with a code for the client, a text for the client, and a cause for the log.
pub struct Error(Box<Inner>);

struct Inner {
    code: Code,
    detail: Cow<'static, str>,
    fields: Vec<FieldError>,
    extra: serde_json::Map<String, serde_json::Value>,
    retry_after_seconds: Option<u64>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    pub fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            code,
            detail: detail.into(),
            fields: Vec::new(),
            extra: serde_json::Map::new(),
            retry_after_seconds: None,
            source: None,
        }))
    }

    /// A fault of ours: the client sees fixed text and the request id, the log sees `source`.
    pub fn internal(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let mut error = Self::new(Code::Internal, "The fault has been logged under the request id.");
        error.0.source = Some(source.into());
        error
    }

    /// 404; also for things that exist but are private to somebody else.
    pub fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("No such {what}."))
    }

    /// 422 with one faulty field.
    pub fn invalid(pointer: impl Into<String>, code: impl Into<Cow<'static, str>>, detail: impl Into<String>) -> Self {
        Self::invalid_fields(vec![FieldError::new(pointer, code, detail)])
    }

    /// 422 with all faulty fields at once.
    pub fn invalid_fields(fields: Vec<FieldError>) -> Self {
        let detail = match fields.as_slice() {
            [one] => one.detail.clone(),
            many => format!("{} fields are not valid.", many.len()),
        };
        let mut error = Self::new(Code::InvalidInput, detail);
        error.0.fields = fields;
        error
    }

    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Adds a member of its own to the problem body (`unmet`, `candidates`).
    pub fn with_extra(mut self, name: &str, value: serde_json::Value) -> Self {
        self.0.extra.insert(name.to_owned(), value);
        self
    }

    pub fn with_fields(mut self, fields: Vec<FieldError>) -> Self {
        self.0.fields = fields;
        self
    }

    pub fn with_retry_after(mut self, seconds: u64) -> Self {
        self.0.retry_after_seconds = Some(seconds);
        self
    }

    pub fn code(&self) -> Code {
        self.0.code
    }
    pub fn detail(&self) -> &str {
        &self.0.detail
    }
    pub fn fields(&self) -> &[FieldError] {
        &self.0.fields
    }
    pub fn extra(&self) -> &serde_json::Map<String, serde_json::Value> {
        &self.0.extra
    }
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.0.retry_after_seconds
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code.as_str(), self.0.detail)?;
        let mut cause = self.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.detail)
    }
}
impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_ref().map(|s| s.as_ref() as _)
    }
}
