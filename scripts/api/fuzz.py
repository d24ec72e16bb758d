"""Generated requests over all operations, by schemathesis, against a sandbox of our own. Usage: fuzz.py <target dir>

Sets the stage (callers, and things with ids), runs schemathesis with hooks.py and schemathesis.toml, and counts what was sent.
Fails on any finding, on an operation that was not reached, and when fewer than REQUESTS requests were sent.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import httpx

from sandbox import Caller, Sandbox, register, say

SEED = os.environ.get("SEED", "20261130")
REQUESTS_MIN = int(os.environ.get("REQUESTS", "10000"))
# Each operation is tried so often in the fuzzing phase; the phases before it add what the schema's bounds and examples suggest.
EXAMPLES = os.environ.get("EXAMPLES", "120")
ONLY = [option for name in os.environ.get("ONLY", "").split() for option in ("--include-operation-id", name)]
SCOPES = [
    "account:read", "machines:write", "runs:write", "listings:write", "rentals:write", "billing:write", "inference",
]


def set_stage(sandbox):
    """Callers and ids for hooks.py: a person with a key, an operator, somebody to sign out; a machine, a run, listings, rentals."""
    url = sandbox.url
    person, signed_in = register(url, "fuzz")
    operator, operator_in = register(url, "fuzz-operator")
    sandbox.admin_grant("fuzz-operator")
    _, leaver = register(url, "fuzz-leaver")
    person.post("/api/v1/sandbox/credits", {"amount": "1000000"}, key="stage")
    key = person.post("/api/v1/api-keys", {"name": "all", "scopes": SCOPES})["key"]
    spare_keys = [person.post("/api/v1/api-keys", {"name": "spare", "scopes": []})["id"] for _ in range(5)]
    organization = person.post("/api/v1/organizations", {"handle": "fuzz-team"})["handle"]
    invitation = person.post(f"/api/v1/organizations/{organization}/invitations", {"handle": "fuzz-leaver", "role": "member"})["id"]

    offers = Caller(url).get("/api/v1/listings?include_unavailable=true")["data"]
    free = [offer for offer in offers if offer["available"]]
    if not free:
        sys.exit(f"no listing is free: {offers}")
    engine = sandbox.engine("openai/gpt-oss-20b")
    hardware = {"gpu": "RTX 4090", "gpu_count": 1}
    machines = [
        person.post("/api/v1/machines", {"name": f"m{n}", "hardware": hardware, "endpoint": {"url": engine}})["id"] for n in range(3)
    ]
    challenge = person.post(f"/api/v1/machines/{machines[0]}/challenges", {})["id"]
    draft = person.post("/api/v1/listings", {"machine_id": machines[0], "price_per_hour": "0.37"})["id"]
    quote = person.post("/api/v1/quotes", {"listing_id": free[0]["id"]})["quote"]

    ended = rent_and_stop(person, free[0]["id"])
    live = person.post("/api/v1/rentals", {"listing_id": free[0]["id"]}, key="live")["id"]
    read_live_events(url, person.token, live)
    models = [model["id"] for model in person.get("/v1/models")["data"]]
    runs = [run["id"] for run in Caller(url).get("/api/v1/matrix-runs")["data"]]
    document = json.loads(httpx.get(f"{url}/api/v1/matrix-runs/{runs[0]}/document").text)
    return {
        "url": url,
        "session": signed_in["access_token"],
        "refresh": signed_in["refresh_token"],
        "operator": operator.token,
        "operator_refresh": operator_in["refresh_token"],
        "leaver": leaver["access_token"],
        "key": key,
        "engine": engine,
        "document": document,
        "ids": {
            "spare_keys": spare_keys, "organizations": [organization], "invitations": [invitation], "members": ["fuzz", "fuzz-leaver"],
            "machines": machines[:2], "spare_machines": machines[2:], "challenges": [challenge], "runs": runs,
            "listings": [draft] + [offer["id"] for offer in offers], "own_listings": [draft], "quotes": [quote], "ended_rentals": [ended],
            "rentals": [ended, live], "models": models,
        },
    }


def rent_and_stop(person, listing):
    rental = person.post("/api/v1/rentals", {"listing_id": listing}, key="ended")["id"]
    until = time.monotonic() + 60
    while person.get(f"/api/v1/rentals/{rental}")["status"] not in ("active", "failed", "ended") and time.monotonic() < until:
        time.sleep(0.2)
    person.post(f"/api/v1/rentals/{rental}/stop")
    return rental


def read_live_events(url, token, rental):
    """The stream of a rental that runs goes on by itself, so it is read here, for a bounded time, and not by schemathesis."""
    headers = {"Authorization": f"Bearer {token}"}
    until = time.monotonic() + 10
    with httpx.stream("GET", f"{url}/api/v1/rentals/{rental}/events", headers=headers, timeout=10) as answer:
        if answer.headers["content-type"] != "text/event-stream":
            sys.exit(f"events: {answer.status_code} {answer.headers}")
        for line in answer.iter_lines():
            if line.startswith("data: "):
                json.loads(line.removeprefix("data: "))
                return
            if time.monotonic() > until:
                break
    sys.exit("events: a rental that runs sent none within 10 s")


def run_schemathesis(sandbox, state):
    folder = sandbox.folder
    (folder / "state.json").write_text(json.dumps(state))
    counts = folder / "counts.json"
    counts.unlink(missing_ok=True)
    command = [
        str(Path(sys.executable).parent / "schemathesis"), "--config-file", "scripts/api/schemathesis.toml", "run",
        f"{sandbox.url}/openapi.json", "--seed", SEED, "--max-examples", EXAMPLES, *ONLY,
    ]
    environment = {
        **os.environ, "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": "scripts/api",
        "RIGMARK_FUZZ_STATE": str(folder / "state.json"), "RIGMARK_FUZZ_COUNTS": str(counts),
    }
    child = subprocess.Popen(command, env=environment)
    try:
        status = child.wait()
    except BaseException:
        child.terminate()
        child.wait()
        raise
    return status, json.loads(counts.read_text()) if counts.exists() else {}


def operations(url):
    paths = httpx.get(f"{url}/openapi.json").json()["paths"]
    return sorted(operation["operationId"] for item in paths.values() for operation in item.values())


def main():
    started = time.monotonic()
    with Sandbox(sys.argv[1], "fuzz-api", demo=True) as sandbox:
        state = set_stage(sandbox)
        status, counts = run_schemathesis(sandbox, state)
        missed = [name for name in operations(sandbox.url) if name not in counts and not ONLY]
    total = sum(sum(answers.values()) for answers in counts.values())
    say("\nRequests by operation, and how they were answered:")
    for name, answers in sorted(counts.items()):
        say(f"  {sum(answers.values()):6}  {name:32} " + " ".join(f"{status}:{n}" for status, n in sorted(answers.items())))
    say(f"  {total:6}  in all, over {len(counts)} operations, in {time.monotonic() - started:.0f} s; seed {SEED}")
    limited = sum(answers.get("429", 0) for answers in counts.values())
    faults = [
        status != 0 and f"schemathesis ended with status {status}",
        missed and f"not reached: {', '.join(missed)}",
        total < REQUESTS_MIN and not ONLY and f"{total} requests are fewer than {REQUESTS_MIN}",
        limited * 20 > total and f"{limited} answers were 429: rate limits hide the rest",
    ]
    faults = [fault for fault in faults if fault]
    say("fuzz-api: no findings" if not faults else "fuzz-api: FAILED: " + "; ".join(faults))
    sys.exit(1 if faults else 0)


try:
    main()
except KeyboardInterrupt:
    sys.exit("\nfuzz-api: interrupted; the sandbox is stopped")
