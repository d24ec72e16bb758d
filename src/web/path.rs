//! Path parameters: what cannot name anything is 404 before any SQL.

use std::{
    future::{Ready, ready},
    ops::Deref,
};

use actix_web::{FromRequest, HttpRequest, dev::Payload, web};
use futures::FutureExt;
use serde::de::DeserializeOwned;

use crate::base::{Code, Error, Result};

/// Longer names do not exist.
const SEGMENT_BYTES_MAX: usize = 255;

/// The parameters in the path as `T`: an id, a text, a tuple of them, or a struct.
#[derive(Debug)]
pub struct Path<T>(pub T);

impl<T> Path<T> {
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Path<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: DeserializeOwned> FromRequest for Path<T> {
    type Error = Error;
    type Future = Ready<Result<Self>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(read(req).map(Self))
    }
}

fn read<T: DeserializeOwned>(req: &HttpRequest) -> Result<T> {
    let nothing = || Error::new(Code::NotFound, "There is nothing at this path.");
    // The router has decoded all but `%25`, `%2F` and `%2B`; bytes that are no UTF-8 have become U+FFFD.
    let cannot_exist =
        |text: &str| text.len() > SEGMENT_BYTES_MAX || text.contains(['\0', char::REPLACEMENT_CHARACTER]) || text.contains("%00");
    if req.match_info().iter().any(|(_, value)| cannot_exist(value)) {
        return Err(nothing());
    }
    // actix's own reader of paths, which never waits.
    let read = web::Path::<T>::from_request(req, &mut Payload::None).now_or_never();
    read.and_then(Result::ok).map(web::Path::into_inner).ok_or_else(nothing)
}
