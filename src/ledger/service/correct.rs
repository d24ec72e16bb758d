//! Giving a charge back.

use super::super::{
    code::TransferCode,
    metering::Charge,
    model::{Correction, LedgerAccount, Posted, Posting, TransferRequest},
    queries::{
        read,
        write::{self, Stored},
    },
};
use super::post::post_locking;
use crate::{
    base::{
        Error, Money, Result,
        id::{AccountId, RentalId},
    },
    db::Tx,
};

/// Gives `gross` of a rental's charges back to the renter: the platform its part of the fee, the host the rest, first out of earnings, then out
/// of what is payable; what was paid out already stays as the host's debt in `earnings` (money.md 22). Over all corrections of a rental the
/// fee given back is that of the gross given back, so that a rental given back in pieces gives back exactly what it charged.
///
/// # Errors
/// `invalid_input` at `/amount` when the amount is not positive or more than the rental has cost less what was given back already; `internal`
/// when the original is no charge or the id was used for another transfer.
pub async fn correct(tx: &mut Tx<'_>, correction: Correction) -> Result<Posted> {
    let original = write::transfer_fetch(tx, correction.original).await?;
    let rental = original.as_ref().filter(|t| t.code == TransferCode::RentalCharge.as_str()).and_then(|t| t.rental);
    let (renter, host) = read::charge_parties(tx, correction.original).await?;
    let (Some(rental), Some(renter)) = (rental, renter) else {
        return Err(Error::internal(format!("transfer {} is no charge of a rental", correction.original)));
    };
    let mut accounts = vec![LedgerAccount::Available(renter), LedgerAccount::PlatformFees];
    accounts.extend(host.into_iter().flat_map(|host| [LedgerAccount::Earnings(host), LedgerAccount::Payable(host)]));
    // From here on no other charge or correction of this rental can be posted.
    let balances = write::ledger_account_lock(tx, &accounts).await?;
    if let Some(stored) = write::transfer_fetch(tx, correction.id).await? {
        return agrees(&stored, &correction, rental, renter);
    }
    let back = given_back(tx, &correction, rental).await?;
    let balance_of = |account| balances.iter().find(|(other, _)| *other == account).map_or(Money::ZERO, |(_, balance)| *balance);
    let mut postings = vec![
        Posting::new(LedgerAccount::Available(renter), back.gross()),
        Posting::new(LedgerAccount::PlatformFees, back.fee().negated()?),
    ];
    if let Some(host) = host {
        let (earnings, payable) = (LedgerAccount::Earnings(host), LedgerAccount::Payable(host));
        let share = back.host_share()?;
        let beyond_earnings = share.minus(balance_of(earnings).max(Money::ZERO))?.max(Money::ZERO);
        let from_payable = beyond_earnings.min(balance_of(payable).max(Money::ZERO));
        postings.push(Posting::new(payable, from_payable.negated()?));
        postings.push(Posting::new(earnings, share.minus(from_payable)?.negated()?));
    }
    let transfer = TransferRequest {
        id: correction.id,
        code: TransferCode::Correction,
        postings,
        rental: Some(rental),
        payment: None,
        actor: correction.actor,
        business_at: correction.business_at,
        linked: Some(correction.original),
    };
    post_locking(tx, transfer, None, &accounts).await
}

/// Gross and fee to give back, after what was given back before.
async fn given_back(tx: &mut Tx<'_>, correction: &Correction, rental: RentalId) -> Result<Charge> {
    let sums = read::rental_sums(tx, rental).await?;
    let rest = sums.charged_gross.minus(sums.corrected_gross)?;
    if !correction.gross.is_positive() {
        return Err(Error::invalid("/amount", "too_small", "The amount must be more than zero."));
    }
    if correction.gross > rest {
        return Err(Error::invalid("/amount", "too_large", format!("Of this rental's charges {rest} usd can be given back.")));
    }
    let before = Charge::new(sums.corrected_gross, sums.corrected_fee)?;
    let back = Charge::after(before, correction.gross, correction.fee_basis_points)?;
    if back.fee() > sums.charged_fee.minus(sums.corrected_fee)? {
        return Err(Error::internal(format!("rental {rental} was not charged at {} basis points", correction.fee_basis_points)));
    }
    Ok(back)
}

/// Whether a correction that is there is the one asked for. From which of the host's ledger accounts it came depended on that moment.
fn agrees(stored: &Stored, correction: &Correction, rental: RentalId, renter: AccountId) -> Result<Posted> {
    let to_renter = (LedgerAccount::Available(renter).id(), correction.gross);
    let same = stored.code == TransferCode::Correction.as_str()
        && stored.linked == Some(correction.original)
        && stored.rental == Some(rental)
        && stored.postings.contains(&to_renter);
    if same {
        return Ok(Posted::AlreadyPosted);
    }
    Err(Error::internal(format!("transfer {} was posted with other content: {stored:?}", correction.id)))
}
