/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens nfx's socket, and sends messages that the module must refuse without harm: random
 * attributes of random lengths, and valid messages with bytes changed, truncated, or wrongly
 * nested. */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#include "nfx.h"

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000;
}

/* --- The socket ------------------------------------------------------------------------------- */

static void groups(struct nfx *x, const struct nlattr *list)
{
	const struct nlattr *g, *a;

	mnl_attr_for_each_nested(g, list)
		mnl_attr_for_each_nested(a, g) if (mnl_attr_get_type(a) == CTRL_ATTR_MCAST_GRP_ID)
			x->group = mnl_attr_get_u32(a);
}

static int netlink(void)
{
	struct sockaddr_nl sa = {.nl_family = AF_NETLINK};
	struct timeval wait = {.tv_sec = 5};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC), on = 1;

	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)))
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	return fd;
}

int nfx_open(struct nfx *x)
{
	struct nlmsghdr *h;
	const struct nlattr *a;
	ssize_t n;

	x->events = -1;
	x->fd = netlink();
	if (x->fd < 0)
		return x->fd;
	x->family = GENL_ID_CTRL;
	h = nfx_request(x, CTRL_CMD_GETFAMILY, 0);
	mnl_attr_put_strz(h, CTRL_ATTR_FAMILY_NAME, NFX_FAMILY_NAME);
	if (send(x->fd, h, h->nlmsg_len, 0) < 0)
		return -errno;
	n = recv(x->fd, x->in, sizeof(x->in), 0);
	h = (struct nlmsghdr *)x->in;
	if (n < (ssize_t)sizeof(*h) || h->nlmsg_type == NLMSG_ERROR)
		return -ENOENT;
	mnl_attr_for_each(a, h, sizeof(struct genlmsghdr))
	{
		if (mnl_attr_get_type(a) == CTRL_ATTR_FAMILY_ID)
			x->family = mnl_attr_get_u16(a);
		if (mnl_attr_get_type(a) == CTRL_ATTR_MCAST_GROUPS)
			groups(x, a);
	}
	return 0;
}

int nfx_subscribe(struct nfx *x)
{
	x->events = netlink();
	if (x->events < 0)
		return x->events;
	return setsockopt(
		       x->events, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &x->group, sizeof(x->group))
		? -errno
		: 0;
}

/* --- Fuzz ------------------------------------------------------------------------------------- */

static uint32_t some(uint32_t n)
{
	return (uint32_t)rand() % n;
}

static const struct {
	uint16_t attr, len;
} RIGHT[] = {{NFX_A_VERSION, 4}, {NFX_A_FEATURES, 4}, {NFX_A_OWNER, 4}, {NFX_A_GRACE_MS, 4},
	{NFX_A_FAMILY, 1}, {NFX_A_ADDR, 4}, {NFX_A_PORT, 2}, {NFX_A_ACTION, 1},
	{NFX_A_RTCP_ACTION, 1}, {NFX_A_QUEUE, 2}, {NFX_A_FLAGS, 4}, {NFX_A_COOKIE, 8},
	{NFX_A_SOURCE_ADDR, 4}, {NFX_A_SOURCE_PORT, 2}, {NFX_A_MISMATCH, 1}, {NFX_A_SSRC, 4},
	{NFX_A_RATE, 4}, {NFX_A_SOURCE_RATE, 4}, {NFX_A_SILENCE_MS, 4}};

static void random_attr(struct nlmsghdr *h, int depth)
{
	uint8_t data[64];
	uint32_t i = some(sizeof(RIGHT) / sizeof(RIGHT[0])), len;

	for (size_t k = 0; k < sizeof(data); k++)
		data[k] = some(3) ? (uint8_t)some(4) : (uint8_t)rand();
	if (some(4) == 0 && depth < 6) { /* nested, validly or not */
		static const uint16_t NESTS[] = {
			NFX_A_DESTS, NFX_A_DEST, NFX_A_STATS, NFX_A_ADDR, 300};
		struct nlattr *nest = mnl_attr_nest_start(h, NESTS[some(5)]);

		for (uint32_t n = some(6); n; n--)
			random_attr(h, depth + 1);
		mnl_attr_nest_end(h, nest);
		return;
	}
	len = some(3) ? RIGHT[i].len : some(sizeof(data));
	if (RIGHT[i].attr == NFX_A_FAMILY)
		data[0] = some(4) ? 2 : (uint8_t)(some(2) ? 10 : rand());
	mnl_attr_put(h, some(8) ? RIGHT[i].attr : (uint16_t)some(60), len, data);
}

