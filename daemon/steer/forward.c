/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the settings that decide about forwarding (steer/forward.h), as the kernel combines them: forwarding is the
 * interface's own; accept_local and send_redirects hold if "all" or the interface says so; of rp_filter the larger counts. */
#include "steer/forward.h"

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

/* The interface that carries the address, in name[IF_NAMESIZE]. */
static bool interface_of(const struct ifaddrs *all, const struct endpoint *local, char *name)
{
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		struct endpoint e;

		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET)
			continue;
		if (endpoint_from_sockaddr(&e, (const struct sockaddr_storage *)i->ifa_addr) == 0 &&
			endpoint_addr_eq(&e, local)) {
			snprintf(name, IF_NAMESIZE, "%s", i->ifa_name);
			return true;
		}
	}
	return false;
}

bool forward_ready(const struct steer_config *cfg, char *why, size_t why_len)
{
	char name[IF_NAMESIZE], text[ENDPOINT_STRLEN];
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
		ready = !endpoint_is_unspecified(&cfg->local[i]) &&
			interface_of(all, &cfg->local[i], name);
		if (!ready)
			snprintf(why, why_len, "%s is no address of an interface",
				endpoint_fmt_addr(&cfg->local[i], text));
		else
			ready = interface_ready(name, why, why_len);
	}
	freeifaddrs(all);
	if (ready && !any)
		snprintf(why, why_len, "there is no local IPv4 address");
	return ready && any;
}
