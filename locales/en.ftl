# Every text of the pages, in English. A message may hold the tags b, code, sup, a and span (it is then shown with `rich`); arguments never do.
# Words are those of design.md; a figure is written by `Messages`, not here.

## The frame

site-name = Rigmark
slogan = Every computer, one endpoint.
skip = Skip to content
language = Language:
menu = Menu
menu-main = Main
close = Close
menu-marketplace = Marketplace
menu-runs = Matrix runs
menu-benchmarks = Benchmarks
menu-openapi = OpenAPI document
menu-review = Review
menu-reconciliation = Reconciliation
signed-in-as = Signed in as
sign-in = Sign in
sign-in-lede = With the handle or e-mail address of your account.
sign-in-name = Handle or e-mail address
sign-in-password = Password
sign-in-register = No account yet: <code>POST /api/v1/auth/register</code>, see the <a href="/openapi.json">OpenAPI document</a>.
sign-out = Sign out
sign-out-lede = This ends the session of this browser. Keys and other sessions stay.
sandbox = Sandbox
sandbox-line = Play money, simulated engines and a clock that can be moved.
foot-units = Memory is GiB (2<sup>30</sup> bytes), bandwidth GB/s (10<sup>9</sup>). Latencies are medians. Prices are US dollars, billed to the second.
foot-measured = A figure is labelled Measured only when its run passed the public checks; <code>rigmark verify</code> repeats them.

## Errors

error-request-id = Request id <code>{ $id }</code>. Name it when you ask about this page.
error-not-found = There is nothing here
error-not-found-detail = The address is wrong, or what stood here is gone.
error-method = This address takes no such request
error-method-detail = It is read, not written to.
error-cursor = The list has changed its pages
error-cursor-detail = The cursor in the address is not one of this list. Begin at its first page.
error-input = The address holds a value that cannot be used
error-input-detail = Change it, or begin again from one of the pages below.
error-forbidden = This is not for your account
error-forbidden-detail = It is for operators, or for another account or role.
error-forged = The form could not be trusted
error-forged-detail = It was not sent from a page of ours, or that page is out of date. Go back, load the page again and send it once more.
error-rate = Too many requests
error-rate-detail = Wait a moment, then load the page again.
error-unavailable = The service cannot answer right now
error-unavailable-detail = Load the page again in a moment.
error-request = This request cannot be answered
error-request-detail = Begin again from one of the pages below.
error-internal = Something went wrong on our side
error-internal-detail = It has been noted under the request id. Load the page again in a moment.

## Forms and lists

form-faults = { $count ->
    [one] One value cannot be used
   *[other] { $count } values cannot be used
}
form-kept = Everything you entered is kept.
form-did-you-mean = Did you mean
filters = Filters
filters-apply = Apply filters
any = Any
search = Search
applied = Applied conditions
applied-remove = , remove
applied-clear = Clear all
pages = Pages
page-first = First page
page-next = Next page
fault-unknown-field = The search has no field { $name }.
fault-whole-number = Enter a whole number, at least 1.
fault-positive-number = Enter a number above 0.
fault-users = Enter a whole number from 1 to 4,096.
fault-amount = Enter an amount in dollars, such as 0.50.
fault-region = Enter a country, optionally with a part of it: us or us-ca.
fault-context = Enter tokens, such as 16384 or 16K.
fault-missing = Fill this in.
fault-choose = Choose one.
fault-credentials = The handle, the address or the password is wrong.
fault-tries = Too many failed tries. Wait a few minutes, then try again.
fault-hours = Enter whole hours, from 0 to 87,600.
fault-reason-length = A reason has 3 to 1,000 characters.
fault-answer-length = An answer has 1 to 2,000 characters.
fault-account = There is no account with this handle.
fault-ambiguous = This name means several. Choose one of them.
fault-hardware = This is no hardware model that we know.
fault-needs-workload = This needs a workload: model, context and users at once.
fault-part-of-workload = A workload is model, context and users at once, together.

## Words of figures and tables

