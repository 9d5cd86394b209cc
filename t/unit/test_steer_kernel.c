/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests of the daemon to nf_xcipher, and its handling of replies. A thread plays the module at
 * the other end of a socket. t/kernel tests the module in a virtual machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nf_xcipher_ring.h"
#include "steer/kernel/kernel_int.h"
#include "steer/steer.h"

#define FAMILY 77
#define LAST   4096

struct peer {
	int fd[2];
	pthread_t thread;
	/* The behaviour of the mock module. */
	bool there;
	uint16_t family;
	uint32_t version, features;
	int error;
	uint32_t dump; /* number of existing targets */
	uint32_t ring; /* number of the one that it opens */
	uint64_t lost; /* in earlier ones */
	bool chatty;   /* first sends messages that were not requested */
	uint32_t deleted;
	uint16_t last_deleted; /* port */
	/* The last request. */
	_Alignas(struct nlmsghdr) char last[LAST];
};

static void reply(struct peer *p, struct nlmsghdr *h)
{
	assert_int_equal(send(p->fd[1], h, h->nlmsg_len, 0), h->nlmsg_len);
}

static struct nlmsghdr *message(char *buf, const struct nlmsghdr *to, uint16_t type, uint8_t cmd)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *g = mnl_nlmsg_put_extra_header(h, sizeof(*g));

	h->nlmsg_type = type;
	h->nlmsg_seq = to->nlmsg_seq;
	g->cmd = cmd;
	return h;
}

static void end(struct peer *p, const struct nlmsghdr *to, uint16_t type, int error)
{
	_Alignas(struct nlmsghdr) char buf[256];
	struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
	struct nlmsgerr *e = mnl_nlmsg_put_extra_header(h, sizeof(*e));

	h->nlmsg_type = type;
	h->nlmsg_seq = to->nlmsg_seq;
	e->error = error;
	reply(p, h);
}

static void family_named(struct peer *p, const struct nlmsghdr *to, const char *name, uint16_t id)
{
	_Alignas(struct nlmsghdr) char buf[512];
	struct nlmsghdr *h = message(buf, to, GENL_ID_CTRL, CTRL_CMD_NEWFAMILY);

	mnl_attr_put_u16(h, CTRL_ATTR_FAMILY_ID, id);
	mnl_attr_put_strz(h, CTRL_ATTR_FAMILY_NAME, name);
	reply(p, h);
}

