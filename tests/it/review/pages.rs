//! The pages of operators and uploaders.

use serde_json::json;

use super::{Stage, browser, finding, needs_review};
use crate::pages::{html, text};
use crate::support::hosts::{RunRow, cell, execute, person};

const HOSTILE: &str = "</textarea><script>alert(1)</script> \u{202e}\"'& {{ t }} <img src=x onerror=alert(1)>\n--\nsecond line";

#[tokio::test]
async fn an_operator_finds_reads_and_decides_without_scripts() {
    let stage = Stage::new().await;
    let row = RunRow { cells: vec![cell(0, 1, 150.0), cell(0, 8, 600.0)], age_seconds: 200_000, ..needs_review() };
    let run = stage.run(&row, json!([finding("total_mismatch")])).await;
    stage.run(&RunRow { cells: vec![cell(0, 1, 100.0), cell(0, 8, 400.0)], ..RunRow::default() }, json!([])).await;
    let olga = browser(&stage.app, "olga").await;
    let queue = olga.page("/en/review", 200).await;
    html::assert_sound("/en/review", &queue);
    let path = format!("/en/review/{run}");
    assert!(queue.contains(&format!("href=\"{path}\"")) && text(&queue).contains("2 days"), "{}", text(&queue));
    let narrowed = olga.page("/en/review?cause=dispute", 200).await;
    assert!(text(&narrowed).contains("No run fits"), "{}", text(&narrowed));
    let wrong = olga.page("/en/review?waiting_hours=soon&cause=dispute", 422).await;
    html::assert_sound("/en/review", &wrong);
    assert!(wrong.contains("value=\"soon\"") && text(&wrong).contains("Enter whole hours"), "{}", text(&wrong));

    let page = olga.page(&path, 200).await;
    html::assert_sound(&path, &page);
    let shown = text(&page);
    for part in ["The total is not tokens divided by seconds", "They must agree to the rounding", "same setup", "150.0", "100.0", "1.500"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(page.contains(&format!("{path}/original")), "{page}");

    let refused = olga.send(&path, &[("decision", "reject"), ("reason", "x<")]).await;
    assert_eq!(refused.status, 422);
    html::assert_sound(&path, &refused.body);
    assert!(refused.body.contains(">\nx&#60;</textarea>") && refused.body.contains("value=\"reject\" checked"), "{}", refused.body);
    assert!(refused.body.contains("id=\"e-reason\">A reason has 3 to 1,000 characters."));
    let none = olga.send(&path, &[("reason", "A good reason.")]).await;
    assert!(
        none.status == 422 && none.body.contains("id=\"e-decision\">Choose one.") && none.body.contains("A good reason."),
        "{}",
        none.body
    );

    let decided = olga.send(&path, &[("decision", "reject"), ("reason", "It is a copy.")]).await;
    assert_eq!((decided.status.as_u16(), decided.header("location").as_deref()), (303, Some(path.as_str())));
    let after = olga.page(&path, 200).await;
    assert!(text(&after).contains("Rejected by a personIt is a copy. @olga") && after.contains("value=\"reopen\""), "{}", text(&after));
    // The other operator, who still has the page of before.
    let otto = browser(&stage.app, "otto").await;
    let late = otto.send(&path, &[("decision", "accept"), ("reason", "It looks right.")]).await;
    assert_eq!(late.status, 409);
    assert!(
        text(&late.body).contains("@olga has rejected it: It is a copy.") && late.body.contains("It looks right."),
        "{}",
        text(&late.body)
    );
}

#[tokio::test]
async fn an_operator_sees_no_form_for_a_run_of_their_own() {
    let stage = Stage::new().await;
    rigmark::identity::service::set_operator(&stage.app.ctx().db, &stage.app.ctx().clock, "host", true).await.unwrap();
    let run = stage.waiting().await;
    let page = browser(&stage.app, "host").await.page(&format!("/en/review/{run}"), 200).await;
    assert!(!page.contains("<form") && text(&page).contains("Another operator decides"), "{}", text(&page));
}

#[tokio::test]
async fn an_uploader_answers_on_the_page_and_hostile_text_stays_text() {
    let stage = Stage::new().await;
    let run = stage.waiting().await;
    let public = format!("/en/runs/{run}");
    let path = format!("{public}/answer");
    let before = stage.app.http.get(&public).answer().await.body;
    assert!(before.contains(&format!("href=\"{path}\"")), "{before}");
    for stranger in ["olga", "otto"] {
        browser(&stage.app, stranger).await.page(&path, 404).await;
    }
    let host = browser(&stage.app, "host").await;
    let page = host.page(&path, 200).await;
    html::assert_sound(&path, &page);
    assert!(text(&page).contains("run_replayed") && text(&page).contains("Something is odd."));
    let empty = host.send(&path, &[("text", " \n ")]).await;
    assert!(empty.status == 422 && empty.body.contains("id=\"e-text\">An answer has 1 to 2,000 characters."), "{}", empty.body);
    html::assert_sound(&path, &empty.body);
    let long = host.send(&path, &[("text", &HOSTILE.repeat(30))]).await;
    assert!(long.status == 422 && long.body.contains("&#60;script&#62;") && !long.body.contains("<script>alert"), "{}", long.body);
    html::assert_sound(&path, &long.body);
    let sent = host.send(&path, &[("text", HOSTILE)]).await;
    assert_eq!((sent.status.as_u16(), sent.header("location")), (303, Some(format!("{public}#history-h"))));
    stage.decide(&stage.olga, run, "reject", HOSTILE).await;
    let olga = browser(&stage.app, "olga").await;
    let seen =
        [stage.app.http.get(&public).answer().await.body, olga.page(&format!("/en/review/{run}"), 200).await, host.page(&path, 200).await];
    for body in seen {
        html::assert_sound(&public, &body);
        assert!(body.contains("&#60;script&#62;alert(1)") && !body.contains("<script>alert") && !body.contains("<img"), "{body}");
        assert!(!body.contains('\u{202e}'), "what turns the text around is left out");
    }
    let done = host.page(&path, 200).await;
    assert!(!done.contains("<textarea") && text(&done).contains("A run is answered once"), "{}", text(&done));
}

#[tokio::test]
async fn a_member_of_the_organization_answers_for_it() {
    let stage = Stage::new().await;
    let run = stage.waiting().await;
    let boss = person(&stage.app, "boss").await;
    boss.http.post("/api/v1/organizations").json(&json!({ "handle": "guild" })).expect(201).await;
    execute(&stage.app, "UPDATE runs SET account_id = (SELECT id FROM accounts WHERE handle = 'guild')").await;
    let path = format!("/en/runs/{run}/answer");
    assert_eq!(browser(&stage.app, "boss").await.send(&path, &[("text", "It is ours.")]).await.status, 303);
    assert_eq!(stage.history(run).await[0]["by"], "@guild");
    browser(&stage.app, "host").await.page(&path, 404).await;
}

#[tokio::test]
async fn the_public_page_tells_what_happened() {
    let stage = Stage::new().await;
    let run = stage.waiting().await;
    stage.decide(&stage.olga, run, "accept", "It is plausible.").await;
    let body = stage.app.http.get(&format!("/en/runs/{run}")).answer().await.body;
    html::assert_sound("/en/runs", &body);
    let shown = text(&body);
    assert!(shown.contains("History") && shown.contains("Accepted by a personIt is plausible. @olga"), "{shown}");
    assert!(body.contains(&format!("/api/v1/matrix-runs/{run}/history")));
}

#[tokio::test]
async fn the_original_is_a_file_for_operators() {
    let stage = Stage::new().await;
    let run = stage.waiting().await;
    execute(
        &stage.app,
        "INSERT INTO run_documents (run_id, redacted_gzip, original_gzip, original_sha256)
         SELECT id, '\\x1f8b08000000000000036bae0500', '\\x1f8b080000000000000303000000000000000000', 'x' FROM runs",
    )
    .await;
    let answer = browser(&stage.app, "olga").await.get(&format!("/en/review/{run}/original")).answer().await;
    assert_eq!((answer.status.as_u16(), answer.body.as_str()), (200, ""));
    assert!(answer.header("content-disposition").unwrap().starts_with("attachment"));
    assert_eq!(answer.header("cache-control").as_deref(), Some("private, no-store"));
}