unit-tokens = tokens
unit-requests = requests
unit-tokens-per-second = tok/s
unit-ms = ms
unit-gib = GiB
unit-price = $/h
unit-hours = hours
total-unit = total tok/s
price-unit = $ per hour
output-unit = $ per million tokens
seconds = { $seconds } s
tokens = { $tokens } tokens
memory-gb = { $amount } GB
memory = { $gib } GiB
memory-each = { $gib } GiB each
ttft = TTFT
context = Context
quantization = Quantization
region = Region
evidence = Evidence
machine = Machine
machine-unit = VRAM, region, host
action = Action
run = Run
rent = Rent
price = Price
output = Output
total = Total
total-best = Best total
one-request = One request
prefill = Prefill
prefill-best = Best prefill
decode = Sustained decode
decode-in-short = Decode
by = by <a href="{ $path }">{ $handle }</a>
copy = Copy
copied = Copied
hours = { $hours ->
    [one] 1 hour
   *[other] { $hours } hours
}

## Verdicts and evidence

status-measured = Measured
status-stale = Stale
status-needs-review = Needs review
status-rejected = Rejected
verdict = Verdict: { $verdict }
verdict-verified = verified
verdict-needs-review = needs review
verdict-rejected = rejected
verdict-no-findings = No errors, no suspicious findings.
verdict-rules = { $count } checks of rules { $version }; anyone can repeat them with <code>rigmark verify</code> on the document below. Valid until { $until }.
reviewed = Reviewed
evidence-show = Show evidence
evidence-hide = Hide evidence
evidence-level = Evidence level
level-none = No evidence
level-not-reached = (not reached)
level-reported = Reported
level-reported-means = a person typed the figures
level-document = Document
level-document-means = a tool document that passed every check
level-challenged = Challenged
level-challenged-means = cells drawn at random for this machine
level-remeasured = Remeasured
level-remeasured-means = our own probe of the endpoint agreed
stale-until = Until { $until } it may still back a listing.
disputed = In doubt
disputed-detail = the server’s own measurement did not agree with it. It backs no listing until one does.
remeasured-agreed = it agreed
remeasured-disagreed = it did not agree
remeasured-answers = { $right } of { $asked } streams answered rightly what they were asked about their prompt.
remeasured-cells = Cells measured by the server
remeasured-cell = Cell
remeasured-cold = TTFT, cold
remeasured-expected = run: { $figure }
remeasured-within = Within
remeasured-outside = Outside
remeasured-open = Undecided
findings = Findings
findings-check = Check
findings-found = Found
findings-result = Result
severity-note = Note
severity-suspicious = Suspicious
severity-error = Error
download-document = Document (JSON)
download-cells = Cells (CSV)
download-csv = Download CSV
hash = SHA-256 <code>{ $hash }…</code>

## One run

