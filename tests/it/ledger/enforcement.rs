//! What the database refuses by itself, tried with raw SQL, as a program that knows nothing of `ledger` would.

use std::collections::BTreeMap;

use diesel::QueryableByName;
use diesel::result::Error as DieselError;
use diesel::sql_types::{BigInt, Text};
use diesel_async::{AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use rigmark::base::id::TransferId;
use rigmark::ledger::{LedgerAccount, service};

use super::{Books, charge, credit, hold_request, usd};

/// Books with something in them, and the names that the statements below use.
struct Scene {
    books: Books,
    connection: AsyncPgConnection,
    names: Vec<(&'static str, String)>,
}

impl Scene {
    async fn new() -> Self {
        let books = Books::new().await;
        let (account, host) = (books.account().await, books.account().await);
        let posted = credit(account, usd("10"));
        let posted_id = posted.id;
        books.post(posted).await.unwrap();
        books.post(credit(host, usd("1"))).await.unwrap();
        let open_request = hold_request(account, usd("2"));
        let (open, rental) = (open_request.id, open_request.rental.unwrap());
        books.in_tx(async |tx| service::hold(tx, open_request.clone()).await).await.unwrap();
        books.capture(open, TransferId::new(), charge("0.5", 1_000), host).await.unwrap();
        let closed = books.hold(account, usd("1")).await.unwrap();
        books.release(closed.id).await.unwrap();
        let ledger = |account: LedgerAccount| account.id().uuid().to_string();
        let names = vec![
            ("$account", account.uuid().to_string()),
            ("$host", host.uuid().to_string()),
            ("$available", ledger(LedgerAccount::Available(account))),
            ("$held", ledger(LedgerAccount::Held(account))),
            ("$earnings", ledger(LedgerAccount::Earnings(host))),
            ("$other", ledger(LedgerAccount::Available(host))),
            ("$mint", ledger(LedgerAccount::SandboxMint)),
            ("$fees", ledger(LedgerAccount::PlatformFees)),
            ("$posted", posted_id.uuid().to_string()),
            ("$open", open.uuid().to_string()),
            ("$closed", closed.id.uuid().to_string()),
            ("$rental", rental.uuid().to_string()),
            ("$new", "0197a000-0000-7000-8000-000000000001".to_owned()),
            ("$next", "0197a000-0000-7000-8000-000000000002".to_owned()),
        ];
        let connection = books.connect().await;
        Self { books, connection, names }
    }

    /// The statement with ids in place of names, and `transfer(id, code, count)` in place of an INSERT.
    fn sql(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.names {
            text = text.replace(name, &format!("'{value}'"));
        }
        let insert = "INSERT INTO transfers (actor_kind, business_at, id, code, posting_count";
        text.replace("+transfer(", &format!("{insert}) VALUES ('system', now(), "))
            .replace("+postings", "INSERT INTO postings (transfer_id, ledger_account_id, amount_micros) VALUES")
    }

    /// Runs the statements in one transaction; the name of the constraint that refused them, or the message when it has none.
    async fn run(&mut self, text: &str) -> Result<(), String> {
        let sql = format!("BEGIN; {}; COMMIT;", self.sql(text));
        match self.connection.batch_execute(&sql).await {
            Ok(()) => Ok(()),
            Err(error) => {
                self.connection.batch_execute("ROLLBACK").await.unwrap();
                match error {
                    DieselError::DatabaseError(_, info) => Err(info.constraint_name().unwrap_or(info.message()).to_owned()),
                    other => Err(other.to_string()),
                }
            }
        }
    }

    async fn refuses(&mut self, attempts: &[(&str, &str)]) {
        let before = self.contents().await;
        for (expected, attempt) in attempts {
            let outcome = self.run(attempt).await;
            assert_eq!(outcome, Err((*expected).to_owned()), "{attempt}");
        }
        assert_eq!(self.contents().await, before);
        self.books.assert_right().await;
    }

    /// Everything the books say.
    async fn contents(&mut self) -> BTreeMap<String, String> {
        #[derive(QueryableByName)]
        struct Row {
            #[diesel(sql_type = Text)]
            key: String,
            #[diesel(sql_type = Text)]
            value: String,
        }
        let rows: Vec<Row> = diesel::sql_query(
            "SELECT 'a' || id AS key, a::text AS value FROM ledger_accounts a UNION ALL SELECT 'h' || id, h::text FROM holds h
             UNION ALL SELECT 't' || id, t::text FROM transfers t UNION ALL SELECT 'p' || sequence, p::text FROM postings p",
        )
        .load(&mut self.connection)
        .await
        .unwrap();
        rows.into_iter().map(|row| (row.key, row.value)).collect()
    }
}

#[tokio::test]
async fn a_transfer_is_complete_and_balanced_when_it_commits() {
    Scene::new()
        .await
        .refuses(&[
            ("transfers_balanced", "+transfer($new, 'adjustment', 2); +postings ($new, $available, 5), ($new, $mint, -4)"),
            ("transfers_balanced", "+transfer($new, 'adjustment', 2); +postings ($new, $available, 5), ($new, $mint, 5)"),
            ("transfers_balanced", "SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED; +transfer($new, 'adjustment', 2); +postings ($new, $available, 5), ($new, $mint, -4)"),
            ("transfers_two_postings", "+transfer($new, 'adjustment', 1); +postings ($new, $available, 5)"),
            ("transfers_two_postings", "+transfer($new, 'adjustment', 0)"),
            ("transfers_complete", "+transfer($new, 'adjustment', 2)"),
            ("transfers_complete", "+transfer($new, 'adjustment', 2); +postings ($new, $available, 5)"),
            ("transfers_complete", "+transfer($new, 'adjustment', 2); +postings ($new, $available, 5), ($new, $mint, -6), ($new, $fees, 1)"),
            ("postings_amount_not_zero", "+transfer($new, 'adjustment', 2); +postings ($new, $available, 0), ($new, $mint, 0)"),
            (
                "postings_once_per_ledger_account",
                "+transfer($new, 'adjustment', 2); +postings ($new, $available, 5); +postings ($new, $available, -5)",
            ),
            ("transfers_pkey", "+transfer($posted, 'adjustment', 2); +postings ($posted, $fees, 5), ($posted, $mint, -5)"),
        ])
        .await;
}

#[tokio::test]
async fn nothing_is_added_to_a_committed_transfer() {
    let mut scene = Scene::new().await;
    scene
        .refuses(&[
            ("transfers_complete", "+postings ($posted, $fees, 5), ($posted, $other, -5)"),
            ("transfers_complete", "+postings ($posted, $fees, 5)"),
            ("postings_once_per_ledger_account", "+postings ($posted, $available, 5), ($posted, $mint, -5)"),
            (
                "postings_append_only",
                "+postings ($posted, $available, 5) ON CONFLICT (transfer_id, ledger_account_id) DO UPDATE SET amount_micros = 6",
            ),
            ("transfers_append_only", "UPDATE transfers SET posting_count = 4 WHERE id = $posted"),
        ])
        .await;
    // A row that is skipped changes no balance, although its triggers began.
    let before = scene.contents().await;
    scene.run("+postings ($posted, $available, 5) ON CONFLICT DO NOTHING").await.unwrap();
    assert_eq!(scene.contents().await, before);
}

#[tokio::test]
async fn transfers_and_postings_are_never_changed() {
    Scene::new()
        .await
        .refuses(&[
            ("postings_append_only", "UPDATE postings SET amount_micros = amount_micros + 1"),
            ("postings_append_only", "UPDATE postings SET amount_micros = amount_micros WHERE transfer_id = $posted"),
            ("postings_append_only", "DELETE FROM postings"),
            ("postings_append_only", "DELETE FROM postings WHERE transfer_id = $posted"),
            ("postings_append_only", "TRUNCATE postings"),
            ("transfers_append_only", "UPDATE transfers SET rental_id = NULL"),
            ("transfers_append_only", "DELETE FROM transfers WHERE id = $posted"),
            ("postings_append_only", "TRUNCATE postings, transfers"),
            ("transfers_append_only", "TRUNCATE transfers CASCADE"),
            ("ledger_accounts_append_only", "TRUNCATE ledger_accounts CASCADE"),
            ("holds_append_only", "DELETE FROM holds WHERE id = $open"),
            ("holds_append_only", "TRUNCATE holds CASCADE"),
            ("ledger_accounts_append_only", "DELETE FROM ledger_accounts WHERE id = $available"),
        ])
        .await;
}

#[tokio::test]
async fn only_a_posting_changes_a_balance() {
    Scene::new()
        .await
        .refuses(&[
            ("ledger_accounts_only_postings", "UPDATE ledger_accounts SET balance_micros = balance_micros + 1"),
            ("ledger_accounts_only_postings", "UPDATE ledger_accounts SET overdraft_micros = 5 WHERE id = $available"),
            ("ledger_accounts_only_postings", "UPDATE ledger_accounts SET may_be_negative = true WHERE id = $available"),
            ("ledger_accounts_only_postings", "UPDATE ledger_accounts SET key = 'x', kind = 'sandbox:mint', account_id = NULL WHERE id = $available"),
            (
                "ledger_accounts_only_postings",
                "INSERT INTO ledger_accounts (id, key, kind, currency, may_be_negative, balance_micros)
                 VALUES ($new, 'platform:rounding', 'platform:rounding', 'usd', true, 5)",
            ),
            (
                "ledger_accounts_only_postings",
                "INSERT INTO ledger_accounts (id, key, kind, currency, may_be_negative)
                 VALUES ($fees, 'platform:fees', 'platform:fees', 'usd', true) ON CONFLICT (id) DO UPDATE SET balance_micros = 7",
            ),
            (
                "ledger_accounts_limit_by_kind",
                "INSERT INTO ledger_accounts (id, key, account_id, kind, currency, may_be_negative)
                 VALUES ($new, $host || ':held', $host, 'held', 'usd', true)",
            ),
            (
                "ledger_accounts_currency_known",
                "INSERT INTO ledger_accounts (id, key, kind, currency, may_be_negative) VALUES ($new, 'platform:rounding', 'platform:rounding', 'eur', true)",
            ),
            (
                "ledger_accounts_key_key",
                "INSERT INTO ledger_accounts (id, key, kind, currency, may_be_negative) VALUES ($new, 'sandbox:mint', 'sandbox:mint', 'usd', true)",
            ),
            (
                "ledger_accounts_key_form",
                "INSERT INTO ledger_accounts (id, key, kind, currency, may_be_negative) VALUES ($new, 'mint', 'sandbox:mint', 'usd', true)",
            ),
            (
                "ledger_accounts_owner_by_kind",
                "INSERT INTO ledger_accounts (id, key, kind, currency, may_be_negative) VALUES ($new, 'available', 'available', 'usd', false)",
            ),
        ])
        .await;
}

#[tokio::test]
async fn balances_do_not_go_below_zero() {
    let mut scene = Scene::new().await;
    scene
        .refuses(&[
            (
                "ledger_accounts_balance_not_negative",
                "+transfer($new, 'adjustment', 2); +postings ($new, $available, -8000001), ($new, $fees, 8000001)",
            ),
            (
                "ledger_accounts_balance_not_negative",
                "+transfer($new, 'earnings_matured', 2); +postings ($new, $earnings, -450001), ($new, $fees, 450001)",
            ),
            (
                "bigint out of range",
                "+transfer($new, 'adjustment', 2); +postings ($new, $available, 9223372036854775807), ($new, $mint, -9223372036854775807)",
            ),
            (
                "postings_one_by_one",
                "+transfer($new, 'adjustment', 2); +transfer($next, 'adjustment', 2);
                 +postings ($new, $available, 5), ($new, $mint, -5), ($next, $available, 5), ($next, $mint, -5)",
            ),
        ])
        .await;
    // All of it, to the last micro-dollar, is fine.
    scene.run("+transfer($new, 'adjustment', 2); +postings ($new, $available, -8000000), ($new, $fees, 8000000)").await.unwrap();
    scene.books.assert_right().await;
}

#[tokio::test]
async fn held_money_moves_only_with_its_hold() {
    Scene::new()
        .await
        .refuses(&[
            ("postings_held_by_hold", "+transfer($new, 'adjustment', 2); +postings ($new, $available, -5), ($new, $held, 5)"),
            ("postings_held_by_hold", "+transfer($new, 'adjustment', 2); +postings ($new, $available, 5), ($new, $held, -5)"),
            ("transfers_hold_by_code", "+transfer($new, 'hold', 2); +postings ($new, $available, -5), ($new, $held, 5)"),
            (
                "transfers_hold_by_code",
                "INSERT INTO transfers (actor_kind, business_at, id, code, posting_count, hold_id) VALUES ('system', now(), $new, 'adjustment', 2, $open)",
            ),
            ("transfers_rental_by_code", &with_hold("rental_charge", "$open", "NULL", "($new, $held, -1500001), ($new, $earnings, 1500001)")),
            ("holds_within_amount", &with_hold("rental_charge", "$open", "$rental", "($new, $held, -1500001), ($new, $earnings, 1500001)")),
            ("holds_within_amount", &with_hold("hold_release", "$open", "NULL", "($new, $held, -1500001), ($new, $available, 1500001)")),
            ("holds_closed_for_good", &with_hold("hold_release", "$closed", "NULL", "($new, $held, -1), ($new, $available, 1)")),
            ("holds_closed_for_good", &with_hold("hold_increase", "$closed", "NULL", "($new, $held, 1), ($new, $available, -1)")),
            // Fewer set aside, or uncaptured: the amounts of a hold only grow.
            ("holds_only_postings", &with_hold("hold", "$open", "NULL", "($new, $held, -1), ($new, $available, 1)")),
            ("holds_only_postings", &with_hold("rental_charge", "$open", "$rental", "($new, $held, 1), ($new, $available, -1)")),
            ("holds_only_postings", "UPDATE holds SET amount_micros = amount_micros + 1 WHERE id = $open"),
            ("holds_only_postings", "UPDATE holds SET captured_micros = amount_micros WHERE id = $open"),
            ("holds_only_postings", "UPDATE holds SET released_micros = released_micros + 1 WHERE id = $open"),
            ("holds_only_postings", "UPDATE holds SET account_id = $host WHERE id = $open"),
            ("holds_only_postings", "UPDATE holds SET rental_id = NULL WHERE id = $open"),
            ("holds_only_postings", "INSERT INTO holds (id, account_id, amount_micros) VALUES ($new, $account, 5)"),
            ("holds_closed_when_empty", "UPDATE holds SET state = 'closed' WHERE id = $open"),
            ("holds_closed_for_good", "UPDATE holds SET state = 'open' WHERE id = $closed"),
        ])
        .await;
}

/// A transfer of a hold.
fn with_hold(code: &str, hold: &str, rental: &str, postings: &str) -> String {
    format!(
        "INSERT INTO transfers (actor_kind, business_at, id, code, posting_count, hold_id, rental_id)
         VALUES ('system', now(), $new, '{code}', 2, {hold}, {rental}); +postings {postings}"
    )
}

#[tokio::test]
async fn a_hold_is_not_moved_with_another_accounts_money() {
    let mut scene = Scene::new().await;
    let host_hold = scene.books.hold(scene_account(&scene, "$host"), usd("0.5")).await.unwrap();
    scene.names.push(("$theirs", host_hold.id.uuid().to_string()));
    scene
        .refuses(&[("postings_held_by_hold", &with_hold("hold_release", "$theirs", "NULL", "($new, $held, -1), ($new, $available, 1)"))])
        .await;
}

fn scene_account(scene: &Scene, name: &str) -> rigmark::base::id::AccountId {
    let (_, text) = scene.names.iter().find(|(other, _)| *other == name).unwrap();
    rigmark::base::id::AccountId::from_uuid(text.parse().unwrap())
}

#[tokio::test]
async fn a_transfer_says_why_and_who() {
    let insert = |columns: &str, values: &str| {
        format!(
            "INSERT INTO transfers (id, posting_count, business_at, {columns}) VALUES ($new, 2, now(), {values}); +postings ($new, $available, 5), ($new, $mint, -5)"
        )
    };
    let payment = "code, actor_kind, payment_ref";
    let mut scene = Scene::new().await;
    scene
        .refuses(&[
            ("transfers_code_known", &insert("code, actor_kind", "'gift', 'system'")),
            ("transfers_actor_kind_known", &insert("code, actor_kind", "'adjustment', 'root'")),
            ("transfers_actor_named", &insert("code, actor_kind", "'adjustment', 'user'")),
            ("transfers_actor_named", &insert("code, actor_kind, actor_id", "'adjustment', 'system', $account")),
            ("transfers_payment_by_code", &insert("code, actor_kind", "'top_up', 'system'")),
            ("transfers_payment_ref_length", &insert(payment, "'top_up', 'system', ''")),
            ("transfers_link_by_code", &insert("code, actor_kind", "'correction', 'system'")),
            ("transfers_not_linked_to_itself", &insert("code, actor_kind, linked_transfer_id", "'correction', 'system', $new")),
            ("transfers_linked_transfer_id_fkey", &insert("code, actor_kind, linked_transfer_id", "'correction', 'system', $next")),
        ])
        .await;
    // One payment is one credit.
    scene.run(&insert(payment, "'top_up', 'system', 'pi_1'")).await.unwrap();
    scene.refuses(&[("transfers_one_top_up", &insert(payment, "'top_up', 'system', 'pi_1'").replace("$new", "$next"))]).await;
}

/// What follows from the rest of a posting cannot be given otherwise.
#[tokio::test]
async fn derived_columns_are_the_databases_own() {
    let mut scene = Scene::new().await;
    scene
        .run(
            "+transfer($new, 'adjustment', 2);
             INSERT INTO postings (transfer_id, ledger_account_id, amount_micros, sequence, balance_after_micros, account_id, business_at)
             VALUES ($new, $available, 5, 1, 99, $host, '2000-01-01'), ($new, $mint, -5, 2, 99, $host, '2000-01-01')",
        )
        .await
        .unwrap();
    scene.books.assert_right().await;
    #[derive(QueryableByName)]
    struct Count {
        #[diesel(sql_type = BigInt)]
        count: i64,
    }
    let strange = "SELECT count(*) AS count FROM postings WHERE balance_after_micros = 99 OR business_at < '2001-01-01' OR account_id = $host AND transfer_id = $new";
    let found: Count = diesel::sql_query(scene.sql(strange)).get_result(&mut scene.connection).await.unwrap();
    assert_eq!(found.count, 0);
}

/// Rules that hold between two transactions: neither sees the other's postings, and both together would break them.
#[tokio::test]
async fn two_transactions_together_do_not_break_what_each_keeps() {
    let mut scene = Scene::new().await;
    let mut second = scene.books.connect().await;
    // Each spends more than half; the second waits for the first and then finds too little.
    let spend =
        |name: &str| format!("+transfer({name}, 'adjustment', 2); +postings ({name}, $available, -5000000), ({name}, $fees, 5000000)");
    let (first_sql, second_sql) = (scene.sql(&spend("$new")), scene.sql(&spend("$next")));
    scene.connection.batch_execute(&format!("BEGIN; {first_sql}")).await.unwrap();
    let waiting = tokio::spawn(async move { second.batch_execute(&format!("BEGIN; {second_sql}; COMMIT")).await });
    scene.connection.batch_execute("COMMIT").await.unwrap();
    let Err(DieselError::DatabaseError(_, info)) = waiting.await.unwrap() else { panic!("both were posted") };
    assert_eq!(info.constraint_name(), Some("ledger_accounts_balance_not_negative"));
    scene.books.assert_right().await;
}
