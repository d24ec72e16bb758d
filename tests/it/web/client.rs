//! Whose address a request counts for.

use actix_web::HttpRequest;
use actix_web::web::{ServiceConfig, get};
use rigmark::web::client_address;

use super::server::{NO_DATABASE, Server, ctx_with};

async fn address(req: HttpRequest) -> String {
    client_address(&req).to_string()
}

fn routes(config: &mut ServiceConfig) {
    config.route("/api/v1/address", get().to(address));
}

async fn seen(server: &Server, forwarded: &[&str]) -> String {
    let request = forwarded.iter().fold(server.http.get("/api/v1/address"), |request, line| request.header("X-Forwarded-For", line));
    request.answer().await.body
}

#[actix_web::test]
async fn a_stranger_cannot_choose_its_address() {
    for server in [Server::start(routes), Server::with(ctx_with(NO_DATABASE, "", &["--trusted-proxies", "10.0.0.0/8"]), routes)] {
        assert_eq!(seen(&server, &[]).await, "127.0.0.1");
        assert_eq!(seen(&server, &["203.0.113.7"]).await, "127.0.0.1");
    }
}

#[actix_web::test]
async fn behind_trusted_proxies_the_client_is_the_last_that_is_none() {
    let server = Server::with(ctx_with(NO_DATABASE, "", &["--trusted-proxies", "127.0.0.1, 10.0.0.0/8,fd00::/8"]), routes);
    for (forwarded, client) in [
        (&[][..], "127.0.0.1"),
        (&["203.0.113.7"], "203.0.113.7"),
        (&["203.0.113.7:4711"], "203.0.113.7"),
        // The beginning is the client's own word.
        (&["198.51.100.9, 203.0.113.7"], "203.0.113.7"),
        (&["198.51.100.9", "203.0.113.7, 10.1.2.3"], "203.0.113.7"),
        (&["203.0.113.7,10.1.2.3, fd00::1"], "203.0.113.7"),
        // Nothing but proxies: the first of them.
        (&["10.1.2.3"], "10.1.2.3"),
        (&["unknown, 10.1.2.3"], "10.1.2.3"),
        (&["nonsense"], "127.0.0.1"),
        (&["2001:db8:1:2:3:4:5:6"], "2001:db8:1:2::"),
        (&["[2001:db8:1:2:3:4:5:6]:443"], "2001:db8:1:2::"),
        (&["::ffff:203.0.113.7"], "203.0.113.7"),
    ] {
        assert_eq!(seen(&server, forwarded).await, client, "{forwarded:?}");
    }
}