run-kind = Speed test matrix
tool = { $name } v{ $version }
reading-single = One request, no context
reading-best = Best total without a queue
reading-best-at = { $requests ->
    [one] 1 request, context { $context }
   *[other] { $requests } requests, context { $context }
}
reading-prefill = Prefill at { $context }
reading-longest = One request at { $context }
reading-kv = KV cache holds
reading-kv-below = and fewer than { $tokens }
reading-ttft = TTFT { $ms } ms
reading-prefill-takes = prefill { $ms } ms
spec-hardware = Hardware
spec-engine = Engine
spec-run = Run
spec-type = Type
spec-gpu = GPU
spec-vram = VRAM
spec-cpu = CPU
spec-ram = RAM
spec-os = OS
spec-version = Version
spec-backend = Backend
spec-build = Build
spec-served-model = Served model
spec-revision = Revision
spec-decode-test = Decode test
spec-prefill-mode = Prefill mode
spec-duration = Time per measurement
spec-max-output = Max output
launch-command = Launch command
as-uploaded = As the uploader gave it.
prefill-lede = Prompt tok/s by context length.
prompt-speed = Prompt speed
bar = Bar
decode-lede = Large figure: total tok/s. Small figure: TTFT. Rows are context length, columns are simultaneous requests.
matrix-caption = Sustained decode, total tokens per second and TTFT in milliseconds, by context length and simultaneous requests
matrix-requests = Requests at once
matrix-queued = <span class="vh">Requests </span>queued
matrix-key-total = Total tok/s, from
matrix-key-steps = Shade steps
matrix-kv-limit = KV cache limit, between { $low } and { $high } tokens
note-queued = <b>Requests queued:</b> the server could not run all requests at once, so some waited in a queue.
note-over-capacity = <b>Over capacity:</b> not run because this many requests at this context would exceed the server's KV cache.
note-ttft = TTFT is measured after the benchmark warms the server's prompt cache, so it mostly excludes prefill.
cell-status = Status
cell-valid = Valid
cell-queued = Requests queued
cell-over-capacity = Over capacity
cell-error = Error
cell-loop = Loop
cell-skipped = Skipped
cell-not-run = Not run
curves = Curves
curves-lede = One line a context, labelled where it ends or starts. Hollow points and dashed lines: requests queued.
chart-total = Total
chart-each = Per request
chart-prefill = Prefill
chart-decode-axes = tok/s over requests at once
chart-prefill-axes = tok/s over prompt length
chart-decode-x = requests at once
chart-prefill-x = prompt length, tokens
chart-total-alternative = Total tokens per second over simultaneous requests, one line per context length. Values are in the table All measurements.
chart-each-alternative = Output tokens per second of one request over simultaneous requests, one line per context length. Values are in the table All measurements.
chart-prefill-alternative = Prefill tokens per second over prompt length. Values are in the table Prefill.
measurements = All measurements
measurements-lede = Latencies are medians. Total tok/s is output across all simultaneous requests.
phase = Phase
requests = Requests
at-once = at once
per-request = Per request
itl = Time between
itl-unit = tokens, ms
average-active = Average active
completed = Completed
measured-for = Measured
measured-for-unit = for, s
notes = Notes
notes-as-uploaded = As the uploader gave them.
for-rent = For rent with this run
for-rent-lede = The machine this run is bound to, then others with the same GPU, model and quantization.
this-runs-machine = this run’s machine
other-runs = Other runs
other-runs-lede = Same model and quantization, other hardware or engine; then other models on the same hardware. Where a run lacks a cell, its nearest one stands with its name.
other-runs-on = Other models on { $hardware }
this-run = this run

## What happened to a run

history = History
history-lede = What happened to this run, oldest first. No line is ever changed.
history-json = As JSON
history-answer = Its uploader can answer once: <a href="{ $path }">answer</a>.
event-at = When
event-what = What
event-by = By
event-uploaded = Uploaded
event-verdict = Verdict { $verdict }, by rules { $version }
event-verdict-recomputed = Verdict { $verdict } by rules { $version }, was { $was }
event-accepted = Accepted by a person
event-rejected = Rejected by a person
event-reopened = Decision taken back: it waits for review again
event-answered = Answered by its uploader
event-remeasured = Re-measured: the server’s own measurement agrees
event-disputed = Re-measured: the server’s own measurement disagrees, the badge is withdrawn
event-dispute-ended = The dispute is over: a later measurement agrees
event-sent-to-review = Re-measured twice and disagreed: a person has to look
event-base-line = First heard of since: a change from now on makes the run stale
event-stale-until = Stale; backs a listing until { $until }
event-other-run = The run that was measured
answer = Answer
answer-lede = Say what explains the findings. Anyone can read it in the run’s history, and it can be said once.
answer-yours = Your answer
answer-text = Public, at most 2,000 characters
answer-send = Send the answer
answer-not-now = A run is answered once, while it waits for review or after a person rejected it.

## Review

