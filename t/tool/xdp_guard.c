/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The XDP program without an interface, by the kernel's BPF_PROG_TEST_RUN. With the last argument
 * "tc" the program of nfqueue steering, xcipher_tc, which has no limit.
 *
 *   xdp_guard cost [REPEAT] [tc]   nanoseconds per packet, of forged packets by reason
 *   xdp_guard check [COUNT] [tc]   random guards and packets: program and packet/guard.h agree
 *   xdp_guard follow [COUNT] [tc]  used tags, loss, reordering and jumps, against a model
 *   xdp_guard limit [COUNT]        one source is limited, another is not; the guard comes first
 *   xdp_guard wipe                 no key or tag stays in maps after a guard, or after all of them
 *   xdp_guard refuse               nor if a map refuses a guard, or has no place; the port has none
 *
 * Needs CAP_BPF and CAP_NET_ADMIN, as xcipherd does. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "packet/guard.h"
#include "steer/xdp/bpf/xdp_abi.h"
#include "steer/xdp/xdp_guards.h"
#include "steer/xdp/xdp_object.h"
#include "../unit/guard_mac.h"

enum { PORT = 30000, FROM = 4000, LEN = 182, HEAD_MAX = 14 + 40 + 8 };
enum { TC_DROP = 2 }; /* TCX_DROP of linux/bpf.h, which older headers lack */

static bool tc;
static int prog, ports, locals, addresses, guarded, guards, limits, dropped;
static const uint8_t us[4] = {10, 0, 0, 1}, them[4] = {10, 0, 0, 2};
static const uint8_t us6[16] = {0xfd, [15] = 1}, them6[16] = {0xfd, [15] = 2};
static uint64_t seed = 1;

static uint64_t any(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return seed >> 11 ^ seed << 31;
}

static uint64_t below(uint64_t n)
{
	return (any() >> 7) % n;
}

