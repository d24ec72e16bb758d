//! What a browser does with pages: it keeps the cookie, says where a form stood, and sends the form's hidden fields.

use reqwest::Method;

use crate::support::TestApp;
use crate::support::http::{Answer, Http, Request};

pub const PASSWORD: &str = "correct horse battery";

pub struct Browser {
    pub http: Http,
    /// `name=value`, as it is sent back.
    pub cookie: String,
}

pub fn encoded(pairs: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// Sends a form as a browser does from a page of the same server.
pub fn post(http: &Http, path: &str, pairs: &[(&str, &str)]) -> Request {
    let request = http.request(Method::POST, path).header("Content-Type", "application/x-www-form-urlencoded");
    request.header("Origin", http.base_url()).header("Sec-Fetch-Site", "same-origin").body(encoded(pairs))
}

impl Browser {
    pub async fn signed_in(app: &TestApp, handle: &str) -> Self {
        let answer = post(&app.http, "/en/sign-in", &[("name", handle), ("password", PASSWORD)]).answer().await;
        assert_eq!(answer.status, 303, "{}", answer.body);
        Self { http: app.http.clone(), cookie: cookie_of(&answer) }
    }

    pub fn get(&self, path: &str) -> Request {
        self.http.get(path).header("Cookie", &self.cookie)
    }

    pub async fn page(&self, path: &str, status: u16) -> String {
        let answer = self.get(path).answer().await;
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        answer.body
    }

    /// The token in the forms of a page.
    pub async fn token(&self, path: &str) -> String {
        let body = self.page(path, 200).await;
        let (_, rest) = body.split_once("name=\"form_token\" value=\"").unwrap_or_else(|| panic!("no form: {body}"));
        rest.split('"').next().unwrap().to_owned()
    }

    /// Opens the page of the form, fills it and sends it there.
    pub async fn send(&self, path: &str, pairs: &[(&str, &str)]) -> Answer {
        let token = self.token(path).await;
        let pairs: Vec<(&str, &str)> = pairs.iter().copied().chain([("form_token", token.as_str())]).collect();
        post(&self.http, path, &pairs).header("Cookie", &self.cookie).answer().await
    }
}

/// The cookie that an answer sets, as it is sent back.
pub fn cookie_of(answer: &Answer) -> String {
    let set = answer.header("set-cookie").unwrap_or_else(|| panic!("no cookie: {}", answer.body));
    set.split(';').next().unwrap().to_owned()
}
