//! Posting a transfer.

use super::super::{
    model::{LedgerAccount, Posted, Posting, TransferRequest},
    queries::write::{self, Stored},
};
use crate::{
    base::{Code, Error, Money, Result, id::HoldId},
    db::{OnConstraint, Tx},
};

/// Posts a transfer. The same id again, with the same code, postings, rental, payment and link, changes nothing; who posted it and when may
/// differ, since several parties report the same event (a success page, a webhook, a poller).
///
/// # Errors
/// `insufficient_funds` when a balance would go below what it may; `internal` when the transfer does not balance, moves what its code does not
/// move, or when its id was used for another.
pub async fn post(tx: &mut Tx<'_>, request: TransferRequest) -> Result<Posted> {
    if request.code.is_of_hold() {
        return Err(Error::internal(format!("{} is posted through its hold", request.code.as_str())));
    }
    post_locking(tx, request, None, &[]).await
}

/// As [`post`], for any code, and locks `also` with the ledger accounts of the postings.
pub(super) async fn post_locking(
    tx: &mut Tx<'_>,
    mut request: TransferRequest,
    hold: Option<HoldId>,
    also: &[LedgerAccount],
) -> Result<Posted> {
    request.postings = checked(&request)?;
    let accounts: Vec<LedgerAccount> = request.postings.iter().map(|posting| posting.account).chain(also.iter().copied()).collect();
    // Locked before the transfer is written: two that post one id meet here, not crosswise.
    let balances = write::ledger_account_lock(tx, &accounts).await?;
    if !write::transfer_insert(tx, &request, hold).await? {
        return already_posted(tx, &request, hold).await;
    }
    write::posting_insert(tx, request.id, &request.postings)
        .await
        .on_constraint("ledger_accounts_balance_not_negative", || insufficient_funds(&request.postings, &balances))?;
    Ok(Posted::New)
}

/// The postings, in lock order: one for each ledger account, none of zero, together zero, and as the code allows.
pub(super) fn checked(request: &TransferRequest) -> Result<Vec<Posting>> {
    let wrong = |what: &str| Error::internal(format!("transfer {} ({}): {what}", request.id, request.code.as_str()));
    let mut postings: Vec<Posting> = Vec::with_capacity(request.postings.len());
    let mut sum = Money::ZERO;
    for posting in request.postings.iter().filter(|posting| !posting.amount.is_zero()) {
        sum = sum.plus(posting.amount)?;
        let (debits, credits) = request.code.may_move();
        let kinds = if posting.amount.is_negative() { debits } else { credits };
        if !kinds.contains(&posting.account.kind()) {
            return Err(wrong(&format!("must not move {}", posting.account)));
        }
        if postings.iter().any(|other| other.account == posting.account) {
            return Err(wrong(&format!("moves {} twice", posting.account)));
        }
        postings.push(*posting);
    }
    if !sum.is_zero() {
        return Err(wrong("does not sum to zero"));
    }
    if postings.is_empty() {
        return Err(wrong("moves nothing"));
    }
    postings.sort_unstable_by_key(|posting| posting.account.id());
    Ok(postings)
}

async fn already_posted(tx: &mut Tx<'_>, request: &TransferRequest, hold: Option<HoldId>) -> Result<Posted> {
    let wanted = Stored {
        code: request.code.as_str().to_owned(),
        linked: request.linked,
        hold,
        rental: request.rental,
        payment: request.payment.clone(),
        postings: request.postings.iter().map(|posting| (posting.account.id(), posting.amount)).collect(),
    };
    let stored = write::transfer_fetch(tx, request.id).await?;
    if stored.as_ref() == Some(&wanted) {
        return Ok(Posted::AlreadyPosted);
    }
    Err(Error::internal(format!("transfer {} was posted with other content: {stored:?} instead of {wanted:?}", request.id)))
}

/// Says how much is missing, of the first ledger account that has too little.
fn insufficient_funds(postings: &[Posting], balances: &[(LedgerAccount, Money)]) -> Error {
    let short = postings.iter().find_map(|posting| {
        let (_, balance) = balances.iter().find(|(account, _)| *account == posting.account)?;
        let required = posting.amount.negated().ok()?;
        (required.is_positive() && required > *balance && !posting.account.kind().may_be_negative()).then_some((required, *balance))
    });
    match short {
        Some((required, balance)) => insufficient(required, balance),
        None => Error::new(Code::InsufficientFunds, "The balance is too small."),
    }
}

pub(super) fn insufficient(required: Money, available: Money) -> Error {
    Error::new(Code::InsufficientFunds, format!("This needs {required} usd; {available} usd is available."))
        .with_extra("required", required.to_string().into())
        .with_extra("available", available.to_string().into())
}
