//! Every link of every page leads somewhere, and every page on the way is sound.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{html, market::market};

/// Filters and orders combine without end; the first pages reach every kind of link.
const PAGES_MAX: usize = 150;

#[tokio::test]
async fn every_link_leads_somewhere() {
    let app = market().await;
    let mut waiting = VecDeque::from(["/".to_owned(), "/en/marketplace?model=x".to_owned(), "/en/nothing".to_owned()]);
    let mut seen: BTreeSet<String> = waiting.iter().cloned().collect();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let mut read = 0;
    while let Some(address) = waiting.pop_front() {
        let answer = app.http.get(&address).answer().await;
        let status = answer.status.as_u16();
        if let Some(to) = answer.header("location") {
            assert_eq!(status, 302, "{address}");
            waiting.push_back(to);
            continue;
        }
        let expected = match address.as_str() {
            "/en/nothing" => 404,
            "/en/marketplace?model=x" => 422,
            _ => 200,
        };
        assert_eq!(status, expected, "{address}: {}", answer.body);
        if !answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html")) {
            continue;
        }
        html::assert_sound(&address, &answer.body);
        read += 1;
        *kinds.entry(address.split(['?', '#']).next().unwrap().rsplit_once('/').unwrap().0.to_owned()).or_default() += 1;
        for link in html::links(&answer.body) {
            let (page, _fragment) = link.split_once('#').unwrap_or((&link, ""));
            // The form to sign in with, once for every page that leads back.
            let is_known = page.starts_with("/en/sign-in?") && seen.iter().any(|known| known.starts_with("/en/sign-in?"));
            if !page.is_empty() && !is_known && seen.len() < PAGES_MAX && seen.insert(page.to_owned()) {
                waiting.push_back(page.to_owned());
            }
        }
    }
    assert!(read > 20, "{read} pages");
    for kind in ["/en", "/en/runs", "/en/listings"] {
        assert!(kinds.get(kind).is_some_and(|count| *count > 2), "{kind}: {kinds:?}");
    }
}

/// A link to a place in another page finds it there.
#[tokio::test]
async fn links_into_pages_find_their_place() {
    let app = market().await;
    let body = app.http.get("/en/marketplace").answer().await.body;
    let links: Vec<String> = html::links(&body).into_iter().filter(|link| link.contains('#') && !link.starts_with('#')).collect();
    assert!(!links.is_empty());
    for link in links {
        let (page, place) = link.split_once('#').unwrap();
        let target = app.http.get(page).answer().await.body;
        assert!(html::ids(&target).contains(place), "{link}");
    }
}
