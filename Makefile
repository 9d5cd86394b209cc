# SPDX-License-Identifier: GPL-2.0-or-later
# make            builds everything without root
# sudo make demo  installs missing packages and shows a real call
# sudo make check installs packages for the tests and runs all of them
# make help       tells the rest

BUILD   ?= build
CC      := $(if $(filter default,$(origin CC)),gcc,$(CC))
# V=1 shows every command
Q       := $(if $(V),,@)
say      = $(if $(V),,@echo "  $(1)")
CLANG   ?= clang-14
VERSION := $(shell cat VERSION)
# SAN=1: AddressSanitizer and UndefinedBehaviorSanitizer; SAN=thread: ThreadSanitizer
SAN     ?=

PKGS      := libcrypto libmnl OpenCL libxdp libbpf liburing libpcap libssl libcurl
PKGS_WEB  := libwebsockets # of xcipher-web alone
PKGS_TEST := cmocka libsrtp2 jansson

# Goals that first install missing packages, or need none, may run; they build with a separate make.
DEPS := deps deps-test deps-webrtc deps-demo deps-lint deps-bench deps-zrtp deps-ng911 deps-codecs deps-module deps-kernel deps-bench-kernel deps-kernel-debug deps-deb deps-check-deb
ifeq ($(filter help clean $(DEPS) demo demo-webrtc demo-ng911 check check-deps check-webrtc bench-webrtc check-kernel check-kernel-ring check-kernel-debug check-soak run bench bench-cipher bench-kernel bench-lost bench-ng911 bench-ng911-load peer-libsrtp fuzz lint module kernel-module check-ng911 module-install deb check-deb,$(MAKECMDGOALS)),)
MISSING := $(shell tools/deps.sh missing $(PKGS) $(PKGS_WEB) program:$(CLANG))
ifneq ($(MISSING),)
$(error cannot build: missing $(MISSING). "sudo make deps" installs the packages for a build)
endif
endif

WARN     := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla
HARDEN   := -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fPIE
# Sanitizer builds need no speed, and compile in half the time with -O1.
OPT      ?= $(if $(SAN),-O1 -g1,-O2 -g)
CPPFLAGS := -D_GNU_SOURCE -Iinclude -DXCIPHER_VERSION='"$(VERSION)"' -DCL_TARGET_OPENCL_VERSION=120 -Idaemon -Ikernels -Ikernel-module/uapi -I$(BUILD)/gen
CFLAGS   := -std=gnu17 $(OPT) $(WARN) $(HARDEN) $(shell pkg-config --cflags $(PKGS) 2>/dev/null) $(EXTRA_CFLAGS)
LDFLAGS  := -pie -Wl,-z,relro,-z,now $(EXTRA_LDFLAGS)
LDLIBS   := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lm -lpthread
ifneq ($(SAN),)
CFLAGS   += -Wno-maybe-uninitialized # GCC warns wrongly with sanitizers (its manual); the other builds look for it
endif
ifeq ($(SAN),1)
CFLAGS   := $(filter-out -D_FORTIFY_SOURCE=2,$(CFLAGS)) -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
LDFLAGS  += -fsanitize=address,undefined
endif
ifeq ($(SAN),thread)
CFLAGS   := $(filter-out -D_FORTIFY_SOURCE=2,$(CFLAGS)) -fsanitize=thread -Wno-tsan
LDFLAGS  += -fsanitize=thread
endif

