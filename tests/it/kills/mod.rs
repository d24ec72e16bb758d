//! Proof under faults: a rental, top-ups, a refund, a payout and an automatic top-up, each killed after every commit and around every request to
//! Stripe. The process is started again on the same database, the client repeats its request or does not, time passes, the workers run;
//! then all that there is was done once or not at all, and the books, the holds and Stripe agree.
//!
//! The killed process is a server in this one whose wires to PostgreSQL and Stripe are cut (`support::Wires`), which shows the same: nothing
//! it does afterwards reaches anybody. A sample is killed for real (`real`).

mod books;
mod model;
mod poller;
mod random;
mod real;
mod rental;
mod stripe;

use std::cell::Cell;
use std::time::Duration;

use diesel::{QueryableByName, sql_query, sql_types as sql};
use diesel_async::RunQueryDsl;
use rigmark::base::secret::Secret;
use rigmark::config::{Config, Mode, StripeConfig};
use serde_json::{Value, json};

use crate::support::{
    Counts, Cut, TestApp, Wires,
    hosts::{Person, person},
    http::Http,
    stripe_double::{Release, StripeDouble, StripeDoubleConfig},
};

const WEBHOOK_SECRET: &str = "whsec_of_the_tests";
const WEBHOOK: &str = "/api/v1/stripe/events";
/// Set: every moment, with a client that repeats and with one that leaves.
const ALL: &str = "RIGMARK_ALL_KILLS";
/// Not set: of every four moments one with each client, and not the same one.
const STEP: usize = 4;

/// Something that a client does in several steps.
trait Scenario {
    type Case;

    /// What is there before; nothing is cut here.
    async fn prepare(&self, world: &World, who: &Person) -> Self::Case;

    /// May be cut off anywhere, and then returns or hangs.
    async fn act(&self, world: &World, http: &Http, case: &Self::Case);

    /// The client does the same again, with the same keys; it must succeed.
    async fn repeat(&self, world: &World, http: &Http, case: &Self::Case);

    /// When all has come to rest: done exactly once if `is_repeated`, otherwise once or not at all.
    async fn check(&self, world: &World, http: &Http, case: &Self::Case, is_repeated: bool);
}

/// What the client does when its connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    Repeats,
    Leaves,
}

/// A server, its database and its Stripe; and how much time has passed for all of them.
pub struct World {
    app: TestApp,
    stripe: StripeDouble,
    wires: Wires,
    /// Those of the last process, while a request of its may be on its way.
    late: Option<Wires>,
    mode: Mode,
    passed_seconds: Cell<i64>,
    people: usize,
}

#[derive(QueryableByName)]
struct Text {
    #[diesel(sql_type = sql::Text)]
    text: String,
}

impl World {
    async fn new(mode: Mode) -> Self {
        let config = StripeDoubleConfig { bind: "127.0.0.1:0".to_owned(), webhook_url: None, secret: WEBHOOK_SECRET.to_owned() };
        let stripe = StripeDouble::start(&config).unwrap();
        stripe.hold_webhooks();
        let app = TestApp::with(|config| config.mode = mode).await;
        let wires = Wires::start(app.database.url(), &stripe.url()).await;
        let mut world = Self { app, stripe, wires, late: None, mode, passed_seconds: Cell::new(0), people: 0 };
        world.start_again().await;
        world
    }

    /// Cuts off what runs, and starts anew on the same database.
    async fn start_again(&mut self) {
        self.wires.cut();
        let wires = Wires::start(self.app.database.url(), &self.stripe.url()).await;
        let mode = self.mode;
        self.app.replace(|config| configure(config, mode, &wires.database_url, &wires.stripe_url)).await;
        self.app.shift_wall(self.passed_seconds.get());
        self.late = Some(std::mem::replace(&mut self.wires, wires));
    }

    /// For what is not cut off.
    async fn start_without_wires(&mut self) {
        self.wires.cut();
        let (database, stripe, mode) = (self.app.database.url().to_owned(), self.stripe.url(), self.mode);
        self.app.replace(|config| configure(config, mode, &database, &stripe)).await;
    }

    async fn somebody(&mut self) -> Person {
        self.people += 1;
        person(&self.app, &format!("somebody{}", self.people)).await
    }

    /// Signed in anew: sessions end, and the address has changed.
    async fn sign_in(&self, who: &Person) -> Http {
        sign_in(&self.app.http, who).await
    }

    /// For us and for Stripe.
    fn pass(&self, seconds: i64) {
        self.app.shift_wall(seconds);
        self.stripe.advance(seconds);
        self.passed_seconds.set(self.passed_seconds.get() + seconds);
    }

    /// Time passes and the workers run, until nothing that was begun can still be open.
    async fn settle(&self) {
        for seconds in [180, 3_000, 6_000] {
            self.pass(seconds);
            self.app.work().await;
        }
    }

