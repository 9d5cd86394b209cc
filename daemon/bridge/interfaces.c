/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See interfaces.h. Reads the flags once a second: one system call for each local address. */
#include "bridge/interfaces.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"

void interfaces_init(struct interfaces *f, const struct relay_local *local, uint32_t n)
{
	memset(f, 0, sizeof(*f));
	f->n = n < STEER_MAX_LOCAL ? n : STEER_MAX_LOCAL;
	for (uint32_t i = 0; i < f->n; i++)
		f->one[i].local = &local[i];
}

static enum interface_state look(int fd, const char *dev, bool owned)
{
	struct ifreq r = {0};

	memcpy(r.ifr_name, dev, IF_NAMESIZE);
	if (ioctl(fd, SIOCGIFFLAGS, &r))
		return errno == ENODEV ? INTERFACE_GONE : INTERFACE_WORKS;
	if (!(r.ifr_flags & IFF_UP))
		return INTERFACE_DOWN;
	if (!(r.ifr_flags & IFF_RUNNING))
		return INTERFACE_CARRIER;
	return owned ? INTERFACE_WORKS : INTERFACE_ADDRESS;
}

/* An address may move to another interface. */
static void find(char dev[IF_NAMESIZE], const struct host *host, const struct endpoint *addr)
{
	int index = host_dev(host, addr);

	if (index)
		(void)if_indextoname((unsigned)index, dev);
}

static void report(const struct relay_local *local, const char *dev, enum interface_state state)
{
	static const char *const text[] = {
#define X(id, text) text,
		INTERFACE_STATES(X)
#undef X
	};
	char addr[ENDPOINT_STRLEN];

	endpoint_fmt_addr(&local->addr, addr);
	if (state == INTERFACE_WORKS)
		log_info("interface %s (%s, %s) works again", local->name, addr, dev);
	else
		log_err("interface %s (%s, %s) %s: media of its calls is lost", local->name, addr,
			dev, text[state]);
}

void interfaces_tick(struct interfaces *f, const struct host *host)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	for (uint32_t i = 0; i < f->n && fd >= 0; i++) {
		const struct relay_local *local = f->one[i].local;
		enum interface_state state;

		find(f->one[i].dev, host, &local->addr);
		if (!f->one[i].dev[0])
			continue;
		state = look(fd, f->one[i].dev, host_owns(host, &local->addr));
		if (state != f->one[i].state)
			report(local, f->one[i].dev, state);
		f->one[i].state = state;
	}
	if (fd >= 0)
		close(fd);
}
