//! Posting through the service: ids, codes, limits.

use rigmark::base::{
    Code,
    id::{AccountId, RentalId, TransferId},
};
use rigmark::ledger::{
    Actor, LedgerAccount, TransferCode,
    model::{Balance, LedgerAccountKind, Posted, Posting, TransferRequest, derived_id},
    service,
};

use super::{Books, at, credit, micros, usd};

fn available(amount: &str) -> Balance {
    Balance { available: usd(amount), held: micros(0), earnings: micros(0), payable: micros(0) }
}

fn transfer(code: TransferCode, from: LedgerAccount, to: LedgerAccount, amount: &str) -> TransferRequest {
    TransferRequest {
        id: TransferId::new(),
        code,
        postings: Posting::between(from, to, usd(amount)).unwrap(),
        rental: None,
        payment: Some("pi_1".to_owned()),
        actor: Actor::System,
        business_at: at(0),
        linked: None,
    }
}

#[tokio::test]
async fn a_repeated_id_is_one_transfer() {
    let books = Books::new().await;
    let account = books.account().await;
    assert_eq!(books.balance(account).await, available("0"));
    let mut request = transfer(TransferCode::TopUp, LedgerAccount::StripeClearing, LedgerAccount::Available(account), "50");
    assert_eq!(books.post(request.clone()).await.unwrap(), Posted::New);
    assert_eq!(books.post(request.clone()).await.unwrap(), Posted::AlreadyPosted);
    // The webhook and the poller report the same payment at other times, and list the postings in another order.
    request.actor = Actor::User(account);
    request.business_at = at(500);
    request.postings.reverse();
    assert_eq!(books.post(request).await.unwrap(), Posted::AlreadyPosted);
    assert_eq!(books.balance(account).await, available("50"));
    books.assert_right().await;
}

#[tokio::test]
async fn an_id_is_not_used_for_other_content() {
    let books = Books::new().await;
    let (account, other) = (books.account().await, books.account().await);
    let request = transfer(TransferCode::TopUp, LedgerAccount::StripeClearing, LedgerAccount::Available(account), "50");
    books.post(request.clone()).await.unwrap();
    let changes: [fn(&mut TransferRequest, AccountId); 6] = [
        |r, _| r.postings = Posting::between(LedgerAccount::StripeClearing, r.postings[1].account, usd("60")).unwrap(),
        |r, other| r.postings = Posting::between(LedgerAccount::StripeClearing, LedgerAccount::Available(other), usd("50")).unwrap(),
        |r, _| r.code = TransferCode::ChargebackReversed,
        |r, _| r.rental = Some(RentalId::new()),
        |r, _| r.payment = Some("pi_2".to_owned()),
        |r, _| r.linked = Some(TransferId::new()),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut changed = request.clone();
        change(&mut changed, other);
        assert_eq!(books.post(changed).await.unwrap_err().code(), Code::Internal, "change {number}");
    }
    assert_eq!(books.balance(account).await, available("50"));
    assert_eq!(books.balance(other).await, available("0"));
    books.assert_right().await;
}

#[tokio::test]
async fn one_payment_is_credited_once_whatever_the_id() {
    let books = Books::new().await;
    let account = books.account().await;
    let top_up = || transfer(TransferCode::TopUp, LedgerAccount::StripeClearing, LedgerAccount::Available(account), "50");
    books.post(top_up()).await.unwrap();
    assert_eq!(books.post(top_up()).await.unwrap_err().code(), Code::Internal);
    assert_eq!(books.balance(account).await, available("50"));
}

