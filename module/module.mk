# SPDX-License-Identifier: GPL-2.0-or-later
# xcipher.so for the Kamailio that is installed (included by the Makefile). Kamailio compares version and flags when it loads a module: so
# does this. Nothing of Kamailio is linked, its symbols come from the program; of the daemon only the codec is used.

KAM       := $(BUILD)/kamailio
MOD_OUT   := $(BUILD)/module
MOD_SRC   := $(sort $(wildcard module/*.c))
# Files without Kamailio's headers, fuzzed and tested as they are
MOD_PURE  := module/wire.c module/policy.c
MOD_CODEC := $(addprefix daemon/,base/bytes.c base/pool.c base/sbuf.c base/secmem.c base/secret_file.c proto/bencode.c proto/json.c proto/ng_auth.c proto/ngval.c proto/utf8.c)
mod_obj    = $(patsubst %.c,$(MOD_OUT)/%.o,$(1))
MOD_OBJ   := $(call mod_obj,$(MOD_SRC) $(MOD_CODEC))
MOD_FLAGS := -std=gnu17 -O2 -g $(WARN) -fPIC -fstack-protector-strong -D_GNU_SOURCE

# The other modules have their rules in module/lost/lost.mk and module/tls/tls.mk.
.PHONY: module module-so module-objects module-for
# In two steps: what is to be installed and fetched first
module:
	tools/deps.sh install deps-module
	tools/kamailio-headers.sh $(KAM)
	$(MAKE) module-so
module-so: $(BUILD)/xcipher.so $(BUILD)/xcipher_lost.so $(BUILD)/xcipher_tls.so
module-objects: $(MOD_OBJ) lost-objects tls-objects

# make module-for RELEASE=trixie: it compiles against that Debian release's Kamailio, too (nothing here could load it)
module-for:
	tools/deps.sh install deps-module
	tools/kamailio-headers.sh $(BUILD)/kamailio-$(or $(RELEASE),trixie) $(or $(RELEASE),trixie)
	$(MAKE) KAM=$(BUILD)/kamailio-$(or $(RELEASE),trixie) MOD_OUT=$(BUILD)/module-$(or $(RELEASE),trixie) module-objects

$(call mod_obj,$(MOD_PURE) $(MOD_CODEC)): $(MOD_OUT)/%.o: %.c Makefile module/module.mk
	@mkdir -p $(@D)
	$(call say,CC    $<)
	$(Q)$(CC) $(MOD_FLAGS) -D_FORTIFY_SOURCE=2 -fvisibility=hidden -Idaemon -Imodule -MMD -MP -c -o $@ $<

# Stands between both: the daemon's interface, Kamailio's SHA-256
MOD_BOTH  := module/hmac.c
$(call mod_obj,$(MOD_BOTH)): $(MOD_OUT)/%.o: %.c Makefile module/module.mk $(KAM)/version
	@mkdir -p $(@D)
	$(call say,CC    $<)
	$(Q)$(CC) $(MOD_FLAGS) -D_FORTIFY_SOURCE=2 -fvisibility=hidden -Idaemon -isystem $(KAM)/include -MMD -MP -c -o $@ $<

# The flags hold quoted strings: the compiler reads them from the file.
$(call mod_obj,$(filter-out $(MOD_PURE) $(MOD_BOTH),$(MOD_SRC))): $(MOD_OUT)/%.o: %.c Makefile module/module.mk $(KAM)/version
	@mkdir -p $(@D)
	$(call say,CC    $<)
	$(Q)$(CC) $(MOD_FLAGS) @$(KAM)/flags -DMOD_NAME='"xcipher"' -isystem $(KAM)/include -Imodule -MMD -MP -c -o $@ $<

# -Bsymbolic: a variable of the program that has the name of one of ours must not take its place.
$(BUILD)/xcipher.so: $(MOD_OBJ)
	$(call say,LINK  $@)
	$(Q)$(CC) -shared -Wl,-Bsymbolic -Wl,-z,relro,-z,now -Wl,-z,noexecstack -o $@.tmp $^ -lm
	$(Q)tools/kamailio-fits.sh $@.tmp
	$(Q)mv $@.tmp $@

include module/lost/lost.mk
include module/tls/tls.mk

-include $(shell find $(MOD_OUT) -name '*.d' 2>/dev/null)
