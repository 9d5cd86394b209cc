/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sends nf_xcipher's netlink messages, for tests. Reads commands from standard input, one per line,
 * so that one socket owns the targets of all of them. Uses the interface's header, and no code of
 * the daemon.
 *
 *   hello|set|del|get|flush|stats [+create|+excl|+dump|+echo] NAME=VALUE...
 *                           names as in ATTRS; addr=ADDR sets the family, too
 *   dest=TO,PORT,FROM,PORT[,TOS]                                          once for each destination
 *   fill N NAME=VALUE...    N targets at consecutive addresses and ports; prints nanoseconds
 *   events, event MS        subscribe; wait for one
 *   fuzz MS SEED            random and mutated messages for so long
 *   ring COMMAND...         a worker of a packet ring: nfx_ring.c
 *
 * Answers: a line of NAME=VALUE for each message, then "= 0" or "= -ERRNO what the kernel says". */
#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "nfx.h"

static const struct row {
	const char *name;
	uint16_t attr;
	enum { U8, U16, U32, U64, BE16, ADDR, TEXT } type;
} ATTRS[] = {
	{"version", NFX_A_VERSION, U32},
	{"features", NFX_A_FEATURES, U32},
	{"release", NFX_A_RELEASE, TEXT},
	{"owner", NFX_A_OWNER, U32},
	{"grace", NFX_A_GRACE_MS, U32},
	{"mark", NFX_A_MARK, U32},
	{"targets", NFX_A_TARGETS, U32},
	{"max_targets", NFX_A_MAX_TARGETS, U32},
	{"max_dests", NFX_A_MAX_DESTS, U32},
	{"family", NFX_A_FAMILY, U8},
	{"addr", NFX_A_ADDR, ADDR},
	{"port", NFX_A_PORT, BE16},
	{"action", NFX_A_ACTION, U8},
	{"rtcp", NFX_A_RTCP_ACTION, U8},
	{"queue", NFX_A_QUEUE, U16},
	{"flags", NFX_A_FLAGS, U32},
	{"cookie", NFX_A_COOKIE, U64},
	{"source", NFX_A_SOURCE_ADDR, ADDR},
	{"source_port", NFX_A_SOURCE_PORT, BE16},
	{"mismatch", NFX_A_MISMATCH, U8},
	{"ssrc", NFX_A_SSRC, U32},
	{"rate", NFX_A_RATE, U32},
	{"source_rate", NFX_A_SOURCE_RATE, U32},
	{"silence", NFX_A_SILENCE_MS, U32},
	{"last_seen", NFX_A_LAST_SEEN_MS, U64},
	{"seq", NFX_A_SEQ, U16},
	{"ring_lost", NFX_A_RING_LOST, U64},
	{"event", NFX_A_EVENT, U8},
	{"ring", NFX_A_RING, U32},
};

static const char *const STATS[] = {[0] = "none",
#define X(name, text) [NFX_S_##name] = #name,
	NFX_STATS(X)
#undef X
};

static const struct {
	const char *name;
	unsigned value;
} WORDS[] = {{"pass", NFX_ACTION_PASS}, {"queue", NFX_ACTION_QUEUE}, {"relay", NFX_ACTION_RELAY},
	{"drop", NFX_ACTION_DROP}, {"mdrop", NFX_MISMATCH_DROP}, {"mpass", NFX_MISMATCH_PASS},
	{"mcount", NFX_MISMATCH_COUNT}, {"bypass", NFX_FLAG_BYPASS}, {"strict", NFX_FLAG_STRICT},
	{"unread", NFX_FLAG_UNREAD}, {"emergency", NFX_FLAG_EMERGENCY}};

static uint64_t number(const char *text)
{
	for (size_t i = 0; i < sizeof(WORDS) / sizeof(WORDS[0]); i++)
		if (strcmp(text, WORDS[i].name) == 0)
			return WORDS[i].value;
	return strtoull(text, NULL, 0);
}

/* Number of bytes of the address; 0: not an address. */
static uint16_t address(uint8_t out[16], const char *text)
{
	if (inet_pton(AF_INET, text, out) == 1)
		return 4;
	return inet_pton(AF_INET6, text, out) == 1 ? 16 : 0;
}