review-lede = Runs that wait for a person, longest first. A person decides, with a public reason.
review-waiting = Runs that wait
review-none = No run waits
review-none-detail = The queue is empty.
review-waits = Waits since { $since }: { $cause }
review-public-page = Public page
review-original = Document as it came in (JSON)
review-findings-lede = What the checks found, with the cells, what was expected and what was observed.
review-no-findings = The checks found nothing.
review-answer = Uploader’s answer
review-no-answer = The uploader has not answered.
review-decide = Decide
review-decide-lede = The reason is public. What was decided stands until a person takes it back.
review-decision = Decision
review-reason = Reason, public, 3 to 1,000 characters
review-accept = Accept
review-reject = Reject
review-reopen = Take the decision back
review-own = It is a run of your own account. Another operator decides.
review-nothing = There is nothing to decide: its checks rejected it.
finding-expected = Expected
finding-observed = Observed
cell-of-prefill = prefill { $context }
cell-of-burst = burst { $cell }
cells-and-more = { $cells } and { $more } more
field-finding = Finding
field-cause = Why it waits
field-answered = Answered
field-waiting = Waiting
waited-hours = { $hours } h
waited-days = { $days } days
cause-findings = Findings
cause-dispute = Re-measuring disagreed
cause-reopened = Decision taken back
answered-yes = Answered
answered-no = Not answered
condition-waiting = waiting { $hours } h or longer
unlisted = Unlisted
similar = Similar runs
similar-lede = Runs with the very same cells, the same identifier or the same device, then verified runs of the same model, quantization and hardware.
similar-none = No run shares a mark with it, and no verified run has its setup.
similar-relation = Relation
similar-setup = same setup
similar-account = same account
similar-machine = same machine
similar-identifier = same run identifier
similar-device = same device
similar-shared = Same cells
similar-shared-unit = tokens and seconds
similar-shared-of = { $shared } of { $own }
similar-close = { $close } nearly
similar-ratio = Ratio
similar-ratio-unit = this ÷ other, median
similar-side = Side by side
side-cell-unit = × requests at once
similar-note = Large figure: total tok/s. Small figure: this run ÷ the other one. Decode cells that both have measured.

## Benchmarks

benchmarks-lede = What a matrix run measures, and every check by which its document is judged.
methods = What is measured
methods-lede = The engine is asked through its own API, one context and one number of requests at a time.
method-decode = All requests of a cell are begun with prompts of the cell’s context. When each has its first token and the engine is steady, a window of fixed length opens; the total is the tokens that arrive in it, divided by its seconds.
method-prefill = A prompt that the engine has not seen is sent alone. The rate is the prompt’s tokens divided by the time to the first token.
method-ttft = Time to first token: from sending a request to its first token. In decode cells the prompt is in the engine’s cache; a prefill row shows the cold one.
method-queued = The engine could not run all requests of the cell at once. Its total is what the engine gave; it is never a headline.
method-over-capacity = The requests of the cell need more KV cache than the engine has. It was not run.
methods-upload = The benchmark tool sends its result here by itself with an <a href="{ $path }">upload token</a>.
levels-lede = How strong the evidence of a run is, weakest first. A listing needs a fresh run of its own machine.
verdicts = Verdict
verdicts-lede = A document is checked by { $count } checks of rules <b>{ $version }</b>. What a check finds counts at most as much as stands beside it.
verdicts-repeat = When the rules change, all runs are judged again. Everything a check reads is in the public document, so that <code>rigmark verify</code> gives the same verdict; only copies of other runs and answers to challenges are known to the service alone.
weight-reject = Rejects
weight-reject-means = The run is rejected. It has no badge and backs no listing.
weight-relation = Rejects known versions
weight-relation-means = Documents of versions that are known to keep the relation (0.4.16 and later, by their word or by their shape) are rejected; older and newer ones are looked at by a person, and a newer one is rejected too where most of its cells keep the relation and a few do not.
weight-review = Sends to review
weight-review-means = A person looks at the run and accepts or rejects it, with a public reason.
weight-note = Note
weight-note-means = It is said and never counts.
checks-exact = Exact relations
checks-exact-lede = What the tool’s own arithmetic makes exact. A changed number breaks several.
checks-tolerance = Within a tolerance
checks-tolerance-lede = What holds for honest runs within a margin.
checks-physical = Physical bounds
checks-physical-lede = What the claimed hardware can do with the claimed model, from the catalog’s bandwidth, compute and memory.
checks-structure = The matrix
checks-structure-lede = Which cells there are, and which there should be.
checks-document = The document
checks-document-lede = Its version, its time and what kind of run it was.
checks-hardware = The hardware
checks-hardware-lede = What the document shows of the machine, against what is claimed.
checks-challenge = Answers to challenges
checks-challenge-lede = Cells drawn at random for one machine, to be measured within a day.
checks-duplicate = Copies
checks-duplicate-lede = Other runs, of all accounts. Only the newcomer is looked at.

