# SPDX-License-Identifier: GPL-2.0-or-later
# make install and make deb (included by the Makefile).

PREFIX  ?= /usr/local
DESTDIR ?=
SHARE   := $(DESTDIR)$(PREFIX)/share
DEMO    := $(SHARE)/xcipher

# The configuration with every option commented comes from --help, so that none is forgotten.
$(BUILD)/xcipherd.conf: $(BUILD)/xcipherd tools/example-conf.sh
	$(Q)tools/example-conf.sh $(BUILD)/xcipherd > $@.tmp && mv $@.tmp $@

$(BUILD)/xcipher-web.conf: $(BUILD)/xcipher-web tools/example-conf.sh
	$(Q)tools/example-conf.sh $(BUILD)/xcipher-web > $@.tmp && mv $@.tmp $@

.PHONY: install deb check-deb
install: all bench-program $(BUILD)/xcipherd.conf $(BUILD)/xcipher-web.conf
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/sbin $(BUILD)/xcipherd $(BUILD)/xcipher-web
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin $(BUILD)/xcipherctl $(BUILD)/xcipher-bench packaging/xcipher-demo packaging/xcipher-migrate
	install -D -m 644 -t $(SHARE)/man/man8 man/*.8
	install -D -m 644 -t $(SHARE)/man/man7 man/*.7
	install -D -m 644 -t $(SHARE)/man/man1 man/*.1
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin $(BUILD)/xcipher-codec-test
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/lib/xcipher $(BUILD)/xcipher-codec-worker $(AV_PROGRAM)
	install -d -m 755 $(DESTDIR)$(PREFIX)/lib/xcipher/codecs
	$(if $(CODEC_SHIPPED),install -m 644 -t $(DESTDIR)$(PREFIX)/lib/xcipher/codecs $(CODEC_SHIPPED))
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/include include/xcipher_codec.h
	install -D -m 644 -t $(SHARE)/doc/xcipher-codec-dev/examples codecs/template.c
	for name in xcipherd xcipherctl xcipher-web xcipher-bench; do \
		install -D -m 644 tools/completion/$$name.bash $(SHARE)/bash-completion/completions/$$name; done
	install -D -m 644 $(BUILD)/xcipherd.conf $(SHARE)/doc/xcipherd/examples/xcipherd.conf
	install -D -m 644 $(BUILD)/xcipher-web.conf $(SHARE)/doc/xcipher-web/examples/xcipher-web.conf
	install -D -m 644 -t $(DEMO)/kamailio-cfg $(wildcard kamailio-cfg/*.*)
	install -D -m 644 -t $(DEMO)/kamailio-cfg/ng911 $(wildcard kamailio-cfg/ng911/*.*)
	install -D -m 644 -t $(DEMO)/kamailio-cfg/ng911/ipsec $(wildcard kamailio-cfg/ng911/ipsec/*)
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin ng911/xcipher-lost
	install -D -m 644 -t $(DEMO)/ng911/lost_server $(wildcard ng911/lost_server/*.py)
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin ng911/xcipher-border
	install -D -m 644 -t $(DEMO)/ng911/border $(wildcard ng911/border/*.py) VERSION
	install -D -m 644 -t $(DEMO)/ng911/schema $(wildcard ng911/schema/*)
	install -D -m 644 -t $(DEMO)/ng911 VERSION
	install -D -m 755 demo/demo.py $(DEMO)/demo/demo.py
	install -D -m 644 demo/phone.py $(DEMO)/demo/phone.py
	install -D -m 644 -t $(DEMO)/t/e2e t/e2e/netns.py t/e2e/ng.py t/e2e/relay.py

deb:
	tools/deps.sh install deps-deb
	tools/deb.sh $(BUILD)/deb
check-deb:
	tools/deps.sh install deps-check-deb
	$(MAKE) $(BUILD)/t/rtpload
	BUILD=$(abspath $(BUILD)) tools/check-deb.sh $(BUILD)/deb$(RELEASE:%=-%) $(RELEASE)