static void put_dest(struct nlmsghdr *h, char *text)
{
	char *part[5] = {0}, *save = NULL;
	struct nlattr *nest = mnl_attr_nest_start(h, NFX_A_DEST);
	uint8_t a[16];
	int n = 0;

	for (char *p = strtok_r(text, ",", &save); p && n < 5; p = strtok_r(NULL, ",", &save))
		part[n++] = p;
	if (n >= 2) {
		mnl_attr_put(h, NFX_D_ADDR, address(a, part[0]), a);
		mnl_attr_put_u16(h, NFX_D_PORT, htons((uint16_t)atoi(part[1])));
	}
	if (n >= 4) {
		mnl_attr_put(h, NFX_D_LOCAL_ADDR, address(a, part[2]), a);
		mnl_attr_put_u16(h, NFX_D_LOCAL_PORT, htons((uint16_t)atoi(part[3])));
	}
	if (n == 5)
		mnl_attr_put_u8(h, NFX_D_TOS, (uint8_t)number(part[4]));
	mnl_attr_nest_end(h, nest);
}

static void put_one(struct nlmsghdr *h, const char *name, char *value)
{
	for (size_t i = 0; i < sizeof(ATTRS) / sizeof(ATTRS[0]); i++) {
		const struct row *r = &ATTRS[i];
		uint64_t v = number(value);
		uint8_t a[16];
		uint16_t len;

		if (strcmp(name, r->name) != 0)
			continue;
		switch (r->type) {
		case U8:
			mnl_attr_put_u8(h, r->attr, (uint8_t)v);
			break;
		case U16:
			mnl_attr_put_u16(h, r->attr, (uint16_t)v);
			break;
		case U32:
			mnl_attr_put_u32(h, r->attr, (uint32_t)v);
			break;
		case U64:
			mnl_attr_put_u64(h, r->attr, v);
			break;
		case BE16:
			mnl_attr_put_u16(h, r->attr, htons((uint16_t)v));
			break;
		case TEXT:
			mnl_attr_put_strz(h, r->attr, value);
			break;
		case ADDR:
			len = address(a, value);
			mnl_attr_put(h, r->attr, len, a);
			if (r->attr == NFX_A_ADDR)
				mnl_attr_put_u8(h, NFX_A_FAMILY, len == 16 ? AF_INET6 : AF_INET);
			break;
		}
		return;
	}
	fprintf(stderr, "nfx: no attribute %s\n", name);
	exit(2);
}

struct nlmsghdr *nfx_request(struct nfx *x, uint8_t cmd, uint16_t flags)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(x->out);
	struct genlmsghdr *g;

	h->nlmsg_type = x->family;
	h->nlmsg_flags = NLM_F_REQUEST | flags;
	h->nlmsg_seq = ++x->seq;
	g = mnl_nlmsg_put_extra_header(h, sizeof(*g));
	g->cmd = cmd;
	g->version = NFX_VERSION;
	return h;
}

/* --- Answers ---------------------------------------------------------------------------------- */

static void print_attr(const struct nlattr *a)
{
	const void *p = mnl_attr_get_payload(a);
	size_t len = mnl_attr_get_payload_len(a);
	char text[INET6_ADDRSTRLEN];

	for (size_t i = 0; i < sizeof(ATTRS) / sizeof(ATTRS[0]); i++) {
		const struct row *r = &ATTRS[i];

		if (r->attr != mnl_attr_get_type(a))
			continue;
		printf("%s=", r->name);
		if (r->type == U8 && len == 1)
			printf("%u ", mnl_attr_get_u8(a));
		else if (r->type == U16 && len == 2)
			printf("%u ", mnl_attr_get_u16(a));
		else if (r->type == BE16 && len == 2)
			printf("%u ", ntohs(mnl_attr_get_u16(a)));
		else if (r->type == U32 && len == 4)
			printf("%u ", mnl_attr_get_u32(a));
		else if (r->type == U64 && len == 8)
			printf("%llu ", (unsigned long long)mnl_attr_get_u64(a));
		else if (r->type == TEXT)
			printf("%.*s ", (int)strnlen(p, len), (const char *)p);
		else if (r->type == ADDR && (len == 4 || len == 16))
			printf("%s ",
				inet_ntop(len == 4 ? AF_INET : AF_INET6, p, text, sizeof(text)));
		else
			printf("?%zu ", len);
	}
}

