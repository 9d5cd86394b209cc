/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ICE agent against a sequence of packets, candidates, restarts and time. Some packets are as
 * an authentic peer would send them. Deadlines must pass, answers must not be longer than requests,
 * and no table may overflow. */
#include <stdlib.h>

#include "../unit/ice_save.h"
#include "ice/agent_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct input {
	const uint8_t *p;
	size_t len;
};

static const struct str PWD = {"0123456789012345678901", 22};
static struct ice_agent agent;
static struct ice_out last; /* the last packet of the agent */
static uint64_t now_ns;

static void require(bool ok)
{
	if (!ok)
		abort();
}

static uint8_t byte(struct input *in)
{
	if (in->len == 0)
		return 0;
	in->len--;
	return *in->p++;
}

static struct endpoint address(uint8_t n)
{
	struct endpoint e = {.family = n & 1 ? AF_INET6 : AF_INET, .port = (uint16_t)(1000 + n)};

	e.addr[0] = n & 1 ? 0x20 : 192;
	e.addr[3] = n / 4;
	return e;
}

static void drain(void)
{
	while (ice_next(&agent, &last))
		require(last.len > 0 && last.len <= ICE_PACKET_MAX &&
			stun_is(last.packet, last.len));
}

/* A request under the right password, or the right response to the agent's last check. */
static void authentic(struct input *in)
{
	uint8_t p[ICE_PACKET_MAX], flags = byte(in), second = byte(in), local = second % 4;
	struct stun_writer w = {.p = p, .cap = sizeof(p)};
	struct endpoint src = flags & 1 ? last.dst : address(byte(in));
	const struct own_name *own =
		second & 64 && agent.cur.has_prev ? &agent.cur.prev : &agent.cur.own;
	struct stun_msg m;
	struct stun_key key;
	size_t n;

	if (flags & 2) {
		if (last.len == 0 || stun_parse(&m, last.packet, last.len))
			return;
		stun_key_init(&key, PWD);
		stun_write_head(&w, flags & 4 ? STUN_ERROR : STUN_SUCCESS, m.txid);
		if (flags & 4)
			stun_write_error(&w, STUN_ROLE_CONFLICT);
		stun_write_mapped(&w, &src);
		local = last.local;
	} else {
		memcpy(m.txid, "transaction!", sizeof(m.txid));
		key = own->key;
		stun_write_head(&w, STUN_REQUEST, m.txid);
		stun_write_username(&w, (struct str){own->ufrag, sizeof(own->ufrag)},
			flags & 8 ? STR("peer") : STR("else"));
		stun_write_priority(&w, 1000u + flags);
		if (flags & 16)
			stun_write_use_candidate(&w);
		if (flags & 32)
			stun_write_role(&w,
				flags & 64 ? STUN_ROLE_CONTROLLED : STUN_ROLE_CONTROLLING,
				flags & 128 ? UINT64_MAX : 0);
	}
	n = stun_write_end(&w, &key);
	ice_take(&agent, local, &src, p, n, now_ns);
}

static void raw(struct input *in)
{
	uint8_t local = byte(in) % 5, n = byte(in);
	struct endpoint src = address(byte(in));
	size_t len = n < in->len ? n : in->len;
	uint8_t *copy = malloc(len ? len : 1);

	memcpy(copy, in->p, len);
	in->p += len;
	in->len -= len;
	ice_take(&agent, local, &src, copy, len, now_ns);
	free(copy);
}

static void remote(struct input *in)
{
	struct ice_candidate c[4] = {0};
	uint8_t flags = byte(in);
	struct ice_remote r = {.ufrag = flags & 1 ? STR("peer") : STR("else"),
		.pwd = PWD,
		.lite = flags & 2,
		.last = flags & 4,
		.candidate = c,
		.count = flags >> 3 & 3};

	for (uint32_t i = 0; i < r.count; i++) {
		c[i].addr = address(byte(in));
		c[i].component = byte(in) & 3;
		c[i].type = byte(in) & 3;
		c[i].priority = byte(in) * 0x01010101u;
		c[i].foundation_len = 1;
	}
	if (flags & 128)
		ice_forget_peer(&agent, now_ns);
	require(ice_set_remote(&agent, &r, now_ns) == 0);
}

static void restore(struct input *in)
{
	static struct ice_saved s;
	uint8_t seed[ICE_SEED_LEN] = {byte(in)};

	net_save(&agent, &s);
	ice_fini(&agent);
	require(ice_restore(&agent, &s, seed, now_ns) == 0);
}

static void check(void)
{
	struct ice_pair_selected s;

	require(agent.remote_count <= ICE_REMOTES && agent.pair_count <= ICE_PAIRS);
	require(agent.early_count <= ICE_EARLY && agent.out_count == 0);
	for (uint8_t c = 1; c <= ICE_COMPONENTS; c++)
		if (ice_selected(&agent, c, &s))
			require(s.local < agent.local_count && s.remote.port &&
				agent.local[s.local].component == c &&
				ice_is_valid_source(&agent, s.local, &s.remote));
	for (uint8_t i = 0; i < agent.pair_count; i++)
		require(!agent.pair[i].prev || agent.cur.has_prev);
	for (uint8_t c = 0; c < ICE_COMPONENTS; c++)
		require(!agent.selected[c].set || !agent.selected[c].prev ||
			(agent.selected[c].old ? agent.old : &agent.cur)->has_prev);
	if (ice_state(&agent) == ICE_COMPLETED)
		require(ice_selected(&agent, 1, &s) && s.nominated);
}

/* Time passes: by so much, or to deadlines, of which each must be later than the one before, or at
 * least do something. */
static void pass(struct input *in)
{
	uint8_t n = byte(in);

	if (n & 128) {
		now_ns += (n & 127) * ICE_S / 2;
		ice_tick(&agent, now_ns);
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		uint64_t at = ice_deadline(&agent);
		unsigned again = 0;

		if (at == ICE_NEVER)
			return;
		now_ns = at > now_ns ? at : now_ns;
		do {
			require(again++ < 200);
			ice_tick(&agent, now_ns);
			drain();
		} while (ice_deadline(&agent) <= now_ns);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct input in = {data, len};
	struct ice_config c = {.components = 2, .local_count = 4};
	uint8_t seed[ICE_SEED_LEN] = {1}, flags = byte(&in);

	for (uint8_t i = 0; i < 4; i++)
		c.local[i] = (struct ice_local){address(200 + i), 1 + i / 2};
	c.lite = flags & 1;
	c.controlling = flags & 2;
	c.components = flags & 4 ? 1 : 2;
	now_ns = 1;
	memset(&last, 0, sizeof(last));
	require(ice_init(&agent, &c, seed, now_ns) == 0);
	for (unsigned steps = 0; in.len > 0 && steps < 500; steps++) {
		switch (byte(&in) % 9) {
		case 0:
		case 1:
		case 2:
			authentic(&in);
			break;
		case 3:
			raw(&in);
			break;
		case 4:
			remote(&in);
			break;
		case 5:
		case 6:
			pass(&in);
			break;
		case 7:
			if (byte(&in) & 1)
				ice_restart(&agent, now_ns);
			else
				ice_use_one_component(&agent, now_ns);
			break;
		default:
			restore(&in);
			break;
		}
		drain();
		check();
	}
	ice_fini(&agent);
	return 0;
}