#[tokio::test]
async fn what_is_no_transfer_is_refused_before_it_is_written() {
    let books = Books::new().await;
    let account = books.account_with("10").await;
    let (mint, spend) = (LedgerAccount::SandboxMint, LedgerAccount::Available(account));
    let of = |postings: Vec<Posting>| TransferRequest { postings, ..credit(account, usd("1")) };
    let wrong = [
        of(vec![]),
        of(vec![Posting::new(spend, micros(0)), Posting::new(mint, micros(0))]),
        of(vec![Posting::new(spend, micros(5))]),
        of(vec![Posting::new(mint, micros(-5)), Posting::new(spend, micros(4))]),
        of(vec![Posting::new(mint, micros(-5)), Posting::new(spend, micros(2)), Posting::new(spend, micros(3))]),
        of(vec![Posting::new(mint, micros(i64::MIN)), Posting::new(spend, micros(i64::MIN))]),
        // The mint gives; it takes nothing back, and gives to nobody's earnings.
        of(Posting::between(spend, mint, usd("1")).unwrap()),
        of(Posting::between(mint, LedgerAccount::Earnings(account), usd("1")).unwrap()),
        // The codes of holds have functions of their own.
        TransferRequest {
            postings: Posting::between(spend, LedgerAccount::Held(account), usd("1")).unwrap(),
            code: TransferCode::Hold,
            ..credit(account, usd("1"))
        },
    ];
    for request in wrong {
        let postings = request.postings.clone();
        assert_eq!(books.post(request).await.unwrap_err().code(), Code::Internal, "{postings:?}");
    }
    assert_eq!(books.balance(account).await, available("10"));
    books.assert_right().await;
}

#[tokio::test]
async fn too_little_money_says_how_much_is_missing() {
    let books = Books::new().await;
    let account = books.account_with("10").await;
    let refund = transfer(TransferCode::Refund, LedgerAccount::Available(account), LedgerAccount::RefundsInTransit, "10.000001");
    let error = books.post(refund.clone()).await.unwrap_err();
    assert_eq!(error.code(), Code::InsufficientFunds);
    assert_eq!(error.extra()["required"], "10.000001");
    assert_eq!(error.extra()["available"], "10.00");
    // It was undone as a whole: the id is free.
    let all = transfer(TransferCode::Refund, LedgerAccount::Available(account), LedgerAccount::RefundsInTransit, "10");
    assert_eq!(books.post(TransferRequest { id: refund.id, ..all }).await.unwrap(), Posted::New);
    assert_eq!(books.balance(account).await, available("0"));
    // What is in transit cannot come back twice either.
    let failed = |id| TransferRequest {
        id,
        linked: Some(refund.id),
        ..transfer(TransferCode::RefundFailed, LedgerAccount::RefundsInTransit, LedgerAccount::Available(account), "10")
    };
    books.post(failed(TransferId::new())).await.unwrap();
    assert_eq!(books.post(failed(TransferId::new())).await.unwrap_err().code(), Code::InsufficientFunds);
    assert_eq!(books.balance(account).await, available("10"));
    books.assert_right().await;
}

/// money.md 17: usage never makes a balance negative; a chargeback may, and then nothing goes out until it is paid.
#[tokio::test]
async fn a_chargeback_leaves_a_debt_that_only_money_coming_in_lessens() {
    let books = Books::new().await;
    let account = books.account_with("3").await;
    let spend = LedgerAccount::Available(account);
    books.post(transfer(TransferCode::Chargeback, spend, LedgerAccount::StripeClearing, "10")).await.unwrap();
    assert_eq!(books.balance(account).await.available, micros(-7_000_000));
    for amount in ["0.000001", "7"] {
        let refund = transfer(TransferCode::Refund, spend, LedgerAccount::RefundsInTransit, amount);
        assert_eq!(books.post(refund).await.unwrap_err().code(), Code::InsufficientFunds);
        assert_eq!(books.hold(account, usd(amount)).await.unwrap_err().code(), Code::InsufficientFunds);
    }
    // Even a machine that costs nothing is not rented to somebody in debt.
    assert_eq!(books.hold(account, usd("0")).await.unwrap_err().code(), Code::InsufficientFunds);
    books.post(credit(account, usd("5"))).await.unwrap();
    assert_eq!(books.balance(account).await.available, micros(-2_000_000));
    assert_eq!(books.hold(account, usd("0.5")).await.unwrap_err().code(), Code::InsufficientFunds);
    // A second one adds to the debt.
    books
        .post(TransferRequest {
            payment: Some("pi_2".to_owned()),
            ..transfer(TransferCode::Chargeback, spend, LedgerAccount::StripeClearing, "1")
        })
        .await
        .unwrap();
    books.post(credit(account, usd("3.5"))).await.unwrap();
    assert_eq!(books.balance(account).await, available("0.5"));
    books.hold(account, usd("0.5")).await.unwrap();
    // The debt is forgotten with its payment: below zero is refused again.
    let refund = transfer(TransferCode::Refund, spend, LedgerAccount::RefundsInTransit, "0.000001");
    assert_eq!(books.post(refund).await.unwrap_err().code(), Code::InsufficientFunds);
    books.assert_right().await;
}