    /// Delivers every webhook that was not delivered, twice, to this address.
    async fn deliver_webhooks(&self, to: &Http) {
        let fresh = self.stripe.control("GET", "webhooks", &json!({})).unwrap();
        let events: Vec<String> =
            fresh["undelivered"].as_array().unwrap().iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect();
        if events.is_empty() {
            return;
        }
        // Signed by our clock, which other tests of this process do not share.
        let age_seconds = self.stripe.with(|world| world.now()) - self.app.ctx().clock.wall_now().timestamp();
        let endpoints = vec![format!("{}{WEBHOOK}", to.base_url())];
        let how = Release { events, copies: 2, age_seconds, endpoints, ..Release::default() };
        self.stripe.release(&how).await.unwrap();
    }

    async fn text(&self, query: &str) -> String {
        let found: Text = sql_query(format!("SELECT ({query})::text AS text")).get_result(&mut self.app.connect().await).await.unwrap();
        found.text
    }

    async fn count(&self, from: &str) -> i64 {
        self.text(&format!("SELECT count(*) FROM {from}")).await.parse().unwrap()
    }

    async fn account(&self, who: &Person) -> String {
        self.text(&format!("SELECT id FROM accounts WHERE handle = '{}'", who.handle)).await
    }

    /// One run, cut at this moment or not at all.
    async fn run<S: Scenario>(&mut self, scenario: &S, cut: Option<Cut>, client: Client) -> (Counts, bool) {
        let who = self.somebody().await;
        let case = scenario.prepare(self, &who).await;
        let http = self.sign_in(&who).await;
        self.wires.arm(cut);
        let acted = tokio::time::timeout(Duration::from_secs(60), async {
            tokio::select! {
                biased;
                () = self.wires.until_cut() => true,
                () = scenario.act(self, &http, &case) => false,
            }
        });
        let was_cut = acted.await.expect("the moment comes, or the end");
        let counts = self.wires.counts();
        self.end(scenario, &who, &case, client).await;
        (counts, was_cut)
    }

    /// A new process, what the client and the workers do, and what must be true then.
    async fn end<S: Scenario>(&mut self, scenario: &S, who: &Person, case: &S::Case, client: Client) {
        self.start_again().await;
        if client == Client::Repeats {
            // The lease of the first attempt is over.
            self.pass(90);
            scenario.repeat(self, &self.sign_in(who).await, case).await;
        } else {
            self.app.work().await;
        }
        if let Some(late) = self.late.take() {
            late.deliver_late().await;
        }
        self.settle().await;
        let http = self.sign_in(who).await;
        scenario.check(self, &http, case, client == Client::Repeats).await;
        if self.mode == Mode::Test {
            self.deliver_webhooks(&http).await;
            scenario.check(self, &http, case, client == Client::Repeats).await;
        }
        books::assert_books(self).await;
    }
}

fn configure(config: &mut Config, mode: Mode, database_url: &str, stripe_url: &str) {
    config.database_url = Some(Secret::new(database_url.to_owned()));
    config.mode = mode;
    if mode == Mode::Test {
        let secrets = vec![Secret::new(WEBHOOK_SECRET.to_owned())];
        let mut stripe = StripeConfig::new(Secret::new("sk_test_rigmark".to_owned()), secrets, Some(stripe_url.to_owned()));
        stripe.attempts_max = 1;
        config.stripe = Some(stripe);
    }
}

async fn sign_in(at: &Http, who: &Person) -> Http {
    let form = json!({ "email": format!("{}@example.org", who.handle), "password": "correct horse battery" });
    let body = at.post("/api/v1/auth/login").json(&form).expect(200).await;
    at.with_bearer(body["access_token"].as_str().unwrap())
}

/// Says at which moment an assertion failed.
struct During(String);

impl Drop for During {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0);
        }
    }
}

/// Counts the moments in a run without faults, then cuts at each.
async fn prove<S: Scenario>(name: &str, world: &mut World, scenario: &S) {
    // The first run also finds what nobody has done before.
    world.run(scenario, None, Client::Leaves).await;
    let (counts, _) = world.run(scenario, None, Client::Repeats).await;
    assert!(counts.commits > 0, "{name} commits nothing");
    let mut tried = 0;
    let mut cut_off = 0;
    let cuts = counts.cuts();
    for (at, cut) in cuts.iter().enumerate() {
        for (offset, client) in [Client::Repeats, Client::Leaves].into_iter().enumerate() {
            if std::env::var_os(ALL).is_none() && (at + offset) % STEP != 0 {
                continue;
            }
            let during = During(format!("{name}: {cut:?}, the client {client:?}"));
            let (_, was_cut) = world.run(scenario, Some(*cut), client).await;
            drop(during);
            tried += 1;
            cut_off += usize::from(was_cut);
        }
    }
    eprintln!(
        "{name}: {} commits, {} requests to Stripe, {} moments; {tried} tried, {cut_off} cut off",
        counts.commits,
        counts.calls,
        cuts.len()
    );
    // A run is not the same to the commit each time; but a driver that no longer cuts anything proves nothing.
    assert!(cut_off * 4 >= tried * 3, "{name}: of {tried} only {cut_off} were cut off");
}

/// The id in an answer that did come.
async fn id_of(request: crate::support::http::Request) -> Option<String> {
    let answer = request.try_answer().await?;
    (answer.status == 201).then(|| answer.json()["id"].as_str().unwrap().to_owned())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}
