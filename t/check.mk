# SPDX-License-Identifier: GPL-2.0-or-later
# How the tests are run (included by the Makefile).

FUZZ_SECONDS ?= 600
JOBS         ?= $(shell nproc)

# Each stage is a target. The end of the run prints how long each took.
check:
	tools/stages.sh "$(MAKE)" check-deps check-build+lint check-unit check-clang+check-fuzz check-compat check-e2e+check-ct check-kernel+check-threads+check-attack+check-calls+check-ng911

# The test stages of check, for the last commit, SOAK_RUNS times in each of three conditions. Takes over a day, so a call resumes an interrupted
# one. SOAK_FILE gets one line for each run; see tools/soak.sh.
SOAK_FILE ?= /var/tmp/xcipher-soak/runs
SOAK_TREE ?= /var/tmp/xcipher-soak/tree
.PHONY: check-soak
check-soak:
	@mkdir -p $(dir $(SOAK_FILE))
	@SOAK_RUNS="$(SOAK_RUNS)" SOAK_SECONDS="$(SOAK_SECONDS)" SOAK_STAGES="$(SOAK_STAGES)" SOAK_CONDITIONS="$(SOAK_CONDITIONS)" SOAK_COMMIT="$(SOAK_COMMIT)" \
		tools/soak.sh $(SOAK_FILE) $(SOAK_TREE)

check-deps:
	tools/deps.sh install deps-test
	tools/deps.sh install deps-lint
	tools/webrtc-peers.sh $(BUILD)/webrtc aiortc grafana
	tools/peer-libsrtp.sh $(BUILD)/peers || echo "test_oracle goes without its second libsrtp2"

# Tests need only line numbers of the debug information, so -g1 suffices.
check-build:
	$(MAKE) -j$(JOBS) OPT='-O2 -g1' all units tools bench-program
	tools/docs.sh $(BUILD)

# Every source is clean with clang, too. The fuzzers are built by it, and link.
check-clang:
	$(MAKE) -j$(JOBS) BUILD=$(BUILD)/clang CC=$(CLANG) OPT=-O0 EXTRA_CFLAGS='-U_FORTIFY_SOURCE -fsyntax-only' objects
	$(MAKE) -j$(JOBS) BUILD=$(BUILD)/clang CC=$(CLANG) OPT=-O0 EXTRA_CFLAGS=-U_FORTIFY_SOURCE codecs

check-unit: units bench-program
	@printf '%s\n' $(UNITS) | xargs -P $(JOBS) -n 1 tools/unit.sh
	tools/globals.sh $(LIB)
	/usr/bin/python3 tools/bench_cipher.py $(BUILD) --smoke
	/usr/bin/python3 t/mikey/run.py
	/usr/bin/python3 t/zrtp/run.py
	t/soak/run.sh