/* Finds the requested target, alone or in a dump. */
static void family(struct peer *p, const struct nlmsghdr *to)
{
	bool all = (to->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;

	if (all)
		family_named(p, to, "nlctrl", GENL_ID_CTRL);
	if (p->there)
		family_named(p, to, NFX_FAMILY_NAME, p->family);
	if (all)
		family_named(p, to, NFX_FAMILY_NAME "2", 99);
	end(p, to, all ? NLMSG_DONE : NLMSG_ERROR, all || p->there ? 0 : -ENOENT);
}

static void hello(struct peer *p, const struct nlmsghdr *to)
{
	_Alignas(struct nlmsghdr) char buf[512];
	struct nlmsghdr *h = message(buf, to, FAMILY, NFX_CMD_HELLO);

	mnl_attr_put_u32(h, NFX_A_VERSION, p->version);
	mnl_attr_put_u32(h, NFX_A_FEATURES, p->features);
	mnl_attr_put_u32(h, NFX_A_MARK, 0x584e0001);
	mnl_attr_put_u32(h, NFX_A_TARGETS, 3);
	mnl_attr_put_u32(h, NFX_A_MAX_DESTS, 8);
	mnl_attr_put_strz(h, NFX_A_RELEASE, "1.2.3\n");
	mnl_attr_put_u32(h, NFX_A_COUNT + 5, 99); /* from a later release */
	reply(p, h);
	end(p, to, NLMSG_ERROR, p->error);
}

static void target(struct peer *p, const struct nlmsghdr *to, uint32_t i)
{
	_Alignas(struct nlmsghdr) char buf[1024];
	struct nlmsghdr *h = message(buf, to, FAMILY, NFX_CMD_TARGET_GET);
	uint8_t addr[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = (uint8_t)i};
	uint8_t port[2] = {0x75, (uint8_t)(0x30 + i)};
	struct nlattr *nest;

	mnl_attr_put_u8(h, NFX_A_FAMILY, i & 1 ? AF_INET6 : AF_INET);
	mnl_attr_put(h, NFX_A_ADDR, i & 1 ? 16 : 4, addr);
	mnl_attr_put(h, NFX_A_PORT, 2, port);
	mnl_attr_put_u8(h, NFX_A_ACTION, NFX_ACTION_RELAY);
	mnl_attr_put_u64(h, NFX_A_COOKIE, 0x1122334400000000ull + i);
	if (i)
		mnl_attr_put_u64(h, NFX_A_LAST_SEEN_MS, 10 * i);
	nest = mnl_attr_nest_start(h, NFX_A_STATS);
	mnl_attr_put_u64(h, NFX_S_RTP_PACKETS, 100 + i);
	mnl_attr_put_u64(h, NFX_S_TTL, 7);
	mnl_attr_put_u64(h, NFX_S_COUNT + 3, 9); /* from a later release */
	mnl_attr_nest_end(h, nest);
	reply(p, h);
}

static void ring(struct peer *p, const struct nlmsghdr *to)
{
	_Alignas(struct nlmsghdr) char buf[256];
	struct nlmsghdr *h = message(buf, to, FAMILY, NFX_CMD_RING_OPEN);

	mnl_attr_put_u32(h, NFX_A_RING, p->ring);
	if (p->lost) /* older modules do not know it */
		mnl_attr_put_u64(h, NFX_A_RING_LOST, p->lost);
	if (!p->error)
		reply(p, h);
	end(p, to, NLMSG_ERROR, p->error);
}

static const struct nlattr *attr(const struct peer *p, uint16_t type)
{
	const struct nlmsghdr *h = (const struct nlmsghdr *)p->last;
	const struct nlattr *a;

	mnl_attr_for_each(
		a, h, sizeof(struct genlmsghdr)) if (mnl_attr_get_type(a) == type) return a;
	return NULL;
}

static void *play(void *arg)
{
	struct peer *p = arg;
	_Alignas(struct nlmsghdr) char buf[LAST];

	for (;;) {
		ssize_t n = recv(p->fd[1], buf, sizeof(buf), 0);
		const struct nlmsghdr *h = (const struct nlmsghdr *)buf;
		struct nlmsghdr other;

		if (n <= 0)
			return NULL;
		assert_true(mnl_nlmsg_ok(h, (int)n));
		memcpy(p->last, buf, (size_t)n);
		if (p->chatty) {
			other = *h;
			other.nlmsg_seq -= 1;
			end(p, &other, NLMSG_ERROR, -EIO);
			other.nlmsg_seq = 0;
			target(p, &other, 0);
		}
		if (h->nlmsg_type == GENL_ID_CTRL) {
			family(p, h);
			continue;
		}
		switch (((const struct genlmsghdr *)mnl_nlmsg_get_payload(h))->cmd) {
		case NFX_CMD_HELLO:
			hello(p, h);
			break;
		case NFX_CMD_RING_OPEN:
			ring(p, h);
			break;
		case NFX_CMD_TARGET_GET:
			for (uint32_t i = 0; i < p->dump; i++)
				target(p, h, i);
			if ((h->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP)
				end(p, h, NLMSG_DONE, p->error);
			else
				end(p, h, NLMSG_ERROR, p->dump ? 0 : -ENOENT);
			break;
		case NFX_CMD_TARGET_DEL:
			p->deleted++;
			p->last_deleted = be16(mnl_attr_get_payload(attr(p, NFX_A_PORT)));
			end(p, h, NLMSG_ERROR, p->error);
			break;
		default:
			end(p, h, NLMSG_ERROR, p->error);
		}
	}
}

static int setup(void **state)
{
	static struct peer p;

	memset(&p, 0, sizeof(p));
	p.there = true;
	p.family = FAMILY;
	p.version = NFX_VERSION;
	p.features = 0x7f;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p.fd), 0);
	assert_int_equal(pthread_create(&p.thread, NULL, play, &p), 0);
	*state = &p;
	return 0;
}

