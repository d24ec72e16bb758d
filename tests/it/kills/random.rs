//! 10,000 random operations by six accounts, four at a time, against the simple model: what was accepted adds up to the balances. The last
//! part runs alone, so that each acceptance and each balance is foretold.

use std::cell::RefCell;
use std::rc::Rc;

use chrono::{DateTime, TimeDelta, Utc};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng};
use rigmark::base::{
    Code, Money,
    id::{AccountId, HoldId, RentalId, TransferId},
};
use rigmark::config::Mode;
use rigmark::ledger::{
    Actor, Charge, LedgerAccount, TransferCode,
    model::{Capture, Correction, HoldRequest, Posting, TransferRequest},
    service,
};
use serde_json::{Value, json};

use super::model::{Dispute, FEE_DIVISOR, Model};
use super::{WEBHOOK, WEBHOOK_SECRET, World, text};
use crate::support::hosts::{Person, account_id, execute};
use crate::support::renting::micros;
use crate::support::stripe_double::signature;

const OPERATIONS: usize = 10_000;
/// Of them, at the end, one after another.
const ALONE: usize = 2_500;
const MEMBERS: usize = 6;
const TASKS: usize = 4;
const CENT: i64 = 10_000;
/// Another one than the usual seed.
const SEED: &str = "RIGMARK_SEED";
const BASIS_POINTS: u16 = 1_000;

struct Fair {
    world: World,
    people: Vec<(Person, AccountId)>,
    model: RefCell<Model>,
    /// How often each kind was accepted and refused.
    tally: RefCell<std::collections::BTreeMap<&'static str, (usize, usize)>>,
    now: DateTime<Utc>,
}

/// One actor's luck, and whether nobody else acts.
struct Turn {
    random: StdRng,
    is_alone: bool,
}

impl Turn {
    fn cents(&mut self, most: i64) -> i64 {
        self.random.random_range(1..=most) * CENT
    }
    fn pick(&mut self, count: usize) -> Option<usize> {
        (count > 0).then(|| self.random.random_range(0..count))
    }
    /// Some requests come twice.
    fn times(&mut self) -> usize {
        if self.random.random_bool(0.1) { 2 } else { 1 }
    }
}

fn money(micros: i64) -> Money {
    Money::usd_micros(micros)
}

impl Fair {
    async fn new() -> Self {
        let mut world = World::new(Mode::Test).await;
        world.start_without_wires().await;
        world.fund(50_000_000).await;
        let mut people = Vec::new();
        for _ in 0..MEMBERS {
            let person = world.somebody().await;
            let account = account_id(&world.app, &person).await;
            let form = json!({ "return_url": "https://example.org/back" });
            person.http.post("/api/v1/payout-account").json(&form).expect(201).await;
            let at_stripe = format!("SELECT stripe_account_id FROM payout_accounts WHERE account_id = '{}'", account.uuid());
            let at_stripe = world.text(&at_stripe).await;
            world.stripe.control("POST", &format!("accounts/{at_stripe}"), &json!({ "outcome": "complete" })).unwrap();
            assert_eq!(person.http.get("/api/v1/payout-account").expect(200).await["status"], "enabled");
            people.push((person, account));
        }
        let now = world.app.ctx().clock.wall_now();
        Self { world, people, model: RefCell::new(Model::of(MEMBERS)), tally: RefCell::default(), now }
    }

    fn account(&self, member: usize) -> AccountId {
        self.people[member].1
    }

    fn note(&self, kind: &'static str, is_accepted: bool) {
        let mut tally = self.tally.borrow_mut();
        let (accepted, refused) = tally.entry(kind).or_default();
        if is_accepted { *accepted += 1 } else { *refused += 1 }
    }

    async fn act(&self, turn: &mut Turn) {
        let member = turn.random.random_range(0..MEMBERS);
        match turn.random.random_range(0..1_000) {
            0..80 => self.credit(turn, member).await,
            80..240 => self.hold(turn, member).await,
            240..340 => self.increase(turn).await,
            340..580 => self.tick(turn).await,
            580..720 => self.release(turn).await,
            720..800 => self.give_back(turn).await,
            800..830 => self.mature(member).await,
            830..890 => self.top_up(turn, member).await,
            890..940 => self.refund(turn, member).await,
            940..975 => self.pay_out(turn, member).await,
            975..983 => self.dispute(turn, member).await,
            _ => self.decide(turn).await,
        }
        if turn.is_alone {
            self.assert_member(member).await;
        }
    }

    /// A hold that is open; sometimes any.
    fn a_hold(&self, turn: &mut Turn) -> Option<usize> {
        let model = self.model.borrow();
        let open: Vec<usize> = (0..model.holds.len()).filter(|at| model.holds[*at].is_open).collect();
        if turn.random.random_bool(0.1) { turn.pick(model.holds.len()) } else { turn.pick(open.len()).map(|at| open[at]) }
    }

