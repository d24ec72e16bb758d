CREATE TABLE refunds (
    id uuid PRIMARY KEY,
    top_up_id uuid NOT NULL REFERENCES top_ups (id),
    account_id uuid NOT NULL REFERENCES accounts (id),
    -- Who made it: a request to us, or somebody at Stripe (its dashboard).
    origin text NOT NULL CONSTRAINT refunds_origin_known CHECK (origin IN ('request', 'stripe')),
    -- Of the request's Idempotency-Key: a repeat finds its refund even when the first answer was never given. Null once the key is free again.
    request_key text CONSTRAINT refunds_request_key_taken UNIQUE,
    amount_micros bigint NOT NULL CONSTRAINT refunds_amount_whole_cents CHECK (amount_micros > 0 AND amount_micros % 10000 = 0),
    status text NOT NULL CONSTRAINT refunds_status_known CHECK (status IN ('pending', 'succeeded', 'failed')),
    -- Null until Stripe is known to have it.
    stripe_refund_id text CONSTRAINT refunds_stripe_refund_taken UNIQUE,
    failure_code text,
    -- Why an operator has to look at it.
    alarm text,
    -- When Stripe is asked next; null when nothing more can change.
    ask_at timestamptz,
    ask_count integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    settled_at timestamptz,
    CONSTRAINT refunds_key_by_origin CHECK (origin = 'request' OR request_key IS NULL),
    CONSTRAINT refunds_at_stripe CHECK (stripe_refund_id IS NOT NULL OR (origin = 'request' AND status <> 'succeeded')),
    CONSTRAINT refunds_over_settled CHECK ((status = 'pending') = (settled_at IS NULL))
);
COMMENT ON TABLE refunds IS 'Money of a top-up on its way back, each as it stands at Stripe. Wall time, but for settled_at, which is business time.';
CREATE INDEX refunds_top_up ON refunds (top_up_id);
CREATE INDEX refunds_account ON refunds (account_id, id DESC);
CREATE INDEX refunds_ask ON refunds (ask_at) WHERE ask_at IS NOT NULL;

CREATE TABLE stripe_scans (
    kind text PRIMARY KEY CONSTRAINT stripe_scans_kind_known CHECK (kind IN ('refunds', 'disputes')),
    through timestamptz NOT NULL,
    due_at timestamptz NOT NULL
);
COMMENT ON TABLE stripe_scans IS 'Through when Stripe''s lists were read for what no webhook told of, and when they are read next. Wall time.';

-- A refund that was made at Stripe has left already, so it is booked whatever is available, and may leave a debt.
ALTER TABLE transfers
    DROP CONSTRAINT transfers_code_known,
    DROP CONSTRAINT transfers_payment_by_code,
    ADD CONSTRAINT transfers_code_known CHECK (code IN (
        'sandbox_credit', 'top_up', 'refund', 'refund_at_stripe', 'refund_settled', 'refund_failed', 'chargeback', 'chargeback_reversed',
        'hold', 'hold_increase', 'hold_release', 'hold_expire', 'rental_charge', 'correction',
        'earnings_matured', 'payout', 'payout_failed', 'pro_payment', 'adjustment')),
    ADD CONSTRAINT transfers_payment_by_code CHECK (
        payment_ref IS NOT NULL OR code NOT IN ('top_up', 'refund', 'refund_at_stripe', 'chargeback', 'payout', 'pro_payment'));

CREATE OR REPLACE FUNCTION postings_apply() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    moved text;
    why text;
    hold uuid;
BEGIN
    SELECT a.kind, t.code, t.hold_id INTO moved, why, hold
        FROM ledger_accounts a, transfers t WHERE a.id = NEW.ledger_account_id AND t.id = NEW.transfer_id;
    IF moved = 'held' THEN
        UPDATE holds SET
            amount_micros = amount_micros + CASE WHEN why IN ('hold', 'hold_increase') THEN NEW.amount_micros ELSE 0 END,
            captured_micros = captured_micros - CASE WHEN why = 'rental_charge' THEN NEW.amount_micros ELSE 0 END,
            released_micros = released_micros - CASE WHEN why IN ('hold_release', 'hold_expire') THEN NEW.amount_micros ELSE 0 END
        WHERE id = hold AND account_id = NEW.account_id;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'held money moves only for a hold of its account'
                USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'postings_held_by_hold';
        END IF;
    END IF;
    UPDATE ledger_accounts SET
        balance_micros = NEW.balance_after_micros,
        overdraft_micros = CASE
            WHEN may_be_negative THEN 0
            WHEN NEW.amount_micros > 0 OR why IN ('chargeback', 'correction', 'refund_at_stripe') THEN greatest(0, -NEW.balance_after_micros)
            ELSE overdraft_micros END
    WHERE id = NEW.ledger_account_id AND balance_micros = NEW.balance_after_micros - NEW.amount_micros;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'one statement posts to a ledger account once'
            USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'postings_one_by_one';
    END IF;
    RETURN NULL;
END $$;