static int teardown(void **state)
{
	struct peer *p = *state;

	shutdown(p->fd[1], SHUT_RDWR);
	pthread_join(p->thread, NULL);
	close(p->fd[1]);
	return 0;
}

static void what_the_module_is_comes_with_hello(void **state)
{
	struct peer *p = *state;
	struct knl_peer said;
	struct knl *k;

	p->chatty = true;
	assert_int_equal(knl_open_fd(&k, p->fd[0]), 0);
	assert_int_equal(knl_hello(k, 221, 10000, 3, &said), 0);
	assert_int_equal(said.version, NFX_VERSION);
	assert_int_equal(said.features, 0x7f);
	assert_int_equal(said.mark, 0x584e0001);
	assert_int_equal(said.adopted, 3);
	assert_int_equal(said.max_dests, 8);
	assert_string_equal(said.release, "1.2.3?");
	assert_int_equal(mnl_attr_get_u32(attr(p, NFX_A_OWNER)), 221);
	assert_int_equal(mnl_attr_get_u32(attr(p, NFX_A_GRACE_MS)), 10000);
	assert_int_equal(mnl_attr_get_u32(attr(p, NFX_A_FEATURES)), 3);
	assert_int_equal(mnl_attr_get_u32(attr(p, NFX_A_VERSION)), NFX_VERSION);
	knl_close(k);
}

/* A request by name would load the module, so the family is searched in the list of all. Requests
 * to family 0 would be acknowledged. */
static void a_module_that_is_back_has_another_number(void **state)
{
	struct peer *p = *state;
	const struct endpoint e = {.addr = {192, 0, 2, 1}, .port = 30000, .family = AF_INET};
	struct knl *k;

	assert_int_equal(knl_open_fd(&k, p->fd[0]), 0);
	p->there = false;
	assert_int_equal(knl_again(k), -ENOENT);
	assert_int_equal(((const struct nlmsghdr *)p->last)->nlmsg_flags & NLM_F_DUMP, NLM_F_DUMP);
	assert_int_equal(knl_target_del(k, &e), 0);
	assert_int_equal(((const struct nlmsghdr *)p->last)->nlmsg_type, FAMILY);
	p->there = true;
	p->family = FAMILY + 1;
	assert_int_equal(knl_again(k), 0);
	assert_int_equal(knl_target_del(k, &e), 0);
	assert_int_equal(((const struct nlmsghdr *)p->last)->nlmsg_type, FAMILY + 1);
	knl_close(k);
}

static void another_version_is_refused_and_named(void **state)
{
	struct peer *p = *state;
	struct knl_peer said;
	struct knl *k;

	p->version = NFX_VERSION + 1;
	assert_int_equal(knl_open_fd(&k, p->fd[0]), 0);
	assert_int_equal(knl_hello(k, 1, 1, 1, &said), -EPROTONOSUPPORT);
	assert_int_equal(said.version, NFX_VERSION + 1);
	p->error = -EBUSY;
	assert_int_equal(knl_hello(k, 1, 1, 1, &said), -EBUSY);
	knl_close(k);
}

static void a_module_that_is_not_there_is_no_entry(void **state)
{
	struct peer *p = *state;
	struct knl *k;

	p->there = false;
	assert_int_equal(knl_open_fd(&k, p->fd[0]), -ENOENT);
}

