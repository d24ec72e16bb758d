//! The same with the real program and a real `kill -9`, for a sample of the moments. What is started again afterwards is a server in this
//! process, on the database that the kill left, since its clock can be moved.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rigmark::config::Mode;

use super::{Client, During, Scenario, WEBHOOK_SECRET, World, rental::Rental, stripe};
use crate::support::http::Http;
use crate::support::{Counts, Cut, Program, Wires};

const SEED: u64 = 20_261_130;
const EACH: usize = 3;

impl World {
    /// The program on this world's database and Stripe, by wires of its own.
    fn program(&self, wires: &Wires) -> Program {
        let dir = self.app.data_dir.path();
        let secret = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap().trim().to_owned();
        let (jwt, root) = (secret("jwt-secret"), secret("encryption-key"));
        let mut arguments = vec!["--no-workers", "--database-url", &wires.database_url];
        if self.mode == Mode::Test {
            let of_stripe = ["--stripe-secret-key", "sk_test_rigmark", "--stripe-webhook-secret", WEBHOOK_SECRET];
            arguments.extend(of_stripe);
            arguments.extend(["--stripe-api-base", &wires.stripe_url, "--jwt-secret", &jwt, "--encryption-key", &root]);
        }
        Program::serve(dir, &arguments)
    }

    /// As [`World::run`]. The program's clock is the real one, so no time may have passed in this world before.
    async fn run_for_real<S: Scenario>(&mut self, scenario: &S, cut: Option<Cut>) -> (Counts, bool) {
        assert_eq!(self.passed_seconds.get(), 0);
        let who = self.somebody().await;
        let case = scenario.prepare(self, &who).await;
        let wires = Wires::start(self.app.database.url(), &self.stripe.url()).await;
        let program = self.program(&wires);
        // One secret signs the tokens of both.
        let http = who.http.at(&Http::new(&program.base_url));
        wires.arm(cut);
        let was_cut = tokio::select! {
            biased;
            () = wires.until_cut() => true,
            () = scenario.act(self, &http, &case) => false,
        };
        program.kill();
        let counts = wires.counts();
        self.wires = wires;
        self.end(scenario, &who, &case, Client::Repeats).await;
        (counts, was_cut)
    }
}

async fn sample<S: Scenario>(name: &str, mode: Mode, make: impl AsyncFn(&mut World) -> S) {
    let mut world = World::new(mode).await;
    let scenario = make(&mut world).await;
    let (counts, _) = world.run_for_real(&scenario, None).await;
    drop((scenario, world));
    let mut random = StdRng::seed_from_u64(SEED);
    let cuts: Vec<Cut> = counts.cuts().choose_multiple(&mut random, EACH).copied().collect();
    for cut in &cuts {
        let _during = During(format!("{name}, killed for real: {cut:?} of {counts:?}"));
        let mut world = World::new(mode).await;
        let scenario = make(&mut world).await;
        let (_, was_cut) = world.run_for_real(&scenario, Some(*cut)).await;
        assert!(was_cut);
    }
    eprintln!("{name}: killed for real at {cuts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rental_killed_for_real() {
    sample("rental", Mode::Sandbox, async |world| Rental::new(world).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_top_up_killed_for_real() {
    sample("top-up with a card", Mode::Test, async |_| stripe::Card).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refund_killed_for_real() {
    sample("refund", Mode::Test, async |_| stripe::Refund).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payout_killed_for_real() {
    let funded = async |world: &mut World| {
        world.fund(1_000_000).await;
        stripe::Payout
    };
    sample("payout", Mode::Test, funded).await;
}
