"""Hooks of schemathesis: who calls, ids that exist in place of made-up ones, and the count of what was sent.

Only the well-formed half of a request is replaced: where schemathesis has made a value wrong on purpose, it stays wrong.
"""

import atexit
import itertools
import json
import os
import sys
import time
from collections import Counter, defaultdict

import httpx
import schemathesis
from schemathesis.core.parameters import ParameterLocation
from urllib3.util import connection

with open(os.environ["RIGMARK_FUZZ_STATE"]) as file:
    STATE = json.load(file)
IDS = STATE["ids"]
TURN = itertools.count()

# Which of the known things a parameter of an operation names.
PATHS = {
    "api_key_revoke": {"id": "spare_keys"},
    "challenge_fetch": {"id": "challenges"},
    "challenge_create": {"id": "machines"},
    "machine_show": {"id": "machines"},
    "machine_update": {"id": "machines"},
    "machine_delete": {"id": "spare_machines"},
    "run_fetch": {"id": "runs"},
    "run_cells": {"id": "runs"},
    "run_document": {"id": "runs"},
    "run_answer": {"id": "runs"},
    "run_history": {"id": "runs"},
    "run_original": {"id": "runs"},
    "run_review": {"id": "runs"},
    "review_show": {"id": "runs"},
    "review_similar": {"id": "runs"},
    "listing_show": {"id": "listings"},
    "listing_update": {"id": "own_listings"},
    "listing_publish": {"id": "own_listings"},
    "listing_pause": {"id": "own_listings"},
    "rental_fetch": {"id": "rentals"},
    "rental_stop": {"id": "rentals"},
    "rental_extend": {"id": "rentals"},
    "rental_usage": {"id": "rentals"},
    "rental_events": {"id": "ended_rentals"},
    "organization_show": {"handle": "organizations"},
    "organization_update": {"handle": "organizations"},
    "member_list": {"handle": "organizations"},
    "member_update": {"handle": "organizations", "member": "members"},
    "member_remove": {"handle": "organizations", "member": "members"},
    "invitation_list": {"handle": "organizations"},
    "invitation_create": {"handle": "organizations"},
    "invitation_accept": {"handle": "organizations", "id": "invitations"},
    "invitation_revoke": {"handle": "organizations", "id": "invitations"},
}
# These always name a known thing when the id is well formed: the stream of a rental that runs would not end by itself.
ALWAYS = {"rental_events"}
BODIES = {
    "listing_create": lambda body: {"machine_id": pick("machines")},
    "quote_create": lambda body: {"listing_id": pick("listings")},
    "rental_create": lambda body: {"quote": pick("quotes")} if "quote" in body else {"listing_id": pick("listings")},
    "machine_create": lambda body: {"hardware": {**body.get("hardware", {}), "gpu": "RTX 4090"}},
    # A real document, with whatever claim was made up around it.
    "run_upload": lambda body: {"document": STATE["document"]},
    # Known to the engine behind the machines, and short.
    "chat_completions": lambda body: {
        "model": pick("models"), "max_tokens": 1 + turn() % 4, "messages": [{"role": "user", "content": "Hello"}],
    },
}
SESSION_SECONDS = 600


def turn():
    return next(TURN)


def pick(kind):
    known = IDS[kind]
    return known[turn() % len(known)]


# Rate limits of failed sign-ins count by address, and all of 127.0.0.0/8 is ours: each connection comes from another address, as if many
# people called. The limits themselves are the server's own.
connect = connection.create_connection


def connect_from_anywhere(address, timeout=None, source_address=None, socket_options=None):
    number = turn()
    source = (f"127.{1 + number // 62500 % 250}.{number // 250 % 250}.{2 + number % 250}", 0)
    return connect(address, timeout, source, socket_options)


connection.create_connection = connect_from_anywhere


class Sessions:
    """Access tokens that are renewed before they expire."""

    def __init__(self):
        self.tokens = {}

    def token(self, name, refresh_name):
        token, refresh, at = self.tokens.get(name, (STATE[name], STATE[refresh_name], time.monotonic()))
        if time.monotonic() - at > SESSION_SECONDS:
            answer = httpx.post(f"{STATE['url']}/api/v1/auth/refresh", json={"refresh_token": refresh}).raise_for_status().json()
            token, refresh, at = answer["access_token"], answer["refresh_token"], time.monotonic()
        self.tokens[name] = (token, refresh, at)
        return token


SESSIONS = Sessions()


def operation_id(case):
    return case.operation.definition.raw.get("operationId", case.operation.label)


