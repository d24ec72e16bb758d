"""The main job with a client that openapi-python-client generates from openapi/rigmark.json. Usage: client.py <target dir>

Against a sandbox of our own with a simulated engine: a host registers, makes a key, registers a machine, answers a challenge, lists; a renter
searches by workload, asks for a quote, rents, chats, an hour passes, stops; both statements add up. Every answer is read through the
generated models, whose client raises on a status that the document does not have.
"""

import importlib
import json
import os
import shutil
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

from sandbox import Sandbox, say

MODEL = "openai/gpt-oss-20b"
PASSWORD = "correct horse battery"
CONTEXT, USERS = 16384, 8


def generate(target):
    """The client as the package `rigmark_client`; a warning of the generator (a schema it cannot read, say) is a failure."""
    folder = Path(target) / "client-test"
    shutil.rmtree(folder / "rigmark_client", ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    beside = Path(sys.executable).parent
    command = [
        str(beside / "openapi-python-client"), "generate", "--path", "openapi/rigmark.json", "--meta", "none",
        "--output-path", str(folder / "rigmark_client"), "--fail-on-warning",
    ]
    environment = {**os.environ, "PATH": f"{beside}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0 or "arning" in done.stdout + done.stderr:
        sys.exit(f"client-test: the generator complains:\n{done.stdout}{done.stderr}")
    sys.path.insert(0, str(folder))
    say(f"client-test: generated {sum(1 for _ in (folder / 'rigmark_client').rglob('*.py'))} modules without a warning")


def check(holds, text):
    if not holds:
        sys.exit(f"client-test: FAILED: {text}")


class Party:
    """A caller through the generated client: `party.does("market.listing_create", body=…)` gives the parsed answer."""

    def __init__(self, url, token=None):
        client = importlib.import_module("rigmark_client.client")
        options = {"base_url": url, "raise_on_unexpected_status": True}
        self.client = client.AuthenticatedClient(token=token, **options) if token else client.Client(**options)

    def does(self, operation, status=None, **arguments):
        module = importlib.import_module(f"rigmark_client.api.{operation}")
        answer = module.sync_detailed(client=self.client, **arguments)
        wanted = (status,) if status else (200, 201)
        check(answer.status_code in wanted, f"{operation}: {int(answer.status_code)} {answer.content[:600]}")
        check(answer.parsed is not None, f"{operation}: the answer is of no documented type: {answer.content[:600]}")
        return answer.parsed


def join(url, models, handle, scopes):
    """Registers, and makes the key that the rest goes by."""
    signed_in = Party(url).does(
        "accounts.auth_register", status=201,
        body=models.Register(email=f"{handle}@example.org", password=PASSWORD, handle=handle),
    )
    check(signed_in.account.handle == handle, f"registered as {signed_in.account}")
    person = Party(url, signed_in.access_token)
    key = person.does("accounts.api_key_create", body=models.CreateKey(name=handle, scopes=[models.Scope(scope) for scope in scopes]))
    party = Party(url, key.key)
    listed = person.does("accounts.api_key_list").data
    check([one.id for one in listed] == [key.id], f"keys {listed}")
    return party


def measure(sandbox, challenge, engine):
    """The challenge's matrix, measured by our own client; the document."""
    path = sandbox.folder / "document.json"
    numbers = lambda values: ",".join(str(value) for value in values)
    command = [
        sandbox.program, "measure", "--url", engine, "--contexts", numbers(challenge.contexts),
        "--concurrency", numbers(challenge.concurrency_levels), "--prefill-contexts", numbers(challenge.prefill_contexts),
        "--duration", f"{challenge.duration_seconds:g}", "--max-tokens", str(challenge.max_tokens), "--output", str(path),
    ]
    subprocess.run(command, check=True)
    return json.loads(path.read_text())


def list_machine(sandbox, host, models, engine):
    """From a machine to a published listing; the listing."""
    machine = host.does("machines.machine_create", body=models.CreateMachine(
        name="attic", hardware=models.HardwareInput(gpu="RTX 4090", gpu_count=1), region="de", endpoint=models.EndpointInput(url=engine),
    ))
    check(machine.hardware.slug == "rtx-4090", f"machine {machine}")
    body = models.CreateListing(machine_id=machine.id, price_per_hour="0.36", description="Under the roof.")
    listing = host.does("market.listing_create", body=body)
    refused = host.does("market.listing_publish", status=409, id=listing.id)
    unmet = [condition.code for condition in refused.unmet]
    check(refused.code == models.ProblemCode.LISTING_NOT_MEASURED and models.UnmetCode.RUN_MISSING in unmet, f"refusal {refused}")

    challenge = host.does("machines.challenge_create", id=machine.id, body=models.ChallengeRequest(model=MODEL, quantization="mxfp4"))
    document = measure(sandbox, challenge, engine)
    upload = models.UploadBody(
        document=models.UploadBodyDocument.from_dict(document), machine_id=machine.id, challenge_id=challenge.id,
        hardware=models.ClaimedHardware(gpu="RTX 4090", gpu_count=1), model=models.ClaimedModel(hf_id=MODEL, quantization="mxfp4"),
    )
    run = host.does("runs.run_upload", body=upload)
    check(run.status == models.Verdict.VERIFIED and run.evidence_level == models.EvidenceLevel.CHALLENGED, f"run {run}")
    read = Party(sandbox.url).does("runs.run_fetch", id=run.id)
    cells = [cell for cell in read.decode if cell.status == models.CellStatus.VALID]
    check(len(cells) == len(challenge.contexts) * len(challenge.concurrency_levels), f"cells {read.decode}")
    say(f"client-test: run {run.id} is {run.status}, {len(cells)} cells")

    listing = host.does("market.listing_publish", id=listing.id)
    check(listing.state == models.ListingState.PUBLISHED and listing.badge == models.Badge.MEASURED, f"listing {listing}")
    return listing


def find_and_rent(renter, models, listing):
    credit = renter.does("sandbox.sandbox_credit_create", idempotency_key="credit-1", body=models.SandboxCreditRequest(amount="25.00"))
    check(credit.balance.available == "25.00", f"credit {credit}")
    offers = renter.does("market.listing_list", model="gpt-oss-20b", context=str(CONTEXT), concurrency=USERS)
    offer = offers.data[0]
    check(offer.id == listing.id and offer.match.cell.concurrency >= USERS, f"offers {offers}")
    check(offer.match.cell.context_tokens >= CONTEXT and Decimal(offer.match.price_per_million_output_tokens) > 0, f"match {offer.match}")
    quote = renter.does("market.quote_create", body=models.CreateQuote(listing_id=offer.id))
    rent = models.RentRequest(quote=quote.quote, max_spend="5.00")
    rental = renter.does("rentals.rental_create", idempotency_key="rental-1", body=rent)
    again = renter.does("rentals.rental_create", idempotency_key="rental-1", body=rent)
    check(again == rental and rental.price_per_hour == "0.36", f"the same request twice: {rental} {again}")
    until = time.monotonic() + 60
    while rental.status != models.Status.ACTIVE:
        check(time.monotonic() < until, f"the rental does not begin: {rental}")
        time.sleep(0.2)
        rental = renter.does("rentals.rental_fetch", id=rental.id)
    return rental


def use(renter, models, rental):
    names = [model.id for model in renter.does("endpoint.models").data]
    check(rental.access.model in names, f"models {names}")
    message = models.ChatMessage(role="user", content="Hello")
    answer = renter.does("endpoint.chat_completions", body=models.ChatRequest(model=rental.access.model, messages=[message], max_tokens=3))
    check(answer.usage.completion_tokens == 3 and answer.choices[0].message.content, f"chat {answer}")


def settle(host, renter, models, rental):
    moved = renter.does("sandbox.clock_advance", body=models.ClockRequest(advance_seconds=3600))
    check(moved.ahead_seconds >= 3599, f"clock {moved}")
    rental = renter.does("rentals.rental_stop", id=rental.id)
    check(rental.status == models.Status.ENDED and rental.billed_seconds >= 3600, f"rental {rental}")
    usage = renter.does("rentals.rental_usage", id=rental.id)
    statements = [party.does("money.statement_show") for party in (renter, host)]
    for statement in statements:
        opening, credits, charges, closing = (Decimal(getattr(statement, name)) for name in ("opening", "credits_", "charges", "closing"))
        check(opening + credits - charges == closing, f"a statement does not add up: {statement}")
        lines = sum(Decimal(line.amount) for line in statement.lines)
        check(opening + lines == closing, f"the lines do not add up: {statement}")
    paid, earned = Decimal(statements[0].charges), Decimal(statements[1].credits_)
    check(paid == Decimal(rental.spend) == Decimal(usage.gross) and paid >= Decimal("0.36"), f"paid {paid}, rental {rental}, usage {usage}")
    check(earned + Decimal(usage.platform_fee) == paid and earned == Decimal(usage.host_share), f"earned {earned}, usage {usage}")
    say(f"client-test: the renter paid {paid}, the host earned {earned}, the fee is {usage.platform_fee}")


def main():
    started = time.monotonic()
    generate(sys.argv[1])
    models = importlib.import_module("rigmark_client.models")
    with Sandbox(sys.argv[1], "client-test") as sandbox:
        engine = sandbox.engine(MODEL)
        host_scopes = ["account:read", "machines:read", "machines:write", "runs:write", "listings:write", "billing:read"]
        host = join(sandbox.url, models, "ada", host_scopes)
        listing = list_machine(sandbox, host, models, engine)
        renter = join(sandbox.url, models, "grace", ["rentals:read", "rentals:write", "billing:read", "billing:write", "inference"])
        rental = find_and_rent(renter, models, listing)
        use(renter, models, rental)
        settle(host, renter, models, rental)
    say(f"client-test: the main job is done, in {time.monotonic() - started:.0f} s")


try:
    main()
except KeyboardInterrupt:
    sys.exit("\nclient-test: interrupted; the sandbox is stopped")