static void die(const char *what)
{
	fprintf(stderr, "xdp_guard: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int say(enum libbpf_print_level level, const char *fmt, va_list args)
{
	return level == LIBBPF_DEBUG ? 0 : vfprintf(stderr, fmt, args);
}

static struct bpf_object *load(void)
{
	struct bpf_object *o;

	libbpf_set_print(say);
	o = bpf_object__open_mem(xdp_object, xdp_object_len, NULL);
	if (!o || bpf_object__load(o))
		die("the program does not load");
	prog = bpf_program__fd(
		bpf_object__find_program_by_name(o, tc ? "xcipher_tc" : "xcipher_xdp"));
	ports = bpf_map__fd(bpf_object__find_map_by_name(o, "ports"));
	locals = bpf_map__fd(bpf_object__find_map_by_name(o, "locals"));
	addresses = bpf_map__fd(bpf_object__find_map_by_name(o, "addresses"));
	guarded = bpf_map__fd(bpf_object__find_map_by_name(o, "guarded"));
	guards = bpf_map__fd(bpf_object__find_map_by_name(o, "guards"));
	limits = bpf_map__fd(bpf_object__find_map_by_name(o, "limits"));
	dropped = bpf_map__fd(bpf_object__find_map_by_name(o, "dropped"));
	return o;
}

static void put(int map, const void *key, const void *value)
{
	if (bpf_map_update_elem(map, key, value, BPF_ANY))
		die("a map");
}

/* The port is ours; guard NULL: without a guard. */
static void open_port(const struct guard *guard)
{
	uint32_t zero = 0, port = PORT, used = 1 | (guard ? XDP_PORT_GUARDED : 0);
	uint32_t key = xdp_guard_key(0, PORT);
	struct xdp_local local = {0};

	memcpy(local.addr, us, 4);
	put(locals, &local, &zero);
	/* IPv6 is found by the hash. */
	put(addresses, &zero, &local);
	local.v6 = 1;
	memcpy(local.addr, us6, 16);
	put(locals, &local, &zero);
	put(ports, &port, &used);
	if (guard) {
		put(guards, &zero, guard);
		put(guarded, &key, &zero);
	}
}

static uint32_t frame_v6(uint8_t *f, const struct guard_packet *p)
{
	struct ipv6hdr ip = {.version = 6, .nexthdr = IPPROTO_UDP, .payload_len = htons(8 + LEN)};

	memcpy(&ip.saddr, p->addr, 16);
	memcpy(&ip.daddr, us6, 16);
	put_be16(f + 12, ETH_P_IPV6);
	memcpy(f + 14, &ip, sizeof(ip));
	return 14 + sizeof(ip);
}

static uint32_t frame_v4(uint8_t *f, const struct guard_packet *p)
{
	struct iphdr ip = {.version = 4,
		.ihl = 5,
		.ttl = 64,
		.protocol = IPPROTO_UDP,
		.tot_len = htons(20 + 8 + LEN)};

	memcpy(&ip.saddr, p->addr, 4);
	memcpy(&ip.daddr, us, 4);
	put_be16(f + 12, ETH_P_IP);
	memcpy(f + 14, &ip, sizeof(ip));
	return 14 + sizeof(ip);
}

static uint32_t frame(uint8_t *f, const struct guard_packet *p, uint8_t tag_len)
{
	struct udphdr udp = {.source = htons(p->port), .dest = htons(PORT), .len = htons(8 + LEN)};
	uint32_t head;

	memset(f, 0, HEAD_MAX + LEN);
	head = p->v6 ? frame_v6(f, p) : frame_v4(f, p);
	memcpy(f + head, &udp, sizeof(udp));
	head += (uint32_t)sizeof(udp);
	f += head;
	f[0] = p->first;
	f[1] = p->second;
	put_be16(f + 2, p->seq);
	put_be32(f + 4, p->time);
	put_be32(f + 8, p->ssrc);
	if (tag_len == 4)
		put_be32(f + LEN - 4, p->tag);
	else if (tag_len == 1)
		f[LEN - 1] = (uint8_t)p->tag;
	return head + LEN;
}

/* Runs the program on the packet. Returns its verdict as one of XDP. *ns: per packet. */
static uint32_t run(const struct guard_packet *p, uint8_t tag_len, int repeat, uint32_t *ns)
{
	uint8_t f[HEAD_MAX + LEN], out[HEAD_MAX + LEN + 256];
	LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = f, .data_size_in = frame(f, p, tag_len),
		.data_out = out, .data_size_out = sizeof(out), .repeat = repeat);

	if (bpf_prog_test_run_opts(prog, &o))
		die("BPF_PROG_TEST_RUN");
	if (ns)
		*ns = o.duration;
	if (tc)
		return o.retval == TC_DROP ? XDP_DROP : XDP_PASS;
	return o.retval;
}

static struct guard guard_now(void)
{
	struct guard g = {.window = {.ssrc = 7,
				  .seq = 1000,
				  .port = FROM,
				  .types = {1, 0},
				  .at_ns = clock_mono_ns()}};

	memcpy(g.window.addr, them, 4);
	return g;
}

static void fill_tags(struct guard *g, uint32_t bits)
{
	uint32_t tag[PREAUTH_WINDOW], n;
	__u64 first;

	preauth_window_init(&g->tags, 1000, bits);
	n = preauth_window_room(&g->tags, &first);
	for (uint32_t i = 0; i < n; i++)
		tag[i] = (uint32_t)any();
	preauth_window_add(&g->tags, tag, n);
	g->window.flags |= GUARD_TAGS;
	g->window.tag_len = bits == 32 ? 4 : 1;
}

static void key_header(struct guard *g)
{
	memset(&g->tags, 0, sizeof(g->tags));
	g->sip[0] = any();
	g->sip[1] = any();
	g->window.flags = (uint8_t)((g->window.flags & ~GUARD_TAGS) | GUARD_MACS);
	g->window.tag_len = 4;
}

/* --- Cost ------------------------------------------------------------------------------------- */

/* Open periods pass packets: the best of several runs, each shorter than a period. */
static void cost_of(
	const char *what, struct guard *g, const struct guard_packet *p, int repeat, uint32_t want)
{
	uint32_t best = UINT32_MAX, ns, got = 0;

	for (int i = 0; i < 20; i++) {
		if (g) {
			g->window.at_ns = clock_mono_ns();
			g->window.epoch_ns =
				g->window.at_ns - (8ull << GUARD_PERIOD_SHIFT) - (8ull << 20);
		}
		open_port(g);
		got = run(p, g ? g->window.tag_len : 0, repeat, &ns);
		if (got != want) {
			fprintf(stderr, "xdp_guard: %s: verdict %u, not %u\n", what, got, want);
			exit(1);
		}
		best = ns < best ? ns : best;
	}
	printf("%-44s %4u ns\n", what, best);
}

static void cost(int repeat)
{
	struct guard_packet p = {
		.port = FROM, .first = 0x80, .second = 0, .seq = 1001, .ssrc = 7, .time = 160};
	struct guard g = guard_now();
	struct guard_packet q;

	memcpy(p.addr, them, 4);
	g.window.flags = GUARD_TIMES;
	cost_of("true packet, no guard", NULL, &p, repeat, XDP_PASS);
	cost_of("true packet, guard", &g, &p, repeat, XDP_PASS);
	q = p;
	q.port++;
	cost_of("forged: other source port", &g, &q, repeat, XDP_DROP);
	q = p;
	q.first = 0;
	cost_of("forged: STUN where none is expected", &g, &q, repeat, XDP_DROP);
	q = p;
	q.ssrc++;
	cost_of("forged: SSRC", &g, &q, repeat, XDP_DROP);
	q = p;
	q.second = 5;
	cost_of("forged: payload type", &g, &q, repeat, XDP_DROP);
	q = p;
	q.seq = 40000;
	cost_of("forged: sequence number", &g, &q, repeat, XDP_DROP);
	q = p;
	q.time = 1u << 30;
	cost_of("forged: timestamp", &g, &q, repeat, XDP_DROP);
	fill_tags(&g, 32);
	p.tag = g.tags.tag[1001 % PREAUTH_WINDOW];
	cost_of("true packet, SRTP+ tag of 32 bits", &g, &p, repeat, XDP_PASS);
	p.tag++;
	cost_of("forged: SRTP+ tag of 32 bits", &g, &p, repeat, XDP_DROP);
	fill_tags(&g, 4);
	p.tag = (g.tags.tag[1001 % PREAUTH_WINDOW] & 15) ^ 1;
	cost_of("forged: SRTP+ tag of 4 bits", &g, &p, repeat, XDP_DROP);
	key_header(&g);
	p.tag = guard_mac(&g, &p);
	cost_of("true packet, SRTP+ MAC of the header", &g, &p, repeat, XDP_PASS);
	p.tag++;
	cost_of("forged: SRTP+ MAC of the header", &g, &p, repeat, XDP_DROP);
}

/* --- Agreement -------------------------------------------------------------------------------- */

static struct guard random_guard(void)
{
	struct guard g = guard_now();

	g.window.at_ns -= below(1ull << 33);
	g.window.types[0] = below(2) ? any() : 0;
	g.window.types[1] = below(2) ? any() : 0;
	g.window.time = (uint32_t)any();
	g.window.flags = (uint8_t)((any() & (GUARD_TIMES | GUARD_OTHER | GUARD_RTCP)));
	g.window.epoch_ns = g.window.at_ns - below(1ull << 33);
	if (below(2)) {
		g.window.flags |= GUARD_IS_V6;
		memcpy(g.window.addr, them6, 16);
	}
	if (below(3) == 0)
		key_header(&g);
	else if (below(2))
		fill_tags(&g, (const uint32_t[]){32, 8, 4}[below(3)]);
	return g;
}

static struct guard_packet random_packet(const struct guard *g)
{
	struct guard_packet p = {.port = (uint16_t)(below(20) ? FROM : below(65536)),
		.first = (uint8_t)(below(20) ? 0x80 : any()),
		.second = (uint8_t)any(),
		.seq = (uint16_t)(g->window.seq + below(1400) - 400),
		.time = (uint32_t)(g->window.time + below(5000000) - 2500000),
		.ssrc = (uint32_t)(below(10) ? 7 : any()),
		.v6 = g->window.flags & GUARD_IS_V6};

	memcpy(p.addr, g->window.addr, 16);
	if (!below(20))
		((uint8_t *)p.addr)[p.v6 ? 15 : 3]++;
	p.tag = g->window.flags & GUARD_MACS ? guard_mac(g, &p)
					     : g->tags.tag[p.seq % PREAUTH_WINDOW];
	p.tag ^= below(2) ? 1u << below(32) : 0;
	if (g->window.tag_len == 1)
		p.tag &= g->tags.mask;
	return p;
}

/* Returns how many verdicts differ. */
static uint32_t check(uint32_t count)
{
	uint32_t seen[GUARD_RESULTS] = {0}, wrong = 0, unsure = 0;
	int cpus = libbpf_num_possible_cpus();
	uint64_t *each = calloc((size_t)cpus, sizeof(*each)), sum[GUARD_RESULTS] = {0};
	struct guard g = {0};

	for (uint32_t i = 0; i < count; i++) {
		enum guard_result before, after;
		struct guard_packet p;
		uint32_t got;

		if (i % 100 == 0) {
			g = random_guard();
			open_port(&g);
		}
		p = random_packet(&g);
		before = guard_check(&g, &p, clock_mono_ns());
		got = run(&p, g.window.tag_len, 1, NULL);
		after = guard_check(&g, &p, clock_mono_ns());
		if (before != after) { /* a period has ended meanwhile */
			unsure++;
			continue;
		}
		seen[before]++;
		if ((before == GUARD_PASS) != (got == XDP_PASS)) {
			printf("%u: the program says %u, the header %u\n", i, got, before);
			wrong++;
		}
	}
	for (uint32_t r = 0; r < GUARD_RESULTS; r++) {
		if (!each || bpf_map_lookup_elem(dropped, &r, each))
			die("counters");
		for (int c = 0; c < cpus; c++)
			sum[r] += each[c];
	}
	free(each);
	for (int r = 0; r < GUARD_RESULTS; r++) {
		printf("%d: %u packets, %llu counted\n", r, seen[r], (unsigned long long)sum[r]);
		wrong += seen[r] == 0 || (r && (sum[r] < seen[r] || sum[r] > seen[r] + unsure));
	}
	return wrong;
}

/* --- A stream --------------------------------------------------------------------------------- */

enum { REPORT = 16, KEPT = 4096 /* indexes that the model remembers */ };

/* A stream whose packets the daemon authenticates. It reports its guard from time to time. */
struct stream {
	struct guard guard;
	uint64_t newest, start, told_newest;
	uint64_t used[KEPT], told_used[KEPT]; /* index + 1 of the last packet in this place */
	uint32_t wrong, count[4];
};

/* What the model expects of the program. */
enum expected { MUST_PASS, MUST_DROP, MAY_BOTH };

static uint32_t tag_at(uint64_t index)
{
	return (uint32_t)(index * 2654435761u ^ index >> 7);
}

static void tell(struct stream *s)
{
	uint32_t tag, n;
	__u64 at;

	for (n = preauth_window_room(&s->guard.tags, &at); n; n--, at++) {
		tag = tag_at(at);
		preauth_window_add(&s->guard.tags, &tag, 1);
	}
	s->guard.window.seq = (uint16_t)s->newest;
	s->guard.window.at_ns = clock_mono_ns();
	s->told_newest = s->newest;
	memcpy(s->told_used, s->used, sizeof(s->used));
	open_port(&s->guard);
}

/* The window has the newest packet, 128 before it, and those up to its length. A new one begins at
 * the newest packet: SRTP decides on those before it, which may come late. */
static enum expected expect(const struct stream *s, uint64_t index, bool forged)
{
	uint64_t oldest = s->told_newest - PREAUTH_BEHIND;
	uint64_t first = oldest < s->start ? s->start : oldest;

	if (index < oldest || index >= first + PREAUTH_WINDOW)
		return MAY_BOTH;
	if (index < first)
		return MUST_PASS;
	return forged || s->told_used[index % KEPT] == index + 1 ? MUST_DROP : MUST_PASS;
}

/* Sends the packet to the program. If it passes, SRTP takes a true one that is new. */
static bool arrive(struct stream *s, uint64_t index, bool forged)
{
	struct guard_packet p = {.port = FROM,
		.first = 0x80,
		.seq = (uint16_t)index,
		.ssrc = 7,
		.tag = tag_at(index) ^ (forged ? 1u << below(32) : 0)};
	enum expected want = expect(s, index, forged);
	bool passed;

	memcpy(p.addr, them, 4);
	passed = run(&p, 4, 1, NULL) == XDP_PASS;
	s->count[want]++;
	if ((want == MUST_PASS && !passed) || (want == MUST_DROP && passed)) {
		printf("index %llu, newest %llu: %s\n", (unsigned long long)index,
			(unsigned long long)s->newest, passed ? "passed" : "dropped");
		s->wrong++;
	}
	if (!passed || forged || s->used[index % KEPT] == index + 1 ||
		index + PREAUTH_BEHIND < s->newest)
		return passed;
	s->used[index % KEPT] = index + 1;
	s->newest = index > s->newest ? index : s->newest;
	preauth_window_take(&s->guard.tags, index);
	return passed;
}

/* Beyond the window the program lets packets through at times only: the terminal sends on. */
static void jump(struct stream *s)
{
	uint64_t index = s->newest + PREAUTH_WINDOW + below(20000);
	uint64_t until = clock_mono_ns() + 60ull * 1000000000;

	while (!arrive(s, index, false))
		if (clock_mono_ns() > until) {
			s->wrong++;
			return;
		}
	s->count[3]++;
	preauth_window_init(&s->guard.tags, index, 32);
	preauth_window_take(&s->guard.tags, index);
	s->start = index;
	tell(s);
}

/* Returns how much was wrong. */
static uint32_t follow(uint32_t count)
{
	static struct stream s;
	uint64_t late[8] = {0};

	s.guard = guard_now();
	s.guard.window.types[0] = 0;
	s.guard.window.flags = GUARD_TAGS;
	s.guard.window.tag_len = 4;
	s.guard.window.epoch_ns = s.guard.window.at_ns;
	s.newest = s.start = 65000;
	preauth_window_init(&s.guard.tags, s.start, 32);
	tell(&s);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t what = below(1000), next = s.newest + 1, *slot = &late[below(8)];

		if (what < 50) /* the next one is lost */
			arrive(&s, next + 1 + below(3), false);
		else if (what < 100) { /* one that comes late, and the one after it */
			*slot = next;
			arrive(&s, next + 1, false);
		} else if (what < 150 && *slot) {
			arrive(&s, *slot, false);
			*slot = 0;
		} else if (what < 300)
			arrive(&s, s.newest - below(200), false); /* most have been used */
		else if (what < 500)
			arrive(&s, s.newest + 100 - below(300), true);
		else if (what < 505)
			arrive(&s, next + below(300), false); /* within the window */
		else if (what < 506)
			jump(&s);
		else
			arrive(&s, next, false);
		if (i % REPORT == 0)
			tell(&s);
	}
	printf("%u packets had to pass, %u to be dropped, %u either; %u jumps beyond the window\n",
		s.count[MUST_PASS], s.count[MUST_DROP], s.count[MAY_BOTH], s.count[3]);
	return s.wrong + !s.count[MUST_PASS] + !s.count[MUST_DROP] + !s.count[3];
}

