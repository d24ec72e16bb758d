-- The database keeps the books honest by itself, whatever program writes to it: what follows holds for raw SQL too.
-- Three kinds of rule: constraints; guards that refuse what may never be done; and triggers that carry a posting into the balance and the hold
-- it belongs to, so that neither can say anything that the postings do not.

CREATE TABLE ledger_accounts (
    id uuid PRIMARY KEY,
    key text NOT NULL CONSTRAINT ledger_accounts_key_key UNIQUE,
    account_id uuid REFERENCES accounts (id),
    kind text NOT NULL CONSTRAINT ledger_accounts_kind_known CHECK (kind IN (
        'platform:fees', 'platform:rounding', 'stripe:clearing', 'stripe:refunds_in_transit', 'sandbox:mint',
        'available', 'held', 'earnings', 'payable')),
    currency text NOT NULL CONSTRAINT ledger_accounts_currency_known CHECK (currency = 'usd'),
    balance_micros bigint NOT NULL DEFAULT 0,
    overdraft_micros bigint NOT NULL DEFAULT 0 CONSTRAINT ledger_accounts_overdraft_not_negative CHECK (overdraft_micros >= 0),
    may_be_negative boolean NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT ledger_accounts_key_form CHECK (key = coalesce(account_id::text || ':', '') || kind),
    CONSTRAINT ledger_accounts_owner_by_kind CHECK ((account_id IS NOT NULL) = (kind IN ('available', 'held', 'earnings', 'payable'))),
    CONSTRAINT ledger_accounts_limit_by_kind
        CHECK (may_be_negative = (kind IN ('platform:fees', 'platform:rounding', 'stripe:clearing', 'sandbox:mint'))),
    CONSTRAINT ledger_accounts_balance_not_negative
        CHECK (balance_micros >= 0 OR may_be_negative OR balance_micros = -overdraft_micros)
);
COMMENT ON TABLE ledger_accounts IS 'Accounts of money in micro-dollars. A balance is the sum of the postings; only a posting changes it.';
COMMENT ON COLUMN ledger_accounts.overdraft_micros IS
    'How far below zero a chargeback or a correction has left the balance. Ordinary postings can only lessen it.';
CREATE INDEX ledger_accounts_account ON ledger_accounts (account_id) WHERE account_id IS NOT NULL;

CREATE TABLE holds (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    rental_id uuid,
    amount_micros bigint NOT NULL DEFAULT 0,
    captured_micros bigint NOT NULL DEFAULT 0 CONSTRAINT holds_captured_not_negative CHECK (captured_micros >= 0),
    released_micros bigint NOT NULL DEFAULT 0 CONSTRAINT holds_released_not_negative CHECK (released_micros >= 0),
    state text NOT NULL DEFAULT 'open' CONSTRAINT holds_state_known CHECK (state IN ('open', 'closed')),
    expires_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT holds_within_amount CHECK (captured_micros + released_micros <= amount_micros),
    CONSTRAINT holds_closed_when_empty CHECK (state = 'open' OR captured_micros + released_micros = amount_micros)
);
COMMENT ON TABLE holds IS 'Money set aside for a rental. The amounts follow the postings of the transfers that name the hold.';
CREATE INDEX holds_account ON holds (account_id, id);
CREATE INDEX holds_rental ON holds (rental_id) WHERE rental_id IS NOT NULL;
CREATE INDEX holds_expiry ON holds (expires_at) WHERE state = 'open' AND expires_at IS NOT NULL;

