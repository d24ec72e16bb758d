//! Pages and their cursors.

use actix_web::web::{ServiceConfig, get};
use rigmark::base::Result;
use rigmark::ctx::Ctx;
use rigmark::web::{Limit, Page, Query, cursor};
use serde::Deserialize;

use super::server::{NO_DATABASE, Server, ctx};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Numbers {
    #[serde(default)]
    limit: Limit,
    cursor: Option<String>,
    #[serde(default)]
    above: u32,
}

/// The numbers above `above`, up to 250.
async fn numbers(query: Query<Numbers>, ctx: Ctx) -> Result<actix_web::HttpResponse> {
    let after: Option<u32> = cursor::open_opt(&ctx, query.binding(), query.cursor.as_deref())?;
    let start = after.unwrap_or(query.above) + 1;
    let fetch = usize::try_from(query.limit.rows_to_fetch()).unwrap();
    let rows: Vec<u32> = (start..=250).take(fetch).collect();
    let page = Page::new(&ctx, query.binding(), query.limit, rows, |row| *row, |row| row)?;
    Ok(actix_web::HttpResponse::Ok().json(page))
}

fn routes(config: &mut ServiceConfig) {
    config.route("/api/v1/numbers", get().to(numbers)).route("/api/v1/others", get().to(numbers));
}

#[actix_web::test]
async fn following_the_cursors_gives_every_row_once() {
    let server = Server::start(routes);
    for (query, pages) in [("?limit=100", 3), ("?limit=50", 5), ("?limit=49", 6), ("", 13)] {
        let mut path = format!("/api/v1/numbers{query}");
        let mut seen = Vec::new();
        let mut count = 0;
        loop {
            let page = server.http.get(&path).expect(200).await;
            count += 1;
            seen.extend(page["data"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()));
            let Some(cursor) = page["next_cursor"].as_str() else { break };
            let joint = if query.is_empty() { "?" } else { "&" };
            path = format!("/api/v1/numbers{query}{joint}cursor={cursor}");
        }
        assert_eq!(seen, (1..=250).collect::<Vec<u64>>(), "{query}");
        assert_eq!(count, pages, "{query}");
    }
}

#[actix_web::test]
async fn the_limit_is_between_one_and_a_hundred() {
    let server = Server::start(routes);
    for (limit, code) in [("0", "invalid_value"), ("101", "invalid_value"), ("-1", "wrong_type"), ("x", "wrong_type")] {
        let problem = server.http.get(&format!("/api/v1/numbers?limit={limit}")).expect_problem(422, "invalid_input").await;
        assert_eq!((&problem["errors"][0]["pointer"], &problem["errors"][0]["code"]), (&"?limit".into(), &code.into()));
    }
}

#[actix_web::test]
async fn a_cursor_works_with_its_own_list_only() {
    let server = Server::start(routes);
    let page = server.http.get("/api/v1/numbers?above=10").expect(200).await;
    let cursor = page["next_cursor"].as_str().unwrap().to_owned();
    // Another limit, and another order of the parameters, is the same list.
    let next = server.http.get(&format!("/api/v1/numbers?cursor={cursor}&limit=5&above=10")).expect(200).await;
    assert_eq!(next["data"][0], 31);
    for path in ["numbers?above=11", "numbers?x=1&above=10", "others?above=10", "numbers?above=10&above=10"] {
        let answer = server.http.get(&format!("/api/v1/{path}&cursor={cursor}")).answer().await;
        assert!(matches!(answer.status.as_u16(), 400 | 422), "{path}: {}", answer.body);
    }
    server.http.get(&format!("/api/v1/others?above=10&cursor={cursor}")).expect_problem(400, "invalid_cursor").await;
}

#[actix_web::test]
async fn every_altered_cursor_is_refused() {
    let ctx = ctx(NO_DATABASE, "");
    let sealed = cursor::seal(&ctx, "list", &(7_u32, "seven")).unwrap();
    assert_eq!(cursor::open::<(u32, String)>(&ctx, "list", &sealed).unwrap(), (7, "seven".to_owned()));
    let bytes = data_encoding::BASE64URL_NOPAD.decode(sealed.as_bytes()).unwrap();
    for at in 0..bytes.len() {
        let mut altered = bytes.clone();
        altered[at] ^= 1;
        let text = data_encoding::BASE64URL_NOPAD.encode(&altered);
        assert!(cursor::open::<serde_json::Value>(&ctx, "list", &text).is_err(), "byte {at}");
    }
    let cut = &sealed[..sealed.len() - 4];
    for text in ["", "x", "====", cut, &"A".repeat(10_000), &format!("{sealed}A"), &format!(" {sealed}")] {
        let error = cursor::open::<serde_json::Value>(&ctx, "list", text).unwrap_err();
        assert_eq!(error.code().as_str(), "invalid_cursor", "{text}");
    }
    // Another server's, since each context here makes its own key.
    let other = super::server::ctx(NO_DATABASE, "");
    assert!(cursor::open::<(u32, String)>(&other, "list", &sealed).is_err());
}