static void print_message(const struct nlmsghdr *h)
{
	const struct nlattr *a, *s;
	unsigned dests = 0;

	mnl_attr_for_each(a, h, sizeof(struct genlmsghdr))
	{
		print_attr(a);
		if (mnl_attr_get_type(a) == NFX_A_STATS)
			mnl_attr_for_each_nested(s, a) if (mnl_attr_get_type(s) < NFX_S_COUNT)
				printf("%s=%llu ", STATS[mnl_attr_get_type(s)],
					(unsigned long long)mnl_attr_get_u64(s));
		if (mnl_attr_get_type(a) == NFX_A_DESTS)
			mnl_attr_for_each_nested(s, a) dests++;
	}
	if (dests)
		printf("dests=%u", dests);
	printf("\n");
}

/* Reads messages up to the end of the reply. print: prints each. Returns its error; text receives
 * the kernel's explanation. */
static int answer(struct nfx *x, bool print, const char **text)
{
	static char said[256];

	*text = "";
	for (;;) {
		ssize_t n = recv(x->fd, x->in, sizeof(x->in), 0);
		const struct nlmsghdr *m = (const struct nlmsghdr *)x->in;
		int len = (int)n;

		if (n <= 0)
			return -ETIMEDOUT;
		for (; mnl_nlmsg_ok(m, len); m = mnl_nlmsg_next(m, &len)) {
			const struct nlmsgerr *e = mnl_nlmsg_get_payload(m);
			const struct nlattr *a;

			if (m->nlmsg_seq != x->seq)
				continue;
			if (m->nlmsg_type == NLMSG_DONE)
				return 0;
			if (m->nlmsg_type != NLMSG_ERROR) {
				if (print)
					print_message(m);
				mnl_attr_for_each(
					a, m, sizeof(struct genlmsghdr)) if (mnl_attr_get_type(a) ==
					NFX_A_RING) x->ring_number = mnl_attr_get_u32(a);
				continue;
			}
			if (m->nlmsg_flags & NLM_F_ACK_TLVS) {
				size_t echoed = NLMSG_ALIGN(e->msg.nlmsg_len) - NLMSG_HDRLEN;

				if (m->nlmsg_flags & NLM_F_CAPPED)
					echoed = 0;
				mnl_attr_for_each(a, m, sizeof(*e) + echoed)
				{
					if (mnl_attr_get_type(a) != NLMSGERR_ATTR_MSG)
						continue;
					snprintf(said, sizeof(said), "%s",
						(const char *)mnl_attr_get_payload(a));
					*text = said;
				}
			}
			return e->error;
		}
	}
}

int nfx_ask(struct nfx *x, const struct nlmsghdr *h, bool print, const char **text)
{
	if (send(x->fd, h, h->nlmsg_len, 0) < 0)
		return -errno;
	return answer(x, print, text);
}

/* --- Commands --------------------------------------------------------------------------------- */

static const char *const CMDS[] = {
	[NFX_CMD_HELLO] = "hello",
	[NFX_CMD_TARGET_SET] = "set",
	[NFX_CMD_TARGET_DEL] = "del",
	[NFX_CMD_TARGET_GET] = "get",
	[NFX_CMD_FLUSH] = "flush",
	[NFX_CMD_STATS_GET] = "stats",
};