LIB_ROOMS := base host proto srtp ice packet batch media steer steer/udp steer/nfqueue steer/kernel steer/xdp worker call keying offer persist
LIB_ROOMS += bridge control record side observe codec audio
# The library contains all of app except main() and its parts (daemon.h), so that tests and benchmarks can drive the worker loop.
APP_SRC   := $(wildcard daemon/app/main.c daemon/app/daemon*.c)
# The program that runs codec plug-ins (codecs/codecs.mk).
HELPER_SRC := $(sort $(wildcard daemon/codec/helper_*.c))
LIB_SRC   := $(filter-out $(HELPER_SRC),$(foreach d,$(LIB_ROOMS),$(sort $(wildcard daemon/$(d)/*.c)))) \
             $(filter-out $(APP_SRC),$(sort $(wildcard daemon/app/*.c)))
CTL_SRC   := $(sort $(wildcard daemon/ctl/*.c))
WEB_SRC   := $(sort $(wildcard daemon/web/*.c))
BENCH_SRC := $(sort $(wildcard t/bench/*.c))
UNIT_SRC  := $(sort $(wildcard t/unit/test_*.c))
UNIT_HELP := $(filter-out $(UNIT_SRC),$(sort $(wildcard t/unit/*.c)))
TOOL_SRC  := $(sort $(wildcard t/tool/*.c))
FUZZ_SRC  := $(sort $(wildcard t/fuzz/fuzz_*.c))

obj = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
LIB_OBJ  := $(call obj,$(LIB_SRC)) $(BUILD)/obj/gen/kernels.o $(BUILD)/obj/gen/xdp_object.o
LIB      := $(BUILD)/obj/libxcipherd.a
UNITS    := $(patsubst t/unit/%.c,$(BUILD)/t/%,$(UNIT_SRC))
TOOLS    := $(patsubst t/tool/%.c,$(BUILD)/t/%,$(TOOL_SRC))
FUZZERS  := $(patsubst t/fuzz/%.c,$(BUILD)/fuzz/%,$(FUZZ_SRC))
PROGRAMS := $(if $(APP_SRC),$(BUILD)/xcipherd) $(if $(CTL_SRC),$(BUILD)/xcipherctl) $(if $(WEB_SRC),$(BUILD)/xcipher-web)

# Objects of tests are kept: make would take them for intermediate files.
.SECONDARY:

.PHONY: all bench-program units objects tools fuzzers
all: $(PROGRAMS)
bench-program: $(BUILD)/xcipher-bench
units: $(UNITS)
objects: $(call obj,$(LIB_SRC) $(APP_SRC) $(HELPER_SRC) $(CTL_SRC) $(WEB_SRC) $(BENCH_SRC) $(TOOL_SRC) $(UNIT_SRC) $(UNIT_HELP))
tools: $(TOOLS)
fuzzers: $(FUZZERS)

ifeq ($(SAN),1)
# The self-test at each start spends most of its time in this file. At -O1 it takes twice as long, and tests start the daemon over 1,000 times.
$(BUILD)/obj/daemon/srtp/ref.o: CFLAGS += -O3
endif
# Unit tests need not be fast themselves, so they compile with less optimization.
$(call obj,$(UNIT_SRC) $(UNIT_HELP)): CFLAGS := $(patsubst -O2,-O1,$(patsubst -g,-g1,$(CFLAGS)))

$(BUILD)/obj/%.o: %.c Makefile VERSION
	@mkdir -p $(@D)
	$(call say,CC    $<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# OpenCL sources are built into the programs, one string per file: those of the engine into all, those it is compared with
# into xcipher-bench.
KERNEL_FILES  := kernels/layout.h $(sort $(wildcard kernels/*.cl))
COMPARE_FILES := $(sort $(wildcard t/bench/*.cl))
$(BUILD)/gen/kernels.c: $(KERNEL_FILES) tools/embed.py
	@mkdir -p $(@D)
	$(call say,GEN   $@)
	$(Q)python3 tools/embed.py kernel_sources $(KERNEL_FILES) > $@.tmp && mv $@.tmp $@
$(BUILD)/gen/compare.c: $(COMPARE_FILES) tools/embed.py
	@mkdir -p $(@D)
	$(call say,GEN   $@)
	$(Q)python3 tools/embed.py compare_sources $(COMPARE_FILES) > $@.tmp && mv $@.tmp $@
$(BUILD)/obj/gen/kernels.o $(BUILD)/obj/gen/compare.o: $(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -Wno-overlength-strings -c -o $@ $<

# So does the XDP program, compiled for the kernel's virtual machine: only clang can.
BPF_FLAGS := -target bpf -O2 -g -Wall -Wextra -Werror -Idaemon $(addprefix -idirafter ,$(wildcard /usr/include/*-linux-gnu))
$(BUILD)/gen/xdp_prog.o: daemon/steer/xdp/bpf/xdp_prog.c daemon/steer/xdp/bpf/xdp_abi.h daemon/packet/guard.h daemon/srtp/preauth_window.h daemon/srtp/preauth_header.h Makefile
	@mkdir -p $(@D)
	$(call say,BPF   $<)
	$(Q)$(CLANG) $(BPF_FLAGS) -c -o $@ $<
$(BUILD)/gen/xdp_object.c: $(BUILD)/gen/xdp_prog.o tools/embed_object.py
	$(Q)python3 tools/embed_object.py xdp_object $< > $@.tmp && mv $@.tmp $@
$(BUILD)/obj/gen/xdp_object.o: $(BUILD)/gen/xdp_object.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# The web page travels inside xcipher-web.
WEB_FILES := $(sort $(wildcard web/*.html web/*.css web/*.js web/*.svg))
$(BUILD)/gen/web.c: $(WEB_FILES) tools/embed_web.py
	@mkdir -p $(@D)
	$(Q)python3 tools/embed_web.py $(WEB_FILES) > $@.tmp && mv $@.tmp $@
$(BUILD)/obj/gen/web.o: $(BUILD)/gen/web.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(LIB): $(LIB_OBJ)
	@rm -f $@
	$(Q)ar rcs $@ $^

# With another BUILD, nothing makes the programs in build/.
ifneq ($(patsubst ./%,%,$(BUILD)),build)
BUILD_PROGRAMS := $(addprefix build/,xcipherd xcipherctl xcipher-web)
ifeq ($(abspath $(BUILD)),$(CURDIR)/build)
$(BUILD_PROGRAMS): build/%: $(BUILD)/%
else
.PHONY: $(BUILD_PROGRAMS)
$(BUILD_PROGRAMS):
	@echo "BUILD is $(BUILD): make $(BUILD)/$(@F)" >&2; false
endif
endif

$(BUILD)/xcipherd: $(call obj,$(APP_SRC)) $(LIB)
	$(call say,LINK  $@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)
$(BUILD)/xcipherctl: $(call obj,$(CTL_SRC)) $(LIB)
	$(call say,LINK  $@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)
# It links none of the daemon's libraries but that for hashes.
WEB_LIBS = $(shell pkg-config --libs $(PKGS_WEB) libcrypto 2>/dev/null)
$(BUILD)/xcipher-web: $(call obj,$(WEB_SRC)) $(BUILD)/obj/gen/web.o $(LIB)
	$(call say,LINK  $@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -Wl,--as-needed -o $@ $^ $(WEB_LIBS) -lm
$(BUILD)/xcipher-bench: $(call obj,$(BENCH_SRC)) $(BUILD)/obj/gen/compare.o $(LIB)
	$(call say,LINK  $@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS) $(BENCH_LIBS)
BENCH_LIBS = -ldl

# Code that several unit tests share is a library, so that each test links only the parts it calls.
UNIT_LIB := $(BUILD)/obj/libunit.a
$(UNIT_LIB): $(call obj,$(UNIT_HELP))
	@rm -f $@
	$(Q)ar rcs $@ $^

# Its allocations fail where it wants them to.
$(BUILD)/t/test_nomem: LDFLAGS += -Wl,--wrap=malloc,--wrap=calloc,--wrap=free,--wrap=secmem_alloc
# The pure parts of xcipher-web.
WEB_PURE := $(BUILD)/obj/libweb.a
$(WEB_PURE): $(call obj,daemon/web/guard.c daemon/web/chunks.c)
	@rm -f $@
	$(Q)ar rcs $@ $^
# gold links in less than half the time, and there are over 200 of them.
UNIT_LD := $(if $(shell command -v ld.gold),-fuse-ld=gold)
$(BUILD)/t/test_%: $(BUILD)/obj/t/unit/test_%.o $(UNIT_LIB) $(WEB_PURE) $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK  $@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $(UNIT_LD) -o $@ $^ $(LDLIBS) -lcmocka -lsrtp2 -ljansson
$(BUILD)/t/%: $(BUILD)/obj/t/tool/%.o $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK  $@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS) -lsrtp2

# libbzrtp is GPL-3: only this program links it.
$(BUILD)/zrtp/interop: $(BUILD)/obj/t/zrtp/interop.o $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK  $@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS) -lbzrtp
$(BUILD)/zrtp/messages: $(BUILD)/obj/t/zrtp/messages.o $(BUILD)/obj/t/unit/zrtp_rig.o $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK  $@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS) -lcmocka
$(BUILD)/zrtp/zrtp4j: $(BUILD)/obj/t/zrtp/zrtp4j.o $(LIB)
	@mkdir -p $(@D)
	$(call say,LINK  $@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)
# GNU ZRTP4J is GPL-3, too, so it runs in a process of its own. Maven downloads it.
ZRTP4J := $(BUILD)/zrtp/java
RUN_ZRTP4J := java -Xbootclasspath/a:$(ZRTP4J)/fix:$(ZRTP4J)/bcprov-jdk15on-1.66.jar -cp $(ZRTP4J)/zrtp4j-light-4.1.2.jar:$(ZRTP4J) Peer
$(ZRTP4J)/Peer.class: $(wildcard t/zrtp/zrtp4j/*.java t/zrtp/zrtp4j/fix/*.java) t/zrtp/zrtp4j/pom.xml
	mvn -q -B -f t/zrtp/zrtp4j/pom.xml dependency:copy-dependencies -DoutputDirectory=$(abspath $(ZRTP4J))
	javac -Xlint:all -Werror -cp '$(ZRTP4J)/*' -d $(ZRTP4J)/fix t/zrtp/zrtp4j/fix/*.java
	javac -Xlint:all -Werror -cp '$(ZRTP4J)/*' -d $(ZRTP4J) t/zrtp/zrtp4j/*.java
# cargo fetches the crate; without cargo this part is left out.
check-zrtp: deps-zrtp
	$(MAKE) all $(BUILD)/zrtp/interop $(BUILD)/zrtp/messages $(BUILD)/zrtp/zrtp4j $(ZRTP4J)/Peer.class
	t/zrtp/reference.py | cmp - t/vectors/zrtp.json
	$(BUILD)/zrtp/interop
	$(BUILD)/zrtp/zrtp4j $(BUILD)/zrtp $(RUN_ZRTP4J)
	BUILD=$(abspath $(BUILD)) /usr/bin/python3 t/e2e/run.py test_zrtp4j
	@if command -v cargo >/dev/null; then mkdir -p $(BUILD)/zrtp/crate.src && cp -r t/zrtp/crate/. $(BUILD)/zrtp/crate.src && \
		cd $(BUILD)/zrtp/crate.src && cargo build --release -q && \
		../messages | target/release/zrtp-crate; else echo "no cargo: the crate zrtp was not tried"; fi

# Fuzzers are built by clang, library and all, with coverage and sanitizers.
FUZZ_LIB_SRC := $(foreach d,base proto srtp ice packet media call keying offer,$(sort $(wildcard daemon/$(d)/*.c))) $(sort $(wildcard daemon/audio/*.c)) $(filter-out daemon/codec/helper_%,$(sort $(wildcard daemon/codec/*.c))) daemon/batch/law.c daemon/steer/dgram.c $(foreach n,audio name ogg opus share sound wav,daemon/record/record_$(n).c) $(wildcard daemon/persist/save*.c) daemon/persist/restore.c daemon/persist/redis_crypt.c daemon/web/chunks.c
FUZZ_FLAGS   := $(CPPFLAGS) -std=gnu17 -O1 -gline-tables-only -fno-sanitize-recover=undefined $(shell pkg-config --cflags libssl libcrypto)
$(BUILD)/fuzz/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link,address,undefined -MMD -MP -c -o $@ $<
$(BUILD)/fuzz/lib.a: $(patsubst %.c,$(BUILD)/fuzz/obj/%.o,$(FUZZ_LIB_SRC))
	@rm -f $@
	$(Q)ar rcs $@ $^
$(BUILD)/fuzz/%: $(BUILD)/fuzz/obj/t/fuzz/%.o $(BUILD)/fuzz/lib.a
	$(call say,FUZZ  $@)
	$(Q)$(CLANG) -fsanitize=fuzzer,address,undefined -o $@ $^ $(shell pkg-config --libs libssl libcrypto) $(FUZZ_LIBS) -lm

include module/module.mk
include codecs/codecs.mk
include packaging/install.mk
include kernel-module/kernel.mk

-include $(shell find $(BUILD)/obj $(BUILD)/fuzz/obj -name '*.d' 2>/dev/null)

# --- For people ------------------------------------------------------------------------------------------------
.PHONY: help clean $(DEPS) check kernel-tools check-kernel check-kernel-ring check-kernel-debug check-deps check-build check-clang check-intel check-unit check-fuzz check-compat check-e2e check-attack check-calls check-webrtc bench-webrtc check-zrtp check-threads check-ng911 attack attack-peers lint demo demo-webrtc demo-ng911 run fuzz bench bench-cipher bench-kernel bench-lost bench-ng911 bench-ng911-load peer-libsrtp
help:
	@sed -n 's/^##//p' Makefile
##  make               build xcipherd, xcipherctl and xcipher-web into build/, and codec plug-ins whose libraries are installed
##  sudo make module   xcipher.so, xcipher_lost.so and xcipher_tls.so for the installed Kamailio
##  sudo make demo     install missing packages, build, show a real call between two phones
##  sudo make demo-webrtc  names a page that you open: your browser calls a phone
##  sudo make demo-ng911  emergency calls by location, through three proxies and the border, secured on every hop
##  sudo make check    install packages for the tests, run all tests
##  make kernel-module   nf_xcipher.ko; sudo make module-install puts it where modprobe finds it
##  make deb           Debian packages into build/deb/; sudo make check-deb installs, upgrades and purges them in a chroot
##  sudo make install  into PREFIX (/usr/local), with DESTDIR before it
##  sudo make run      xcipherd in the foreground with its defaults
##  sudo make check-kernel   only the tests of the kernel module, in a virtual machine, about two minutes
##  sudo make check-compat   only the black-box tests of ng (t/compat/README.md)
##  sudo make check-attack   only the random attacks, with fixed seeds
##  sudo make check-soak   the tests of the last commit 20 times each idle, beside busy loops, and on one processor; over a day, Ctrl-C and again resumes (t/README.md)
##  sudo make check-webrtc   calls between real WebRTC peers and phones, through WEBRTC_RELAY (xcipherd, rtpengine); bench-webrtc: how soon media start
##  sudo make check-zrtp   our ZRTP against libbzrtp and GNU ZRTP4J, each combination of algorithms; with cargo against the crate zrtp
##  sudo make check-ng911   only the tests of the LoST server and of xcipher-border
##  make bench-program   build/xcipher-bench (man/xcipher-bench.1)
##  make bench-lost    requests a second and delays of the LoST server
##  sudo make bench-ng911   set-up delay of emergency calls, by parts, with 32 kinds of security; bench-ng911-load: calls per second through one core
##  make check-intel   test the kernels on Intel's OpenCL runtime (downloads 150 MB)
##  sudo make check-kernel-debug   check-kernel with KASAN, lockdep and kmemleak, kernel built on the spot, 90 minutes
##  sudo make check-kernel-ring   ten million packets through packet rings whose workers fail, in a virtual machine, three hours at most
##  make lint          formatting, static analysis, shell scripts
##  make fuzz          fuzz every parser, FUZZ_SECONDS each (600), then attack
##  sudo make attack   attack xcipherd at random for ATTACK_SECONDS (600), ATTACK_STEPS per sequence (100); make fuzz does it too
##  sudo make attack-kernel   the sequences of ATTACK_SEEDS with --steering=kernel, in a virtual machine, some minutes each
##  sudo make attack-peers   the same attacks by hand on xcipherd and rtpengine, as a table
##  sudo make bench    compare the packet path with rtpengine, in namespaces
##  sudo make bench-kernel   instructions per packet of rtpengine in its kernel mode and of ours, in a virtual machine (also part of bench FULL=1)
##  sudo make bench-cipher   compare the engines with other libraries: tables, JSON, plots in build/bench/ (FULL=1: all cases, also for bench)
##  sudo make deps     install packages for a build; deps-test, deps-webrtc, deps-demo, deps-lint, deps-bench, deps-zrtp, deps-ng911, deps-codecs, deps-module, deps-kernel, deps-bench-kernel, deps-kernel-debug, deps-deb, deps-check-deb: for those targets

$(DEPS):
	tools/deps.sh install $@

clean:
	rm -rf $(BUILD)

run:
	tools/deps.sh install deps
	$(MAKE) -j$(shell nproc) all
	exec $(BUILD)/xcipherd --foreground --log-stderr

include t/check.mk