/* A valid target out of a small set, so that some exist to be changed and removed. */
static void sound(struct nlmsghdr *h)
{
	uint8_t addr[4] = {10, 66, 0, (uint8_t)some(4)};
	struct nlattr *nest, *dest;

	mnl_attr_put_u8(h, NFX_A_FAMILY, 2);
	mnl_attr_put(h, NFX_A_ADDR, 4, addr);
	mnl_attr_put_u16(h, NFX_A_PORT, (uint16_t)some(16));
	mnl_attr_put_u8(h, NFX_A_ACTION, (uint8_t)some(5));
	mnl_attr_put_u16(h, NFX_A_QUEUE, (uint16_t)some(3));
	if (some(2))
		mnl_attr_put_u32(h, NFX_A_SILENCE_MS, some(50));
	if (some(2)) /* sometimes an unknown flag */
		mnl_attr_put_u32(h, NFX_A_FLAGS, some(NFX_FLAGS_ALL + 2));
	nest = mnl_attr_nest_start(h, NFX_A_DESTS);
	for (uint32_t n = some(40) ? some(4) : 200; n; n--) {
		dest = mnl_attr_nest_start(h, NFX_A_DEST);
		mnl_attr_put(h, NFX_D_ADDR, some(9) ? 4 : some(20), addr);
		mnl_attr_put_u16(h, NFX_D_PORT, (uint16_t)rand());
		mnl_attr_put(h, NFX_D_LOCAL_ADDR, 4, addr);
		mnl_attr_put_u16(h, NFX_D_LOCAL_PORT, (uint16_t)rand());
		mnl_attr_nest_end(h, dest);
	}
	mnl_attr_nest_end(h, nest);
}

int nfx_fuzz(struct nfx *x, uint32_t ms, unsigned seed)
{
	uint64_t end = now_ms() + ms;
	uint32_t sent = 0, taken = 0, refused = 0;

	srand(seed);
	while (now_ms() < end) {
		static const uint16_t FLAGS[] = {0, NLM_F_CREATE, NLM_F_CREATE | NLM_F_EXCL,
			NLM_F_DUMP, NLM_F_ECHO, NLM_F_CREATE};
		/* Few HELLOs, because each changes the owner. */
		uint8_t cmd =
			some(12) ? (uint8_t)(NFX_CMD_TARGET_SET + some(5)) : (uint8_t)some(12);
		struct nlmsghdr *h = nfx_request(x, cmd, (uint16_t)(NLM_F_ACK | FLAGS[some(6)]));
		const char *text;
		int err;

		if (cmd == NFX_CMD_FLUSH && some(50))
			cmd = NFX_CMD_TARGET_SET;
		((struct genlmsghdr *)mnl_nlmsg_get_payload(h))->cmd = cmd;
		if (some(2))
			sound(h);
		for (uint32_t n = some(5); n; n--)
			random_attr(h, 0);
		for (uint32_t n = some(3) ? 0 : some(6); n; n--)
			((uint8_t *)h)[NLMSG_HDRLEN + some(h->nlmsg_len - NLMSG_HDRLEN)] =
				(uint8_t)rand();
		if (some(10) == 0)
			h->nlmsg_len -= some(h->nlmsg_len - NLMSG_HDRLEN + 1);
		err = nfx_ask(x, h, false, &text);
		sent++;
		taken += err == 0;
		refused += err != 0;
		if (err == -ETIMEDOUT)
			return err;
	}
	printf("sent=%u taken=%u refused=%u\n", sent, taken, refused);
	return 0;
}
