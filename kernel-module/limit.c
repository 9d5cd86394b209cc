// SPDX-License-Identifier: GPL-2.0
/* Token buckets: one for each target with a rate, and a table of fixed size for sources. An address
 * maps to a set of four places. A new source replaces the one that was quiet longest, and starts
 * with a full bucket. So a flood from many addresses weakens this limit but never starves a good
 * source, and the target's own limit still applies. Buckets fill once a tick: reading the clock for
 * each packet would cost more than the rest. */
#include <linux/jhash.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <net/ipv6.h>

#include "nf_xcipher.h"

#define PACKET 1000ull /* tokens per packet */

/* A burst of a quarter of a second's rate, and at least 8 packets. */
static u64 depth(u32 rate)
{
	return max_t(u64, rate / 4, 8) * PACKET;
}

static __always_inline bool take(struct nfx_tokens *b, u32 rate, u32 n, u64 now)
{
	u64 most = depth(rate), passed = now - b->at, tokens;

	/* A second fills any bucket; a longer time would overflow. */
	tokens = passed >= HZ ? most : b->n + div_u64(passed * rate * PACKET, HZ);
	/* The rounding remainder stays in the clock. */
	if (tokens != b->n || tokens >= most) {
		b->n = min(tokens, most);
		b->at = now;
	}
	if (b->n < PACKET)
		return false;
	/* A coalesced packet passes as a whole, even if the bucket never holds that many tokens. */
	b->n -= min(b->n, n * PACKET);
	return true;
}

void nfx_bucket_init(struct nfx_bucket *b)
{
	spin_lock_init(&b->lock);
}

bool nfx_bucket_take(struct nfx_bucket *b, u32 rate, u32 n)
{
	bool ok;

	spin_lock(&b->lock);
	ok = take(&b->tokens, rate, n, get_jiffies_64());
	spin_unlock(&b->lock);
	return ok;
}

struct nfx_source_set *nfx_sources_alloc(void)
{
	struct nfx_source_set *sets =
		kvcalloc(NFX_SOURCE_SETS, sizeof(*sets), GFP_KERNEL_ACCOUNT);

	for (u32 i = 0; sets && i < NFX_SOURCE_SETS; i++)
		spin_lock_init(&sets[i].lock);
	return sets;
}

bool nfx_source_take(struct nfx_net *nn, const struct in6_addr *addr, u32 rate, u32 n)
{
	u32 hash = jhash2((const u32 *)addr, 4, nn->source_seed), i, old = 0;
	struct nfx_source_set *s = &nn->sources[hash % NFX_SOURCE_SETS];
	u64 now = get_jiffies_64();
	bool ok;

	spin_lock(&s->lock);
	for (i = 0; i < NFX_SOURCE_WAYS && !ipv6_addr_equal(&s->way[i].addr, addr); i++)
		if (s->way[i].tokens.at < s->way[old].tokens.at)
			old = i;
	if (i == NFX_SOURCE_WAYS) {
		i = old;
		s->way[i].addr = *addr;
		s->way[i].tokens.n = depth(rate);
		s->way[i].tokens.at = now;
	}
	ok = take(&s->way[i].tokens, rate, n, now);
	spin_unlock(&s->lock);
	return ok;
}