    /// What is a week old becomes payable.
    async fn mature(&self, member: usize) {
        let due =
            format!("UPDATE earnings_maturity SET due_at = now() - interval '1 year' WHERE account_id = '{}'", self.account(member).uuid());
        execute(&self.world.app, &due).await;
        service::mature_due(self.world.app.ctx(), self.now).await.unwrap();
    }

    async fn credit(&self, turn: &mut Turn, member: usize) {
        let (amount, times) = (turn.cents(5_000), turn.times());
        let request = TransferRequest {
            id: TransferId::new(),
            code: TransferCode::SandboxCredit,
            postings: Posting::between(LedgerAccount::SandboxMint, LedgerAccount::Available(self.account(member)), money(amount)).unwrap(),
            rental: None,
            payment: None,
            actor: Actor::System,
            business_at: self.now,
            linked: None,
        };
        for _ in 0..times {
            self.world.app.ctx().db.tx("test", async |tx| service::post(tx, request.clone()).await).await.unwrap();
        }
        self.model.borrow_mut().credited(member, amount);
        self.note("credit", true);
    }

    async fn hold(&self, turn: &mut Turn, member: usize) {
        let (amount, times) = (turn.cents(3_000), turn.times());
        let host = (member + turn.random.random_range(1..MEMBERS)) % MEMBERS;
        let request = HoldRequest {
            id: HoldId::new(),
            transfer_id: TransferId::new(),
            account: self.account(member),
            rental: Some(RentalId::new()),
            amount: money(amount),
            actor: Actor::System,
            business_at: self.now,
            expires_at: None,
        };
        let hold = async || self.world.app.ctx().db.tx("test", async |tx| service::hold(tx, request.clone()).await).await;
        let foretold = {
            let model = self.model.borrow();
            model.members[member].open_disputes == 0 && model.members[member].available >= amount
        };
        let made = hold().await;
        if turn.is_alone {
            assert_eq!(made.is_ok(), foretold, "{made:?}");
        }
        self.note("hold", made.is_ok());
        match made {
            Ok(_) => self.model.borrow_mut().held(request.id, member, host, amount),
            Err(error) => assert!(matches!(error.code(), Code::InsufficientFunds | Code::AccountFrozen), "{error:?}"),
        }
        if times > 1 {
            // Of one that was made nothing changes, or it is over by now; one that was refused may be made now.
            let was = self.model.borrow().holds.iter().any(|hold| hold.id == request.id);
            let again = hold().await;
            if !was && again.is_ok() {
                self.model.borrow_mut().held(request.id, member, host, amount);
            }
        }
    }

    async fn increase(&self, turn: &mut Turn) {
        let Some(at) = self.a_hold(turn) else { return };
        let (hold, id, wanted) = (self.model.borrow().holds[at], TransferId::new(), turn.cents(1_000));
        let foretold = wanted.min(self.model.borrow().members[hold.renter].available.max(0));
        let increase = async || {
            let more = async |tx: &mut rigmark::db::Tx<'_>| service::hold_increase(tx, hold.id, id, money(wanted), self.now).await;
            self.world.app.ctx().db.tx("test", more).await
        };
        let added = increase().await;
        if turn.is_alone && hold.is_open {
            assert_eq!(*added.as_ref().unwrap(), money(foretold));
        }
        self.note("increase", added.as_ref().is_ok_and(|added| !added.is_zero()));
        let Ok(added) = added.map(Money::micros) else { return };
        self.model.borrow_mut().increased(at, added);
        if turn.times() > 1 && added > 0 {
            assert!(increase().await.is_ok_and(|again| again.micros() == added) || !self.model.borrow().holds[at].is_open);
        }
    }

    async fn tick(&self, turn: &mut Turn) {
        let Some(at) = self.a_hold(turn) else { return };
        let (hold, id, gross) = (self.model.borrow().holds[at], TransferId::new(), turn.cents(1_000));
        let charge = Charge::in_all(money(gross), BASIS_POINTS).unwrap();
        // Old enough to be paid out.
        let business_at = self.now - TimeDelta::days(8);
        let capture = Capture { hold: hold.id, transfer_id: id, charge, host: self.account(hold.host), business_at };
        let work = async || self.world.app.ctx().db.tx("test", async |tx| service::capture(tx, capture).await).await;
        let charged = work().await;
        if turn.is_alone {
            assert_eq!(charged.is_ok(), hold.is_open && gross <= hold.remaining, "{charged:?} of {hold:?}");
        }
        self.note("tick", charged.is_ok());
        if charged.is_ok() {
            self.model.borrow_mut().ticked(id, at, gross);
            if turn.times() > 1 {
                work().await.ok();
            }
        }
    }

