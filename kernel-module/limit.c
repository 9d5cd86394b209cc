// SPDX-License-Identifier: GPL-2.0
/* Token buckets: one for each target that has a rate, and a table of fixed size for sources. Two sources
 * that meet in one place of the table share its tokens: a limit errs on the side of less. */
#include <linux/ip.h>
#include <linux/jhash.h>
#include <linux/ktime.h>

#include "nf_xcipher.h"

#define PACKET 1000ull /* tokens of one */

/* A quarter of a second of the rate may come at once, and always 8 packets. */
static u64 depth(u32 rate)
{
	return max_t(u64, rate / 4, 8) * PACKET;
}

static bool take(struct nfx_bucket *b, u32 rate, u64 now)
{
	u64 most = depth(rate), passed = now - b->at_ns, tokens;

	/* A second fills any bucket; more would overflow. */
	tokens = passed >= NSEC_PER_SEC ? most : b->tokens + div_u64(passed * rate, NSEC_PER_SEC / PACKET);
	/* What is lost by rounding down stays in the clock. */
	if (tokens != b->tokens || tokens >= most) {
		b->tokens = min(tokens, most);
		b->at_ns = now;
	}
	if (b->tokens < PACKET)
		return false;
	b->tokens -= PACKET;
	return true;
}

bool nfx_bucket_take(struct nfx_bucket *b, u32 rate)
{
	bool ok;

	spin_lock_bh(&b->lock);
	ok = take(b, rate, ktime_get_ns());
	spin_unlock_bh(&b->lock);
	return ok;
}

bool nfx_source_take(struct nfx_net *nn, const struct in6_addr *addr, u32 rate)
{
	u32 hash = jhash2((const u32 *)addr, 4, nn->source_seed);
	struct nfx_source_bucket *s = &nn->sources[hash % NFX_SOURCE_BUCKETS];
	u64 now = ktime_get_ns();
	bool ok;

	spin_lock_bh(&s->bucket.lock);
	/* Whoever finds the place unused for a second takes it over; that it is full then is right for both. */
	if (!ipv6_addr_equal(&s->addr, addr) && now - s->bucket.at_ns > NSEC_PER_SEC) {
		s->addr = *addr;
		s->bucket.tokens = depth(rate);
		s->bucket.at_ns = now;
	}
	ok = take(&s->bucket, rate, now);
	spin_unlock_bh(&s->bucket.lock);
	return ok;
}
