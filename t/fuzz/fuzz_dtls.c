/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records into the gate, a client and a server, from strangers and in the middle of a handshake.
 * Input: pieces of a byte of control, a length of two bytes, and a datagram. No piece may crash,
 * leave memory behind, or open an association: the fuzzer does not know the server's key. */
#include <stdlib.h>

#include "keying/dtls.h"
#include "keying/dtls_gate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct dtls_cert *cert;
static struct dtls_gate *gate;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	if (dtls_cert_create(&cert, 1700000000, 86400) || dtls_gate_create(&gate, 0))
		abort();
	return 0;
}

static void drain(struct dtls *from, struct dtls *to, uint64_t now_ns)
{
	uint8_t buf[DTLS_PACKET_MAX];
	int n;

	while ((n = dtls_next(from, buf, sizeof(buf))) > 0) {
		if ((size_t)n > DTLS_PACKET_MAX)
			abort();
		if (to)
			(void)dtls_take(to, buf, (size_t)n, now_ns);
	}
}

static struct dtls *create(enum dtls_role role)
{
	struct dtls_config c = {.cert = cert,
		.role = role,
		.profile = {SUITE_AEAD_AES_256_GCM, SUITE_AES_CM_128_80},
		.profiles = 2};
	struct dtls_fingerprints none = {.count = 0};
	struct dtls *a;

	if (dtls_create(&a, &c))
		abort();
	(void)dtls_expect(a, &none, 0); /* nobody's certificate is right */
	(void)dtls_start(a, 1);
	return a;
}

/* control: bit 0 to the server, bit 1 genuine packets before it, bit 2 time passes */
static void piece(struct dtls *a[2], uint8_t control, const uint8_t *p, size_t n, uint64_t *now_ns)
{
	const struct endpoint src = {{192, 0, 2, 1}, control, AF_INET, 0};
	struct dtls_gate_reply r;
	uint8_t *copy = malloc(n ? n : 1);

	if (!copy)
		return;
	memcpy(copy, p, n);
	if (control & 2) {
		drain(a[0], a[1], *now_ns);
		drain(a[1], a[0], *now_ns);
	}
	if (control & 4)
		*now_ns += 500000000;
	if (dtls_gate_take(gate, &src, copy, n, *now_ns, &r) == DTLS_GATE_REPLY && r.len > n + 25)
		abort();
	(void)dtls_take(a[control & 1], copy, n, *now_ns);
	dtls_tick(a[control & 1], *now_ns);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct dtls *a[2] = {create(DTLS_ROLE_CLIENT), create(DTLS_ROLE_SERVER)};
	uint64_t now_ns = 1;
	size_t at = 0;

	while (len >= at + 3) {
		size_t n = be16(data + at + 1) % 2048;

		if (n > len - at - 3)
			n = len - at - 3;
		piece(a, data[at], data + at + 3, n, &now_ns);
		at += 3 + n;
	}
	for (int i = 0; i < 2; i++) {
		if (dtls_state(a[i]) == DTLS_OPEN || dtls_state(a[i]) == DTLS_UNCHECKED)
			abort();
		dtls_close(a[i], now_ns);
		drain(a[i], NULL, now_ns);
		dtls_destroy(a[i]);
	}
	return 0;
}