## The list of runs

runs-lede = Every uploaded benchmark document with its verdict.
runs-all = All public runs
runs-that-fit = Runs that fit
runs-none = No run yet
runs-none-detail = A run is uploaded with <code>POST /api/v1/matrix-runs</code>, see the <a href="/openapi.json">OpenAPI document</a>, or by the benchmark tool with an <a href="{ $path }">upload token</a>.
runs-none-fit = No run fits
runs-none-fit-detail = Take away one of the conditions above.
runs-end = No more runs
runs-end-detail = The list has ended.
runs-note = One request: without context. Best total: of all cells without a queue. Best prefill: of all prompt lengths.
uploaded = Uploaded
sort-newest = Newest
field-model = Model
field-publisher = Publisher
field-gpu = GPU
field-gpus = GPUs
field-uploader = Uploader
field-verdict = Verdict
field-sort = Sort by

## The market

market-lede = Say what the machine has to do. Every result shows the measured cell that says it can.
workload = Workload
field-users = Users at once
field-min-speed = At least, per user
field-max-ttft = First token within
field-vram = VRAM of one
field-max-price = Price at most
field-host = Host
field-unavailable = Also machines that cannot be rented now
sort-output = $ per million tokens
sort-speed = Speed per user
condition-workload = { $users ->
    [one] { $model } at { $context } context, 1 user
   *[other] { $model } at { $context } context, { $users } users
}
condition-min-speed = ≥ { $speed } tok/s per user
condition-max-ttft = TTFT ≤ { $ms } ms
condition-gpus = { $count ->
    [one] 1 GPU
   *[other] { $count } GPUs
}
condition-vram = { $gib } GiB a GPU
condition-region = region { $region }
condition-max-price = ≤ $ { $price } per hour
condition-by = by { $handle }
market-count-fit = { $count ->
    [one] 1 machine can do this
   *[other] { $count } machines can do this
}
market-count = { $count ->
    [one] 1 machine on the market
   *[other] { $count } machines on the market
}
market-many-fit = Machines that can do this
market-many = Machines on the market
market-none-fit = No machine can do this yet
market-empty = Nothing is on the market yet
market-empty-detail = A machine is listed once a run that was measured on it has passed every check. Hosts begin with <code>POST /api/v1/machines</code>, see the <a href="/openapi.json">OpenAPI document</a>.
market-end = No more machines
market-end-detail = The list has ended.
market-see-all = See everything on the market
machines = { $count ->
    [one] 1 machine
   *[other] { $count } machines
}
machines-more-than = more than { $count } machines
empty-asked = You asked for { $asked }. No listed machine meets all of it.
empty-any = any machine that is free now
empty-of-model = Listed with a run of this model: { $machines }.
empty-most-first = What excludes most stands first:
empty-nothing-near = None meets all but one condition either.
empty-without = Without: { $condition }
empty-with-unavailable = With machines that cannot be rented now
empty-fewer-users = { $users ->
    [one] 1 user instead of { $asked }
   *[other] { $users } users instead of { $asked }
}
empty-less-context = { $context } context instead of { $asked }
empty-later-token = First token within { $ms } ms
empty-slower = At least { $speed } tok/s per user
measured-with = Measured with
measured-with-unit = quantization, engine
measured = Measured
cold-unit = new prompt, ms
ttft-label = TTFT, ms
ttft-cached = { $ms } cached
per-user = { $speed } per user
market-note-output = <b>Output</b> is price per hour ÷ tokens per hour at the measured cell, with every user asked for busy. The cell is the lightest measured one that is at least as heavy as asked.
market-note-ttft = <b>TTFT</b> is of a prompt never seen before; the second figure is of one in the cache.
market-note = Prices are for the whole machine. The address of this page holds the whole search, so it can be shared or kept.
market-note-unavailable = Machines that cannot be rented now (taken, reserved or silent) are left out: <a href="{ $path }">show them too</a>.
obstacle-taken = Taken now
obstacle-silent = Not answering
obstacle-other = Not available

