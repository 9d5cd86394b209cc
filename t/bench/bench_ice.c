/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cost of a STUN packet for the ICE agent: a binding request that gets a response, and one that
 * is refused for a wrong MESSAGE-INTEGRITY. Without sockets: parse, verify, decide, write. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench.h"
#include "ice/agent.h"

enum { ROUNDS = 21 };

struct ice_load {
	struct ice_agent *agent;
	struct endpoint src;
	uint8_t packet[ICE_PACKET_MAX];
	size_t len;
};

/* Like a browser's: names of 4 and 8 bytes, PRIORITY, role, integrity, fingerprint. */
static void make_request(struct ice_load *l, struct str ufrag, struct str pwd)
{
	static const uint8_t txid[STUN_TXID_LEN] = {1, 2, 3};
	struct stun_writer w = {.p = l->packet, .cap = sizeof(l->packet)};
	struct stun_key key;

	stun_key_init(&key, pwd);
	stun_write_head(&w, STUN_REQUEST, txid);
	stun_write_username(&w, ufrag, STR("peer"));
	stun_write_role(&w, STUN_ROLE_CONTROLLING, 1);
	stun_write_priority(&w, 0x6e7f1eff);
	l->len = stun_write_end(&w, &key);
}

static int load_init(struct ice_load *l)
{
	struct ice_config c = {.components = 1, .local_count = 1};
	struct ice_remote r = {.ufrag = STR("peer"), .pwd = STR("0123456789012345678901")};
	uint8_t seed[ICE_SEED_LEN] = {1};

	l->agent = malloc(ice_size());
	if (!l->agent || endpoint_parse(&c.local[0].addr, STR("192.0.2.1:5000")) ||
		endpoint_parse(&l->src, STR("192.0.2.2:6000")))
		return -1;
	c.local[0].component = 1;
	return ice_init(l->agent, &c, seed, 1) || ice_set_remote(l->agent, &r, 1);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The median of several rounds, in nanoseconds per packet. The agent's clock stands still. So the
 * limit of errors refuses most packets, as in a flood. */
static double measure(struct ice_load *l, unsigned packets)
{
	static struct ice_out out;
	double ns[ROUNDS];

	for (unsigned r = 0; r < ROUNDS; r++) {
		uint64_t start = clock_mono_ns();

		for (unsigned i = 0; i < packets; i++) {
			ice_take(l->agent, 0, &l->src, l->packet, l->len, 1);
			while (ice_next(l->agent, &out))
				;
		}
		ns[r] = (double)(clock_mono_ns() - start) / packets;
	}
	qsort(ns, ROUNDS, sizeof(ns[0]), by_value);
	return ns[ROUNDS / 2];
}

int bench_ice(int argc, char **argv)
{
	static const struct option options[] = {
		{"packets", required_argument, NULL, 'n'}, {"help", no_argument, NULL, 'h'}, {0}};
	struct ice_load l = {.agent = NULL};
	unsigned packets = 20000;
	double answered, refused;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'n' && atoi(optarg) > 0) {
			packets = (unsigned)atoi(optarg);
			continue;
		}
		fprintf(c == 'h' ? stdout : stderr,
			"usage: xcipher-bench ice [--packets=N]   (packets per round, 20000)\n");
		return c == 'h' ? 0 : 2;
	}
	if (load_init(&l))
		return 1;
	make_request(&l, ice_ufrag(l.agent), ice_pwd(l.agent));
	answered = measure(&l, packets);
	if (ice_counter(l.agent, ICE_COUNT_REQUESTS) != ROUNDS * packets)
		return 1;
	make_request(&l, ice_ufrag(l.agent), STR("a password that is wrong"));
	refused = measure(&l, packets);
	if (ice_counter(l.agent, ICE_COUNT_UNAUTHENTIC) != ROUNDS * packets)
		return 1;
	printf("binding request, answered           %7.0f ns\n", answered);
	printf("binding request, wrong integrity    %7.0f ns\n", refused);
	make_request(&l, STR("stranger"), STR("a password that is wrong"));
	printf("binding request, unknown name       %7.0f ns\n", measure(&l, packets));
	printf("agent                               %7zu bytes\n", ice_memory(l.agent));
	ice_fini(l.agent);
	free(l.agent);
	return 0;
}
