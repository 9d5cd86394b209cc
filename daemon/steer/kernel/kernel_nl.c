/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes and reads nf_xcipher's messages (steer/kernel/kernel_nl.h). Every request has its own
 * number. Messages other than the answer to the last request are skipped: answers to abandoned
 * requests, events. */
#include "steer/kernel/kernel_nl.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/secmem.h"
#include "nf_xcipher_ring.h"

#define REQUEST_LEN 4096u
#define ANSWER_LEN  32768u /* the kernel's limit for one message of a dump */

struct knl {
	int fd;
	uint16_t family;
	uint32_t group; /* of events */
	uint32_t seq;
	char said[160]; /* of the last error */
	_Alignas(struct nlmsghdr) char request[REQUEST_LEN];
	_Alignas(struct nlmsghdr) char answer[ANSWER_LEN];
};

/* --- Requests --------------------------------------------------------------------------------- */

static struct nlmsghdr *request(
	struct knl *k, uint16_t type, uint8_t cmd, uint8_t version, uint16_t flags)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(k->request);
	struct genlmsghdr *g;

	h->nlmsg_type = type;
	h->nlmsg_flags = NLM_F_REQUEST | flags;
	h->nlmsg_seq = ++k->seq;
	g = mnl_nlmsg_put_extra_header(h, sizeof(*g));
	g->cmd = cmd;
	g->version = version;
	return h;
}

static struct nlmsghdr *command(struct knl *k, enum nfx_cmd cmd, uint16_t flags)
{
	return request(k, k->family, (uint8_t)cmd, NFX_VERSION, flags);
}

/* Reads the kernel's error text. Only the header of the failed message is included
 * (NETLINK_CAP_ACK). */
static void read_words(struct knl *k, const struct nlmsghdr *m)
{
	const struct nlattr *a;

	k->said[0] = 0;
	if (!(m->nlmsg_flags & NLM_F_ACK_TLVS) || !(m->nlmsg_flags & NLM_F_CAPPED))
		return;
	mnl_attr_for_each(a, m, sizeof(struct nlmsgerr))
	{
		if (mnl_attr_get_type(a) != NLMSGERR_ATTR_MSG)
			continue;
		snprintf(k->said, sizeof(k->said), "%.*s", (int)mnl_attr_get_payload_len(a),
			(const char *)mnl_attr_get_payload(a));
	}
}

const char *knl_said(const struct knl *k)
{
	return k->said;
}

/* Sends the request and calls read() for each message of the answer, up to its acknowledgement or
 * the end of a dump. Requests have NLM_F_ACK, so an acknowledgement always follows. */
