# SPDX-License-Identifier: GPL-2.0-or-later
# The kernel module (included by the Makefile). It is built in a copy, because a kernel's build writes into the folder of the sources.
# It is for the running kernel if its headers are installed, else for the newest kernel with headers. KERNEL=VERSION selects another.
KERNEL     ?= $(shell { [ -e /lib/modules/$$(uname -r)/build ] && uname -r; } || ls -d /lib/modules/*/build 2>/dev/null | sort -V | tail -1 | cut -d/ -f4)
KMOD_BUILD := $(BUILD)/kernel-module/$(KERNEL)

.PHONY: kernel-module module-install
kernel-module:
	@[ -n "$(KERNEL)" ] || { echo "no kernel headers: sudo make deps-kernel, or the package linux-headers of your kernel" >&2; exit 1; }
	@mkdir -p $(KMOD_BUILD)
	@cp -ru kernel-module/. $(KMOD_BUILD)/
	@mkdir -p $(KMOD_BUILD)/packet $(KMOD_BUILD)/srtp
	@cp -u daemon/packet/guard.h $(KMOD_BUILD)/packet/
	@cp -u daemon/srtp/preauth_window.h daemon/srtp/preauth_header.h $(KMOD_BUILD)/srtp/
	$(MAKE) -s -C $(KMOD_BUILD) KDIR=/lib/modules/$(KERNEL)/build W=1 modules
	@echo "$(KMOD_BUILD)/nf_xcipher.ko"

# By hand, for one kernel; packages do it by DKMS for all.
module-install: kernel-module
	install -D -m 644 $(KMOD_BUILD)/nf_xcipher.ko $(DESTDIR)/lib/modules/$(KERNEL)/updates/nf_xcipher.ko
	install -D -m 644 kernel-module/nf-xcipher.modules-load.conf $(DESTDIR)/usr/lib/modules-load.d/nf-xcipher.conf
	$(if $(DESTDIR),,depmod $(KERNEL))
