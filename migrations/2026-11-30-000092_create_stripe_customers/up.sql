CREATE TABLE stripe_customers (
    -- Names the request to Stripe: its idempotency key, and the object's metadata. Another one is taken for another try.
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL CONSTRAINT stripe_customers_account_taken UNIQUE REFERENCES accounts (id),
    -- Null until Stripe has said it.
    customer_id text CONSTRAINT stripe_customers_customer_taken UNIQUE
        CONSTRAINT stripe_customers_customer_length CHECK (char_length(customer_id) BETWEEN 1 AND 255),
    created_at timestamptz NOT NULL
);
COMMENT ON TABLE stripe_customers IS 'Which Customer of Stripe''s an account is; the row is committed before Stripe hears of it. Wall time.';
