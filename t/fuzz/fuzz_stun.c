/* SPDX-License-Identifier: GPL-2.0-or-later */
/* STUN: never crashes; and what a parsed message says, written again, is parsed the same. */
#include <stdlib.h>

#include "ice/stun.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void require(bool ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t p[STUN_PACKET_MAX];
	struct stun_writer w = {.p = p, .cap = sizeof(p)};
	struct stun_msg m, again;
	struct stun_key key;
	struct str local;
	size_t n;

	if (stun_parse(&m, data, len))
		return 0;
	require(stun_is(data, len) && len <= STUN_PACKET_MAX);
	stun_key_init(&key, STR("VOkJxbRl1RmTxUk/WvJxBt"));
	stun_verify(&m, data, &key);
	stun_write_head(&w, m.cls, m.txid);
	local = m.username;
	if (m.username.s && memchr(m.username.s, ':', m.username.len)) {
		struct str remote = str_cut(&local, ':');

		stun_write_username(&w, remote, local);
	}
	if (m.has_priority)
		stun_write_priority(&w, m.priority);
	if (m.role)
		stun_write_role(&w, m.role, m.tie_breaker);
	if (m.has_mapped)
		stun_write_mapped(&w, &m.mapped);
	if (m.error)
		stun_write_error(&w, (enum stun_error)m.error);
	n = stun_write_end(&w, &key);
	require(n > 0 && stun_parse(&again, p, n) == 0 && stun_verify(&again, p, &key));
	require(again.cls == m.cls && again.priority == m.priority && again.role == m.role);
	require(again.tie_breaker == m.tie_breaker && again.error == m.error);
	require(!m.has_mapped || endpoint_eq(&again.mapped, &m.mapped));
	p[n - 20] ^= 1; /* within MESSAGE-INTEGRITY */
	require(!stun_verify(&again, p, &key));
	return 0;
}
