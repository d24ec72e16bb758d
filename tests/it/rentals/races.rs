//! Many at once: one machine, one dollar, one key.

use std::collections::BTreeMap;

use futures::future::join_all;
use rigmark::base::id::TransferId;
use serde_json::{Value, json};

use crate::support::hosts::{Person, RunRow, person, published};
use crate::support::http::Answer;
use crate::support::renting::{Stage, balance, credit, rental_id, request};

/// Statuses with codes, and how many of each.
fn tally(answers: &[Answer]) -> BTreeMap<String, usize> {
    let mut tally = BTreeMap::new();
    for answer in answers {
        let code = answer.json()["code"].as_str().unwrap_or_default().to_owned();
        *tally.entry(format!("{} {code}", answer.status.as_u16()).trim().to_owned()).or_default() += 1;
    }
    tally
}

fn counts(expected: &[(&str, usize)]) -> BTreeMap<String, usize> {
    expected.iter().map(|(text, count)| ((*text).to_owned(), *count)).collect()
}

async fn people(stage: &Stage, count: usize, funds: &str) -> Vec<Person> {
    let mut people = Vec::new();
    for number in 0..count {
        let person = person(&stage.app, &format!("renter-{number}")).await;
        credit(&person.http, funds).await;
        people.push(person);
    }
    people
}

async fn count(stage: &Stage, sql: &str) -> i64 {
    use diesel_async::RunQueryDsl;
    #[derive(diesel::QueryableByName)]
    struct Row {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        n: i64,
    }
    let row: Row = diesel::sql_query(sql).get_result(&mut stage.app.connect().await).await.unwrap();
    row.n
}

/// Case 13, as a hundred accounts.
#[tokio::test]
async fn a_hundred_renters_of_one_machine_are_one_renter_and_ninety_nine_refusals() {
    let stage = Stage::new("0").await;
    let people = people(&stage, 100, "10").await;
    let form = stage.with_listing(json!({}));
    let answers = join_all(people.iter().map(|person| request(&person.http, form.clone()).answer())).await;
    assert_eq!(tally(&answers), counts(&[("201", 1), ("409 already_rented", 99)]));
    assert_eq!(count(&stage, "SELECT count(*) AS n FROM holds WHERE state = 'open'").await, 1);
    assert_eq!(count(&stage, "SELECT count(*) AS n FROM rentals").await, 1);
    // Nobody else's money was touched.
    let held: Vec<_> = join_all(people.iter().map(balance)).await.into_iter().filter(|b| b.1 != "0.00").collect();
    assert_eq!(held, [("6.40".to_owned(), "3.60".to_owned())]);
    stage.assert_books().await;
}

/// The same with one account and a hundred keys.
#[tokio::test]
async fn a_hundred_requests_of_one_account_take_the_machine_once() {
    let stage = Stage::new("1000").await;
    let answers = join_all((0..100).map(|_| stage.request(json!({})).answer())).await;
    assert_eq!(tally(&answers), counts(&[("201", 1), ("409 already_rented", 99)]));
    assert_eq!(balance(&stage.renter).await, ("996.40".to_owned(), "3.60".to_owned()));
    stage.assert_books().await;
}

#[tokio::test]
async fn one_key_sent_fifty_times_is_one_rental() {
    let stage = Stage::new("1000").await;
    let key = TransferId::new().to_string();
    let form = stage.with_listing(json!({ "hours": 2 }));
    let post = || stage.renter.http.post("/api/v1/rentals").idempotency_key(&key).json(&form).answer();
    let answers = join_all((0..50).map(|_| post())).await;
    let created: Vec<&Answer> = answers.iter().filter(|a| a.status == 201).collect();
    let waiting = answers.iter().filter(|a| a.json()["code"] == "idempotency_in_progress").count();
    assert!(!created.is_empty() && created.len() + waiting == 50, "{:?}", tally(&answers));
    let again = post().await;
    assert_eq!((again.status.as_u16(), again.header("idempotency-replayed").as_deref()), (201, Some("true")));
    assert!(created.iter().all(|a| a.body == again.body));
    assert_eq!(stage.renter.http.get("/api/v1/rentals").expect(200).await["data"].as_array().unwrap().len(), 1);
    assert_eq!(balance(&stage.renter).await.1, "3.60");
    let other = stage.renter.http.post("/api/v1/rentals").idempotency_key(&key).json(&stage.with_listing(json!({ "hours": 3 })));
    other.expect_problem(422, "idempotency_key_reused").await;
    // The same key of another account is another key, and the machine is taken.
    let other = person(&stage.app, "other").await;
    credit(&other.http, "10").await;
    let theirs = other.http.post("/api/v1/rentals").idempotency_key(&key).json(&form);
    theirs.expect_problem(409, "already_rented").await;
    stage.assert_books().await;
}

/// Somebody hangs up as soon as the request is out: it is done or not, and the key or the list tells which.
#[tokio::test]
async fn a_request_that_was_cut_off_is_found_again() {
    let stage = Stage::new("1000").await;
    for milliseconds in [0, 1, 2, 4, 8, 16, 32] {
        let key = TransferId::new().to_string();
        let form = stage.with_listing(json!({}));
        let post = || stage.renter.http.post("/api/v1/rentals").idempotency_key(&key).json(&form).answer();
        tokio::time::timeout(std::time::Duration::from_millis(milliseconds), post()).await.ok();
        let mut again = post().await;
        while again.json()["code"] == "idempotency_in_progress" {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            again = post().await;
        }
        assert_eq!(again.status, 201, "{}", again.body);
        let live = stage.renter.http.get("/api/v1/rentals?status=held").expect(200).await;
        assert_eq!(live["data"].as_array().unwrap().len(), 1);
        assert_eq!(live["data"][0]["id"], again.json()["id"]);
        stage.stop(&again.json()).await;
    }
    assert_eq!(balance(&stage.renter).await, ("1000.00".to_owned(), "0.00".to_owned()));
    stage.assert_books().await;
}

