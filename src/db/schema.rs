//! Generated from the database by `make schema`; never edited by hand.

diesel::table! {
    account_freezes (account_id, subject) {
        account_id -> Uuid,
        subject -> Text,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    accounts (id) {
        id -> Uuid,
        kind -> Text,
        handle -> Text,
        handle_skeleton -> Text,
        display_name -> Text,
        is_operator -> Bool,
        created_at -> Timestamptz,
        closed_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    api_keys (id) {
        id -> Uuid,
        account_id -> Uuid,
        created_by -> Uuid,
        minted_by -> Nullable<Uuid>,
        name -> Text,
        prefix -> Text,
        key_sha256 -> Bytea,
        scopes -> Array<Text>,
        created_at -> Timestamptz,
        expires_at -> Nullable<Timestamptz>,
        revoked_at -> Nullable<Timestamptz>,
        last_used_at -> Nullable<Timestamptz>,
        kind -> Text,
        machine_id -> Nullable<Uuid>,
    }
}

diesel::table! {
    audit_events (id) {
        id -> Uuid,
        at -> Timestamptz,
        actor_user_id -> Nullable<Uuid>,
        actor_key_id -> Nullable<Uuid>,
        account_id -> Nullable<Uuid>,
        action -> Text,
        target -> Text,
        details -> Jsonb,
    }
}

diesel::table! {
    automatic_top_ups (account_id) {
        account_id -> Uuid,
        threshold_micros -> Int8,
        amount_micros -> Int8,
        monthly_max_micros -> Nullable<Int8>,
        payment_method_id -> Text,
        state -> Text,
        paused_reason -> Nullable<Text>,
        failure_count -> Int4,
        last_failure_code -> Nullable<Text>,
        last_failure_at -> Nullable<Timestamptz>,
        last_failure_top_up_id -> Nullable<Uuid>,
        last_top_up_id -> Nullable<Uuid>,
        last_try_at -> Nullable<Timestamptz>,
        next_try_at -> Timestamptz,
        is_low -> Bool,
        created_at -> Timestamptz,
        updated_at -> Timestamptz,
    }
}

diesel::table! {
    board_series (id) {
        id -> Int4,
        model -> Text,
        quantization -> Text,
        kv_cache_dtype -> Text,
        hardware_slug -> Text,
        gpu_count -> Int4,
        publisher -> Nullable<Text>,
        run_count -> Int4,
    }
}

diesel::table! {
    boards (id) {
        id -> Int4,
        metric -> Text,
        least_evidence -> Text,
        engine -> Text,
        context_tokens -> Int4,
        concurrency -> Int4,
    }
}

diesel::table! {
    business_clock (id) {
        id -> Int2,
        offset_microseconds -> Int8,
    }
}

diesel::table! {
    card_setups (id) {
        id -> Uuid,
        account_id -> Uuid,
        payment_method -> Nullable<Text>,
        return_url -> Nullable<Text>,
        status -> Text,
        setup_intent_id -> Nullable<Text>,
        checkout_session_id -> Nullable<Text>,
        saved_payment_method -> Nullable<Text>,
        failure_code -> Nullable<Text>,
        observed_at -> Nullable<Timestamptz>,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    challenges (id) {
        id -> Uuid,
        machine_id -> Uuid,
        account_id -> Uuid,
        spec -> Jsonb,
        issued_at -> Timestamptz,
        expires_at -> Timestamptz,
        used_at -> Nullable<Timestamptz>,
        model -> Nullable<Text>,
    }
}

diesel::table! {
    deployment (single) {
        single -> Bool,
        mode -> Text,
        since -> Timestamptz,
    }
}

diesel::table! {
    disputes (id) {
        id -> Uuid,
        top_up_id -> Uuid,
        account_id -> Uuid,
        stripe_dispute_id -> Text,
        amount_micros -> Int8,
        reason -> Text,
        status -> Text,
        withdrawn_micros -> Int8,
        reinstated_micros -> Int8,
        fee_micros -> Int8,
        hold_id -> Nullable<Uuid>,
        evidence_due_at -> Nullable<Timestamptz>,
        ask_at -> Nullable<Timestamptz>,
        ask_count -> Int4,
        created_at -> Timestamptz,
        closed_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    earnings_maturity (account_id) {
        account_id -> Uuid,
        sequence -> Int8,
        due_at -> Timestamptz,
    }
}

diesel::table! {
    entitlements (account_id) {
        account_id -> Uuid,
        granted_until -> Nullable<Timestamptz>,
        sold_until -> Nullable<Timestamptz>,
        renews -> Bool,
        seats -> Nullable<Int4>,
    }
}

diesel::table! {
    hardware_models (slug) {
        slug -> Text,
        name -> Text,
        vendor -> Text,
        kind -> Text,
        architecture -> Text,
        memory_gib -> Nullable<Float8>,
        bandwidth_gb_s -> Nullable<Float8>,
        unified -> Bool,
    }
}

diesel::table! {
    holds (id) {
        id -> Uuid,
        account_id -> Uuid,
        rental_id -> Nullable<Uuid>,
        amount_micros -> Int8,
        captured_micros -> Int8,
        released_micros -> Int8,
        state -> Text,
        expires_at -> Nullable<Timestamptz>,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    idempotency_keys (account_id, route, key) {
        account_id -> Uuid,
        route -> Text,
        key -> Text,
        body_sha256 -> Bytea,
        state -> Text,
        lease_id -> Uuid,
        lease_until -> Timestamptz,
        status -> Nullable<Int2>,
        response -> Nullable<Text>,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    invitations (id) {
        id -> Uuid,
        organization_id -> Uuid,
        role -> Text,
        user_id -> Nullable<Uuid>,
        email -> Nullable<Text>,
        invited_by -> Uuid,
        created_at -> Timestamptz,
        expires_at -> Timestamptz,
        accepted_at -> Nullable<Timestamptz>,
        revoked_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    jobs (id) {
        id -> Uuid,
        kind -> Text,
        payload -> Jsonb,
        dedupe_key -> Nullable<Text>,
        state -> Text,
        priority -> Int2,
        run_at -> Timestamptz,
        attempts -> Int4,
        attempts_max -> Int4,
        lease_until -> Nullable<Timestamptz>,
        last_error -> Nullable<Text>,
        created_at -> Timestamptz,
        finished_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    leaderboard_entries (board_id, series_id) {
        board_id -> Int4,
        series_id -> Int4,
        run_id -> Uuid,
        concurrency -> Int4,
        figure -> Float8,
        sort_value -> Float8,
        lowest -> Float8,
        highest -> Float8,
        run_count -> Int4,
        account_count -> Int4,
        stale_run_count -> Int4,
        model -> Text,
        publisher -> Nullable<Text>,
        hardware_slug -> Text,
        gpu_count -> Int4,
        quantization -> Text,
        kv_cache_dtype -> Text,
    }
}

diesel::table! {
    ledger_accounts (id) {
        id -> Uuid,
        key -> Text,
        account_id -> Nullable<Uuid>,
        kind -> Text,
        currency -> Text,
        balance_micros -> Int8,
        overdraft_micros -> Int8,
        may_be_negative -> Bool,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    listing_answers (listing_id, span_id) {
        listing_id -> Uuid,
        span_id -> Int4,
        concurrency -> Int4,
        total_tokens_per_second -> Float8,
        cold_ttft_ms -> Nullable<Float8>,
        rate -> Float8,
    }
}

diesel::table! {
    listing_values (listing_id, context_tokens, concurrency) {
        listing_id -> Uuid,
        context_tokens -> Int4,
        concurrency -> Int4,
        total_tokens_per_second -> Float8,
        rate -> Float8,
        model -> Text,
        publisher -> Nullable<Text>,
        hardware_slug -> Text,
        gpu_count -> Int4,
        quantization -> Text,
        kv_cache_dtype -> Text,
        engine -> Text,
    }
}

diesel::table! {
    listings (id) {
        id -> Uuid,
        machine_id -> Uuid,
        account_id -> Uuid,
        state -> Text,
        off_market_reason -> Nullable<Text>,
        price_per_hour_micros -> Int8,
        min_hours -> Int4,
        max_hours -> Nullable<Int4>,
        available_until -> Nullable<Timestamptz>,
        description -> Text,
        run_id -> Nullable<Uuid>,
        valid_until -> Nullable<Timestamptz>,
        is_taken -> Bool,
        is_silent -> Bool,
        hardware_slug -> Text,
        gpu_count -> Int4,
        vram_gib -> Nullable<Float8>,
        region -> Nullable<Text>,
        model -> Nullable<Text>,
        quantization -> Nullable<Text>,
        published_at -> Nullable<Timestamptz>,
        created_at -> Timestamptz,
        updated_at -> Timestamptz,
        closed_at -> Nullable<Timestamptz>,
        version -> Int4,
    }
}

diesel::table! {
    machine_watches (machine_id, reason) {
        machine_id -> Uuid,
        reason -> Text,
    }
}

diesel::table! {
    machines (id) {
        id -> Uuid,
        account_id -> Uuid,
        name -> Text,
        hardware_slug -> Text,
        gpu_count -> Int4,
        vram_gib -> Nullable<Float8>,
        kind -> Text,
        cpu -> Nullable<Text>,
        ram_gib -> Nullable<Float8>,
        os -> Nullable<Text>,
        driver -> Nullable<Text>,
        power_limit_w -> Nullable<Float8>,
        region -> Nullable<Text>,
        endpoint_url -> Nullable<Text>,
        endpoint_key_sealed -> Nullable<Bytea>,
        endpoint_changed_at -> Nullable<Timestamptz>,
        is_simulated -> Bool,
        hardware_changed_at -> Nullable<Timestamptz>,
        last_seen_at -> Nullable<Timestamptz>,
        probe_failed_at -> Nullable<Timestamptz>,
        start_failures -> Int4,
        deleted_at -> Nullable<Timestamptz>,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    mail_links (id) {
        id -> Uuid,
        purpose -> Text,
        user_id -> Uuid,
        email -> Text,
        token_sha256 -> Bytea,
        created_at -> Timestamptz,
        expires_at -> Timestamptz,
        used_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    memberships (organization_id, user_id) {
        organization_id -> Uuid,
        user_id -> Uuid,
        role -> Text,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    models (slug) {
        slug -> Text,
        hf_id -> Text,
        name -> Text,
        publisher -> Text,
        family -> Text,
        kind -> Text,
        total_params_b -> Float8,
        active_params_b -> Float8,
        max_context -> Int4,
    }
}

diesel::table! {
    payment_methods (id) {
        id -> Text,
        account_id -> Uuid,
        brand -> Text,
        last4 -> Nullable<Text>,
        expires_month -> Nullable<Int2>,
        expires_year -> Nullable<Int2>,
        is_default -> Bool,
        observed_at -> Timestamptz,
        created_at -> Timestamptz,
        removed_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    payout_accounts (id) {
        id -> Uuid,
        account_id -> Uuid,
        is_current -> Bool,
        country -> Nullable<Text>,
        stripe_account_id -> Nullable<Text>,
        status -> Text,
        disabled_reason -> Nullable<Text>,
        requirements_due -> Array<Text>,
        payouts_enabled -> Bool,
        schedule -> Text,
        weekly_at -> Nullable<Timestamptz>,
        paused_reason -> Nullable<Text>,
        observed_at -> Nullable<Timestamptz>,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    payouts (id) {
        id -> Uuid,
        account_id -> Uuid,
        payout_account_id -> Uuid,
        request_key -> Nullable<Text>,
        requested_micros -> Nullable<Int8>,
        week -> Nullable<Date>,
        amount_micros -> Int8,
        reversed_micros -> Int8,
        status -> Text,
        stripe_transfer_id -> Nullable<Text>,
        transferred_at -> Nullable<Timestamptz>,
        bank_payout_id -> Nullable<Text>,
        failure_code -> Nullable<Text>,
        alarm -> Nullable<Text>,
        is_recalled -> Bool,
        attempt -> Int4,
        attempted_at -> Nullable<Timestamptz>,
        ask_at -> Nullable<Timestamptz>,
        ask_count -> Int4,
        created_at -> Timestamptz,
        settled_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    postings (sequence) {
        sequence -> Int8,
        transfer_id -> Uuid,
        ledger_account_id -> Uuid,
        amount_micros -> Int8,
        balance_after_micros -> Int8,
        account_id -> Nullable<Uuid>,
        business_at -> Timestamptz,
    }
}

diesel::table! {
    pro_invoices (invoice_id) {
        invoice_id -> Text,
        pro_subscription_id -> Uuid,
        number -> Nullable<Text>,
        reason -> Nullable<Text>,
        paid_micros -> Int8,
        tax_micros -> Int8,
        taxes -> Jsonb,
        transfer_id -> Nullable<Uuid>,
        created_at -> Timestamptz,
        booked_at -> Timestamptz,
    }
}

diesel::table! {
    pro_subscriptions (id) {
        id -> Uuid,
        account_id -> Uuid,
        request_key -> Nullable<Text>,
        plan -> Text,
        seats -> Int4,
        means -> Text,
        payment_method -> Nullable<Text>,
        return_url -> Nullable<Text>,
        status -> Text,
        customer_id -> Nullable<Text>,
        subscription_id -> Nullable<Text>,
        item_id -> Nullable<Text>,
        checkout_session_id -> Nullable<Text>,
        is_ending -> Bool,
        period_ends_at -> Nullable<Timestamptz>,
        past_due_since -> Nullable<Timestamptz>,
        paid_until -> Nullable<Timestamptz>,
        pro_until -> Nullable<Timestamptz>,
        renews -> Bool,
        failure_code -> Nullable<Text>,
        alarm -> Nullable<Text>,
        change_count -> Int4,
        observed_at -> Nullable<Timestamptz>,
        ask_at -> Nullable<Timestamptz>,
        ask_count -> Int4,
        created_at -> Timestamptz,
        ended_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    reconciliation_findings (kind, subject) {
        kind -> Text,
        subject -> Text,
        expected -> Text,
        found -> Text,
        first_seen_at -> Timestamptz,
        last_seen_at -> Timestamptz,
    }
}

diesel::table! {
    reconciliations (is_latest) {
        is_latest -> Bool,
        leased_until -> Timestamptz,
        stripe_read_through -> Nullable<Timestamptz>,
        started_at -> Nullable<Timestamptz>,
        finished_at -> Nullable<Timestamptz>,
        result -> Nullable<Jsonb>,
    }
}

diesel::table! {
    refresh_tokens (token_sha256) {
        token_sha256 -> Bytea,
        session_id -> Uuid,
        created_at -> Timestamptz,
        expires_at -> Timestamptz,
        rotated_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    refunds (id) {
        id -> Uuid,
        top_up_id -> Uuid,
        account_id -> Uuid,
        origin -> Text,
        request_key -> Nullable<Text>,
        amount_micros -> Int8,
        status -> Text,
        stripe_refund_id -> Nullable<Text>,
        failure_code -> Nullable<Text>,
        alarm -> Nullable<Text>,
        ask_at -> Nullable<Timestamptz>,
        ask_count -> Int4,
        created_at -> Timestamptz,
        settled_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    registrations (id) {
        id -> Uuid,
        email -> Text,
        handle -> Text,
        display_name -> Text,
        password_hash -> Text,
        token_sha256 -> Bytea,
        created_at -> Timestamptz,
        expires_at -> Timestamptz,
    }
}

diesel::table! {
    remeasure_schedules (machine_id) {
        machine_id -> Uuid,
        due_at -> Timestamptz,
        reason -> Text,
        failures -> Int4,
    }
}

diesel::table! {
    remeasurements (id) {
        id -> Uuid,
        machine_id -> Uuid,
        run_id -> Uuid,
        reason -> Text,
        status -> Text,
        attempts -> Int4,
        plan -> Jsonb,
        samples -> Jsonb,
        answers -> Nullable<Jsonb>,
        detail -> Nullable<Text>,
        created_at -> Timestamptz,
        started_at -> Nullable<Timestamptz>,
        finished_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    rental_events (sequence) {
        sequence -> Int8,
        rental_id -> Uuid,
        kind -> Text,
        detail -> Jsonb,
        at -> Timestamptz,
    }
}

diesel::table! {
    rental_segments (rental_id, sequence) {
        rental_id -> Uuid,
        sequence -> Int4,
        started_at -> Timestamptz,
        ended_at -> Nullable<Timestamptz>,
        gross_posted_micros -> Int8,
    }
}

diesel::table! {
    rentals (id) {
        id -> Uuid,
        renter_account_id -> Uuid,
        host_account_id -> Uuid,
        listing_id -> Uuid,
        machine_id -> Uuid,
        run_id -> Nullable<Uuid>,
        status -> Text,
        end_reason -> Nullable<Text>,
        period -> Tstzrange,
        price_per_hour_micros -> Int8,
        fee_basis_points -> Int2,
        min_hours -> Int4,
        max_hours -> Nullable<Int4>,
        hours -> Nullable<Int4>,
        ends_at -> Nullable<Timestamptz>,
        latest_end_at -> Nullable<Timestamptz>,
        max_spend_micros -> Nullable<Int8>,
        hold_id -> Uuid,
        model -> Nullable<Text>,
        created_at -> Timestamptz,
        starts_at -> Timestamptz,
        boot_deadline_at -> Timestamptz,
        active_at -> Nullable<Timestamptz>,
        paused_at -> Nullable<Timestamptz>,
        stop_requested_at -> Nullable<Timestamptz>,
        ended_at -> Nullable<Timestamptz>,
        settled_through -> Nullable<Timestamptz>,
        gross_posted_micros -> Int8,
        fee_posted_micros -> Int8,
        transfer_sequence -> Int4,
        runway_warned_seconds -> Nullable<Int4>,
        next_due_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    reports (id) {
        id -> Uuid,
        account_id -> Uuid,
        model_slug -> Nullable<Text>,
        model_name -> Text,
        publisher -> Nullable<Text>,
        hardware_slug -> Nullable<Text>,
        hardware_name -> Text,
        gpu_count -> Int4,
        engine_name -> Text,
        engine_version -> Nullable<Text>,
        quantization -> Text,
        kv_cache_dtype -> Nullable<Text>,
        context_tokens -> Int4,
        concurrency -> Int4,
        rate -> Text,
        tokens_per_second -> Float8,
        ttft_ms -> Nullable<Float8>,
        total_ceiling_tokens_per_second -> Nullable<Float8>,
        is_above_ceiling -> Bool,
        source_url -> Nullable<Text>,
        notes -> Nullable<Text>,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    reverify_passes (id) {
        id -> Int8,
        rules_version -> Text,
        runs_total -> Int8,
        runs_done -> Int8,
        runs_changed -> Int8,
        runs_unreadable -> Int8,
        last_run_id -> Nullable<Uuid>,
        begun_at -> Timestamptz,
        finished_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    run_cells (run_id, context_tokens, concurrency) {
        run_id -> Uuid,
        context_tokens -> Int4,
        concurrency -> Int4,
        status -> Text,
        total_tokens_per_second -> Nullable<Float8>,
        per_request_tokens_per_second -> Nullable<Float8>,
        ttft_ms -> Nullable<Float8>,
        itl_ms -> Nullable<Float8>,
        cold_ttft_ms -> Nullable<Float8>,
    }
}

diesel::table! {
    run_documents (run_id) {
        run_id -> Uuid,
        redacted_gzip -> Bytea,
        original_gzip -> Bytea,
        original_sha256 -> Text,
    }
}

diesel::table! {
    run_events (sequence) {
        sequence -> Int8,
        run_id -> Uuid,
        at -> Timestamptz,
        kind -> Text,
        account_id -> Nullable<Uuid>,
        user_id -> Nullable<Uuid>,
        details -> Jsonb,
    }
}

diesel::table! {
    run_marks (run_id, kind, value) {
        run_id -> Uuid,
        kind -> Text,
        value -> Text,
    }
}

diesel::table! {
    run_series (run_id) {
        run_id -> Uuid,
        series_id -> Int4,
    }
}

diesel::table! {
    run_standings (run_id) {
        run_id -> Uuid,
        remeasured_at -> Nullable<Timestamptz>,
        disputed_at -> Nullable<Timestamptz>,
        stale_until -> Nullable<Timestamptz>,
        engine_version_seen -> Nullable<Text>,
        remeasurements -> Jsonb,
        base_line -> Jsonb,
    }
}

diesel::table! {
    runs (id) {
        id -> Uuid,
        account_id -> Uuid,
        machine_id -> Nullable<Uuid>,
        challenge_id -> Nullable<Uuid>,
        status -> Text,
        evidence_level -> Text,
        visibility -> Text,
        model_slug -> Nullable<Text>,
        model_name -> Text,
        publisher -> Nullable<Text>,
        quantization -> Nullable<Text>,
        hardware_slug -> Nullable<Text>,
        gpu_count -> Nullable<Int4>,
        engine_name -> Nullable<Text>,
        title -> Text,
        summary -> Text,
        detail -> Jsonb,
        rules_version -> Text,
        document_sha256 -> Text,
        decode_single_tokens_per_second -> Nullable<Float8>,
        decode_peak_tokens_per_second -> Nullable<Float8>,
        prefill_peak_tokens_per_second -> Nullable<Float8>,
        upload_key -> Text,
        created_at -> Timestamptz,
        expires_at -> Timestamptz,
        stale_at -> Nullable<Timestamptz>,
        stale_reason -> Nullable<Text>,
        reviewed_at -> Nullable<Timestamptz>,
        reviewed_by -> Nullable<Uuid>,
        review_reason -> Nullable<Text>,
        kv_cache_dtype -> Nullable<Text>,
    }
}

diesel::table! {
    saved_search_hits (search_id, listing_id) {
        search_id -> Uuid,
        listing_id -> Uuid,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    saved_searches (id) {
        id -> Uuid,
        account_id -> Uuid,
        name -> Text,
        query -> Text,
        hardware_slug -> Nullable<Text>,
        model -> Nullable<Text>,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    session_cookies (token_sha256) {
        token_sha256 -> Bytea,
        session_id -> Uuid,
        created_at -> Timestamptz,
        expires_at -> Timestamptz,
    }
}

diesel::table! {
    sessions (id) {
        id -> Uuid,
        user_id -> Uuid,
        created_at -> Timestamptz,
        last_used_at -> Timestamptz,
        ended_at -> Nullable<Timestamptz>,
        end_reason -> Nullable<Text>,
    }
}

diesel::table! {
    sign_in_addresses (user_id, address_hmac) {
        user_id -> Uuid,
        address_hmac -> Bytea,
        last_used_at -> Timestamptz,
    }
}

diesel::table! {
    stripe_balance_transactions (id) {
        id -> Text,
        kind -> Text,
        source_id -> Nullable<Text>,
        parent_id -> Nullable<Text>,
        row_id -> Nullable<Text>,
        currency -> Text,
        amount_minor_units -> Int8,
        fee_minor_units -> Int8,
        net_minor_units -> Int8,
        amount_micros -> Nullable<Int8>,
        fee_micros -> Nullable<Int8>,
        available_at -> Timestamptz,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    stripe_customers (id) {
        id -> Uuid,
        account_id -> Uuid,
        customer_id -> Nullable<Text>,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    stripe_events (id) {
        id -> Text,
        event_type -> Text,
        object_id -> Nullable<Text>,
        outcome -> Text,
        received_at -> Timestamptz,
    }
}

diesel::table! {
    stripe_scans (kind) {
        kind -> Text,
        through -> Timestamptz,
        due_at -> Timestamptz,
    }
}

diesel::table! {
    tool_uploads (tool_id) {
        tool_id -> Text,
        account_id -> Uuid,
        content_sha256 -> Text,
        upload_key -> Text,
    }
}

diesel::table! {
    top_ups (id) {
        id -> Uuid,
        account_id -> Uuid,
        request_key -> Nullable<Text>,
        amount_micros -> Int8,
        means -> Text,
        payment_method -> Nullable<Text>,
        return_url -> Nullable<Text>,
        status -> Text,
        payment_intent_id -> Nullable<Text>,
        checkout_session_id -> Nullable<Text>,
        failure_code -> Nullable<Text>,
        alarm -> Nullable<Text>,
        received_micros -> Nullable<Int8>,
        observed_at -> Nullable<Timestamptz>,
        ask_at -> Nullable<Timestamptz>,
        ask_count -> Int4,
        created_at -> Timestamptz,
        settled_at -> Nullable<Timestamptz>,
        customer_id -> Nullable<Text>,
        card_brand -> Nullable<Text>,
        card_last4 -> Nullable<Text>,
    }
}

diesel::table! {
    transfers (id) {
        id -> Uuid,
        code -> Text,
        posting_count -> Int2,
        linked_transfer_id -> Nullable<Uuid>,
        hold_id -> Nullable<Uuid>,
        rental_id -> Nullable<Uuid>,
        payment_ref -> Nullable<Text>,
        actor_kind -> Text,
        actor_id -> Nullable<Uuid>,
        business_at -> Timestamptz,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    users (account_id) {
        account_id -> Uuid,
        email -> Nullable<Text>,
        password_hash -> Text,
        email_confirmed_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    webhook_deliveries (endpoint_id, event_id) {
        endpoint_id -> Uuid,
        event_id -> Uuid,
        status -> Text,
        attempt -> Int4,
        step -> Int4,
        next_try_at -> Nullable<Timestamptz>,
        lease_until -> Nullable<Timestamptz>,
        status_code -> Nullable<Int4>,
        duration_ms -> Nullable<Int4>,
        error -> Nullable<Text>,
        tried_at -> Nullable<Timestamptz>,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    webhook_endpoints (id) {
        id -> Uuid,
        account_id -> Uuid,
        url -> Text,
        events -> Array<Text>,
        description -> Text,
        is_enabled -> Bool,
        disabled_reason -> Nullable<Text>,
        secret_sealed -> Bytea,
        old_secret_sealed -> Nullable<Bytea>,
        old_secret_until -> Nullable<Timestamptz>,
        failing_since -> Nullable<Timestamptz>,
        created_at -> Timestamptz,
        updated_at -> Timestamptz,
    }
}

diesel::table! {
    webhook_events (id) {
        id -> Uuid,
        account_id -> Uuid,
        event_type -> Text,
        body -> Text,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    workload_spans (id) {
        id -> Int4,
        model -> Text,
        above_context -> Int4,
        context_tokens -> Int4,
        above_concurrency -> Int4,
        up_to_concurrency -> Int4,
    }
}

diesel::joinable!(account_freezes -> accounts (account_id));
diesel::joinable!(api_keys -> accounts (account_id));
diesel::joinable!(api_keys -> machines (machine_id));
diesel::joinable!(api_keys -> users (created_by));
diesel::joinable!(audit_events -> api_keys (actor_key_id));
diesel::joinable!(automatic_top_ups -> accounts (account_id));
diesel::joinable!(automatic_top_ups -> payment_methods (payment_method_id));
diesel::joinable!(board_series -> hardware_models (hardware_slug));
diesel::joinable!(card_setups -> accounts (account_id));
diesel::joinable!(challenges -> accounts (account_id));
diesel::joinable!(challenges -> machines (machine_id));
diesel::joinable!(disputes -> accounts (account_id));
diesel::joinable!(disputes -> holds (hold_id));
diesel::joinable!(disputes -> top_ups (top_up_id));
diesel::joinable!(earnings_maturity -> accounts (account_id));
diesel::joinable!(entitlements -> accounts (account_id));
diesel::joinable!(holds -> accounts (account_id));
diesel::joinable!(invitations -> accounts (organization_id));
diesel::joinable!(leaderboard_entries -> runs (run_id));
diesel::joinable!(ledger_accounts -> accounts (account_id));
diesel::joinable!(listing_answers -> listings (listing_id));
diesel::joinable!(listing_answers -> workload_spans (span_id));
diesel::joinable!(listing_values -> listings (listing_id));
diesel::joinable!(listings -> accounts (account_id));
diesel::joinable!(listings -> machines (machine_id));
diesel::joinable!(listings -> runs (run_id));
diesel::joinable!(machine_watches -> machines (machine_id));
diesel::joinable!(machines -> accounts (account_id));
diesel::joinable!(machines -> hardware_models (hardware_slug));
diesel::joinable!(mail_links -> users (user_id));
diesel::joinable!(memberships -> accounts (organization_id));
diesel::joinable!(memberships -> users (user_id));
diesel::joinable!(payment_methods -> accounts (account_id));
diesel::joinable!(payout_accounts -> accounts (account_id));
diesel::joinable!(payouts -> accounts (account_id));
diesel::joinable!(payouts -> payout_accounts (payout_account_id));
diesel::joinable!(postings -> accounts (account_id));
diesel::joinable!(postings -> ledger_accounts (ledger_account_id));
diesel::joinable!(postings -> transfers (transfer_id));
diesel::joinable!(pro_invoices -> pro_subscriptions (pro_subscription_id));
diesel::joinable!(pro_subscriptions -> accounts (account_id));
diesel::joinable!(refresh_tokens -> sessions (session_id));
diesel::joinable!(refunds -> accounts (account_id));
diesel::joinable!(refunds -> top_ups (top_up_id));
diesel::joinable!(remeasure_schedules -> machines (machine_id));
diesel::joinable!(remeasurements -> machines (machine_id));
diesel::joinable!(remeasurements -> runs (run_id));
diesel::joinable!(rental_events -> rentals (rental_id));
diesel::joinable!(rental_segments -> rentals (rental_id));
diesel::joinable!(rentals -> listings (listing_id));
diesel::joinable!(rentals -> machines (machine_id));
diesel::joinable!(rentals -> runs (run_id));
diesel::joinable!(reports -> accounts (account_id));
diesel::joinable!(reports -> hardware_models (hardware_slug));
diesel::joinable!(reports -> models (model_slug));
diesel::joinable!(run_cells -> runs (run_id));
diesel::joinable!(run_documents -> runs (run_id));
diesel::joinable!(run_events -> runs (run_id));
diesel::joinable!(run_marks -> runs (run_id));
diesel::joinable!(run_series -> board_series (series_id));
diesel::joinable!(run_series -> runs (run_id));
diesel::joinable!(run_standings -> runs (run_id));
diesel::joinable!(runs -> challenges (challenge_id));
diesel::joinable!(runs -> hardware_models (hardware_slug));
diesel::joinable!(runs -> machines (machine_id));
diesel::joinable!(runs -> models (model_slug));
diesel::joinable!(saved_search_hits -> listings (listing_id));
diesel::joinable!(saved_search_hits -> saved_searches (search_id));
diesel::joinable!(saved_searches -> accounts (account_id));
diesel::joinable!(session_cookies -> sessions (session_id));
diesel::joinable!(sessions -> users (user_id));
diesel::joinable!(sign_in_addresses -> users (user_id));
diesel::joinable!(stripe_customers -> accounts (account_id));
diesel::joinable!(tool_uploads -> accounts (account_id));
diesel::joinable!(top_ups -> accounts (account_id));
diesel::joinable!(transfers -> holds (hold_id));
diesel::joinable!(users -> accounts (account_id));
diesel::joinable!(webhook_deliveries -> webhook_endpoints (endpoint_id));
diesel::joinable!(webhook_deliveries -> webhook_events (event_id));
diesel::joinable!(webhook_endpoints -> accounts (account_id));
diesel::joinable!(webhook_events -> accounts (account_id));

diesel::allow_tables_to_appear_in_same_query! {
    account_freezes,
    accounts,
    api_keys,
    audit_events,
    automatic_top_ups,
    board_series,
    card_setups,
    challenges,
    disputes,
    earnings_maturity,
    entitlements,
    hardware_models,
    holds,
    invitations,
    leaderboard_entries,
    ledger_accounts,
    listing_answers,
    listing_values,
    listings,
    machine_watches,
    machines,
    mail_links,
    memberships,
    models,
    payment_methods,
    payout_accounts,
    payouts,
    postings,
    pro_invoices,
    pro_subscriptions,
    refresh_tokens,
    refunds,
    remeasure_schedules,
    remeasurements,
    rental_events,
    rental_segments,
    rentals,
    reports,
    run_cells,
    run_documents,
    run_events,
    run_marks,
    run_series,
    run_standings,
    runs,
    saved_search_hits,
    saved_searches,
    session_cookies,
    sessions,
    sign_in_addresses,
    stripe_customers,
    tool_uploads,
    top_ups,
    transfers,
    users,
    webhook_deliveries,
    webhook_endpoints,
    webhook_events,
    workload_spans,
}