/* --- Limit ------------------------------------------------------------------------------------ */

/* A rate of 1,000 per second: a burst of 250, then one per millisecond. Another address sends less
 * than that. Returns how much was wrong. */
static uint32_t limit(uint32_t count)
{
	const struct xdp_limits l = {.source_rate = 1000};
	struct guard_packet p = {.port = FROM, .first = 0x80, .ssrc = 7}, other;
	uint64_t start = clock_mono_ns(), ms, passed = 0, others = 0;
	uint32_t zero = 0, asked = 0;

	open_port(NULL);
	put(limits, &zero, &l);
	memcpy(p.addr, them, 4);
	other = p;
	((uint8_t *)other.addr)[3]++;
	for (uint32_t i = 0; i < count; i++) {
		passed += run(&p, 0, 1, NULL) == XDP_PASS;
		if (i % (count / 200 + 1) == 0) {
			asked++;
			others += run(&other, 0, 1, NULL) == XDP_PASS;
		}
	}
	ms = (clock_mono_ns() - start) / 1000000 + 1;
	printf("%u packets in %llu ms: %llu passed; of another source %llu of %u\n", count,
		(unsigned long long)ms, (unsigned long long)passed, (unsigned long long)others,
		asked);
	return (passed < 250) + (passed > 250 + ms * 11 / 10 + 2) + (others != asked);
}

