DROP TABLE stripe_scans;
DROP TABLE refunds;

-- As in create_ledger.
ALTER TABLE transfers
    DROP CONSTRAINT transfers_code_known,
    DROP CONSTRAINT transfers_payment_by_code,
    ADD CONSTRAINT transfers_code_known CHECK (code IN (
        'sandbox_credit', 'top_up', 'refund', 'refund_settled', 'refund_failed', 'chargeback', 'chargeback_reversed',
        'hold', 'hold_increase', 'hold_release', 'hold_expire', 'rental_charge', 'correction',
        'earnings_matured', 'payout', 'payout_failed', 'pro_payment', 'adjustment')),
    ADD CONSTRAINT transfers_payment_by_code CHECK (
        payment_ref IS NOT NULL OR code NOT IN ('top_up', 'refund', 'chargeback', 'payout', 'pro_payment'));

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
            WHEN NEW.amount_micros > 0 OR why IN ('chargeback', 'correction') THEN greatest(0, -NEW.balance_after_micros)
            ELSE overdraft_micros END
    WHERE id = NEW.ledger_account_id AND balance_micros = NEW.balance_after_micros - NEW.amount_micros;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'one statement posts to a ledger account once'
            USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'postings_one_by_one';
    END IF;
    RETURN NULL;
END $$;
