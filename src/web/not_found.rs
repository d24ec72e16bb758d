//! What no route takes: 404, or 405 with `Allow` when the path takes other methods.
//!
//! actix matches a handler by path and method at once and cannot tell the two apart, so the paths are looked up in the OpenAPI document.

use std::collections::HashMap;

use actix_web::{
    HttpRequest, HttpResponse,
    http::{Method, header},
    web::Data,
};
use utoipa::openapi::{OpenApi, PathItem, path::Operation};

use crate::base::{Code, Error};

/// The paths of the document and their methods, by how they begin; goes into the app as `Data<Paths>`.
#[derive(Debug, Default)]
pub struct Paths {
    by_beginning: HashMap<String, Vec<Taken>>,
    /// Those that begin with a parameter.
    others: Vec<Taken>,
}

#[derive(Debug)]
struct Taken {
    pattern: String,
    methods: Vec<TakenMethod>,
}

#[derive(Debug, Clone, Copy)]
struct TakenMethod {
    name: &'static str,
    needs_credentials: bool,
}

impl Paths {
    pub fn of(document: &OpenApi) -> Self {
        let mut all = Self::default();
        for (path, item) in &document.paths.paths {
            let taken = Taken { pattern: path.clone(), methods: methods(item) };
            let start = beginning(path);
            match start.contains('{') {
                true => all.others.push(taken),
                false => all.by_beginning.entry(start.to_owned()).or_default().push(taken),
            }
        }
        all
    }

    pub(super) fn takes(&self, method: &Method, path: &str) -> bool {
        self.methods_at(path).any(|taken| taken.name == method.as_str())
    }

    /// Whether a stranger is refused there, whatever else they send.
    pub(super) fn needs_credentials(&self, method: &Method, path: &str) -> bool {
        let mut taken = self.methods_at(path).filter(|taken| taken.name == method.as_str()).peekable();
        taken.peek().is_some() && taken.all(|taken| taken.needs_credentials)
    }

    /// The methods that `path` takes; empty when there is nothing.
    fn methods_of(&self, path: &str) -> Vec<&'static str> {
        let mut all: Vec<_> = self.methods_at(path).map(|taken| taken.name).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn methods_at<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a TakenMethod> {
        let same = self.by_beginning.get(beginning(path)).into_iter().flatten();
        same.chain(&self.others).filter(move |taken| fits(&taken.pattern, path)).flat_map(|taken| &taken.methods)
    }
}

/// `/api/v1/listings` of all that begins so: asked of every request, and some hundred patterns are too many to try each.
fn beginning(path: &str) -> &str {
    let end = path.match_indices('/').nth(3).map_or(path.len(), |(at, _)| at);
    path.get(..end).unwrap_or(path)
}

fn methods(item: &PathItem) -> Vec<TakenMethod> {
    let all = [
        ("GET", &item.get),
        ("HEAD", &item.get),
        ("POST", &item.post),
        ("PUT", &item.put),
        ("PATCH", &item.patch),
        ("DELETE", &item.delete),
    ];
    let taken = |(name, operation): &(&'static str, &Option<Operation>)| {
        operation.as_ref().map(|operation| TakenMethod { name, needs_credentials: needs_credentials(operation) })
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
