// Generated from the database by `RIGMARK_UPDATE_SCHEMA=1 cargo test schema`; never edited by hand.

diesel::table! {
    business_clock (id) {
        id -> Int2,
        offset_microseconds -> Int8,
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
    rental_segments (rental_id, sequence) {
        rental_id -> Uuid,
        sequence -> Int4,
        started_at -> Timestamptz,
        ended_at -> Nullable<Timestamptz>,
        gross_posted_micros -> Int8,
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
