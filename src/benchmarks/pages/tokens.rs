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
    /// The commands.
    make: String,
    give: String,
}

impl UploadTokensPage {
    pub fn new(ctx: &Ctx, reader: &Reader) -> Self {
        let t = reader.t;
        let server = ctx.public_url.trim_end_matches('/');
        Self {
            layout: Layout::new(ctx, reader, "upload-tokens", t.text("upload-tokens"), t.text("upload-tokens-lede")),
            t,
            make: format!(
                "curl -sS {server}/api/v1/upload-tokens \\\n  -H \"Authorization: Bearer $RIGMARK_KEY\" \\\n  \
                 -H \"Content-Type: application/json\" \\\n  -d '{{\"name\": \"bench\"}}'"
            ),
            give: format!("export LIL_BENCH_SITE={server}\nexport LIL_BENCH_TOKEN=lilb_…\nlil-bench whoami\nlil-bench run"),
        }
    }
}
