/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the settings that decide about forwarding (steer/nfqueue/forward.h), combined as in the
 * kernel. forwarding: of the interface. accept_local, send_redirects: of "all" or the interface.
 * rp_filter: the larger one. For an address of the loopback interface, all other interfaces are
 * checked. */
#include "steer/nfqueue/forward.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>

static int setting(const char *interface, const char *name)
{
	char path[128];
	int value = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/%s", interface, name);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fscanf(f, "%d", &value) != 1)
		value = -1;
	fclose(f);
	return value;
}

static bool interface_ready(const char *name, char *why, size_t why_len)
{
	int all = setting("all", "rp_filter"), own = setting(name, "rp_filter");

	if (setting(name, "forwarding") != 1)
		snprintf(why, why_len,
			"net.ipv4.conf.%s.forwarding (or net.ipv4.ip_forward) must be 1", name);
	else if (setting("all", "accept_local") != 1 && setting(name, "accept_local") != 1)
		snprintf(why, why_len, "net.ipv4.conf.%s.accept_local must be 1", name);
	else if (all != 0 || own != 0)
		snprintf(why, why_len, "net.ipv4.conf.%s.rp_filter must be 0",
			all != 0 ? "all" : name);
	else if (setting("all", "send_redirects") != 0 || setting(name, "send_redirects") != 0)
		snprintf(why, why_len, "net.ipv4.conf.%s.send_redirects must be 0",
			setting("all", "send_redirects") != 0 ? "all" : name);
	else
		return true;
	return false;
}

/* The interface entry of this address. */
static const struct ifaddrs *entry_of(const struct ifaddrs *all, const struct endpoint *local)
{
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		struct endpoint e;

		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET)
			continue;
		if (endpoint_from_sockaddr(&e, (const struct sockaddr_storage *)i->ifa_addr) == 0 &&
			endpoint_addr_eq(&e, local))
			return i;
	}
	return NULL;
}

/* Checks all interfaces that may receive packets for a loopback interface's address. */
static bool others_ready(const struct ifaddrs *all, char *why, size_t why_len)
{
	bool any = false;

	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP) ||
			(i->ifa_flags & IFF_LOOPBACK))
			continue;
		any = true;
		if (!interface_ready(i->ifa_name, why, why_len))
			return false;
	}
	if (!any)
		snprintf(why, why_len, "there is no interface but loopback");
	return any;
}

static bool address_ready(
	const struct ifaddrs *all, const struct endpoint *local, char *why, size_t why_len)
{
	const struct ifaddrs *i = entry_of(all, local);
	char text[ENDPOINT_STRLEN];

	/* Packets to 127.0.0.0/8 are never forwarded. */
	if (!i || endpoint_is_unspecified(local) || local->addr[0] == 127) {
		snprintf(why, why_len, "%s is not an address of an interface",
			endpoint_fmt_addr(local, text));
		return false;
	}
	return i->ifa_flags & IFF_LOOPBACK ? others_ready(all, why, why_len)
					   : interface_ready(i->ifa_name, why, why_len);
}

bool forward_ready(const struct steer_config *cfg, char *why, size_t why_len)
{
	struct ifaddrs *all = NULL;
	bool ready = true, any = false;

	if (getifaddrs(&all)) {
		snprintf(why, why_len, "interfaces cannot be listed: %s", strerror(errno));
		return false;
	}
	for (uint32_t i = 0; i < cfg->locals && ready; i++) {
		if (cfg->local[i].family != AF_INET)
			continue;
		any = true;
		ready = address_ready(all, &cfg->local[i], why, why_len);
	}
	freeifaddrs(all);
	if (ready && !any)
		snprintf(why, why_len, "there is no local IPv4 address");
	return ready && any;
}