static int ask(struct knl *k, const struct nlmsghdr *h,
	void (*read)(void *, const struct nlmsghdr *), void *arg)
{
	ssize_t n;

	do
		n = send(k->fd, h, h->nlmsg_len, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	for (;;) {
		const struct nlmsghdr *m = (const struct nlmsghdr *)k->answer;
		int len;

		n = recv(k->fd, k->answer, sizeof(k->answer), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		if (n == 0)
			return -EPIPE;
		for (len = (int)n; mnl_nlmsg_ok(m, len); m = mnl_nlmsg_next(m, &len)) {
			if (m->nlmsg_seq != k->seq)
				continue;
			if (m->nlmsg_type == NLMSG_DONE)
				return mnl_nlmsg_get_payload_len(m) >= sizeof(int)
					? *(const int *)mnl_nlmsg_get_payload(m)
					: 0;
			if (m->nlmsg_type != NLMSG_ERROR) {
				if (read)
					read(arg, m);
			} else if (mnl_nlmsg_get_payload_len(m) >= sizeof(int)) {
				read_words(k, m);
				return ((const struct nlmsgerr *)mnl_nlmsg_get_payload(m))->error;
			}
		}
	}
}

static uint32_t addr_len(const struct endpoint *e)
{
	return e->family == AF_INET6 ? 16 : 4;
}

static void put_local(struct nlmsghdr *h, const struct endpoint *local)
{
	mnl_attr_put_u8(h, NFX_A_FAMILY, local->family);
	mnl_attr_put(h, NFX_A_ADDR, addr_len(local), local->addr);
	mnl_attr_put_u16(h, NFX_A_PORT, htons(local->port));
}

static void put_dest(struct nlmsghdr *h, const struct knl_dest *d)
{
	struct nlattr *nest = mnl_attr_nest_start(h, NFX_A_DEST);

	mnl_attr_put(h, NFX_D_ADDR, addr_len(&d->to), d->to.addr);
	mnl_attr_put_u16(h, NFX_D_PORT, htons(d->to.port));
	mnl_attr_put(h, NFX_D_LOCAL_ADDR, addr_len(&d->from), d->from.addr);
	mnl_attr_put_u16(h, NFX_D_LOCAL_PORT, htons(d->from.port));
	if (d->tos >= 0)
		mnl_attr_put_u8(h, NFX_D_TOS, (uint8_t)d->tos);
	mnl_attr_nest_end(h, nest);
}

int knl_target_set(struct knl *k, const struct knl_target *t)
{
	struct nlmsghdr *h = command(k, NFX_CMD_TARGET_SET, NLM_F_ACK | NLM_F_CREATE);

	put_local(h, &t->local);
	mnl_attr_put_u8(h, NFX_A_ACTION, t->action);
	mnl_attr_put_u8(h, NFX_A_RTCP_ACTION, t->rtcp_action);
	mnl_attr_put_u16(h, NFX_A_QUEUE, t->queue);
	mnl_attr_put_u32(h, NFX_A_FLAGS, t->flags);
	mnl_attr_put_u64(h, NFX_A_COOKIE, t->cookie);
	if (t->source.family) {
		mnl_attr_put(h, NFX_A_SOURCE_ADDR, addr_len(&t->source), t->source.addr);
		mnl_attr_put_u16(h, NFX_A_SOURCE_PORT, htons(t->source.port));
		mnl_attr_put_u8(h, NFX_A_MISMATCH, t->mismatch);
	}
	if (t->only_ssrc)
		mnl_attr_put_u32(h, NFX_A_SSRC, t->ssrc);
	if (t->rate)
		mnl_attr_put_u32(h, NFX_A_RATE, t->rate);
	if (t->source_rate)
		mnl_attr_put_u32(h, NFX_A_SOURCE_RATE, t->source_rate);
	if (t->silence_ms)
		mnl_attr_put_u32(h, NFX_A_SILENCE_MS, t->silence_ms);
	if (t->if_queued)
		mnl_attr_put_u64(h, NFX_A_IF_QUEUED, t->queued);
	if (t->dests) {
		struct nlattr *nest = mnl_attr_nest_start(h, NFX_A_DESTS);

		for (uint32_t i = 0; i < t->dests && i < KNL_DESTS; i++)
			put_dest(h, &t->dest[i]);
		mnl_attr_nest_end(h, nest);
	}
	return ask(k, h, NULL, NULL);
}

int knl_target_del(struct knl *k, const struct endpoint *local)
{
	struct nlmsghdr *h = command(k, NFX_CMD_TARGET_DEL, NLM_F_ACK);

	put_local(h, local);
	return ask(k, h, NULL, NULL);
}

int knl_guard_set(struct knl *k, const struct endpoint *local, const struct guard *g)
{
	struct nlmsghdr *h = command(k, NFX_CMD_GUARD_SET, NLM_F_ACK);
	size_t len = sizeof(g->window);
	int res;

	put_local(h, local);
	if (g) {
		len = g->window.flags & (GUARD_TAGS | GUARD_MACS) ? sizeof(*g) : len;
		mnl_attr_put(h, NFX_A_GUARD, len, g);
	}
	res = ask(k, h, NULL, NULL);
	secmem_wipe(h, h->nlmsg_len);
	return res;
}

/* --- Answers ---------------------------------------------------------------------------------- */

static const struct nlattr *first_attr(const struct nlmsghdr *h)
{
	return mnl_nlmsg_get_payload_offset(h, sizeof(struct genlmsghdr));
}

#define each_attr(a, h)                                                                          \
	for ((a) = first_attr(h); mnl_attr_ok(                                                   \
		     a, (int)((const char *)mnl_nlmsg_get_payload_tail(h) - (const char *)(a))); \
		(a) = mnl_attr_next(a))

static uint32_t get_u32(const struct nlattr *a)
{
	return mnl_attr_get_payload_len(a) >= 4 ? mnl_attr_get_u32(a) : 0;
}

static uint64_t get_u64(const struct nlattr *a)
{
	return mnl_attr_get_payload_len(a) >= 8 ? mnl_attr_get_u64(a) : 0;
}

static void read_peer(void *arg, const struct nlmsghdr *h)
{
	struct knl_peer *out = arg;
	const struct nlattr *a;

	each_attr(a, h)
	{
		switch (mnl_attr_get_type(a)) {
		case NFX_A_VERSION:
			out->version = get_u32(a);
			break;
		case NFX_A_FEATURES:
			out->features = get_u32(a);
			break;
		case NFX_A_MARK:
			out->mark = get_u32(a);
			break;
		case NFX_A_TARGETS:
			out->adopted = get_u32(a);
			break;
		case NFX_A_MAX_TARGETS:
			out->max_targets = get_u32(a);
			break;
		case NFX_A_MAX_DESTS:
			out->max_dests = get_u32(a);
			break;
		case NFX_A_RELEASE:
			for (size_t i = 0;
				i + 1 < sizeof(out->release) && i < mnl_attr_get_payload_len(a);
				i++) {
				char c = ((const char *)mnl_attr_get_payload(a))[i];

				if (!c)
					break;
				out->release[i] = c > ' ' && c < 0x7f ? c : '?';
			}
			break;
		}
	}
}

int knl_hello(
	struct knl *k, uint32_t owner, uint32_t grace_ms, uint32_t wanted, struct knl_peer *out)
{
	struct nlmsghdr *h = command(k, NFX_CMD_HELLO, NLM_F_ACK);
	int err;

	mnl_attr_put_u32(h, NFX_A_VERSION, NFX_VERSION);
	mnl_attr_put_u32(h, NFX_A_FEATURES, wanted);
	mnl_attr_put_u32(h, NFX_A_OWNER, owner);
	mnl_attr_put_u32(h, NFX_A_GRACE_MS, grace_ms);
	memset(out, 0, sizeof(*out));
	err = ask(k, h, read_peer, out);
	if (!err && out->version != NFX_VERSION)
		err = -EPROTONOSUPPORT;
	return err;
}

static void read_stats(struct knl_seen *out, const struct nlattr *nest)
{
	const struct nlattr *a;

	mnl_attr_for_each_nested(a, nest)
	{
		if (mnl_attr_get_type(a) < NFX_S_COUNT)
			out->stats[mnl_attr_get_type(a)] = get_u64(a);
	}
}

static void seen_from(struct knl_seen *out, const struct nlmsghdr *h)
{
	const struct nlattr *a;
	size_t len;

	memset(out, 0, sizeof(*out));
	out->last_seen_ms = UINT64_MAX;
	each_attr(a, h)
	{
		len = mnl_attr_get_payload_len(a);
		switch (mnl_attr_get_type(a)) {
		case NFX_A_FAMILY:
			out->local.family = len ? mnl_attr_get_u8(a) : 0;
			break;
		case NFX_A_ADDR:
			memcpy(out->local.addr, mnl_attr_get_payload(a), len < 16 ? len : 16);
			break;
		case NFX_A_PORT:
			out->local.port = len >= 2 ? be16(mnl_attr_get_payload(a)) : 0;
			break;
		case NFX_A_ACTION:
			out->action = len ? mnl_attr_get_u8(a) : 0;
			break;
		case NFX_A_COOKIE:
			out->cookie = get_u64(a);
			break;
		case NFX_A_SEQ:
			out->has_seq = len >= 2;
			out->seq = len >= 2 ? mnl_attr_get_u16(a) : 0;
			break;
		case NFX_A_LAST_SEEN_MS:
			out->last_seen_ms = get_u64(a);
			break;
		case NFX_A_STATS:
			read_stats(out, a);
			break;
		}
	}
}

static void read_one(void *arg, const struct nlmsghdr *h)
{
	seen_from(arg, h);
}

int knl_target_get(struct knl *k, const struct endpoint *local, struct knl_seen *out)
{
	struct nlmsghdr *h = command(k, NFX_CMD_TARGET_GET, NLM_F_ACK);

	put_local(h, local);
	return ask(k, h, read_one, out);
}

int knl_totals(struct knl *k, uint64_t stats[NFX_S_COUNT])
{
	struct knl_seen seen = {0};
	int err = ask(k, command(k, NFX_CMD_STATS_GET, NLM_F_ACK), read_one, &seen);

	memcpy(stats, seen.stats, sizeof(seen.stats));
	return err;
}

struct dump {
	void (*put)(void *arg, const struct knl_seen *seen);
	void *arg;
};

static void read_each(void *arg, const struct nlmsghdr *h)
{
	const struct dump *d = arg;
	struct knl_seen seen;

	seen_from(&seen, h);
	d->put(d->arg, &seen);
}

int knl_dump(struct knl *k, uint32_t owner, int action,
	void (*put)(void *arg, const struct knl_seen *seen), void *arg)
{
	struct nlmsghdr *h = command(k, NFX_CMD_TARGET_GET, NLM_F_DUMP);
	struct dump d = {put, arg};

	mnl_attr_put_u32(h, NFX_A_OWNER, owner);
	if (action >= 0)
		mnl_attr_put_u8(h, NFX_A_ACTION, (uint8_t)action);
	return ask(k, h, read_each, &d);
}

/* --- The packet ring -------------------------------------------------------------------------- */

static void read_ring(void *arg, const struct nlmsghdr *h)
{
	struct knl_ring_opened *out = arg;
	const struct nlattr *a;

	each_attr(a, h)
	{
		if (mnl_attr_get_type(a) == NFX_A_RING)
			out->number = get_u32(a);
		else if (mnl_attr_get_type(a) == NFX_A_RING_LOST)
			out->lost = get_u64(a);
	}
}

int knl_ring_open(struct knl *k, const struct knl_ring *r, struct knl_ring_opened *out)
{
	struct nlmsghdr *h = command(k, NFX_CMD_RING_OPEN, NLM_F_ACK);
	int err;

	mnl_attr_put_u64(h, NFX_A_RING_CONTROL, (uintptr_t)r->control);
	mnl_attr_put_u64(h, NFX_A_RING_MEMORY, (uintptr_t)r->memory);
	mnl_attr_put_u64(h, NFX_A_RING_LENGTH, r->length);
	mnl_attr_put_u32(h, NFX_A_RING_SLOTS, r->slots);
	mnl_attr_put_u32(h, NFX_A_RING_FIRST, r->first);
	mnl_attr_put_u32(h, NFX_A_RING_STRIDE, r->stride);
	mnl_attr_put_u32(h, NFX_A_RING_ROOM, r->room);
	mnl_attr_put_u32(h, NFX_A_RING_SENDS, r->sends);
	mnl_attr_put_u32(h, NFX_A_RING_EVENT_FD, (uint32_t)r->event_fd);
	mnl_attr_put_u32(h, NFX_A_RING_BELL_FD, (uint32_t)r->bell_fd);
	if (r->poll_fd >= 0)
		mnl_attr_put_u32(h, NFX_A_RING_POLL_FD, (uint32_t)r->poll_fd);
	*out = (struct knl_ring_opened){.number = UINT32_MAX};
	err = ask(k, h, read_ring, out);
	return err || out->number < NFX_RING_MAX ? err : -EPROTO;
}

int knl_ring_close(struct knl *k)
{
	return ask(k, command(k, NFX_CMD_RING_CLOSE, NLM_F_ACK), NULL, NULL);
}

/* --- The socket ------------------------------------------------------------------------------- */

/* The only group, or the one of this name. */
static uint32_t read_group(const struct nlattr *groups)
{
	const struct nlattr *g, *a;
	uint32_t id = 0;
	bool ours = false;

	mnl_attr_for_each_nested(g, groups)
	{
		mnl_attr_for_each_nested(a, g)
		{
			if (mnl_attr_get_type(a) == CTRL_ATTR_MCAST_GRP_ID)
				id = get_u32(a);
			else if (mnl_attr_get_type(a) == CTRL_ATTR_MCAST_GRP_NAME)
				ours = mnl_attr_get_payload_len(a) >= sizeof(NFX_MCGRP_EVENTS) &&
					memcmp(mnl_attr_get_payload(a), NFX_MCGRP_EVENTS,
						sizeof(NFX_MCGRP_EVENTS)) == 0;
		}
		if (ours)
			return id;
	}
	return 0;
}

static void read_family(void *arg, const struct nlmsghdr *h)
{
	struct knl *k = arg;
	const struct nlattr *a;

	each_attr(a, h)
	{
		if (mnl_attr_get_type(a) == CTRL_ATTR_FAMILY_ID && mnl_attr_get_payload_len(a) >= 2)
			k->family = mnl_attr_get_u16(a);
		else if (mnl_attr_get_type(a) == CTRL_ATTR_MCAST_GROUPS)
			k->group = read_group(a);
	}
}

/* Finds one family in a list of all. */
static void read_named(void *arg, const struct nlmsghdr *h)
{
	const struct nlattr *a;

	each_attr(a, h)
	{
		if (mnl_attr_get_type(a) == CTRL_ATTR_FAMILY_NAME &&
			mnl_attr_get_payload_len(a) == sizeof(NFX_FAMILY_NAME) &&
			memcmp(mnl_attr_get_payload(a), NFX_FAMILY_NAME, sizeof(NFX_FAMILY_NAME)) ==
				0) {
			read_family(arg, h);
			return;
		}
	}
}

/* --- Events ----------------------------------------------------------------------------------- */

static void event_from(struct knl_event *out, const struct nlmsghdr *h)
{
	struct knl_seen seen;
	const struct nlattr *a;
	size_t len;

	seen_from(&seen, h);
	*out = (struct knl_event){.local = seen.local, .cookie = seen.cookie};
	each_attr(a, h)
	{
		len = mnl_attr_get_payload_len(a);
		switch (mnl_attr_get_type(a)) {
		case NFX_A_EVENT:
			out->event = len ? mnl_attr_get_u8(a) : 0;
			break;
		case NFX_A_OWNER:
			out->owner = get_u32(a);
			break;
		case NFX_A_SOURCE_ADDR:
			out->source.family = out->local.family;
			memcpy(out->source.addr, mnl_attr_get_payload(a), len < 16 ? len : 16);
			break;
		case NFX_A_SOURCE_PORT:
			out->source.port = len >= 2 ? be16(mnl_attr_get_payload(a)) : 0;
			break;
		}
	}
}

int knl_listen(struct knl *k)
{
	int group = (int)k->group;

	if (!group)
		return -EOPNOTSUPP;
	return setsockopt(k->fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group))
		? -errno
		: 0;
}

int knl_fd(const struct knl *k)
{
	return k->fd;
}

int knl_events(struct knl *k, void (*put)(void *arg, const struct knl_event *e), void *arg)
{
	for (;;) {
		const struct nlmsghdr *m = (const struct nlmsghdr *)k->answer;
		ssize_t n = recv(k->fd, k->answer, sizeof(k->answer), MSG_DONTWAIT);
		struct knl_event e;
		int len = (int)n;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0 ? -EPIPE : errno == EAGAIN ? 0 : -errno;
		for (; mnl_nlmsg_ok(m, len); m = mnl_nlmsg_next(m, &len)) {
			const struct genlmsghdr *g = mnl_nlmsg_get_payload(m);

			if (m->nlmsg_type != k->family || g->cmd != NFX_CMD_EVENT)
				continue;
			event_from(&e, m);
			put(arg, &e);
		}
	}
}

/* By number: a look-up by name would make the kernel load the module. */
int knl_alive(struct knl *k)
{
	struct nlmsghdr *h = request(k, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1, NLM_F_ACK);

	mnl_attr_put_u16(h, CTRL_ATTR_FAMILY_ID, k->family);
	return ask(k, h, NULL, NULL);
}

/* Lists all families, for the same reason. */
int knl_again(struct knl *k)
{
	struct nlmsghdr *h = request(k, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1, NLM_F_DUMP);
	uint16_t before = k->family;
	int err;

	k->family = 0;
	k->group = 0;
	err = ask(k, h, read_named, k);
	if (k->family)
		return err;
	k->family = before; /* family 0 would acknowledge any request */
	return err ? err : -ENOENT;
}

int knl_open_fd(struct knl **out, int fd)
{
	struct knl *k = calloc(1, sizeof(*k));
	/* The kernel answers within the request. The timeout is a safeguard. */
	struct timeval patience = {.tv_sec = 1};
	struct nlmsghdr *h;
	int err, on = 1;

	if (!k) {
		close(fd);
		return -ENOMEM;
	}
	k->fd = fd;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	(void)setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	(void)setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
	h = request(k, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1, NLM_F_ACK);
	mnl_attr_put_strz(h, CTRL_ATTR_FAMILY_NAME, NFX_FAMILY_NAME);
	err = ask(k, h, read_family, k);
	if (!err && !k->family)
		err = -ENOENT;
	if (err) {
		knl_close(k);
		return err;
	}
	*out = k;
	return 0;
}

int knl_open(struct knl **out)
{
	struct sockaddr_nl local = {.nl_family = AF_NETLINK};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	int err;

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&local, sizeof(local))) {
		err = -errno;
		close(fd);
		return err;
	}
	return knl_open_fd(out, fd);
}

void knl_close(struct knl *k)
{
	if (!k)
		return;
	close(k->fd);
	free(k);
}