static void a_target_is_written_whole(void **state)
{
	struct peer *p = *state;
	struct knl_target t = {
		.local = {.addr = {192, 0, 2, 1}, .port = 30000, .family = AF_INET},
		.action = NFX_ACTION_RELAY,
		.rtcp_action = NFX_ACTION_QUEUE,
		.queue = 221,
		.flags = NFX_FLAG_BYPASS,
		.cookie = 0x1122334455667788ull,
		.source = {.addr = {198, 51, 100, 7}, .port = 4000, .family = AF_INET},
		.mismatch = NFX_MISMATCH_PASS,
		.only_ssrc = true,
		.ssrc = 0xdeadbeef,
		.if_queued = true,
		.queued = 17,
		.dest = {{.to = {.addr = {203, 0, 113, 9}, .port = 5000, .family = AF_INET},
			.from = {.addr = {192, 0, 2, 1}, .port = 30002, .family = AF_INET},
			.tos = 184}},
		.dests = 1,
	};
	const struct nlattr *nest, *a;
	struct knl *k;
	int seen = 0;

	assert_int_equal(knl_open_fd(&k, p->fd[0]), 0);
	assert_int_equal(knl_target_set(k, &t), 0);
	assert_true(((struct nlmsghdr *)p->last)->nlmsg_flags & NLM_F_CREATE);
	assert_int_equal(mnl_attr_get_payload_len(attr(p, NFX_A_ADDR)), 4);
	assert_memory_equal(mnl_attr_get_payload(attr(p, NFX_A_ADDR)), t.local.addr, 4);
	assert_int_equal(be16(mnl_attr_get_payload(attr(p, NFX_A_PORT))), 30000);
	assert_int_equal(mnl_attr_get_u8(attr(p, NFX_A_ACTION)), NFX_ACTION_RELAY);
	assert_int_equal(mnl_attr_get_u8(attr(p, NFX_A_RTCP_ACTION)), NFX_ACTION_QUEUE);
	assert_int_equal(mnl_attr_get_u16(attr(p, NFX_A_QUEUE)), 221);
	assert_int_equal(mnl_attr_get_u64(attr(p, NFX_A_COOKIE)), t.cookie);
	assert_int_equal(be16(mnl_attr_get_payload(attr(p, NFX_A_SOURCE_PORT))), 4000);
	assert_int_equal(mnl_attr_get_u8(attr(p, NFX_A_MISMATCH)), NFX_MISMATCH_PASS);
	assert_int_equal(mnl_attr_get_u32(attr(p, NFX_A_SSRC)), 0xdeadbeef);
	assert_int_equal(mnl_attr_get_u64(attr(p, NFX_A_IF_QUEUED)), 17);
	nest = attr(p, NFX_A_DESTS);
	mnl_attr_for_each_nested(a, nest)
	{
		const struct nlattr *d;

		assert_int_equal(mnl_attr_get_type(a), NFX_A_DEST);
		mnl_attr_for_each_nested(d, a)
		{
			switch (mnl_attr_get_type(d)) {
			case NFX_D_ADDR:
				assert_memory_equal(mnl_attr_get_payload(d), t.dest[0].to.addr, 4);
				break;
			case NFX_D_PORT:
				assert_int_equal(be16(mnl_attr_get_payload(d)), 5000);
				break;
			case NFX_D_LOCAL_PORT:
				assert_int_equal(be16(mnl_attr_get_payload(d)), 30002);
				break;
			case NFX_D_TOS:
				assert_int_equal(mnl_attr_get_u8(d), 184);
				break;
			}
			seen++;
		}
	}
	assert_int_equal(seen, 5);
	/* Without a source and destinations, these attributes are absent. */
	t.source.family = 0;
	t.only_ssrc = false;
	t.dests = 0;
	p->error = -ENOSPC;
	assert_int_equal(knl_target_set(k, &t), -ENOSPC);
	assert_null(attr(p, NFX_A_SOURCE_ADDR));
	assert_null(attr(p, NFX_A_SSRC));
	assert_null(attr(p, NFX_A_DESTS));
	knl_close(k);
}