/* Forged packets with the terminal's address, which its guard refuses, leave it its whole burst. A
 * wrong tag is refused in open periods, too. Returns how much was wrong. */
static uint32_t limit_after_guard(uint32_t count)
{
	struct guard_packet p = {.port = FROM, .first = 0x80, .seq = 1001, .ssrc = 7}, forged;
	struct guard g = guard_now();
	uint32_t passed = 0, refused = 0;

	fill_tags(&g, 32);
	((uint8_t *)g.window.addr)[3] += 2; /* another address than those before */
	memcpy(p.addr, g.window.addr, sizeof(p.addr));
	open_port(&g);
	p.tag = g.tags.tag[1001 % PREAUTH_WINDOW];
	forged = p;
	forged.tag++;
	for (uint32_t i = 0; i < count; i++)
		refused += run(&forged, 4, 1, NULL) == XDP_DROP;
	for (int i = 0; i < 250; i++)
		passed += run(&p, 4, 1, NULL) == XDP_PASS;
	printf("%u forged packets of %u refused, then %u true ones of 250 passed\n", refused, count,
		passed);
	return (refused != count) + (passed != 250);
}

/* --- Wiping ----------------------------------------------------------------------------------- */

/* Places of the map that are not all zero. */
static uint32_t filled(void)
{
	static const struct guard none;
	struct guard g;
	uint32_t n = 0;

	for (uint32_t i = 0; i < 2 * XDP_ABI_GUARDS; i++) {
		if (bpf_map_lookup_elem(guards, &i, &g))
			die("guards");
		n += memcmp(&g, &none, sizeof(g)) != 0;
	}
	return n;
}

