/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compares master keys. Pure. */
#include "srtp/params.h"
#include "base/secmem.h"

bool srtp_same_key(const struct srtp_master *a, const struct srtp_master *b)
{
	const struct srtp_suite *s = srtp_suite_get(a->suite);

	if (a->suite != b->suite || a->mki_len != b->mki_len)
		return false;
	return secmem_equal(a->key, b->key, s->key_len) &&
		secmem_equal(a->salt, b->salt, s->salt_len) &&
		memcmp(a->mki, b->mki, srtp_mki_kept(a->mki_len)) == 0;
}

bool srtp_same_session(const struct srtp_master *a, const struct srtp_master *b)
{
	return srtp_same_key(a, b) && a->lifetime == b->lifetime && a->kdr == b->kdr &&
		a->no_rtp_auth == b->no_rtp_auth;
}

bool srtp_shares_key(const struct srtp_master *a, const struct srtp_master *b)
{
	uint32_t len =
		min_u32(srtp_suite_get(a->suite)->key_len, srtp_suite_get(b->suite)->key_len);

	return len && secmem_equal(a->key, b->key, len);
}
