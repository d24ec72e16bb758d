//! The reconciler finds what somebody changed behind the triggers' back.

use std::collections::BTreeSet;

use diesel_async::SimpleAsyncConnection;
use rigmark::base::id::TransferId;
use rigmark::ledger::service;

use super::{Books, charge, usd};

async fn books() -> Books {
    let books = Books::new().await;
    let (renter, host) = (books.account_with("10").await, books.account().await);
    let hold = books.hold(renter, usd("2")).await.unwrap();
    books.capture(hold.id, TransferId::new(), charge("0.5", 1_000), host).await.unwrap();
    books
}

#[tokio::test]
async fn right_books_have_no_differences() {
    let books = books().await;
    let report = service::reconcile(&mut books.connect().await).await.unwrap();
    assert_eq!((report.ledger_accounts, report.transfers, report.holds), (5, 3, 1));
    assert_eq!(report.differences, []);
}

#[tokio::test]
async fn each_change_behind_the_triggers_is_found() {
    // What was done, and the comparisons that must notice it.
    let changes = [
        ("UPDATE ledger_accounts SET balance_micros = balance_micros + 1 WHERE kind = 'available'", "balance whole"),
        ("UPDATE ledger_accounts SET balance_micros = balance_micros - 1 WHERE kind = 'held'", "balance held whole"),
        ("UPDATE postings SET amount_micros = amount_micros + 1 WHERE amount_micros = 10000000", "balance running transfer"),
        ("DELETE FROM postings WHERE amount_micros = 10000000", "balance running transfer"),
        ("DELETE FROM postings", "balance hold transfer"),
        ("UPDATE holds SET captured_micros = captured_micros + 1", "held hold"),
        ("UPDATE holds SET captured_micros = captured_micros + 1, amount_micros = amount_micros + 1", "hold"),
        ("UPDATE postings SET business_at = business_at + interval '1 day' WHERE amount_micros = 10000000", "posting"),
        ("UPDATE postings SET account_id = NULL WHERE amount_micros = 10000000", "posting"),
        ("UPDATE postings SET balance_after_micros = 0 WHERE amount_micros = 10000000", "running"),
        ("UPDATE transfers SET posting_count = 3 WHERE code = 'sandbox_credit'", "transfer"),
        (
            "ALTER TABLE ledger_accounts DROP CONSTRAINT ledger_accounts_balance_not_negative;
             UPDATE ledger_accounts SET balance_micros = -5 WHERE kind = 'earnings'",
            "balance limit whole",
        ),
    ];
    let books = books().await;
    let mut connection = books.connect().await;
    for (change, expected) in changes {
        connection.batch_execute(&format!("BEGIN; SET LOCAL session_replication_role = replica; {change}")).await.unwrap();
        let report = service::reconcile(&mut connection).await.unwrap();
        let found: BTreeSet<&str> = report.differences.iter().map(|d| d.what.as_str()).collect();
        assert_eq!(found, expected.split(' ').collect(), "{change}: {:#?}", report.differences);
        connection.batch_execute("ROLLBACK").await.unwrap();
    }
    books.assert_right().await;
}