/* Two ports have guards, each in both of its places. Returns how much was wrong. */
static uint32_t wiped(const struct bpf_object *o)
{
	struct local_port one = {.port = PORT}, two = {.port = PORT + 2};
	struct xdp_guards *x;
	struct guard g = guard_now();
	uint32_t wrong;

	if (xdp_guards_create(&x, o, 1))
		die("xdp_guards_create");
	for (int i = 0; i < 2; i++) {
		key_header(&g);
		xdp_guards_put(x, 0, one, &g);
		fill_tags(&g, 32);
		g.window.flags &= (uint8_t)~GUARD_MACS;
		xdp_guards_put(x, 0, two, &g);
	}
	wrong = filled() != 4;
	xdp_guards_put(x, 0, one, NULL);
	wrong += filled() != 2;
	xdp_guards_destroy(x);
	wrong += filled() != 0;
	return wrong;
}

/* --- Maps that refuse ------------------------------------------------------------------------- */

static bool has_guard(uint16_t port)
{
	uint32_t key = xdp_guard_key(0, port), at;

	return bpf_map_lookup_elem(guarded, &key, &at) == 0;
}

static bool is_marked(uint16_t port)
{
	uint32_t key = port, used;

	if (bpf_map_lookup_elem(ports, &key, &used))
		die("ports");
	return used & XDP_PORT_GUARDED;
}

