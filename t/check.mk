# SPDX-License-Identifier: GPL-2.0-or-later
# How the tests are run (included by the Makefile).

FUZZ_SECONDS ?= 600

check:
	tools/deps.sh install deps-test
	tools/deps.sh install deps-lint
	$(MAKE) lint
	$(MAKE) all units tools bench-program
	$(MAKE) check-unit
	$(MAKE) check-fuzz
	$(MAKE) check-e2e

check-unit: units
	@set -e; for t in $(UNITS); do echo "== $$t"; $$t; done

# A short run of every fuzz target over its corpus: a regression found earlier stays found.
check-fuzz: fuzzers
	@set -e; for f in $(FUZZERS); do echo "== $$f"; tools/fuzz.sh $$f 10; done

fuzz: fuzzers
	@set -e; for f in $(FUZZERS); do echo "== $$f"; tools/fuzz.sh $$f $(FUZZ_SECONDS); done

lint:
	tools/lint.sh