## One listing

listing = Listing
listing-title = { $gpu } by { $handle }
listing-description = { $gpu } for $ { $price } an hour, with the speed matrix that was measured on it.
price-per-hour = $ { $price } per hour
listing-measured-with = measured with { $model }
backing-run = Backing run
backing-run-days = Uploaded { $uploaded }, valid until { $until }. The checks and the document are on the run's page.
listing-not-now = Cannot be rented now
obstacle-draft = Not on the market yet.
obstacle-paused = Its host has taken it off the market.
obstacle-off-market = Taken off the market.
obstacle-taken-detail = Taken now: another rental has the machine or has reserved it.
obstacle-silent-detail = Its machine has not answered for a quarter of an hour.
obstacle-evidence = Its evidence no longer holds.
off-account-closed = Its host has closed the account.
off-availability-ended = Its host offered it until a day that has passed.
off-endpoint = Its machine cannot be reached as it must be.
off-endpoint-changed = Its engine's address changed since the run.
off-hardware = Its stated hardware is no longer that of the run.
off-machine-deleted = Its machine was deleted.
off-run-expired = Its run is too old.
off-run-rejected = Its run does not stand.
off-evidence = Its evidence no longer holds.
listing-hardware-reported = Reported by the host. The figures above and below are measured.
spec-terms = Terms
spec-reliability = Reliability
terms-price = $ { $price } per hour, for the whole machine
terms-at-least = Billed at least
terms-at-most = At most
terms-until = Until
terms-no-minimum = None: billed to the second
probe-last = Last probe
probe-answered = Answered
probe-silent = Did not answer
probe-last-seen = Last seen
never = never
start-failures = Rentals not started
description = Description
description-lede = As the host gave it.
listing-measured = Measured
listing-measured-lede = Sustained decode of the run behind the badge, on this machine. Large figure: total tok/s. Small figure: TTFT.
listing-whole-run = The whole run, its checks and its document
listing-rent = Rent it
listing-rent-lede = With an access token or an API key in <code>RIGMARK_KEY</code>. Billing begins when the machine has answered its first token, and ends by the second.
listing-rent-take = { $hours ->
    [one] Take the machine for an hour. The answer has the rental's id and the address of its endpoint.
   *[other] Take the machine for { $hours } hours. The answer has the rental's id and the address of its endpoint.
}
listing-rent-use = Use it: the endpoint speaks OpenAI's API.
listing-rent-stop = Stop it, with the id of the first answer.
listing-rent-quote = To hold the price for some seconds first, ask for a quote: <code>POST /api/v1/quotes</code>, and send it as <code>quote</code> in place of <code>listing_id</code>.

## Upload tokens

upload-tokens = Upload tokens
upload-tokens-lede = With an upload token the benchmark tool sends its result here by itself.
upload-tokens-make = Make one
upload-tokens-make-lede = With an access token, or an API key that has <code>runs:write</code>, in <code>RIGMARK_KEY</code>. The answer shows the token this once.
upload-tokens-bound = With <code>"machine_id": "mch_…"</code> in the body every run that comes with the token is bound to that machine. For an organization send the header <code>Rigmark-Account: @handle</code> too.
upload-tokens-use = Give it to the tool
upload-tokens-use-lede = The tool asks whose token it is before it measures, and prints the address of the run's page when it has sent the result.
upload-tokens-end = <code>GET /api/v1/upload-tokens</code> lists the tokens of an account, <code>DELETE /api/v1/upload-tokens/{"{"}id{"}"}</code> revokes one. See the <a href="/openapi.json">OpenAPI document</a>.

## A receipt

receipt-of = Receipt { $number }
receipt-lede = Paid into the balance of a Rigmark account. Days and times are UTC.
receipt-test = Test mode: no money has moved.
receipt = Receipt
receipt-number = Number
receipt-day = Date
receipt-at = Paid at
receipt-top-up = Top-up
receipt-account = Account
receipt-name = Name
receipt-handle = Handle
receipt-id = Id
receipt-payment = Payment
receipt-amount = Amount
receipt-currency = usd
receipt-card = Paid with
receipt-stripe = Payment at Stripe
receipt-refunds = Paid back

