/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SRTCP tags of 32 bits under the suites whose names end in _32. RFC 4568 6.2 requires 80 bits for
 * SRTCP, but some terminals use the tag length of SRTP for both. Recognises such packets, at a
 * limited rate. If the context allows it, accepts them and sends such tags. Called by complete.c.
 * Ignores keys with an MKI or a key derivation rate.
 *
 * An observer can truncate a packet with 80 bits, and the rest is an authentic tag of 32. So a
 * short tag counts only while no tag of 80 bits was authentic under the key, and the first such tag
 * ends short ones for good, in both directions. */
#include "media/short_tag.h"
#include "media/ssrc.h"
#include "media/state.h"
#include "media/tags.h"
#include "packet/arena.h"
#include "srtp/ref.h"

#define SHORT_TAG_LEN 4u
#define TESTS_AT_ONCE 8u
/* After TESTS_AT_ONCE, one per second, stream and kind of SSRC: a test is an additional HMAC. */
#define TESTS_EVERY_NS 1000000000ull

static bool may_be_short(const struct media *m, const struct media_crypto *c, uint32_t key)
{
	const struct srtp_suite *s = srtp_suite_get(c->suite);

	return s->rtp_tag_len == SHORT_TAG_LEN && s->rtcp_tag_len > SHORT_TAG_LEN && !c->mki_len &&
		!c->pass && !m->key[key / 2].kdr;
}

struct media_tail media_rtcp_tail(const struct media *m, const struct media_crypto *c)
{
	struct media_tail t = media_tail(c, true);

	if (c->keys && c->use < c->keys && m->key[c->key[c->use].slot / 2].short_tag &&
		may_be_short(m, c, c->key[c->use].slot))
		t.len = (uint8_t)(t.tag + SHORT_TAG_LEN);
	return t;
}

/* At most TESTS_AT_ONCE in a burst, and one per TESTS_EVERY_NS. SSRCs with authentic RTP have tests
 * of their own: a forger who does not see the packets does not know these SSRCs, and uses up only
 * the tests of other SSRCs. Tests at random times would rarely find the one true packet. */
static bool may_test(struct media_trial *t, bool known, uint64_t now_ns)
{
	uint64_t from = TESTS_AT_ONCE * TESTS_EVERY_NS, *ns = &t->short_ns[known];

	if (*ns > now_ns) /* the clock was set */
		*ns = 0;
	if (now_ns > from && *ns < now_ns - from)
		*ns = now_ns - from;
	if (now_ns - *ns < TESTS_EVERY_NS)
		return false;
	*ns += TESTS_EVERY_NS;
	return true;
}

static bool authenticates(
	const struct arena *a, const struct packet_in *in, const struct xc_job *j, uint32_t tag_len)
{
	struct xc_job s = *j;

	if (in->len < j->hdr_len + 4 + tag_len)
		return false;
	s.body_len = in->len - j->hdr_len - 4 - tag_len;
	s.rx_tag_off = in->len - tag_len;
	return srtp_ref_tag_fits(&s, &a->key[j->rx_key], tag_len, a->in);
}

/* From now on tags under this key have len bytes. Packets in flight are dropped, or sent with a tag
 * of the other length. */
static void set_tag_len(struct media *m, const struct arena *a, uint32_t key, uint32_t len)
{
	bool is_short = len == SHORT_TAG_LEN;

	if (m->key[key / 2].short_tag == is_short)
		return;
	a->key[key + 1].tag_len = len;
	if (m->cfg.key_changed && m->cfg.key_changed(m->cfg.key_changed_arg, key))
		return; /* tests continue, and the next one tries again */
	m->key[key / 2].short_tag = is_short;
}

/* The terminal uses 80-bit tags after all: a short tag was a truncated packet. */
static void lengthen(struct media *m, const struct arena *a, const struct note *n)
{
	const struct media_crypto *rx = &n->rx->cfg->rx, *tx = &n->rx->cfg->tx;
	uint32_t key = media_is_srtp(tx) ? tx->key[tx->use].slot : 0;

	m->key[n->rx_key / 2].long_tag = true;
	set_tag_len(m, a, n->rx_key, srtp_suite_get(rx->suite)->rtcp_tag_len);
	n->rx->rtcp_tail[false] = media_rtcp_tail(m, rx);
	if (!media_is_srtp(tx) || !may_be_short(m, tx, key))
		return;
	set_tag_len(m, a, key, srtp_suite_get(tx->suite)->rtcp_tag_len);
	n->rx->rtcp_tail[true] = media_rtcp_tail(m, tx);
}

bool media_tag_is_short(struct media *m, const struct arena *a, const struct note *n,
	const struct packet_in *in, const struct xc_job *j)
{
	const struct media_crypto *rx = &n->rx->cfg->rx;
	uint32_t key = n->rx_key;

	if (!n->rx->rx.srtp || n->passed || !may_be_short(m, rx, key) ||
		(m->key[key / 2].long_tag && !m->key[key / 2].short_tag) ||
		!may_test(&m->trial[n->stream], media_ssrc_find(n->rx, RX_RTP, j->ssrc), in->t_ns))
		return false;
	if (m->key[key / 2].short_tag) {
		if (authenticates(a, in, j, srtp_suite_get(rx->suite)->rtcp_tag_len))
			lengthen(m, a, n);
		return false;
	}
	if (!authenticates(a, in, j, SHORT_TAG_LEN))
		return false;
	if (n->rx->cfg->short_tags) {
		set_tag_len(m, a, key, SHORT_TAG_LEN);
		n->rx->rtcp_tail[false] = media_rtcp_tail(m, rx);
	}
	return true;
}

void media_tag_fits(struct media *m, const struct arena *a, const struct note *n)
{
	const struct media_crypto *rx = &n->rx->cfg->rx, *tx = &n->rx->cfg->tx;
	uint32_t key = tx->key[tx->use].slot;

	if (!m->key[n->rx_key / 2].short_tag) {
		m->key[n->rx_key / 2].long_tag = may_be_short(m, rx, n->rx_key);
		return;
	}
	if (!media_is_srtp(tx) || !may_be_short(m, tx, key))
		return;
	set_tag_len(m, a, key, SHORT_TAG_LEN);
	n->rx->rtcp_tail[true] = media_rtcp_tail(m, tx);
}

struct media_tail media_tail(const struct media_crypto *c, bool rtcp)
{
	uint8_t more = (uint8_t)(rtcp ? 0 : media_tag_len(c)); /* SRTP+: after all other fields */
	const struct srtp_suite *s = srtp_suite_get(c->suite);
	uint32_t tag = rtcp ? s->rtcp_tag_len : c->no_rtp_auth ? 0 : s->rtp_tag_len;
	uint32_t word = rtcp && media_is_srtp(c) ? 4 : 0, mki = c->mki_len;

	if (s->auth == XC_AUTH_GCM)
		return (struct media_tail){.tag = 0,
			.word = (uint8_t)tag,
			.mki = (uint8_t)(tag + word),
			.len = (uint8_t)(tag + word + mki + more)};
	return (struct media_tail){.word = 0,
		.mki = (uint8_t)word,
		.tag = (uint8_t)(word + mki),
		.len = (uint8_t)(word + mki + tag + more)};
}