#[test]
fn derived_ids_differ_when_their_parts_do() {
    let id = |parts: &[&str]| derived_id(parts);
    assert_eq!(id(&["rental", "rnt_1", "1"]), id(&["rental", "rnt_1", "1"]));
    let all = [
        id(&["rental", "rnt_1", "1"]),
        id(&["rental", "rnt_1", "2"]),
        id(&["rental", "rnt_11"]),
        id(&["rental", "rnt_1", "1", ""]),
        id(&["rental", "rnt_11", ""]),
        id(&["rentalrnt_11"]),
        id(&[]),
        id(&[""]),
    ];
    for (i, one) in all.iter().enumerate() {
        for other in &all[..i] {
            assert_ne!(one, other);
        }
        assert_eq!((one.uuid().get_version_num(), one.uuid().get_variant()), (8, uuid::Variant::RFC4122));
    }
    // Known value: ids that are in somebody's books must not change with the program.
    assert_eq!(id(&["rental", "rnt_1", "1"]).uuid().to_string(), "0ea45901-7652-8bbd-b58a-941cba3f0365");
}

/// The first byte of a ledger account's id is its rank in the lock order.
#[test]
fn ids_of_ledger_accounts_sort_by_rank() {
    for _ in 0..50 {
        let (a, b) = (AccountId::new(), AccountId::new());
        let mut ids = [
            LedgerAccount::PlatformFees,
            LedgerAccount::Earnings(a),
            LedgerAccount::Payable(b),
            LedgerAccount::Held(a),
            LedgerAccount::Available(b),
        ]
        .map(|account| (account.id(), account.kind()));
        ids.sort_unstable_by_key(|(id, _)| *id);
        let expected = [
            LedgerAccountKind::Available,
            LedgerAccountKind::Held,
            LedgerAccountKind::Earnings,
            LedgerAccountKind::Payable,
            LedgerAccountKind::PlatformFees,
        ];
        assert_eq!(ids.map(|(_, kind)| kind), expected);
    }
}

/// Rust and the table know the same codes, and a code that is posted is read back.
#[tokio::test]
async fn codes_are_those_of_the_table() {
    #[derive(diesel::QueryableByName)]
    struct Definition {
        #[diesel(sql_type = diesel::sql_types::Text)]
        definition: String,
    }
    let books = Books::new().await;
    let mut connection = books.connect().await;
    for (constraint, ours) in [
        ("transfers_code_known", TransferCode::ALL.iter().map(|code| code.as_str()).collect::<Vec<_>>()),
        ("ledger_accounts_kind_known", LedgerAccountKind::ALL.iter().map(|kind| kind.as_str()).collect()),
        (
            "ledger_accounts_limit_by_kind",
            LedgerAccountKind::ALL.iter().filter(|kind| kind.may_be_negative()).map(|kind| kind.as_str()).collect(),
        ),
        ("transfers_hold_by_code", TransferCode::ALL.iter().filter(|code| code.is_of_hold()).map(|code| code.as_str()).collect()),
    ] {
        let query = diesel::sql_query("SELECT pg_get_constraintdef(oid) AS definition FROM pg_constraint WHERE conname = $1");
        let found: Definition =
            diesel_async::RunQueryDsl::get_result(query.bind::<diesel::sql_types::Text, _>(constraint), &mut connection).await.unwrap();
        let mut theirs: Vec<&str> = found.definition.split('\'').skip(1).step_by(2).collect();
        let mut ours = ours;
        theirs.sort_unstable();
        ours.sort_unstable();
        assert_eq!(ours, theirs, "{constraint}");
    }
    for code in TransferCode::ALL {
        assert_eq!(TransferCode::parse(code.as_str()), Some(*code));
        assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
    }
    assert_eq!(TransferCode::parse("gift"), None);
    assert_eq!(service::derived_id(&["x"]), derived_id(&["x"]));
}