#[tokio::test]
async fn two_rentals_cannot_spend_the_same_dollar() {
    let stage = Stage::new("3.60").await;
    let other = published(&stage.app, &stage.host, stage.engine.url(), "3.60", &RunRow::default()).await;
    for _ in 0..15 {
        let forms = [json!({}), json!({ "listing_id": other.listing })];
        let answers = join_all(forms.map(|form| stage.request(form).answer())).await;
        assert_eq!(tally(&answers), counts(&[("201", 1), ("402 insufficient_funds", 1)]));
        assert_eq!(balance(&stage.renter).await, ("0.00".to_owned(), "3.60".to_owned()));
        let won = answers.iter().find(|a| a.status == 201).unwrap().json();
        stage.stop(&won).await;
    }
    stage.assert_books().await;
}

#[tokio::test]
async fn while_the_host_takes_it_down_it_is_rented_once_or_not_at_all() {
    let stage = Stage::new("0").await;
    let people = people(&stage, 50, "10").await;
    let form = stage.with_listing(json!({}));
    let listing = format!("/api/v1/listings/{}", stage.offer.listing);
    let (mut rented, mut not) = (0, 0);
    for round in 0..6 {
        let pause = async {
            tokio::time::sleep(std::time::Duration::from_millis(round * 10)).await;
            stage.host.http.post(&format!("{listing}/pause")).expect(200).await
        };
        let (paused, answers) = tokio::join!(pause, join_all(people.iter().map(|person| request(&person.http, form.clone()).answer())));
        assert_eq!(paused["state"], "paused");
        let tally = tally(&answers);
        let won = tally.get("201").copied().unwrap_or_default();
        let refused: usize = ["409 already_rented", "409 listing_not_available"].iter().filter_map(|code| tally.get(*code)).sum();
        assert!(won <= 1 && won + refused == 50, "{tally:?}");
        if won == 1 {
            rented += 1;
            let rental = answers.iter().find(|a| a.status == 201).unwrap().json();
            stage.host.http.post(&format!("/api/v1/rentals/{}/stop", rental_id(&rental))).expect(200).await;
        } else {
            not += 1;
        }
        stage.assert_books().await;
        stage.host.http.post(&format!("{listing}/publish")).expect(200).await;
    }
    assert_eq!(rented + not, 6);
}

/// Stops and new rentals chase each other: the machine is never taken twice and never left taken.
#[tokio::test]
async fn stopping_and_renting_at_once_leave_no_machine_behind() {
    let stage = Stage::new("1000").await;
    let other = person(&stage.app, "other").await;
    credit(&other.http, "1000").await;
    let form = stage.with_listing(json!({}));
    let mut mine: Option<Value> = None;
    for _ in 0..25 {
        let current = match mine.take() {
            Some(rental) => rental,
            None => stage.rent(json!({})).await,
        };
        let later = (stage.now().await + chrono::TimeDelta::hours(5)).to_rfc3339();
        let reserve = json!({ "listing_id": stage.offer.listing, "starts_at": later });
        let (stopped, next, reserved, ()) = tokio::join!(
            stage.stop(&current),
            request(&other.http, form.clone()).answer(),
            request(&other.http, reserve).answer(),
            stage.app.work(),
        );
        assert_eq!(stopped["status"], "ended");
        for answer in [&next, &reserved] {
            assert!(answer.status == 201 || answer.json()["code"] == "already_rented", "{}", answer.body);
        }
        stage.assert_books().await;
        for answer in [next, reserved] {
            if answer.status == 201 {
                let path = format!("/api/v1/rentals/{}/stop", rental_id(&answer.json()));
                other.http.post(&path).expect(200).await;
            }
        }
        assert!(stage.is_available().await);
    }
    stage.assert_books().await;
}

/// Two processes' meters, stops and extensions on one rental at the same time.
#[tokio::test]
async fn meters_in_parallel_charge_once() {
    let stage = Stage::new("1000").await;
    let rental = stage.rent_active(json!({ "hours": 10 })).await;
    for _ in 0..10 {
        stage.advance_without_workers(600).await;
        let settle = || async {
            let now = stage.now().await;
            rigmark::rentals::service::settle_due(stage.app.ctx(), now).await.unwrap();
        };
        let extend = async {
            let path = format!("/api/v1/rentals/{}/extend", rental_id(&rental));
            stage.renter.http.post(&path).idempotency_key(TransferId::new().to_string()).json(&json!({ "hours": 1 })).expect(200).await
        };
        tokio::join!(stage.app.work(), settle(), settle(), settle(), extend);
    }
    let stopped = stage.stop(&rental).await;
    let seconds =
        (crate::support::renting::instant(&stopped["ended_at"]) - crate::support::renting::instant(&stopped["active_at"])).num_seconds();
    assert_eq!(crate::support::renting::micros(&stopped["spend"]), seconds * 1_000);
    stage.assert_books().await;
}
