-- The planner takes no statistics from a partial index on an expression: without these it thinks that half a percent of the market is in any
-- country, and sorts a quarter of the market instead of walking in the order of price.
CREATE STATISTICS listings_country ON (left(region, 2)) FROM listings;

CREATE TABLE listing_answers (
    listing_id uuid NOT NULL REFERENCES listings (id) ON DELETE CASCADE,
    above_concurrency integer NOT NULL,
    up_to_concurrency integer NOT NULL,
    above_context integer NOT NULL,
    context_tokens integer NOT NULL,
    concurrency integer NOT NULL,
    model text NOT NULL,
    total_tokens_per_second double precision NOT NULL,
    cold_ttft_ms double precision,
    rate double precision NOT NULL,
    PRIMARY KEY (listing_id, up_to_concurrency, context_tokens)
);
COMMENT ON TABLE listing_answers IS 'Which cell of its run a published listing answers a workload with, so that a search can walk in the order of speed or price. Derived from listings and run_cells by listing_answers_refresh alone.';
COMMENT ON COLUMN listing_answers.above_concurrency IS 'The row is for workloads of more users than this, up to up_to_concurrency.';
COMMENT ON COLUMN listing_answers.above_context IS 'The row is for workloads of more context than this, up to context_tokens, which is the cell''s.';
COMMENT ON COLUMN listing_answers.concurrency IS 'The cell''s.';
COMMENT ON COLUMN listing_answers.rate IS 'Price per hour in micro-dollars × concurrency ÷ micro-tokens per second: goes up with the price of a token, whatever the workload''s users. Decides the order of reading only; prices are computed from integers.';
-- Each in the order of a search, ties by id.
CREATE INDEX listing_answers_by_rate ON listing_answers (model, rate, listing_id);
CREATE INDEX listing_answers_by_speed ON listing_answers (model, (-(total_tokens_per_second / concurrency)), listing_id);
CREATE INDEX listing_answers_by_ttft ON listing_answers (model, (coalesce(cold_ttft_ms, 'Infinity'::double precision)), listing_id);

-- Writes the rows of these listings anew; none for one that is not published. For each number of users at which cells were measured, and each
-- context that was measured with as many or more: the cell with the fewest. A workload falls between two such numbers and two such contexts.
CREATE FUNCTION listing_answers_refresh(ids uuid[]) RETURNS void LANGUAGE sql AS $$
    DELETE FROM listing_answers WHERE listing_id = ANY (ids);
    INSERT INTO listing_answers (listing_id, above_concurrency, up_to_concurrency, above_context, context_tokens, concurrency, model,
                                 total_tokens_per_second, cold_ttft_ms, rate)
    -- One listing at a time, so that the plan is good whatever is known of the tables.
    SELECT answer.* FROM unnest(ids) AS one (id) CROSS JOIN LATERAL (
        WITH valid AS MATERIALIZED (
            SELECT l.id, l.model, l.price_per_hour_micros, c.context_tokens, c.concurrency, c.total_tokens_per_second, c.cold_ttft_ms
            FROM listings l JOIN run_cells c ON c.run_id = l.run_id
            WHERE l.id = one.id AND l.state = 'published' AND c.status = 'valid'
              AND c.total_tokens_per_second BETWEEN 0.000001::double precision AND 9000000000::double precision),
        levels AS (
            SELECT concurrency AS up_to, coalesce(lag(concurrency) OVER (ORDER BY concurrency), 0) AS above
            FROM (SELECT DISTINCT concurrency FROM valid) measured),
        chosen AS (
            SELECT DISTINCT ON (n.up_to, v.context_tokens) n.above, n.up_to, v.*
            FROM levels n JOIN valid v ON v.concurrency >= n.up_to ORDER BY n.up_to, v.context_tokens, v.concurrency)
        SELECT id, above, up_to, coalesce(lag(context_tokens) OVER (PARTITION BY up_to ORDER BY context_tokens), -1), context_tokens,
               concurrency, model, total_tokens_per_second, cold_ttft_ms,
               price_per_hour_micros::double precision * concurrency / round(total_tokens_per_second * 1e6)
        FROM chosen) answer
$$;
SELECT listing_answers_refresh(array_agg(id)) FROM listings WHERE state = 'published';