CREATE TABLE transfers (
    id uuid PRIMARY KEY,
    code text NOT NULL CONSTRAINT transfers_code_known CHECK (code IN (
        'sandbox_credit', 'top_up', 'refund', 'refund_settled', 'refund_failed', 'chargeback', 'chargeback_reversed',
        'hold', 'hold_increase', 'hold_release', 'hold_expire', 'rental_charge', 'correction',
        'earnings_matured', 'payout', 'payout_failed', 'pro_payment', 'adjustment')),
    posting_count smallint NOT NULL CONSTRAINT transfers_two_postings CHECK (posting_count >= 2),
    linked_transfer_id uuid REFERENCES transfers (id),
    hold_id uuid REFERENCES holds (id),
    rental_id uuid,
    payment_ref text CONSTRAINT transfers_payment_ref_length CHECK (char_length(payment_ref) BETWEEN 1 AND 255),
    actor_kind text NOT NULL CONSTRAINT transfers_actor_kind_known CHECK (actor_kind IN ('user', 'api_key', 'system')),
    actor_id uuid,
    business_at timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT transfers_actor_named CHECK ((actor_kind = 'system') = (actor_id IS NULL)),
    CONSTRAINT transfers_hold_by_code CHECK (
        (hold_id IS NOT NULL) = (code IN ('hold', 'hold_increase', 'hold_release', 'hold_expire', 'rental_charge'))),
    CONSTRAINT transfers_rental_by_code CHECK (rental_id IS NOT NULL OR code <> 'rental_charge'),
    CONSTRAINT transfers_payment_by_code CHECK (
        payment_ref IS NOT NULL OR code NOT IN ('top_up', 'refund', 'chargeback', 'payout', 'pro_payment')),
    CONSTRAINT transfers_link_by_code CHECK (linked_transfer_id IS NOT NULL OR code NOT IN (
        'correction', 'refund_settled', 'refund_failed', 'chargeback_reversed', 'payout_failed')),
    CONSTRAINT transfers_not_linked_to_itself CHECK (linked_transfer_id <> id)
);
COMMENT ON TABLE transfers IS 'Movements of money. Append-only; the id is chosen by the caller and is the idempotency key.';
COMMENT ON COLUMN transfers.posting_count IS 'Checked when the transaction commits, so that nothing can be added to the transfer later.';
COMMENT ON COLUMN transfers.business_at IS 'When it happened, business time; created_at is when it was written, wall time.';
CREATE INDEX transfers_linked ON transfers (linked_transfer_id) WHERE linked_transfer_id IS NOT NULL;
CREATE INDEX transfers_hold ON transfers (hold_id) WHERE hold_id IS NOT NULL;
CREATE INDEX transfers_rental ON transfers (rental_id) WHERE rental_id IS NOT NULL;
CREATE INDEX transfers_payment ON transfers (payment_ref) WHERE payment_ref IS NOT NULL;
-- One payment is credited once, whatever id a caller thinks of.
CREATE UNIQUE INDEX transfers_one_top_up ON transfers (payment_ref) WHERE code = 'top_up';

CREATE SEQUENCE postings_sequence;
CREATE TABLE postings (
    sequence bigint PRIMARY KEY,
    transfer_id uuid NOT NULL REFERENCES transfers (id),
    ledger_account_id uuid NOT NULL REFERENCES ledger_accounts (id),
    amount_micros bigint NOT NULL CONSTRAINT postings_amount_not_zero CHECK (amount_micros <> 0),
    balance_after_micros bigint NOT NULL,
    account_id uuid REFERENCES accounts (id),
    business_at timestamptz NOT NULL,
    CONSTRAINT postings_once_per_ledger_account UNIQUE (transfer_id, ledger_account_id)
);
ALTER SEQUENCE postings_sequence OWNED BY postings.sequence;
COMMENT ON TABLE postings IS 'The entries of transfers. Append-only. The database itself fills all columns but transfer, ledger account and amount.';
COMMENT ON COLUMN postings.account_id IS 'Owner of the ledger account, for statements.';
COMMENT ON COLUMN postings.business_at IS 'That of the transfer, for statements.';
CREATE INDEX postings_ledger_account ON postings (ledger_account_id, sequence);
CREATE INDEX postings_account ON postings (account_id, business_at, sequence) WHERE account_id IS NOT NULL;

-- Guards ---------------------------------------------------------------------------------------------------------------------------------

CREATE FUNCTION ledger_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are never changed or deleted', TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = TG_TABLE_NAME || '_append_only';
END $$;
CREATE TRIGGER transfers_append_only BEFORE UPDATE OR DELETE ON transfers FOR EACH ROW EXECUTE FUNCTION ledger_refuse_change();
CREATE TRIGGER transfers_no_truncate BEFORE TRUNCATE ON transfers FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse_change();
CREATE TRIGGER postings_append_only BEFORE UPDATE OR DELETE ON postings FOR EACH ROW EXECUTE FUNCTION ledger_refuse_change();
CREATE TRIGGER postings_no_truncate BEFORE TRUNCATE ON postings FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse_change();
CREATE TRIGGER ledger_accounts_no_delete BEFORE DELETE ON ledger_accounts FOR EACH ROW EXECUTE FUNCTION ledger_refuse_change();
CREATE TRIGGER ledger_accounts_no_truncate BEFORE TRUNCATE ON ledger_accounts FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse_change();
CREATE TRIGGER holds_no_delete BEFORE DELETE ON holds FOR EACH ROW EXECUTE FUNCTION ledger_refuse_change();
CREATE TRIGGER holds_no_truncate BEFORE TRUNCATE ON holds FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse_change();

