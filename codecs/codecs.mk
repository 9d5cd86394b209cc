# SPDX-License-Identifier: GPL-2.0-or-later
# Codec plug-ins (included by the Makefile). A plug-in is built if its library's -dev package is installed; "make deps-codecs"
# installs all. Each is one file, and needs nothing of the daemon but include/xcipher_codec.h.

CODEC_DIR := $(BUILD)/codecs
# NAME:PKG-CONFIG,... or NAME:/HEADER for a library without one. The template needs none.
CODEC_TABLE := template: g726:spandsp opus:opus speex:speex speexdsp:speexdsp g729:libbcg729 amr:opencore-amrnb
CODEC_TABLE += amrwb:opencore-amrwb,vo-amrwbenc avcodec:libavcodec,libavutil gsm:/usr/include/gsm/gsm.h

comma := ,
codec_pkgs = $(subst $(comma), ,$(word 2,$(subst :, ,$(1))))
codec_there = $(if $(codec_pkgs),$(if $(filter /%,$(codec_pkgs)),$(wildcard $(codec_pkgs)),$(shell pkg-config --exists $(codec_pkgs) 2>/dev/null && echo yes)),yes)
CODEC_ROWS := $(foreach row,$(CODEC_TABLE),$(if $(wildcard codecs/$(word 1,$(subst :, ,$(row))).c),$(if $(call codec_there,$(row)),$(row))))
CODEC_NAMES := $(foreach row,$(CODEC_ROWS),$(word 1,$(subst :, ,$(row))))
CODEC_PLUGINS := $(CODEC_NAMES:%=$(CODEC_DIR)/%.so)
CODEC_SHIPPED := $(filter-out %/template.so,$(CODEC_PLUGINS))

codec_row = $(filter $(1):%,$(CODEC_ROWS))
codec_cflags = $(if $(filter-out /%,$(call codec_pkgs,$(codec_row))),$(shell pkg-config --cflags $(call codec_pkgs,$(codec_row))))
codec_libs = $(if $(filter-out /%,$(call codec_pkgs,$(codec_row))),$(shell pkg-config --libs $(call codec_pkgs,$(codec_row))),$(if $(filter gsm,$(1)),-lgsm))

CODEC_FLAGS = $(filter-out -fPIE,$(CFLAGS)) -fPIC -fvisibility=hidden -Iinclude -D_GNU_SOURCE -DXCIPHER_VERSION='"$(VERSION)"'
CODEC_LDFLAGS = -shared $(filter-out -pie,$(LDFLAGS)) -Wl,--no-undefined
ifneq ($(SAN),)
CODEC_LDFLAGS := -shared $(filter-out -pie,$(LDFLAGS))
endif
# Named even by plug-ins that call nothing of it: Debian wants libraries to have the libc that they were built for.
CODEC_LIBC := -Wl,--no-as-needed -lc
$(CODEC_DIR)/%.so: codecs/%.c $(wildcard codecs/*.h) include/xcipher_codec.h codecs/codecs.mk
	@mkdir -p $(@D)
	$(call say,CODEC $@)
	$(Q)$(CC) $(CODEC_FLAGS) $(call codec_cflags,$*) $(CODEC_LDFLAGS) -o $@ $< $(call codec_libs,$*) -lm $(CODEC_LIBC)

.PHONY: codecs
codecs: $(CODEC_PLUGINS)
all: codecs $(BUILD)/xcipher-codec-test $(BUILD)/xcipher-codec-worker
$(BUILD)/xcipher-codec-worker: $(call obj,$(HELPER_SRC)) $(LIB)
	$(call say,LINK  $@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lm
$(BUILD)/xcipher-codec-test: $(call obj,codecs/codec_test.c) $(LIB)
	$(call say,LINK  $@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lm

# xcipher-av decodes files that calls play. It is built if the libraries of ffmpeg are installed.
AV_PKGS    := libavformat libavcodec libswresample libavutil
AV_THERE   := $(shell pkg-config --exists $(AV_PKGS) 2>/dev/null && echo yes)
AV_PROGRAM := $(if $(AV_THERE),$(BUILD)/xcipher-av)
AV_SRC     := $(sort $(wildcard daemon/av/*.c))
all units: $(AV_PROGRAM)
objects: $(if $(AV_THERE),$(call obj,$(AV_SRC))) $(call obj,codecs/codec_test.c)
$(call obj,$(AV_SRC)): CFLAGS += $(shell pkg-config --cflags $(AV_PKGS) 2>/dev/null)
$(BUILD)/xcipher-av: $(call obj,$(AV_SRC) daemon/codec/helper_jail.c) $(LIB)
	$(call say,LINK  $@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(shell pkg-config --libs $(AV_PKGS))

# Plug-ins that misbehave, for the tests.
BAD_DIR  := $(BUILD)/t/codecs
BAD_ONES := $(addprefix $(BAD_DIR)/,abi.so constructor.so forge.so late.so long.so loop.so name.so old.so overwrite.so short.so silent.so symbol.so tone.so)
$(BAD_DIR)/%.so: t/codec/bad.c include/xcipher_codec.h codecs/codecs.mk
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu17 -O1 -g -Wall -Wextra -Werror -fPIC -fvisibility=hidden -Iinclude -Idaemon -D_GNU_SOURCE \
		-DBAD_$(shell echo $* | tr a-z A-Z) -shared -o $@ $<
units: $(BAD_ONES) $(BUILD)/xcipher-codec-worker codecs
tools: $(BAD_DIR)/late.so $(BAD_DIR)/symbol.so # for t/e2e/test_codecs.py and t/compat/test_codecs.py

# The fuzzer of codecs links all plug-ins, each under a name of its own, and nothing of other rooms.
FUZZ_CODEC_ROOM := $(patsubst %,$(BUILD)/fuzz/obj/daemon/codec/%.o,builtin g711 g722 g722_batch g722_lanes g722_lanes_avx2 g722_lanes_avx512 gap guard noise)
FUZZ_CODECS := $(filter-out speexdsp,$(CODEC_NAMES))
FUZZ_CODEC_OBJ := $(patsubst %,$(BUILD)/fuzz/obj/codecs/%.o,$(FUZZ_CODECS))
$(FUZZ_CODEC_OBJ): $(BUILD)/fuzz/obj/codecs/%.o: codecs/%.c include/xcipher_codec.h codecs/codecs.mk
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_FLAGS) $(call codec_cflags,$*) -Dxcipher_codec_plugin=xcipher_codec_plugin_$* \
		-fsanitize=fuzzer-no-link,address,undefined -c -o $@ $<
$(BUILD)/fuzz/obj/t/fuzz/fuzz_codec.o: FUZZ_FLAGS += -DFUZZ_PLUGINS="$(foreach n,$(FUZZ_CODECS),X($(n)))"
$(BUILD)/fuzz/codec.a: $(FUZZ_CODEC_OBJ)
	@rm -f $@
	$(Q)ar rcs $@ $^
$(BUILD)/fuzz/fuzz_codec: $(BUILD)/fuzz/obj/t/fuzz/fuzz_codec.o $(BUILD)/fuzz/codec.a $(FUZZ_CODEC_ROOM)
	$(call say,FUZZ  $@)
	$(Q)$(CLANG) -fsanitize=fuzzer,address,undefined -o $@ $^ $(foreach n,$(FUZZ_CODECS),$(call codec_libs,$(n))) -lm