@schemathesis.auth(refresh_interval=None)
class Callers:
    """Operators call their operations; the session that is signed out is nobody else's; else a person, and every third time their key."""

    def get(self, case, context):
        name = operation_id(case)
        if name in ("review_queue", "review_show", "review_similar", "run_review"):
            return SESSIONS.token("operator", "operator_refresh")
        if name == "auth_logout":
            return STATE["leaver"]
        return STATE["key"] if turn() % 3 == 0 else SESSIONS.token("session", "refresh")

    def set(self, case, data, context):
        case.headers["Authorization"] = f"Bearer {data}"


def is_positive(case, location):
    return case.meta is None or not case.meta.is_negative_at(location)


@schemathesis.hook
def before_call(context, case, kwargs):
    name = operation_id(case)
    if name in PATHS and is_positive(case, ParameterLocation.PATH) and (name in ALWAYS or turn() % 4):
        for parameter, kind in PATHS[name].items():
            case.path_parameters[parameter] = pick(kind)
    if is_positive(case, ParameterLocation.HEADER) and "Rigmark-Account" in case.headers and turn() % 6:
        # A made-up account is 404 whatever else the request says.
        del case.headers["Rigmark-Account"]
    if is_positive(case, ParameterLocation.HEADER) and "Idempotency-Key" in case.headers and turn() % 6:
        # A key that was used before ends the request early.
        case.headers["Idempotency-Key"] = f"fuzz-{turn()}"
    if is_positive(case, ParameterLocation.QUERY) and "cursor" in (case.query or {}) and turn() % 6:
        # So is a made-up cursor 400.
        case.query = {name: value for name, value in case.query.items() if name != "cursor"}
    if is_positive(case, ParameterLocation.BODY) and isinstance(case.body, dict):
        if name in BODIES and turn() % 4:
            case.body = {**case.body, **BODIES[name](case.body)}
        if name == "clock_advance" and isinstance(case.body.get("advance_seconds"), int):
            # Far moves would end the evidence that everything stands on.
            case.body = {**case.body, "advance_seconds": 1 + case.body["advance_seconds"] % 60}


# What is refused although the schema allows it, because no schema can say it. Everything else that is well formed must be accepted.
SEMANTIC = {
    # Texts that only the server can make, or that must name something.
    "invalid_cursor", "invalid_token", "invalid_quote", "unknown_hardware", "unknown_region", "unknown_account", "ambiguous_name",
    "unknown_model", "unknown_quantization", "unknown_kv_cache_dtype",
    "forbidden_address", "invalid_instant", "invalid_url",
    # JSON Schema cannot leave a leading `@` out of the length.
    "handle",
    # Conditions between fields, and on the time.
    "missing_field", "one_of", "conflicting_field", "needs_workload", "less_than_minimum", "in_the_past", "past", "contradicts_hardware",
    # The same key with another body, which is what the key is for.
    "idempotency_key_reused",
    # Unicode's invisible characters in names, which no pattern that every dialect reads can list.
    "characters",
    # A run document has rules of its own.
    "unreadable_document", "not_a_run_document",
}

# What is refused at one place only: the bound of a number that is written as a text, a length that is counted without spaces around it, and
# what depends on the listing or on the time that a rental has already.
BOUNDS = {
    ("?context", "invalid_value"), ("/reason", "wrong_length"), ("/max_spend", "too_small"), ("/hours", "too_short"), ("/hours", "too_long"),
    ("/starts_at", "too_far"), ("/ends_at", "too_early"), ("/ends_at", "too_far"), ("/ends_at", "too_short"), ("/ends_at", "too_long"),
}


@schemathesis.hook
def filter_failure(context, failure, case, response):
    if type(failure).__name__ != "RejectedPositiveData":
        return True
    problem = response.json()
    # The endpoint's errors have the shape of OpenAI's.
    problem = problem.get("error") or problem
    codes = {fault["code"] for fault in problem.get("errors", []) if (fault["pointer"], fault["code"]) not in BOUNDS}
    codes = codes or ({problem.get("code")} - {"invalid_input"})
    # To JSON Schema `3.0` is an integer; we want it written as one.
    is_spelling = codes == {"wrong_type"} and "floating point" in response.text and ".0`" in response.text
    return not (codes <= SEMANTIC or is_spelling)


COUNTS = defaultdict(Counter)
STARTED = time.monotonic()


@schemathesis.hook
def after_call(context, case, response):
    COUNTS[operation_id(case)][str(response.status_code)] += 1
    total = sum(answers.total() for answers in COUNTS.values())
    if total % 500 == 0:
        print(f"fuzz-api: {total} requests, {len(COUNTS)} operations, {time.monotonic() - STARTED:.0f} s", file=sys.stderr, flush=True)


@atexit.register
def write_counts():
    with open(os.environ["RIGMARK_FUZZ_COUNTS"], "w") as file:
        json.dump(COUNTS, file)
