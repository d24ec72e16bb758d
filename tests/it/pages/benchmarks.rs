//! The page that explains the checks.

use rigmark::benchmarks::{CHECKS, Group, RULES_VERSION};

use super::{html, page, text, upload};
use crate::support::TestApp;

#[tokio::test]
async fn every_check_is_explained_with_what_it_counts() {
    let app = TestApp::new().await;
    let body = page(&app, "/en/benchmarks", 200).await.body;
    let (places, words) = (html::ids(&body), text(&body));
    for check in CHECKS {
        assert!(places.contains(check.code), "{}", check.code);
    }
    assert!(words.contains(RULES_VERSION));
    let copy = CHECKS.iter().find(|check| check.group == Group::Duplicate).unwrap();
    assert!(words.contains(&format!("{} {} {} Sends to review", copy.title, copy.code, copy.explanation)), "{words}");
    assert_eq!(
        words.matches(" Rejects known versions").count(),
        1 + CHECKS.iter().filter(|check| check.weight.severity_max(true) != check.weight.severity_max(false)).count()
    );
}

#[tokio::test]
async fn a_finding_leads_to_its_explanation() {
    let app = TestApp::new().await;
    let run = upload(&app, &[("/hardware/gpu", "RTX 4090".into())]).await;
    let body = page(&app, &format!("/en/runs/{run}"), 200).await.body;
    let links: Vec<String> = html::links(&body).into_iter().filter(|link| link.starts_with("/en/benchmarks#")).collect();
    assert!(links.contains(&"/en/benchmarks#gpu_differs".to_owned()), "{links:?}");
    let explanations = page(&app, "/en/benchmarks", 200).await.body;
    let explained = html::ids(&explanations);
    for link in links {
        assert!(explained.contains(link.split_once('#').unwrap().1), "{link}");
    }
}
