DROP INDEX runs_newest, runs_single, runs_peak, runs_prefill, runs_model, runs_model_single, runs_model_peak, runs_model_prefill, runs_hardware,
    runs_hardware_single, runs_hardware_peak, runs_hardware_prefill, runs_publisher, runs_unverified, runs_model_slug, runs_hardware_slug;
CREATE INDEX runs_newest ON runs (created_at DESC, id DESC) WHERE visibility = 'public';
CREATE INDEX runs_model ON runs (model_slug, created_at DESC, id DESC);
CREATE INDEX runs_hardware ON runs (hardware_slug, created_at DESC, id DESC);
