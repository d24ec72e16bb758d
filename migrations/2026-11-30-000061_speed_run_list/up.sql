-- Lists of runs walk an index in the order asked for and stop after a page; what else they are narrowed by stands in the index as well, so
-- that runs that do not fit are passed over without being read.
DROP INDEX runs_newest, runs_model, runs_hardware;
CREATE INDEX runs_newest ON runs (created_at DESC, id DESC, status, engine_name, quantization, gpu_count, publisher, hardware_slug)
    WHERE visibility = 'public';
CREATE INDEX runs_single ON runs (decode_single_tokens_per_second DESC, id DESC, status, engine_name, quantization, gpu_count, publisher)
    WHERE visibility = 'public' AND decode_single_tokens_per_second IS NOT NULL;
CREATE INDEX runs_peak ON runs (decode_peak_tokens_per_second DESC, id DESC, status, engine_name, quantization, gpu_count, publisher)
    WHERE visibility = 'public' AND decode_peak_tokens_per_second IS NOT NULL;
CREATE INDEX runs_prefill ON runs (prefill_peak_tokens_per_second DESC, id DESC, status, engine_name, quantization, gpu_count, publisher)
    WHERE visibility = 'public' AND prefill_peak_tokens_per_second IS NOT NULL;
-- By what leaves a small part of all runs. A run has the catalog's slug of its model, or the name it was uploaded under.
CREATE INDEX runs_model ON runs (coalesce(model_slug, model_name), created_at DESC, id DESC, status, quantization, gpu_count, hardware_slug)
    WHERE visibility = 'public';
CREATE INDEX runs_model_single ON runs (coalesce(model_slug, model_name), decode_single_tokens_per_second DESC, id DESC, status, quantization)
    WHERE visibility = 'public' AND decode_single_tokens_per_second IS NOT NULL;
CREATE INDEX runs_model_peak ON runs (coalesce(model_slug, model_name), decode_peak_tokens_per_second DESC, id DESC, status, quantization)
    WHERE visibility = 'public' AND decode_peak_tokens_per_second IS NOT NULL;
CREATE INDEX runs_model_prefill ON runs (coalesce(model_slug, model_name), prefill_peak_tokens_per_second DESC, id DESC, status, quantization)
    WHERE visibility = 'public' AND prefill_peak_tokens_per_second IS NOT NULL;
CREATE INDEX runs_hardware ON runs (hardware_slug, created_at DESC, id DESC, status, quantization, gpu_count) WHERE visibility = 'public';
CREATE INDEX runs_hardware_single ON runs (hardware_slug, decode_single_tokens_per_second DESC, id DESC, status, quantization, gpu_count)
    WHERE visibility = 'public' AND decode_single_tokens_per_second IS NOT NULL;
CREATE INDEX runs_hardware_peak ON runs (hardware_slug, decode_peak_tokens_per_second DESC, id DESC, status, quantization, gpu_count)
    WHERE visibility = 'public' AND decode_peak_tokens_per_second IS NOT NULL;
CREATE INDEX runs_hardware_prefill ON runs (hardware_slug, prefill_peak_tokens_per_second DESC, id DESC, status, quantization, gpu_count)
    WHERE visibility = 'public' AND prefill_peak_tokens_per_second IS NOT NULL;
CREATE INDEX runs_publisher ON runs (publisher, created_at DESC, id DESC, status, quantization, gpu_count) WHERE visibility = 'public';
-- What is not verified is rare.
CREATE INDEX runs_unverified ON runs (status, created_at DESC, id DESC) WHERE visibility = 'public' AND status <> 'verified';
-- Whole foreign keys, unlisted runs too.
CREATE INDEX runs_model_slug ON runs (model_slug);
CREATE INDEX runs_hardware_slug ON runs (hardware_slug);
