CREATE TABLE earnings_maturity (
    account_id uuid PRIMARY KEY REFERENCES accounts (id),
    -- Postings to the account's `earnings` up to this one have been looked at and are mature.
    sequence bigint NOT NULL DEFAULT 0 CONSTRAINT earnings_maturity_sequence_not_negative CHECK (sequence >= 0),
    due_at timestamptz NOT NULL
);
COMMENT ON TABLE earnings_maturity IS
    'How far the earnings of each host have become payable, and when the next ones do (business time). A cursor: each posting is read once.';
CREATE INDEX earnings_maturity_due ON earnings_maturity (due_at);
-- Its columns never change, so that a change of a balance touches no index.
CREATE INDEX ledger_accounts_earnings ON ledger_accounts (account_id) WHERE kind = 'earnings';