static void a_ring_is_described_and_numbered(void **state)
{
	struct peer *p = *state;
	static char control, memory;
	struct knl_ring r = {.control = &control,
		.memory = &memory,
		.length = 1ull << 25,
		.slots = 1024,
		.sends = 256,
		.first = 128,
		.stride = 3008,
		.room = 2048,
		.event_fd = 7,
		.bell_fd = 8,
		.poll_fd = -1};
	struct knl_ring_opened opened;
	struct knl *k;

	p->chatty = true;
	p->ring = NFX_RING_MAX - 1;
	assert_int_equal(knl_open_fd(&k, p->fd[0]), 0);
	assert_int_equal(knl_ring_open(k, &r, &opened), 0);
	assert_int_equal(opened.number, NFX_RING_MAX - 1);
	assert_int_equal(opened.lost, 0);
	p->lost = 12;
	assert_int_equal(mnl_attr_get_u64(attr(p, NFX_A_RING_CONTROL)), (uintptr_t)&control);
	assert_int_equal(mnl_attr_get_u64(attr(p, NFX_A_RING_MEMORY)), (uintptr_t)&memory);
	assert_int_equal(mnl_attr_get_u64(attr(p, NFX_A_RING_LENGTH)), 1ull << 25);
	assert_int_equal(mnl_attr_get_u32(attr(p, NFX_A_RING_SLOTS)), 1024);
	assert_int_equal(mnl_attr_get_u32(attr(p, NFX_A_RING_SENDS)), 256);
	assert_int_equal(mnl_attr_get_u32(attr(p, NFX_A_RING_FIRST)), 128);
	assert_int_equal(mnl_attr_get_u32(attr(p, NFX_A_RING_STRIDE)), 3008);
	assert_int_equal(mnl_attr_get_u32(attr(p, NFX_A_RING_ROOM)), 2048);
	assert_int_equal(mnl_attr_get_u32(attr(p, NFX_A_RING_EVENT_FD)), 7);
	assert_int_equal(mnl_attr_get_u32(attr(p, NFX_A_RING_BELL_FD)), 8);
	assert_null(attr(p, NFX_A_RING_POLL_FD)); /* an older module may not know it */
	r.poll_fd = 9;
	assert_int_equal(knl_ring_open(k, &r, &opened), 0);
	assert_int_equal(mnl_attr_get_u32(attr(p, NFX_A_RING_POLL_FD)), 9);
	assert_int_equal(opened.lost, 12);
	p->ring = NFX_RING_MAX; /* no doorbell has this number */
	assert_int_equal(knl_ring_open(k, &r, &opened), -EPROTO);
	p->error = -ENOMEM;
	assert_int_equal(knl_ring_open(k, &r, &opened), -ENOMEM);
	knl_close(k);
}

static void count(void *arg, const struct knl_seen *seen)
{
	uint32_t i = (*(uint32_t *)arg)++;

	assert_int_equal(seen->local.family, i & 1 ? AF_INET6 : AF_INET);
	assert_int_equal(seen->local.port, 0x7530 + i);
	assert_int_equal(seen->local.addr[15], i & 1 ? i : 0);
	assert_int_equal(seen->cookie, 0x1122334400000000ull + i);
	assert_int_equal(seen->action, NFX_ACTION_RELAY);
	assert_int_equal(seen->stats[NFX_S_RTP_PACKETS], 100 + i);
	assert_int_equal(seen->stats[NFX_S_TTL], 7);
	assert_int_equal(seen->stats[NFX_S_SENT], 0);
	assert_true(seen->last_seen_ms == (i ? 10 * i : UINT64_MAX));
}

static void a_dump_gives_every_target(void **state)
{
	struct peer *p = *state;
	struct knl_seen one;
	uint32_t n = 0;
	struct knl *k;

	p->dump = 50;
	assert_int_equal(knl_open_fd(&k, p->fd[0]), 0);
	assert_int_equal(knl_dump(k, 221, NFX_ACTION_RELAY, count, &n), 0);
	assert_int_equal(n, 50);
	assert_int_equal(mnl_attr_get_u32(attr(p, NFX_A_OWNER)), 221);
	assert_int_equal(mnl_attr_get_u8(attr(p, NFX_A_ACTION)), NFX_ACTION_RELAY);
	p->dump = 1;
	assert_int_equal(
		knl_target_get(k, &(struct endpoint){.family = AF_INET, .port = 1}, &one), 0);
	assert_int_equal(one.stats[NFX_S_RTP_PACKETS], 100);
	p->dump = 0;
	assert_int_equal(
		knl_target_get(k, &(struct endpoint){.family = AF_INET, .port = 1}, &one), -ENOENT);
	p->error = -EINTR; /* the table changed too often */
	assert_int_equal(knl_dump(k, 221, -1, count, &n), -EINTR);
	knl_close(k);
}

static void without_the_module_there_is_nfqueue_instead(void **state)
{
	struct steer_config cfg = {.workers = 1, .queue_num = 220};
	char err[256] = "";

	(void)state;
	if (access("/sys/module/nf_xcipher", F_OK) == 0)
		skip();
	assert_true(steer_kernel.open(&cfg, err, sizeof(err)) < 0);
	assert_non_null(strstr(err, "nf_xcipher is not loaded"));
	assert_ptr_equal(steer_kernel.instead, &steer_nfqueue);
}