    async fn release(&self, turn: &mut Turn) {
        let Some(at) = self.a_hold(turn) else { return };
        let (hold, times) = (self.model.borrow().holds[at], turn.times());
        for _ in 0..times {
            let id = TransferId::new();
            let back = self.world.app.ctx().db.tx("test", async |tx| service::release(tx, hold.id, id, self.now).await).await.unwrap();
            if turn.is_alone {
                let foretold = self.model.borrow().holds[at];
                assert_eq!(back.micros(), if foretold.is_open { foretold.remaining } else { 0 });
            }
            self.note("release", !back.is_zero());
            self.model.borrow_mut().released(at, back.micros());
        }
    }

    async fn give_back(&self, turn: &mut Turn) {
        let Some(at) = turn.pick(self.model.borrow().ticks.len()) else { return };
        let (tick, gross) = (self.model.borrow().ticks[at], turn.cents(600));
        let rest = self.model.borrow().charged[tick.hold];
        let correction = Correction {
            id: TransferId::new(),
            original: tick.id,
            gross: money(gross),
            fee_basis_points: BASIS_POINTS,
            actor: Actor::System,
            business_at: self.now,
        };
        let work = async || self.world.app.ctx().db.tx("test", async |tx| service::correct(tx, correction).await).await;
        let done = work().await;
        if turn.is_alone {
            assert_eq!(done.is_ok(), gross <= rest, "{done:?}: {gross} of {rest}");
        }
        self.note("give back", done.is_ok());
        match done {
            Ok(_) => {
                self.model.borrow_mut().given_back(tick.hold, gross);
                if turn.times() > 1 {
                    work().await.unwrap();
                }
            }
            Err(error) => assert_eq!(error.code(), Code::InvalidInput, "{error:?}"),
        }
    }

    /// A request that may be sent twice under one key; its answer when it was accepted.
    async fn request(&self, turn: &mut Turn, member: usize, path: &str, form: &Value) -> Option<Value> {
        let key = TransferId::new().to_string();
        let send = || self.people[member].0.http.post(path).idempotency_key(&key).json(form);
        let answer = if turn.times() > 1 {
            let (first, second) = tokio::join!(send().answer(), send().answer());
            if second.status.as_u16() == 201 { second } else { first }
        } else {
            send().answer().await
        };
        assert!(!answer.status.is_server_error(), "{path}: {}", answer.body);
        (answer.status.as_u16() == 201).then(|| answer.json())
    }

    async fn top_up(&self, turn: &mut Turn, member: usize) {
        let amount = turn.cents(5_000).max(500 * CENT);
        let card = if turn.random.random_bool(0.15) { "pm_card_chargeDeclined" } else { "pm_card_visa" };
        let form = json!({ "amount": money(amount).to_string(), "payment_method": card });
        let Some(answer) = self.request(turn, member, "/api/v1/top-ups", &form).await else { panic!("a top-up was refused") };
        let is_paid = answer["status"] == "succeeded";
        assert_eq!(is_paid, card == "pm_card_visa", "{answer}");
        self.note("top-up", is_paid);
        if is_paid {
            self.model.borrow_mut().topped_up(member, text(&answer["id"]).to_owned(), amount);
        }
    }

    fn a_top_up(&self, turn: &mut Turn, member: usize) -> Option<String> {
        let model = self.model.borrow();
        turn.pick(model.members[member].top_ups.len()).map(|at| model.members[member].top_ups[at].clone())
    }

    async fn refund(&self, turn: &mut Turn, member: usize) {
        let Some(top_up) = self.a_top_up(turn, member) else { return };
        let amount = turn.cents(2_000);
        let form = json!({ "top_up_id": top_up, "amount": money(amount).to_string() });
        let answer = self.request(turn, member, "/api/v1/refunds", &form).await;
        let is_done = answer.as_ref().is_some_and(|refund| refund["status"] == "succeeded");
        assert!(is_done || answer.as_ref().is_none_or(|refund| refund["status"] == "failed"), "{answer:?}");
        self.note("refund", is_done);
        if is_done {
            self.model.borrow_mut().refunded(member, amount);
        }
    }

    async fn pay_out(&self, turn: &mut Turn, member: usize) {
        let form = if turn.random.random_bool(0.5) {
            json!({})
        } else {
            json!({ "amount": money(turn.cents(1_000).max(100 * CENT)).to_string() })
        };
        let answer = self.request(turn, member, "/api/v1/payouts", &form).await;
        self.note("payout", answer.is_some());
        if let Some(payout) = answer {
            assert_eq!(payout["status"], "sent");
            self.model.borrow_mut().paid_out(member, micros(&payout["amount"]));
        }
    }

