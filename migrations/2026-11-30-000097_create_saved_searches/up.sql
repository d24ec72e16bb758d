CREATE TABLE saved_searches (
    id uuid PRIMARY KEY,
    account_id uuid NOT NULL REFERENCES accounts (id),
    name text NOT NULL CONSTRAINT saved_searches_name_length CHECK (char_length(name) BETWEEN 1 AND 80),
    -- The parameters as they were given.
    query text NOT NULL CONSTRAINT saved_searches_query_length CHECK (char_length(query) <= 4000),
    -- What they narrow to, as listings have it: whoever asks for neither is looked at for every listing.
    hardware_slug text,
    model text,
    created_at timestamptz NOT NULL
);
COMMENT ON TABLE saved_searches IS 'Searches of the market that write to their account when something new fits. Wall time.';
CREATE INDEX saved_searches_account ON saved_searches (account_id, id DESC);
CREATE INDEX saved_searches_fitting ON saved_searches (coalesce(hardware_slug, ''), coalesce(model, ''), id);

CREATE TABLE saved_search_hits (
    search_id uuid NOT NULL REFERENCES saved_searches (id) ON DELETE CASCADE,
    listing_id uuid NOT NULL REFERENCES listings (id),
    created_at timestamptz NOT NULL,
    PRIMARY KEY (search_id, listing_id)
);
COMMENT ON TABLE saved_search_hits IS 'Of which listings a saved search has told, each once. Wall time.';
CREATE INDEX saved_search_hits_listing ON saved_search_hits (listing_id);