/* Guards whose port has one, of so many in the maps. */
static uint32_t wrong_unless(uint16_t port, bool has, uint32_t in_maps)
{
	return (has_guard(port) != has) + (is_marked(port) != has) + (filled() != in_maps);
}

/* The map by port is full, then the ports can be read only. Returns how much was wrong. */
static uint32_t refused(const struct bpf_object *o)
{
	struct local_port one = {.port = PORT}, two = {.port = PORT + 2};
	uint32_t wrong = 0, key, at = 0;
	struct xdp_guards *x;
	struct guard g = guard_now();

	if (xdp_guards_create(&x, o, 1))
		die("xdp_guards_create");
	key_header(&g);
	xdp_guards_put(x, 0, one, &g);
	wrong += wrong_unless(PORT, true, 1);
	for (uint32_t i = 1; i < XDP_ABI_GUARDS; i++) {
		key = xdp_guard_key(1, (uint16_t)i);
		put(guarded, &key, &at);
	}
	xdp_guards_put(x, 0, two, &g);
	wrong += wrong_unless(PORT + 2, false, 1);
	xdp_guards_put(x, 0, one, &g); /* a port that has one gets the next */
	wrong += wrong_unless(PORT, true, 2);
	if (bpf_map_delete_elem(guarded, &key))
		die("guarded");
	xdp_guards_put(x, 0, two, &g);
	wrong += wrong_unless(PORT + 2, true, 3);
	xdp_guards_put(x, 0, two, NULL);
	wrong += wrong_unless(PORT + 2, false, 2);
	if (bpf_map_freeze(ports))
		die("bpf_map_freeze");
	xdp_guards_put(x, 0, two, &g);
	wrong += wrong_unless(PORT + 2, false, 2);
	xdp_guards_destroy(x);
	return wrong + (filled() != 0);
}

