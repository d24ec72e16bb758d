DROP TABLE postings, transfers, holds, ledger_accounts;
DROP FUNCTION ledger_refuse_change, ledger_accounts_guard, holds_guard, postings_fill, postings_apply, transfers_check_complete,
    postings_check_complete, transfer_assert_complete;