static void heard(void *arg, const struct knl_event *e)
{
	uint32_t *n = arg;

	assert_int_equal(e->event, NFX_EVENT_SOURCE);
	assert_int_equal(e->owner, 221);
	assert_int_equal(e->cookie, 0x1122334455667788ull);
	assert_int_equal(e->local.port, 0x7530);
	assert_int_equal(e->source.family, AF_INET);
	assert_int_equal(e->source.port, 4000);
	++*n;
}

/* The module sends events without a request, so they must not count as replies. */
static void events_are_read_and_answers_are_none(void **state)
{
	struct peer *p = *state;
	_Alignas(struct nlmsghdr) char buf[512];
	const struct nlmsghdr nobody = {0};
	const uint8_t addr[4] = {192, 0, 2, 1}, port[2] = {0x75, 0x30}, from[2] = {0x0f, 0xa0};
	struct nlmsghdr *h;
	uint32_t n = 0;
	struct knl *k;

	assert_int_equal(knl_open_fd(&k, p->fd[0]), 0);
	assert_int_equal(knl_listen(k), -EOPNOTSUPP); /* an older module lacks this group */
	target(p, &nobody, 0);
	for (int i = 0; i < 2; i++) {
		h = message(buf, &nobody, FAMILY, NFX_CMD_EVENT);
		mnl_attr_put_u8(h, NFX_A_EVENT, NFX_EVENT_SOURCE);
		mnl_attr_put_u32(h, NFX_A_OWNER, 221);
		mnl_attr_put_u8(h, NFX_A_FAMILY, AF_INET);
		mnl_attr_put(h, NFX_A_ADDR, 4, addr);
		mnl_attr_put(h, NFX_A_PORT, 2, port);
		mnl_attr_put_u64(h, NFX_A_COOKIE, 0x1122334455667788ull);
		mnl_attr_put(h, NFX_A_SOURCE_ADDR, 4, addr);
		mnl_attr_put(h, NFX_A_SOURCE_PORT, 2, from);
		reply(p, h);
	}
	assert_int_equal(knl_events(k, heard, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(knl_events(k, heard, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(knl_alive(k), 0);
	p->there = false;
	assert_int_equal(knl_alive(k), -ENOENT);
	knl_close(k);
}

/* Targets of an earlier instance are removed in steps. A new call may get one's port meanwhile. */
static void a_port_that_is_added_again_keeps_its_target(void **state)
{
	struct peer *p = *state;
	uint8_t port[64] = {0};
	struct steer s = {.cfg = {.port_min = 30000,
				  .port_max = 30063,
				  .locals = 1,
				  .local = {{.addr = {0x20, 0x01, 0x0d, 0xb8}, .family = AF_INET}}},
		.instance = 1,
		.purge_ns = 1,
		.port = port};

	p->dump = 34; /* even ports of IPv4, odd ones of IPv6; the last ones are removed first */
	assert_int_equal(knl_open_fd(&s.knl, p->fd[0]), 0);
	kernel_chores(&s);
	assert_int_equal(p->deleted, 32);
	assert_int_equal(p->last_deleted, 30002);
	port[0] = KERNEL_PORT_OURS;
	port[1] = KERNEL_PORT_OURS; /* of IPv4: the target of IPv6 is not its */
	kernel_chores(&s);
	assert_int_equal(p->deleted, 33);
	assert_int_equal(p->last_deleted, 30001);
	assert_int_equal(s.purge_ns, 0);
	knl_close(s.knl);
}

int main(void)
{
#define WITH_PEER(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_PEER(what_the_module_is_comes_with_hello),
		WITH_PEER(another_version_is_refused_and_named),
		WITH_PEER(a_module_that_is_back_has_another_number),
		WITH_PEER(a_module_that_is_not_there_is_no_entry),
		WITH_PEER(a_target_is_written_whole),
		WITH_PEER(a_ring_is_described_and_numbered),
		WITH_PEER(a_dump_gives_every_target),
		WITH_PEER(a_port_that_is_added_again_keeps_its_target),
		WITH_PEER(events_are_read_and_answers_are_none),
		cmocka_unit_test(without_the_module_there_is_nfqueue_instead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