/* So many workers that each has room for one guard. Returns how much was wrong. */
static uint32_t left_out(const struct bpf_object *o)
{
	struct local_port one = {.port = PORT}, two = {.port = PORT + 2};
	struct guard g = guard_now();
	struct steer_counters c = {0};
	struct xdp_guards *x;
	uint32_t wrong;

	if (xdp_guards_create(&x, o, XDP_ABI_GUARDS))
		die("xdp_guards_create");
	xdp_guards_put(x, 0, one, &g);
	xdp_guards_put(x, 0, two, &g);
	xdp_guards_put(x, 0, two, NULL);
	wrong = !has_guard(PORT) + has_guard(PORT + 2);
	xdp_guards_count(x, &c);
	wrong += c.guards_left_out != 1;
	xdp_guards_put(x, 0, one, NULL);
	xdp_guards_put(x, 0, two, &g);
	wrong += !has_guard(PORT + 2);
	xdp_guards_put(x, 0, two, NULL);
	xdp_guards_count(x, &c);
	wrong += c.guards_left_out != 1;
	xdp_guards_destroy(x);
	return wrong;
}

int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[2]) : 100000;
	struct bpf_object *o;
	bool bad = false;

	if (argc < 2) {
		fprintf(stderr,
			"usage: xdp_guard cost [REPEAT] [tc] | check [COUNT] [tc] | follow [COUNT] "
			"[tc] | limit [COUNT] | wipe | refuse\n");
		return 2;
	}
	tc = argc > 3 && strcmp(argv[3], "tc") == 0;
	o = load();
	if (strcmp(argv[1], "check") == 0)
		bad = check((uint32_t)n) != 0;
	else if (strcmp(argv[1], "follow") == 0)
		bad = follow((uint32_t)n) != 0;
	else if (strcmp(argv[1], "wipe") == 0)
		bad = wiped(o) != 0;
	else if (strcmp(argv[1], "refuse") == 0)
		bad = left_out(o) + refused(o) != 0;
	else if (strcmp(argv[1], "limit") == 0)
		bad = limit((uint32_t)n) + limit_after_guard((uint32_t)n) != 0;
	else
		cost(n);
	bpf_object__close(o);
	return bad;
}
