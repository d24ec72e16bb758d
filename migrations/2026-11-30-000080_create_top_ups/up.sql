CREATE TABLE top_ups (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    -- Of the request's Idempotency-Key: a repeat finds its top-up even when the first answer was never given. Null once the key is free again.
    request_key text CONSTRAINT top_ups_request_key_taken UNIQUE,
    amount_micros bigint NOT NULL CONSTRAINT top_ups_amount_whole_cents CHECK (amount_micros > 0 AND amount_micros % 10000 = 0),
    means text NOT NULL CONSTRAINT top_ups_means_known CHECK (means IN ('client', 'payment_method', 'checkout')),
    payment_method text,
    return_url text,
    status text NOT NULL CONSTRAINT top_ups_status_known
        CHECK (status IN ('pending', 'requires_payment_method', 'requires_action', 'processing', 'canceled', 'succeeded')),
    payment_intent_id text CONSTRAINT top_ups_payment_intent_taken UNIQUE,
    checkout_session_id text CONSTRAINT top_ups_checkout_session_taken UNIQUE,
    failure_code text,
    -- Why an operator has to look at it; money that came stays uncredited until then.
    alarm text,
    received_micros bigint CHECK (received_micros > 0),
    -- When the question was sent whose answer this row shows; an answer to an earlier one changes nothing.
    observed_at timestamptz,
    -- When Stripe is asked next; null when nothing more can change.
    ask_at timestamptz,
    ask_count integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    settled_at timestamptz,
    CONSTRAINT top_ups_paid_method CHECK ((means = 'payment_method') = (payment_method IS NOT NULL)),
    CONSTRAINT top_ups_checkout_returns CHECK ((means = 'checkout') = (return_url IS NOT NULL)),
    CONSTRAINT top_ups_succeeded_received CHECK ((status = 'succeeded') = (received_micros IS NOT NULL)),
    CONSTRAINT top_ups_succeeded_payment CHECK (status <> 'succeeded' OR payment_intent_id IS NOT NULL),
    CONSTRAINT top_ups_over_settled CHECK ((status IN ('succeeded', 'canceled')) = (settled_at IS NOT NULL))
);
COMMENT ON TABLE top_ups IS 'Money that an account means to bring in through Stripe. Wall time, but for settled_at, which is business time.';
CREATE INDEX top_ups_account ON top_ups (account_id, id DESC);
CREATE INDEX top_ups_ask ON top_ups (ask_at) WHERE ask_at IS NOT NULL;

CREATE TABLE stripe_events (
    id text PRIMARY KEY CONSTRAINT stripe_events_id_length CHECK (char_length(id) BETWEEN 1 AND 255),
    event_type text NOT NULL CONSTRAINT stripe_events_type_length CHECK (char_length(event_type) BETWEEN 1 AND 255),
    object_id text CONSTRAINT stripe_events_object_length CHECK (char_length(object_id) BETWEEN 1 AND 255),
    outcome text NOT NULL CONSTRAINT stripe_events_outcome_known CHECK (outcome IN ('applied', 'unchanged', 'noted', 'alarm')),
    received_at timestamptz NOT NULL
);
COMMENT ON TABLE stripe_events IS 'Events of Stripe that were taken in, each once, in the transaction of its effect. Wall time.';
CREATE INDEX stripe_events_object ON stripe_events (object_id);
