//! What no route takes: 404, or 405 with `Allow` when the path takes other methods.
//!
//! actix matches a handler by path and method at once and cannot tell the two apart, so the paths are looked up in the OpenAPI document.

use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, header},
    web::Data,
};
use utoipa::openapi::{OpenApi, PathItem, path::Operation};

use crate::base::{Code, Error};

/// The paths of the document and their methods; goes into the app as `Data<Paths>`.
#[derive(Debug, Default)]
pub struct Paths(Vec<(String, Vec<Taken>)>);

#[derive(Debug, Clone, Copy)]
struct Taken {
    method: &'static str,
    needs_credentials: bool,
}

impl Paths {
    pub fn of(document: &OpenApi) -> Self {
        Self(document.paths.paths.iter().map(|(path, item)| (path.clone(), methods(item))).collect())
    }

    pub(super) fn takes(&self, method: &Method, path: &str) -> bool {
        self.methods_of(path).contains(&method.as_str())
    }

    /// Whether a stranger is refused there, whatever else they send.
    pub(super) fn needs_credentials(&self, method: &Method, path: &str) -> bool {
        let mut taken = self.at(path).filter(|taken| taken.method == method.as_str()).peekable();
        taken.peek().is_some() && taken.all(|taken| taken.needs_credentials)
    }

    fn at(&self, path: &str) -> impl Iterator<Item = &Taken> {
        self.0.iter().filter(move |(pattern, _)| fits(pattern, path)).flat_map(|(_, taken)| taken)
    }

    /// The methods that `path` takes; empty when there is nothing.
    fn methods_of(&self, path: &str) -> Vec<&'static str> {
        let mut all: Vec<_> = self.at(path).map(|taken| taken.method).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

fn methods(item: &PathItem) -> Vec<Taken> {
    let all = [
        ("GET", &item.get),
        ("HEAD", &item.get),
        ("POST", &item.post),
        ("PUT", &item.put),
        ("PATCH", &item.patch),
        ("DELETE", &item.delete),
    ];
    let taken = |(method, operation): &(&'static str, &Option<Operation>)| {
        operation.as_ref().map(|operation| Taken { method, needs_credentials: needs_credentials(operation) })
    };
    all.iter().filter_map(taken).collect()
}

/// Whether every way into the operation names a scheme; an empty requirement is a way in for strangers.
fn needs_credentials(operation: &Operation) -> bool {
    let ways = serde_json::to_value(&operation.security).unwrap_or_default();
    let names_scheme = |way: &serde_json::Value| way.as_object().is_some_and(|schemes| !schemes.is_empty());
    ways.as_array().is_some_and(|ways| !ways.is_empty() && ways.iter().all(names_scheme))
}

fn fits(pattern: &str, path: &str) -> bool {
    let mut parts = path.split('/');
    let all = pattern.split('/').all(|expected| match parts.next() {
        Some(part) => expected == part || (expected.starts_with('{') && !part.is_empty()),
        None => false,
    });
    all && parts.next().is_none()
}

/// The app's default service: `.default_service(web::to(not_found))`.
///
/// # Errors
/// Always.
pub async fn not_found(req: HttpRequest) -> Result<HttpResponse, Error> {
    let methods = req.app_data::<Data<Paths>>().map(|paths| paths.methods_of(req.path())).unwrap_or_default();
    if methods.is_empty() {
        return Err(Error::new(Code::NotFound, "There is nothing at this path."));
    }
    let allow = methods.join(", ");
    let mut response = HttpResponse::from_error(Error::new(Code::MethodNotAllowed, format!("This path takes {allow}.")));
    if let Ok(value) = header::HeaderValue::from_str(&allow) {
        response.headers_mut().insert(header::ALLOW, value);
    }
    Ok(response)
}
