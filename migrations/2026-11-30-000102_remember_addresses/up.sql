CREATE TABLE sign_in_addresses (
    user_id uuid NOT NULL REFERENCES users (account_id),
    address_hmac bytea NOT NULL CONSTRAINT sign_in_addresses_hmac_length CHECK (octet_length(address_hmac) = 32),
    last_used_at timestamptz NOT NULL,
    PRIMARY KEY (user_id, address_hmac)
);
COMMENT ON TABLE sign_in_addresses IS 'Addresses (an IPv6 one by its /64) from which a user has proved who they are, for some months: strangers who guess at the password elsewhere do not lock these out. Keyed hashes, since an address is personal. Wall time.';
CREATE INDEX sign_in_addresses_last_used ON sign_in_addresses (last_used_at);
