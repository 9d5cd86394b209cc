/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MIKEY. The first byte of the input says what the rest is: a message, key data, a policy, or a
 * message whose MAC is made right first, so that the code behind the proof is reached. */
#include <stdlib.h>

#include "base/secmem.h"
#include "keying/mikey_int.h"

#define NOW (mikey_ntp(1800000000ull * 1000000000ull))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const struct mikey_psk psk = {.len = 24, .key = "0123456789abcdefghijklmn"};

static void within(struct str part, struct str whole)
{
	if (part.len && (part.s < whole.s || part.s + part.len > whole.s + whole.len))
		abort();
}

static void message(struct str in)
{
	static struct mikey_message m;
	size_t offset;
	int err = mikey_parse(&m, in, &offset);

	if (offset > in.len)
		abort();
	if (err)
		return;
	if (offset != in.len)
		abort();
	for (uint32_t i = 0; i < m.payloads; i++) {
		within(m.payload[i].raw, in);
		within(m.payload[i].data, m.payload[i].raw);
		within(m.payload[i].mac, m.payload[i].raw);
	}
	for (uint32_t i = 0; i < 256; i++)
		(void)mikey_policy_of(&m, (uint8_t)i);
}

static void key_data(struct str in)
{
	struct mikey_key_list k;
	size_t offset;

	for (uint32_t first = 0; first < 32; first++)
		if (!mikey_keys_parse(&k, in, (uint8_t)first, &offset))
			for (uint32_t i = 0; i < k.count; i++) {
				within(k.key[i].key, in);
				within(k.key[i].salt, in);
			}
}

static int find(void *arg, const struct mikey_ask *ask, struct mikey_identity *mine,
	struct mikey_peer *peer)
{
	(void)arg;
	(void)ask;
	memset(mine, 0, sizeof(*mine));
	memset(peer, 0, sizeof(*peer));
	peer->psk = psk;
	return 0;
}

/* Keys come out only with the state that says so. */
static void respond(struct str in)
{
	struct mikey_store store = {.find = find};
	struct mikey_accept accept = {.modes = UINT32_MAX,
		.media = 1,
		.suites = 1,
		.suite = {SUITE_AES_CM_128_80},
		.null_key_encryption = true};
	struct mikey_answer a = {.store = &store, .accept = &accept, .env = {.now_ntp = NOW}};
	static uint8_t buf[MIKEY_MESSAGE_MAX];
	struct mikey_out out = {.buf = buf, .cap = sizeof(buf)};
	static struct mikey_run run;
	static struct mikey_keys keys;
	enum mikey_failure f;

	if (mikey_replay_create(&a.replay, 16))
		return;
	f = mikey_respond(&run, &a, in, &out, &keys);
	if (mikey_run_check(&run) || (f ? keys.media : !keys.media) ||
		run.state != (f ? MIKEY_FAILED : MIKEY_DONE))
		abort();
	if (f)
		(void)mikey_error(&run, &out);
	mikey_replay_destroy(a.replay);
}

static void with_right_mac(const uint8_t *data, size_t len)
{
	static struct mikey_message m;
	struct mikey_transport t;
	const struct mikey_payload *rand;
	uint8_t *copy = malloc(len ? len : 1);
	size_t offset;

	if (!copy)
		abort();
	memcpy(copy, data, len);
	if (!mikey_parse(&m, mikey_bytes(copy, len), &offset) && len > MIKEY_MAC_LEN &&
		(rand = mikey_payload_find(&m, MIKEY_P_RAND, 0)) &&
		mikey_transport_keys(
			&t, mikey_bytes(psk.key, psk.len), m.header.csb_id, rand->data))
		(void)mikey_hmac(copy + len - MIKEY_MAC_LEN, mikey_bytes(t.auth, sizeof(t.auth)),
			mikey_bytes(copy, len - MIKEY_MAC_LEN));
	respond(mikey_bytes(copy, len));
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct mikey_policy policy;

	if (!len)
		return 0;
	switch (*data & 3) {
	case 0:
		message(mikey_bytes(data + 1, len - 1));
		respond(mikey_bytes(data + 1, len - 1));
		break;
	case 1:
		key_data(mikey_bytes(data + 1, len - 1));
		break;
	case 2:
		if (!mikey_policy_parse(&policy, mikey_bytes(data + 1, len - 1)))
			(void)mikey_policy_suite(&policy);
		break;
	default:
		with_right_mac(data + 1, len - 1);
	}
	return 0;
}