## Reconciliation

reconciliation-lede = The books compared with their postings, rentals with what they hold, and the books with Stripe. Every ten minutes, by itself.
reconciliation-never = There has been none yet. The workers make one every ten minutes.
reconciliation-latest = Latest
reconciliation-started = Started
reconciliation-finished = Finished
reconciliation-ledger-accounts = Ledger accounts
reconciliation-transfers = Transfers
reconciliation-holds = Holds
reconciliation-rentals = Rentals not over
reconciliation-stripe = Money at Stripe, usd
reconciliation-books = By the books
reconciliation-at-stripe = By Stripe, before its fees
reconciliation-waiting = Differences younger than a day
reconciliation-fees = Stripe’s fees
reconciliation-own = The platform’s own movements
reconciliation-transactions = Balance transactions read
reconciliation-unanswered = Stripe could not be asked this time: what was found about it before stands.
reconciliation-none = Nothing differs
reconciliation-none-detail = All that was compared agrees.
reconciliation-findings = { $count ->
    [one] 1 finding
   *[other] { $count } findings
}
reconciliation-unlisted = Of each kind the first hundred are listed; { $count ->
    [one] 1 more is counted.
   *[other] { $count } more are counted.
}
reconciliation-subject = About
reconciliation-what = What
reconciliation-expected = Expected
reconciliation-found = Found
reconciliation-since = First seen
finding-books = The ledger does not agree with its postings
finding-rental-without-hold = A rental without an open hold
finding-rental-without-machine = A rental whose listing is not taken
finding-rental-without-watch = A rental whose machine is not watched for it
finding-rental-without-span = A rental whose open span does not fit its clock
finding-rental-not-metered = A rental that the meter has not looked at
finding-hold-without-rental = Money held for a rental that is over or unknown
finding-machine-without-rental = A machine taken by no rental
finding-watch-without-rental = A machine watched for a rental that is over or unknown
finding-span-without-rental = A span that is still billed although its rental is not active
finding-stripe-only = Money at Stripe that is not in the books
finding-books-only = Money in the books that is not at Stripe
finding-amount-differs = Amounts differ between Stripe and the books
finding-other-currency = Money at Stripe in another currency

## A statement

statement-of = Statement of { $account }
statement-lede = Days and times are UTC, amounts US dollars to the last micro-dollar.
statement-sandbox = Sandbox: play money.
statement = Statement
statement-account = Account
statement-from = From
statement-from-beginning = The beginning
statement-until = Until before
statement-until-now = All that is booked
statement-made = Made at
statement-sums = Sums
statement-opening = Opening
statement-credits = + Credits
statement-charges = − Charges
statement-closes = = Closing
statement-consists = Closing consists of
statement-available = Available
statement-held = Held for rentals
statement-earnings = Earnings, not payable yet
statement-payable = Payable
statement-lines = Lines
statement-caption = Lines by UTC day, kind, rental and payment
statement-day = Day
statement-kind = Kind
statement-for = For
statement-transfers = Transfers
statement-gross = Renters paid
statement-fee = Platform’s fee
statement-credit = Credit
statement-charge = Charge
statement-balance = Balance
statement-currency = usd
statement-closing = Closing

## An invoice

invoice-of = Invoice { $month } of { $account }
invoice-incomplete = The month is not over: this is what is booked so far.
invoice = Invoice
invoice-name = Name
invoice-rentals = Rentals
invoice-rental = Rental
invoice-machine = Machine
invoice-with = With
invoice-rented-from = Rented from { $name } ({ $handle })
invoice-rented-to = Rented to { $name } ({ $handle })
invoice-started = Started
invoice-ended = Ended
invoice-goes-on = Goes on
invoice-seconds = Seconds in the month
invoice-price = Price per hour
invoice-gross = Gross
invoice-fee = Platform fee
invoice-net = Host’s share
invoice-amount = Amount
invoice-lines = Other lines by UTC day
invoice-stripe = Billed by Stripe
invoice-number = Number
invoice-tax = Tax
invoice-tax-reason = Tax reason
