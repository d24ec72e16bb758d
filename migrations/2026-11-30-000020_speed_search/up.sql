-- The planner takes no statistics from a partial index on an expression: without these it thinks that half a percent of the market is in any
-- country, and sorts a quarter of the market instead of walking in the order of price.
CREATE STATISTICS listings_country ON (left(region, 2)) FROM listings;

-- What searches filter by stands in the index as well, so that listings that do not fit are passed over without being read.
DROP INDEX listings_by_price, listings_by_hardware, listings_by_model, listings_by_gpu_count, listings_by_country;
CREATE INDEX listings_by_price ON listings (price_per_hour_micros, id, gpu_count, vram_gib, left(region, 2)) WHERE state = 'published';
CREATE INDEX listings_by_hardware ON listings (hardware_slug, price_per_hour_micros, id, gpu_count, vram_gib, left(region, 2))
    WHERE state = 'published';
CREATE INDEX listings_by_model ON listings (model, price_per_hour_micros, id, gpu_count, vram_gib, left(region, 2)) WHERE state = 'published';
CREATE INDEX listings_by_gpu_count ON listings (gpu_count, price_per_hour_micros, id, vram_gib, left(region, 2)) WHERE state = 'published';
CREATE INDEX listings_by_country ON listings (left(region, 2), price_per_hour_micros, id, gpu_count, vram_gib) WHERE state = 'published';

CREATE TABLE workload_spans (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model text NOT NULL,
    above_context integer NOT NULL,
    context_tokens integer NOT NULL,
    above_concurrency integer NOT NULL,
    up_to_concurrency integer NOT NULL,
    UNIQUE (model, above_context, context_tokens, above_concurrency, up_to_concurrency)
);
COMMENT ON TABLE workload_spans IS 'Workloads of a model that some listings answer with a cell of the same context: more context and users than the lower bounds, up to the upper ones. As many as the grids that people measure; rows stay.';

CREATE TABLE listing_answers (
    listing_id uuid NOT NULL REFERENCES listings (id) ON DELETE CASCADE,
    span_id integer NOT NULL REFERENCES workload_spans (id),
    concurrency integer NOT NULL,
    total_tokens_per_second double precision NOT NULL,
    cold_ttft_ms double precision,
    rate double precision NOT NULL,
    PRIMARY KEY (listing_id, span_id)
);
COMMENT ON TABLE listing_answers IS 'Which cell of its run a published listing answers the workloads of a span with, so that a search walks in the order of speed or price and stops after a page. Derived from listings and run_cells by listing_answers_refresh alone.';
COMMENT ON COLUMN listing_answers.concurrency IS 'The cell''s; its context is the span''s.';
COMMENT ON COLUMN listing_answers.rate IS 'Price per hour in micro-dollars × concurrency ÷ micro-tokens per second: goes up with the price of a token, whatever the workload''s users. Decides the order of reading only; prices are computed from integers.';
-- Each in the order of a search, ties by id.
CREATE INDEX listing_answers_by_rate ON listing_answers (span_id, rate, listing_id);
CREATE INDEX listing_answers_by_speed ON listing_answers (span_id, (-(total_tokens_per_second / concurrency)), listing_id);
CREATE INDEX listing_answers_by_ttft ON listing_answers (span_id, (coalesce(cold_ttft_ms, 'Infinity'::double precision)), listing_id);

-- What a published listing answers. For each number of users at which cells were measured, and each context that was measured with as many or
-- more: the cell with the fewest. A workload falls between two such numbers and two such contexts.
CREATE FUNCTION listing_answers_of(listing uuid) RETURNS TABLE (
    model text, above_context integer, context_tokens integer, above_concurrency integer, up_to_concurrency integer, concurrency integer,
    total_tokens_per_second double precision, cold_ttft_ms double precision, rate double precision
) LANGUAGE sql STABLE AS $$
    WITH valid AS MATERIALIZED (
        SELECT l.model, l.price_per_hour_micros, c.context_tokens, c.concurrency, c.total_tokens_per_second, c.cold_ttft_ms
        FROM listings l JOIN run_cells c ON c.run_id = l.run_id
        WHERE l.id = listing AND l.state = 'published' AND c.status = 'valid'
          AND c.total_tokens_per_second BETWEEN 0.000001::double precision AND 9000000000::double precision),
    levels AS (
        SELECT m.concurrency AS up_to, coalesce(lag(m.concurrency) OVER (ORDER BY m.concurrency), 0) AS above
        FROM (SELECT DISTINCT v.concurrency FROM valid v) m),
    chosen AS (
        SELECT DISTINCT ON (n.up_to, v.context_tokens) n.above, n.up_to, v.*
        FROM levels n JOIN valid v ON v.concurrency >= n.up_to ORDER BY n.up_to, v.context_tokens, v.concurrency)
    SELECT c.model, coalesce(lag(c.context_tokens) OVER (PARTITION BY c.up_to ORDER BY c.context_tokens), -1), c.context_tokens, c.above, c.up_to,
           c.concurrency, c.total_tokens_per_second, c.cold_ttft_ms,
           c.price_per_hour_micros::double precision * c.concurrency / round(c.total_tokens_per_second * 1e6)
    FROM chosen c
$$;

-- Writes the rows of these listings anew; none for one that is not published.
CREATE FUNCTION listing_answers_refresh(ids uuid[]) RETURNS void LANGUAGE sql AS $$
    DELETE FROM listing_answers WHERE listing_id = ANY (ids);
    INSERT INTO workload_spans (model, above_context, context_tokens, above_concurrency, up_to_concurrency)
    SELECT DISTINCT a.model, a.above_context, a.context_tokens, a.above_concurrency, a.up_to_concurrency
    FROM unnest(ids) AS one (id) CROSS JOIN LATERAL listing_answers_of(one.id) a
    WHERE NOT EXISTS (
        SELECT FROM workload_spans s
        WHERE (s.model, s.above_context, s.context_tokens, s.above_concurrency, s.up_to_concurrency)
            = (a.model, a.above_context, a.context_tokens, a.above_concurrency, a.up_to_concurrency))
    ORDER BY 1, 2, 3, 4, 5 ON CONFLICT DO NOTHING;
    INSERT INTO listing_answers (listing_id, span_id, concurrency, total_tokens_per_second, cold_ttft_ms, rate)
    SELECT one.id, s.id, a.concurrency, a.total_tokens_per_second, a.cold_ttft_ms, a.rate
    FROM unnest(ids) AS one (id) CROSS JOIN LATERAL listing_answers_of(one.id) a JOIN workload_spans s
        ON (s.model, s.above_context, s.context_tokens, s.above_concurrency, s.up_to_concurrency)
         = (a.model, a.above_context, a.context_tokens, a.above_concurrency, a.up_to_concurrency)
$$;
SELECT listing_answers_refresh(array_agg(id)) FROM listings WHERE state = 'published';
