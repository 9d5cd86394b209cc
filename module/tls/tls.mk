# SPDX-License-Identifier: GPL-2.0-or-later
# xcipher_tls.so (included by module/module.mk). It has no part of the daemon.

TLS_OUT   := $(MOD_OUT)/xcipher_tls
TLS_PURE  := $(addprefix $(TLS_OUT)/module/tls/,names.o own.o sessions.o)
TLS_OBJ   := $(TLS_PURE) $(TLS_OUT)/module/tls/module.o

.PHONY: tls-objects
tls-objects: $(TLS_OBJ)

# Do not use Kamailio: tested without it
$(TLS_PURE): $(TLS_OUT)/module/tls/%.o: module/tls/%.c Makefile module/tls/tls.mk
	@mkdir -p $(@D)
	$(call say,CC    $<)
	$(Q)$(CC) $(MOD_FLAGS) -D_FORTIFY_SOURCE=2 -fvisibility=hidden -MMD -MP -c -o $@ $<

$(TLS_OUT)/module/tls/module.o: module/tls/module.c Makefile module/tls/tls.mk $(KAM)/version
	@mkdir -p $(@D)
	$(call say,CC    $<)
	$(Q)$(CC) $(MOD_FLAGS) @$(KAM)/flags -DMOD_NAME='"xcipher_tls"' -isystem $(KAM)/include -MMD -MP -c -o $@ $<

$(BUILD)/xcipher_tls.so: $(TLS_OBJ)
	$(call say,LINK  $@)
	$(Q)$(CC) -shared -Wl,-Bsymbolic -Wl,-z,relro,-z,now -Wl,-z,noexecstack -o $@.tmp $^ -lssl -lcrypto -lpthread
	$(Q)tools/kamailio-fits.sh $@.tmp
	$(Q)mv $@.tmp $@
