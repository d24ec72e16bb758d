CREATE TABLE listing_values (
    listing_id uuid NOT NULL REFERENCES listings (id) ON DELETE CASCADE,
    context_tokens integer NOT NULL,
    concurrency integer NOT NULL,
    total_tokens_per_second double precision NOT NULL,
    rate double precision NOT NULL,
    model text NOT NULL,
    publisher text,
    hardware_slug text NOT NULL,
    gpu_count integer NOT NULL,
    quantization text NOT NULL,
    kv_cache_dtype text NOT NULL,
    engine text NOT NULL,
    PRIMARY KEY (listing_id, context_tokens, concurrency)
);
COMMENT ON TABLE listing_values IS 'What a dollar buys at each valid cell of a published listing''s run, so that the leaderboard walks in that order. Derived from listings, runs and run_cells by listing_values_refresh alone.';
COMMENT ON COLUMN listing_values.rate IS 'Price per hour in micro-dollars ÷ micro-tokens per second: goes up as a dollar buys less. Decides the order only; amounts are computed from integers.';
COMMENT ON COLUMN listing_values.kv_cache_dtype IS '''auto'' where the run names none.';
CREATE INDEX listing_values_by_rate
    ON listing_values (context_tokens, concurrency, rate, quantization, kv_cache_dtype, listing_id, gpu_count, publisher, engine);
CREATE INDEX listing_values_by_model
    ON listing_values (context_tokens, concurrency, model, rate, quantization, kv_cache_dtype, listing_id, gpu_count, hardware_slug);
CREATE INDEX listing_values_by_hardware
    ON listing_values (context_tokens, concurrency, hardware_slug, rate, quantization, kv_cache_dtype, listing_id, gpu_count);

-- Writes the rows of these listings anew; none for one that is not published, or whose run does not say what it is of.
CREATE FUNCTION listing_values_refresh(ids uuid[]) RETURNS void LANGUAGE sql AS $$
    DELETE FROM listing_values WHERE listing_id = ANY (ids);
    INSERT INTO listing_values (listing_id, context_tokens, concurrency, total_tokens_per_second, rate, model, publisher, hardware_slug, gpu_count,
                                quantization, kv_cache_dtype, engine)
    SELECT l.id, c.context_tokens, c.concurrency, c.total_tokens_per_second,
           l.price_per_hour_micros::double precision / round(c.total_tokens_per_second * 1e6), l.model, m.publisher, l.hardware_slug,
           l.gpu_count, l.quantization, coalesce(r.kv_cache_dtype, 'auto'), coalesce(r.engine_name, '')
    FROM listings l JOIN runs r ON r.id = l.run_id JOIN run_cells c ON c.run_id = r.id LEFT JOIN models m ON m.slug = r.model_slug
    WHERE l.id = ANY (ids) AND l.state = 'published' AND l.quantization IS NOT NULL AND c.status = 'valid'
      AND c.total_tokens_per_second BETWEEN 0.000001::double precision AND 9000000000::double precision
$$;
SELECT listing_values_refresh(array_agg(id)) FROM listings WHERE state = 'published';