/* The rest of the line: flags and attributes. */
static void fill_in(struct nlmsghdr *h, char **save)
{
	struct nlattr *dests = NULL;
	char *word;

	while ((word = strtok_r(NULL, " \n", save))) {
		char *value = strchr(word, '=');

		if (strcmp(word, "+create") == 0)
			h->nlmsg_flags |= NLM_F_CREATE;
		else if (strcmp(word, "+excl") == 0)
			h->nlmsg_flags |= NLM_F_EXCL;
		else if (strcmp(word, "+dump") == 0)
			h->nlmsg_flags |= NLM_F_DUMP;
		else if (strcmp(word, "+echo") == 0)
			h->nlmsg_flags |= NLM_F_ECHO;
		else if (value) {
			*value++ = 0;
			if (strcmp(word, "dest") == 0) { /* destinations come last */
				dests = dests ? dests : mnl_attr_nest_start(h, NFX_A_DESTS);
				put_dest(h, value);
			} else {
				put_one(h, word, value);
			}
		}
	}
	if (dests)
		mnl_attr_nest_end(h, dests);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Addresses 10.x.y.z, ports from 1024 on. */
static int fill(struct nfx *x, char **save)
{
	uint32_t n = (uint32_t)strtoul(strtok_r(NULL, " \n", save), NULL, 0);
	static char rest[1024];
	uint64_t start = now_ns();
	const char *text;

	snprintf(rest, sizeof(rest), "%s", *save ? *save : "");
	for (uint32_t i = 0; i < n; i++) {
		char copy[sizeof(rest) + 8], *s = NULL;
		struct nlmsghdr *h = nfx_request(x, NFX_CMD_TARGET_SET, NLM_F_CREATE | NLM_F_ACK);
		uint8_t a[4] = {10, 9, (uint8_t)(i >> 15), (uint8_t)(i >> 12 & 7)};
		int err;

		mnl_attr_put_u8(h, NFX_A_FAMILY, AF_INET);
		mnl_attr_put(h, NFX_A_ADDR, 4, a);
		mnl_attr_put_u16(h, NFX_A_PORT, htons((uint16_t)(1024 + (i & 0xfff))));
		snprintf(copy, sizeof(copy), "x %s", rest);
		strtok_r(copy, " \n", &s);
		fill_in(h, &s);
		err = nfx_ask(x, h, false, &text);
		if (err) {
			printf("at=%u\n", i);
			return err;
		}
	}
	printf("ns=%llu\n", (unsigned long long)(now_ns() - start));
	return 0;
}

static int wait_event(struct nfx *x, int ms)
{
	struct pollfd p = {.fd = x->events, .events = POLLIN};
	ssize_t n;

	if (x->events < 0 || poll(&p, 1, ms) <= 0)
		return -ETIMEDOUT;
	n = recv(x->events, x->in, sizeof(x->in), 0);
	if (n < (ssize_t)sizeof(struct nlmsghdr))
		return -errno;
	print_message((const struct nlmsghdr *)x->in);
	return 0;
}

static void line(struct nfx *x, char *text)
{
	char *save = NULL, *word = strtok_r(text, " \n", &save);
	const char *said = "";
	int err = -EINVAL;

	if (!word)
		return;
	for (size_t i = 1; i < sizeof(CMDS) / sizeof(CMDS[0]); i++)
		if (strcmp(word, CMDS[i]) == 0) {
			struct nlmsghdr *h = nfx_request(x, (uint8_t)i, NLM_F_ACK);

			fill_in(h, &save);
			err = nfx_ask(x, h, true, &said);
		}
	if (strcmp(word, "fill") == 0)
		err = fill(x, &save);
	else if (strcmp(word, "events") == 0)
		err = nfx_subscribe(x);
	else if (strcmp(word, "event") == 0)
		err = wait_event(x, atoi(strtok_r(NULL, " \n", &save)));
	else if (strcmp(word, "ring") == 0 && save)
		err = nfx_ring(x, save, &said);
	else if (strcmp(word, "fuzz") == 0) {
		uint32_t ms = (uint32_t)atoi(strtok_r(NULL, " \n", &save));

		err = nfx_fuzz(x, ms, (unsigned)atoi(strtok_r(NULL, " \n", &save)));
	}
	printf("= %d%s%s\n", err, *said ? " " : "", said);
	fflush(stdout);
}

/* With any argument: runs without privileges. */
int main(int argc, char **argv)
{
	static struct nfx x;
	char text[4096];
	int err;

	(void)argv;
	if (argc > 1 && setuid(65534))
		return 2;
	err = nfx_open(&x);
	if (err) {
		printf("= %d no family %s\n", err, NFX_FAMILY_NAME);
		return 1;
	}
	while (fgets(text, sizeof(text), stdin))
		line(&x, text);
	return 0;
}