-- A statement that somebody writes runs this guard at depth 1, the statement inside postings_apply() at depth 2.
CREATE FUNCTION ledger_accounts_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.balance_micros <> 0 OR NEW.overdraft_micros <> 0 THEN
            RAISE EXCEPTION 'a ledger account begins with nothing'
                USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'ledger_accounts_only_postings';
        END IF;
    ELSIF pg_trigger_depth() < 2 THEN
        RAISE EXCEPTION 'only a posting changes a balance'
            USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'ledger_accounts_only_postings';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER ledger_accounts_only_postings BEFORE INSERT OR UPDATE ON ledger_accounts
    FOR EACH ROW EXECUTE FUNCTION ledger_accounts_guard();

CREATE FUNCTION holds_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.amount_micros <> 0 OR NEW.captured_micros <> 0 OR NEW.released_micros <> 0 OR NEW.state <> 'open' THEN
            RAISE EXCEPTION 'a hold begins open and with nothing'
                USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'holds_only_postings';
        END IF;
        RETURN NEW;
    END IF;
    IF OLD.state = 'closed' THEN
        RAISE EXCEPTION 'hold % is closed', OLD.id
            USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'holds_closed_for_good';
    END IF;
    IF (NEW.id, NEW.account_id, NEW.rental_id, NEW.created_at) IS DISTINCT FROM (OLD.id, OLD.account_id, OLD.rental_id, OLD.created_at)
        OR NEW.amount_micros < OLD.amount_micros OR NEW.captured_micros < OLD.captured_micros OR NEW.released_micros < OLD.released_micros
        OR (pg_trigger_depth() < 2 AND (NEW.amount_micros, NEW.captured_micros, NEW.released_micros)
            IS DISTINCT FROM (OLD.amount_micros, OLD.captured_micros, OLD.released_micros))
    THEN
        RAISE EXCEPTION 'only a posting changes the amounts of a hold, and they only grow'
            USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'holds_only_postings';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER holds_only_postings BEFORE INSERT OR UPDATE ON holds FOR EACH ROW EXECUTE FUNCTION holds_guard();

-- Carrying a posting into balance and hold -----------------------------------------------------------------------------------------------

-- Before the row is stored: fills what follows from the others. It locks the ledger account first, so that within one ledger account the
-- sequence is the order in which the balance changed.
CREATE FUNCTION postings_fill() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT a.account_id, a.balance_micros + NEW.amount_micros INTO NEW.account_id, NEW.balance_after_micros
        FROM ledger_accounts a WHERE a.id = NEW.ledger_account_id FOR NO KEY UPDATE;
    SELECT t.business_at INTO NEW.business_at FROM transfers t WHERE t.id = NEW.transfer_id;
    NEW.sequence := nextval('postings_sequence');
    RETURN NEW;
END $$;
CREATE TRIGGER postings_fill BEFORE INSERT ON postings FOR EACH ROW EXECUTE FUNCTION postings_fill();

-- After it is stored, not before: a row that ON CONFLICT DO NOTHING skips must change no balance.
CREATE FUNCTION postings_apply() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE TRIGGER postings_apply AFTER INSERT ON postings FOR EACH ROW EXECUTE FUNCTION postings_apply();

-- At commit: complete and balanced -------------------------------------------------------------------------------------------------------

CREATE FUNCTION transfer_assert_complete(checked uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    announced bigint;
    found bigint;
BEGIN
    SELECT t.posting_count, (SELECT count(*) FROM postings p WHERE p.transfer_id = t.id) INTO announced, found
        FROM transfers t WHERE t.id = checked;
    IF found <> announced THEN
        RAISE EXCEPTION 'transfer % has % postings instead of %', checked, found, announced
            USING ERRCODE = 'check_violation', TABLE = 'transfers', CONSTRAINT = 'transfers_complete';
    END IF;
    IF EXISTS (
        SELECT FROM postings p JOIN ledger_accounts a ON a.id = p.ledger_account_id
        WHERE p.transfer_id = checked GROUP BY a.currency HAVING sum(p.amount_micros) <> 0
    ) THEN
        RAISE EXCEPTION 'the postings of transfer % do not sum to zero', checked
            USING ERRCODE = 'check_violation', TABLE = 'transfers', CONSTRAINT = 'transfers_balanced';
    END IF;
END $$;

CREATE FUNCTION transfers_check_complete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM transfer_assert_complete(NEW.id);
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER transfers_complete AFTER INSERT ON transfers DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION transfers_check_complete();

CREATE FUNCTION postings_check_complete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM transfer_assert_complete(NEW.transfer_id);
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER postings_complete AFTER INSERT ON postings DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION postings_check_complete();
