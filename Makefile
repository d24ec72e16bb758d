# Rigmark's commands. `make` alone lists them.

.DEFAULT_GOAL := help
.PHONY: help setup run test bench lint fmt schema fuzz fuzz-api client-test clean reset

CARGO ?= cargo
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
DATA_DIR := $(or $(RIGMARK_DATA_DIR),var)
# rustup's place, which a bare shell or root may not have in PATH.
export PATH := $(PATH):$(HOME)/.cargo/bin

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

setup: ## install what is missing for running and testing
	@scripts/setup.sh test
	@echo "setup: all there"

run: ## build and start the sandbox with its demo data; STRIPE=local: test mode against the Stripe double; Ctrl-C stops everything
	@case "$(STRIPE)" in ""|local) ;; *) echo "run: STRIPE=local, or nothing"; exit 2;; esac
	@test -x $(TARGET_DIR)/release/rigmark || echo "The first build takes some minutes (about 6 on 2 cores); the next start takes seconds."
	@scripts/setup.sh run
	@$(CARGO) build --release --locked $(if $(STRIPE),--bin rigmark --example stripe_double)
	@$(if $(STRIPE),exec scripts/run-with-stripe.sh $(TARGET_DIR) $(DATA_DIR),exec $(TARGET_DIR)/release/rigmark serve --demo)

test: ## everything the tests need, formatting, all tests
	@scripts/setup.sh test
	@if $(CARGO) fmt --version >/dev/null 2>&1; then $(CARGO) fmt --check; else echo "test: this toolchain has no rustfmt; formatting is not checked"; fi
	$(CARGO) test --locked

bench: ## how fast it is, as ratios to peers; ONLY=document,money,search,run,rent,cached,size,memory,measure for a part
	@scripts/setup.sh run
	@test "$(ONLY)" = measure || ONLY="$(ONLY)" $(CARGO) bench --locked --bench serve
	@test -n "$(ONLY)" || $(CARGO) bench --locked --bench calculator
	@case ",$(ONLY)," in ,,|*,measure,*) $(CARGO) bench --locked --bench measure;; esac

lint: ## clippy, warnings are errors
	@if $(CARGO) clippy --version >/dev/null 2>&1; then $(CARGO) clippy --locked --all-targets -- -D warnings; \
	else echo "lint: this toolchain has no clippy (rustup component add clippy); nothing is checked"; fi

fmt: ## format the code
	$(CARGO) fmt

schema: ## write src/db/schema.rs anew after a change of migrations/
	@scripts/schema.sh $(TARGET_DIR) $(CARGO)

fuzz: ## documents, redaction, cursors and short texts against random input; SECONDS_EACH=60, TARGET=assess,cursor,json,redaction,texts for one
	@SECONDS_EACH="$(SECONDS_EACH)" TARGET="$(TARGET)" scripts/fuzz.sh $(TARGET_DIR) $(CARGO)

fuzz-api: ## 10,000 generated requests over all operations of the API (SEED= varies them); needs PyPI the first time
	@scripts/api/fuzz.sh $(TARGET_DIR) $(CARGO)

client-test: ## generate a Python client from the OpenAPI document and do the main job with it; needs PyPI the first time
	@scripts/api/client.sh $(TARGET_DIR) $(CARGO)

clean: ## remove what was built
	$(CARGO) clean

reset: ## remove the sandbox's data: database, secrets, mail
	@scripts/reset.sh $(DATA_DIR)