    /// The bank takes money of a payment back, and Stripe tells us.
    async fn dispute(&self, turn: &mut Turn, member: usize) {
        let Some(top_up) = self.a_top_up(turn, member) else { return };
        let top_up: rigmark::base::id::TopUpId = top_up.parse().unwrap();
        let payment = self.world.text(&format!("SELECT payment_intent_id FROM top_ups WHERE id = '{}'", top_up.uuid())).await;
        let form = json!({ "payment_intent": payment, "reason": "fraudulent" });
        let Ok(dispute) = self.world.stripe.control("POST", "disputes", &form) else { return };
        let id = text(&dispute["id"]).to_owned();
        self.tell("charge.dispute.created", &id).await;
        self.note("chargeback", true);
        self.model.borrow_mut().disputed(Dispute { id, member, amount: dispute["amount"].as_i64().unwrap() * CENT });
    }

    async fn decide(&self, turn: &mut Turn) {
        let Some(at) = turn.pick(self.model.borrow().disputes.len()) else { return };
        let dispute = self.model.borrow_mut().disputes.swap_remove(at);
        let is_won = turn.random.random_bool(0.5);
        let verdict = json!({ "status": if is_won { "won" } else { "lost" } });
        self.world.stripe.control("POST", &format!("disputes/{}", dispute.id), &verdict).unwrap();
        self.tell("charge.dispute.closed", &dispute.id).await;
        self.note(if is_won { "won" } else { "lost" }, true);
        self.model.borrow_mut().decided(&dispute, is_won);
    }

    async fn tell(&self, kind: &str, id: &str) {
        let object = self.world.stripe.with(|world| world.find(id)).unwrap();
        let event = TransferId::new().to_string();
        let body = json!({ "id": format!("evt_{event}"), "type": kind, "data": { "object": object } }).to_string();
        let header = signature(WEBHOOK_SECRET, self.world.app.ctx().clock.wall_now().timestamp(), &body);
        self.world.app.http.post(WEBHOOK).header("Stripe-Signature", header).body(body).expect(200).await;
    }

    async fn assert_member(&self, member: usize) {
        let balance = service::balance(&mut self.world.app.ctx().db.conn().await.unwrap(), self.account(member)).await.unwrap();
        let model = self.model.borrow();
        let expected = (model.members[member].available, model.held_of(member), model.members[member].earned);
        let earned = balance.earnings.plus(balance.payable).unwrap();
        assert_eq!((balance.available.micros(), balance.held.micros(), earned.micros()), expected, "member {member}");
        // Only the bank, or who gives back what was paid out, makes a debt.
        assert!(!balance.held.is_negative() && !balance.payable.is_negative());
    }

    async fn assert_all(&self) {
        for member in 0..MEMBERS {
            self.assert_member(member).await;
        }
        let balance = async |kind: &str| {
            let sum = format!("SELECT coalesce(sum(balance_micros), 0)::bigint FROM ledger_accounts WHERE kind = '{kind}'");
            self.world.text(&sum).await.parse::<i64>().unwrap()
        };
        let found = [balance("platform:fees").await, balance("stripe:clearing").await, balance("sandbox:mint").await];
        assert_eq!(balance("stripe:refunds_in_transit").await, 0);
        let report = service::reconcile(&mut self.world.app.connect().await).await.unwrap();
        assert_eq!(report.differences, []);
        let open = self.world.count("holds WHERE state = 'open'").await;
        let model = self.model.borrow();
        assert_eq!(found, [model.fees, -model.at_stripe, -model.minted]);
        assert_eq!(super::books::at_stripe_in_all(&self.world) * CENT, model.at_stripe);
        assert_eq!(usize::try_from(open).unwrap(), model.holds.iter().filter(|hold| hold.is_open).count());
    }
}

#[tokio::test]
async fn ten_thousand_random_operations_add_up() {
    let seed = std::env::var(SEED).map_or(20_261_130, |seed| seed.parse().expect("a number"));
    eprintln!("{SEED}={seed}");
    assert_eq!(FEE_DIVISOR * i64::from(BASIS_POINTS), 10_000);
    let fair = Rc::new(Fair::new().await);
    let local = tokio::task::LocalSet::new();
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..TASKS {
        let fair = Rc::clone(&fair);
        let mut turn = Turn { random: StdRng::seed_from_u64(seed + task as u64), is_alone: false };
        let work = async move {
            for _ in 0..(OPERATIONS - ALONE) / TASKS {
                fair.act(&mut turn).await;
            }
        };
        tasks.spawn_local_on(work, &local);
    }
    local.run_until(tasks.join_all()).await;
    fair.assert_all().await;
    let mut turn = Turn { random: StdRng::seed_from_u64(seed + TASKS as u64), is_alone: true };
    for _ in 0..ALONE {
        fair.act(&mut turn).await;
    }
    fair.assert_all().await;
    let tally = fair.tally.borrow();
    eprintln!("accepted and refused: {tally:?}");
    assert!(tally.values().all(|(accepted, _)| *accepted > 0));
}
