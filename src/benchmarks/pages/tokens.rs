//! How to make an upload token and point the benchmark tool here, as commands to copy.

use askama::Template;

use crate::{
    ctx::Ctx,
    web::html::{Layout, Messages, Reader},
};

#[derive(Template)]
#[template(path = "upload-tokens.html")]
pub(super) struct UploadTokensPage {
    layout: Layout,
    t: Messages,
    /// Without a slash at its end.
    server: String,
}

impl UploadTokensPage {
    pub fn new(ctx: &Ctx, reader: &Reader) -> Self {
        let t = reader.t;
        Self {
            layout: Layout::new(ctx, reader, "upload-tokens", t.text("upload-tokens"), t.text("upload-tokens-lede")),
            t,
            server: ctx.public_url.trim_end_matches('/').to_owned(),
        }
    }
}
