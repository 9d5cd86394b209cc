# SPDX-License-Identifier: GPL-2.0-or-later
# xcipher_lost.so (included by module/module.mk). It has no part of the daemon. Of module/ it has the file that carries branches over a
# suspension.

LOST_SRC   := $(sort $(wildcard module/lost/*.c))
# Files that do not use Kamailio: fuzzed and tested without it
LOST_PURE  := $(addprefix module/lost/,answer.c ask.c buf.c cache.c geo.c message.c naptr.c place.c query.c reach.c sipbody.c trace.c xml.c)
LOST_GLUE  := $(filter-out $(LOST_PURE),$(LOST_SRC)) module/forks.c
LOST_OUT   := $(MOD_OUT)/xcipher_lost
LOST_LIBS  := libcurl libxml-2.0 openssl
LOST_XML    = $(shell pkg-config --cflags libxml-2.0)
lost_obj    = $(patsubst %.c,$(LOST_OUT)/%.o,$(1))
LOST_OBJ   := $(call lost_obj,$(LOST_PURE) $(LOST_GLUE))

.PHONY: lost-objects
lost-objects: $(LOST_OBJ)

$(call lost_obj,$(LOST_PURE)): $(LOST_OUT)/%.o: %.c Makefile module/lost/lost.mk
	@mkdir -p $(@D)
	$(call say,CC    $<)
	$(Q)$(CC) $(MOD_FLAGS) -D_FORTIFY_SOURCE=2 -fvisibility=hidden $(LOST_XML) -MMD -MP -c -o $@ $<

$(call lost_obj,$(LOST_GLUE)): $(LOST_OUT)/%.o: %.c Makefile module/lost/lost.mk $(KAM)/version
	@mkdir -p $(@D)
	$(call say,CC    $<)
	$(Q)$(CC) $(MOD_FLAGS) @$(KAM)/flags -DMOD_NAME='"xcipher_lost"' -isystem $(KAM)/include -Imodule/lost -Imodule $(LOST_XML) -MMD -MP -c -o $@ $<

$(BUILD)/xcipher_lost.so: $(LOST_OBJ)
	$(call say,LINK  $@)
	$(Q)$(CC) -shared -Wl,-Bsymbolic -Wl,-z,relro,-z,now -Wl,-z,noexecstack -o $@.tmp $^ $(shell pkg-config --libs $(LOST_LIBS)) -lm -lresolv -lpthread
	$(Q)tools/kamailio-fits.sh $@.tmp
	$(Q)mv $@.tmp $@

# Its tests include its pure files.
$(BUILD)/obj/t/unit/test_lost_%.o: CPPFLAGS += $(LOST_XML)
$(BUILD)/t/test_lost_%: LDLIBS += -lxml2 -lresolv
$(BUILD)/fuzz/obj/t/fuzz/fuzz_lost.o: FUZZ_FLAGS += $(LOST_XML)
$(BUILD)/fuzz/fuzz_lost: FUZZ_LIBS = -lxml2 -lresolv