# No branch and no look-up depends on a secret: valgrind's memcheck, with secrets marked undefined. In check it uses the processor time that
# check-e2e leaves.
CT_OBJ := $(call obj,$(sort $(wildcard t/ct/*.c)))
.PHONY: check-ct
check-ct: $(BUILD)/ct/ct_check
	nice t/ct/run.sh $<
$(BUILD)/ct/ct_check: $(CT_OBJ) $(UNIT_LIB) $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK  $@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -rdynamic -o $@ $^ $(LDLIBS)

# A short run of every fuzz target over its corpus, which keeps inputs that once failed. The seed is fixed, so the result depends on
# the tree alone; make fuzz searches at random. Half of the targets try 100,000 inputs in less than two seconds.
check-fuzz:
	$(MAKE) -j$(JOBS) fuzzers
	@printf '%s\n' $(FUZZERS) | xargs -P $(JOBS) -I{} tools/fuzz.sh {} 2 1 100000

fuzz:
	tools/deps.sh install deps-test
	$(MAKE) -j$(JOBS) fuzzers
	@set -e; for f in $(FUZZERS); do echo "== $$f"; tools/fuzz.sh $$f $(FUZZ_SECONDS); done
	@if [ "$$(id -u)" = 0 ]; then $(MAKE) attack; else echo "the attack test needs root for its namespaces: sudo make attack"; fi

lint:
	tools/lint.sh

# End to end, in namespaces of their own, the daemon under AddressSanitizer and UndefinedBehaviorSanitizer.
SAN_BUILD := $(BUILD)/san
check-e2e:
	$(MAKE) -j$(JOBS) all tools
	$(MAKE) -j$(JOBS) BUILD=$(SAN_BUILD) SAN=1 all tools
	if dpkg-query -W kamailio >/dev/null 2>&1; then $(MAKE) module && cp $(BUILD)/xcipher*.so $(SAN_BUILD)/; fi
	BUILD=$(abspath $(SAN_BUILD)) /usr/bin/python3 t/e2e/run.py --also=$(abspath $(BUILD)):ten_thousand_calls,test_keys,test_kernels_are_loaded

# The LoST server: messages, storages, HTTP.
check-ng911:
	tools/deps.sh install deps-ng911
	/usr/bin/python3 t/ng911/run.py

bench-lost:
	tools/deps.sh install deps-ng911
	@/usr/bin/python3 t/ng911/bench_lost.py $(BENCH_LOST)

# Black-box tests of ng by category (t/compat/README.md).
check-compat:
	$(MAKE) -j$(JOBS) BUILD=$(SAN_BUILD) SAN=1 all tools
	BUILD=$(abspath $(SAN_BUILD)) /usr/bin/python3 t/compat/run.py

# Both again, and the attacks, with threads that are late now and then (t/late/README.md): finds tests that judge by the clock. Not part of
# check.
# The runtime of AddressSanitizer must be the first library.
LATE_LIBRARY = $(if $(SAN),$(shell $(CC) -print-file-name=libasan.so):)$(abspath $<)
LATE_ENV = LATE_SEED=$(LATE) LATE_LIBRARY=$(LATE_LIBRARY) BUILD=$(abspath $(BUILD)) /usr/bin/python3
LATE_SEED ?= $(shell shuf -i 1-9999 -n 1)
.PHONY: check-late
check-late: $(BUILD)/t/late.so
	tools/deps.sh install deps-test
	$(MAKE) -j$(JOBS) all tools $(if $(SAN),,module)
	$(eval LATE := $(LATE_SEED))
	@echo "LATE_SEED=$(LATE)"
	@some=; for t in compat e2e; do $(LATE_ENV) t/$$t/run.py $(LATE_TESTS); rc=$$?; [ $$rc = 5 ] && continue; [ $$rc = 0 ] || exit 1; some=1; done; \
	[ -n "$$some" ] || { echo "check-late: no test has such a name: $(LATE_TESTS)" >&2; exit 1; }
	$(if $(LATE_TESTS),,$(LATE_ENV) t/attack/run.py --steps=100 --seed=11,18,19)
$(BUILD)/t/late.so: t/late/late.c
	@mkdir -p $(@D)
	$(call say,LINK  $@)
	$(Q)$(CC) $(filter-out -fsanitize=% -fno-sanitize%,$(CFLAGS)) -fPIC -shared -o $@ $<

# Random attacks in network namespaces, checked on the wire (t/attack/README.md). The seeds are fixed; make attack draws new ones.
# These have legs of DTLS with and without ICE, ZRTP, MIKEY and SRTP+.
ATTACK_SEEDS   ?= 11,12,17,18,20
ATTACK_STEPS   ?= 120
ATTACK_SECONDS ?= $(FUZZ_SECONDS)
ATTACK          = BUILD=$(abspath $(SAN_BUILD)) /usr/bin/python3 t/attack/run.py --steps=$(ATTACK_STEPS)
# Sequences mostly wait, so the sequences of all steerings run in parallel.
check-attack:
	$(MAKE) -j$(JOBS) BUILD=$(SAN_BUILD) SAN=1 all tools
	@printf '%s\n' udp:$(ATTACK_SEEDS) nfqueue:12 xdp:21 | xargs -P 3 -I{} sh -c 's={}; $(ATTACK) --steering=$${s%:*} --seed=$${s#*:}'

# The same for ATTACK_SECONDS, with a new seed for each sequence.
attack:
	$(MAKE) -j$(JOBS) BUILD=$(SAN_BUILD) SAN=1 all tools
	$(ATTACK) --random=1 --seconds=$(ATTACK_SECONDS) $(ATTACK_OPTIONS)

# The same with kernel steering, in a virtual machine (t/kernel): some minutes for a sequence, so not part of check.
.PHONY: attack-kernel
attack-kernel:
	tools/deps.sh install deps-kernel || echo "attack-kernel: not all it needs could be installed"
	$(MAKE) -j$(JOBS) kernel-tools
	BUILD=$(abspath $(BUILD)) ATTACK_SEEDS=$(ATTACK_SEEDS) ATTACK_STEPS=$(ATTACK_STEPS) /usr/bin/python3 t/kernel/run.py --seconds 21600 94-attack

# The same attacks by hand on xcipherd and on Debian's rtpengine: prints a markdown table.
attack-peers:
	tools/deps.sh install deps-test
	$(MAKE) -j$(JOBS) all
	@BUILD=$(abspath $(BUILD)) /usr/bin/python3 t/attack/peers.py $(ATTACKS)

# Real WebRTC peers and phones (t/webrtc/README.md), through rtpengine or xcipherd. Peers that cannot be installed are skipped.
WEBRTC_RELAY ?= xcipherd
WEBRTC_ENV    = BUILD=$(abspath $(BUILD)) BUILD_WEBRTC=$(abspath $(BUILD)/webrtc) /usr/bin/python3
check-webrtc:
	tools/deps.sh install deps-webrtc || echo "check-webrtc: not all it needs could be installed"
	tools/webrtc-peers.sh $(BUILD)/webrtc
	$(MAKE) -j$(JOBS) $(if $(filter xcipherd,$(WEBRTC_RELAY)),all) module
	$(WEBRTC_ENV) t/webrtc/run.py --relay=$(WEBRTC_RELAY) $(WEBRTC_CELLS)
	$(if $(WEBRTC_CELLS),,$(WEBRTC_ENV) t/webrtc/websocket.py --relay=$(WEBRTC_RELAY))
	$(if $(WEBRTC_CELLS),,$(WEBRTC_ENV) t/webrtc/websocket.py --relay=$(WEBRTC_RELAY) --tls)
	$(if $(WEBRTC_CELLS),,$(WEBRTC_ENV) t/webrtc/websocket.py --relay=$(WEBRTC_RELAY) --tls --module=ours)
	$(if $(WEBRTC_CELLS),,$(if $(filter xcipherd,$(WEBRTC_RELAY)),$(WEBRTC_ENV) t/webrtc/takeover.py))
	$(if $(WEBRTC_CELLS),,$(if $(filter xcipherd,$(WEBRTC_RELAY)),$(WEBRTC_ENV) t/webrtc/linphone.py))
	$(if $(WEBRTC_CELLS),,$(if $(filter xcipherd,$(WEBRTC_RELAY)),$(WEBRTC_ENV) t/webrtc/linphone_browser.py && $(WEBRTC_ENV) t/webrtc/linphone_browser.py --module=stock))
	$(if $(WEBRTC_CELLS),,$(if $(filter xcipherd,$(WEBRTC_RELAY)),$(WEBRTC_ENV) demo/webrtc_call.py && $(WEBRTC_ENV) demo/webrtc_page.py --check))

# Those that need only aiortc, under sanitizers: part of check.
check-calls:
	$(MAKE) -j$(JOBS) BUILD=$(SAN_BUILD) SAN=1 all tools
	BUILD=$(abspath $(SAN_BUILD)) BUILD_WEBRTC=$(abspath $(BUILD)/webrtc) /usr/bin/python3 t/webrtc/run.py --relay=xcipherd --cheap

# From the answer to the first media packet, relays by turns.
WEBRTC_RELAYS ?= rtpengine,xcipherd
bench-webrtc:
	tools/deps.sh install deps-webrtc || echo "bench-webrtc: not all it needs could be installed"
	tools/webrtc-peers.sh $(BUILD)/webrtc aiortc
	$(if $(findstring xcipherd,$(WEBRTC_RELAYS)),$(MAKE) -j$(JOBS) all)
	$(WEBRTC_ENV) t/webrtc/bench.py --relays=$(WEBRTC_RELAYS)

# The kernel module, in virtual machines with Debian's kernel. Where that is not available it prints "skipped" and does not fail. In check
# the machines use the processor time that stages beside them leave.
check-kernel:
	tools/deps.sh install deps-kernel || echo "check-kernel: not all it needs could be installed"
	$(MAKE) -j$(JOBS) kernel-tools
	BUILD=$(abspath $(BUILD)) nice /usr/bin/python3 t/kernel/run.py $(KERNEL_TESTS)

# The same on a kernel with KASAN, lockdep, kmemleak and failing allocations, built from Debian's source: an hour and a half, so not
# part of check. KERNEL_DEBUG names a build folder that is there.
check-kernel-debug:
	tools/deps.sh install deps-kernel-debug || echo "check-kernel-debug: not all it needs could be installed"
	$(MAKE) -j$(JOBS) kernel-tools
	BUILD=$(abspath $(BUILD)) /usr/bin/python3 t/kernel/run.py --debug $(KERNEL_TESTS)

# Ten million packets through packet rings, in Debian's kernel: three hours at most, so not part of check. RING_PACKETS and RING_SEED set how
# many, and the random events. check-kernel-debug sends fewer.
check-kernel-ring:
	tools/deps.sh install deps-kernel || echo "check-kernel-ring: not all it needs could be installed"
	$(MAKE) -j$(JOBS) kernel-tools
	BUILD=$(abspath $(BUILD)) /usr/bin/python3 t/kernel/run.py --seconds 10800 endure

# Programs of the guest.
KERNEL_TOOLS := $(if $(wildcard t/kernel/nfx.c),$(BUILD)/t/nfx) $(BUILD)/t/pktx
kernel-tools: all tools $(KERNEL_TOOLS)
KERNEL_LINK   = $(Q)mkdir -p $(@D) && $(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lmnl
$(BUILD)/t/nfx: $(call obj,$(sort $(wildcard t/kernel/nfx*.c)))
	$(call say,LINK  $@)
	$(KERNEL_LINK)
$(BUILD)/t/pktx: $(call obj,$(sort $(wildcard t/kernel/pktx*.c)))
	$(call say,LINK  $@)
	$(KERNEL_LINK)

# The concurrent parts under ThreadSanitizer: the worker loop by itself, and the daemon with media flowing.
TSAN_BUILD := $(BUILD)/tsan
check-threads:
	$(MAKE) -j$(JOBS) BUILD=$(TSAN_BUILD) SAN=thread $(addprefix $(TSAN_BUILD)/,xcipherd t/rtpload t/test_worker t/test_side t/test_side_thread t/test_bridge_audio)
	$(TSAN_BUILD)/t/test_worker
	$(TSAN_BUILD)/t/test_side
	$(TSAN_BUILD)/t/test_side_thread
	$(TSAN_BUILD)/t/test_bridge_audio
	BUILD=$(abspath $(TSAN_BUILD)) /usr/bin/python3 t/e2e/run.py -j1 test_forty_calls

demo:
	tools/deps.sh install deps-demo
	$(MAKE) -j$(JOBS) all
	@BUILD=$(abspath $(BUILD)) /usr/bin/python3 demo/demo.py

# A browser without a window calls a phone.
demo-webrtc:
	tools/deps.sh install deps-webrtc
	tools/webrtc-peers.sh $(BUILD)/webrtc jssip
	$(MAKE) -j$(JOBS) all
	@$(WEBRTC_ENV) demo/webrtc_page.py

# Emergency calls: three proxies, a LoST server, the border, a caller and two call takers.
demo-ng911:
	tools/deps.sh install deps-ng911
	$(MAKE) -j$(JOBS) all
	$(MAKE) module
	@BUILD=$(abspath $(BUILD)) /usr/bin/python3 demo/ng911.py $(DEMO_NG911)

# Set-up delay of emergency calls.
bench-ng911:
	tools/deps.sh install deps-ng911
	$(MAKE) -j$(JOBS) all
	$(MAKE) module
	@BUILD=$(abspath $(BUILD)) /usr/bin/python3 t/e2e/bench_ng911.py $(BENCH_NG911)

# Emergency calls per second through one core of the ESRP.
bench-ng911-load:
	tools/deps.sh install deps-ng911
	$(MAKE) -j$(JOBS) all
	$(MAKE) module
	@BUILD=$(abspath $(BUILD)) /usr/bin/python3 t/e2e/bench_ng911_load.py $(BENCH_NG911_LOAD)

bench:
	tools/deps.sh install deps-test
	$(MAKE) -j$(JOBS) all tools bench-program
	@BUILD=$(abspath $(BUILD)) /usr/bin/python3 t/e2e/bench_path.py $(if $(FULL),--full)
	$(if $(FULL),@FULL=1 BUILD=$(abspath $(BUILD)) /usr/bin/python3 t/e2e/run.py -j1 test_killed_and_started test_another_node_takes)
	$(if $(FULL),$(MAKE) bench-kernel)

# Instructions per packet beside rtpengine in its kernel mode, in a virtual machine. Where that is not available it prints "skipped".
bench-kernel:
	tools/deps.sh install deps-bench-kernel || echo "bench-kernel: not all it needs could be installed"
	$(MAKE) -j$(JOBS) kernel-tools
	BUILD=$(abspath $(BUILD)) /usr/bin/python3 t/kernel/run.py cost $(KERNEL_COST)

# libsrtp2 built on OpenSSL: a peer for benchmarks, an oracle for tests.
peer-libsrtp:
	tools/peer-libsrtp.sh $(BUILD)/peers

bench-cipher:
	tools/peer-libsrtp.sh $(BUILD)/peers
	$(MAKE) -j$(JOBS) bench-program
	/usr/bin/python3 tools/bench_cipher.py $(BUILD) $(if $(FULL),--full)

# The kernels on a second implementation, Intel's runtime for CPUs (downloads some 150 MB): minutes, since it compiles without
# a cache. Not part of check.
check-intel: all units bench-program
	@env=$$(tools/intel-opencl.sh $(BUILD)/peers/intel-opencl) || { echo "skipped: Intel's OpenCL runtime is not to be had"; exit 0; }; \
	set -e; for t in $(BUILD)/t/test_opencl $(BUILD)/t/test_opencl_mix; do echo "== $$t"; env $$env $$t; done; \
	env $$env $(BUILD)/xcipher-bench cipher --impl=serial,opencl --batch=16,256 --streams=1000
