/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The dispatch: authenticate, decrypt, re-encrypt and tag XC_WIDTH packets per work-item (layout.h says what a job is,
 * srtp/ref.c does the same in plain C). The input is only read. A lane is a packet while hashing; ciphering goes
 * packet by packet. Until its result is written, a packet's output place holds the end of the received message, padded
 * for SHA-1; until its tag is written, the bytes behind the result hold the padding of the sent one. */

#define XC_KEY_WORDS 432 /* offset in xc_key of 16 words: inner[5], outer[5], cipher, auth, rounds, tag_len */
enum { XC_W_INNER = 0, XC_W_OUTER = 5, XC_W_AUTH = 11 };

struct xc_work {
	xc_in src[XC_WIDTH];
	xc_out dst[XC_WIDTH];
	struct xc_message msg;
	xc_lanes rx[XC_GROUPS][5], rx_outer[XC_GROUPS][5];
	xc_lanes tx[XC_GROUPS][5], tx_outer[XC_GROUPS][5];
};

/* What follows the body in the authenticated portion: ROC or E||index as bytes, and the padding's first bytes. */
XC_INLINE void xc_pad(xc_out end, ulong word, xc_out last, uint len)
{
	XC_STORE(8, end, word | 0x80ul << 32);
	XC_STORE(64, end + 8, (uint16)(0u));
	XC_STORE(4, last, xc_swap4(8 * (64 + len + 4)));
}

/* HMAC's inner hash of a packet of len bytes and its word takes this many blocks. */
XC_INLINE uint xc_blocks_of(uint len)
{
	return (len + 4 + 9 + 63) / 64;
}

XC_INLINE void xc_rx_message(struct xc_work *k, int l, const __global struct xc_job *j, uint auth)
{
	uint len = j->hdr_len + j->body_len, rest = len % 64, full = len / 64;
	uint blocks = auth == XC_AUTH_HMAC_SHA1 ? xc_blocks_of(len) : 0;
	xc_in src = k->src[l];
	xc_out dst = k->dst[l];
	ulong word = j->flags & XC_JOB_RTCP ? XC_LOAD(4, src + len) : xc_swap4((uint)(j->rx_index >> 16));

	if (blocks) {
		XC_STORE(64, dst, XC_LOAD(64, src + len - rest));
		xc_pad(dst + rest, word, dst + 64 * (blocks - full) - 4, len);
	}
	k->msg.head[l] = src;
	k->msg.tail[l] = dst - 64 * (size_t)full;
	k->msg.full[l] = full;
	k->msg.blocks[l] = blocks;
	k->msg.last[l] = max(blocks, 1u) - 1;
}

XC_INLINE void xc_tx_message(struct xc_work *k, int l, const __global struct xc_job *j, uint auth,
	uint cipher)
{
	uint len = j->hdr_len + j->body_len, blocks = auth == XC_AUTH_HMAC_SHA1 ? xc_blocks_of(len) : 0;
	uint word = j->flags & XC_JOB_RTCP
		? (uint)j->tx_index | (j->flags & XC_JOB_TX_CLEAR ? 0 : 0x80000000u)
		: (uint)(j->tx_index >> 16);
	xc_out dst = k->dst[l];

	if (blocks)
		xc_pad(dst + len, xc_swap4(word), dst + 64 * blocks - 4, len);
	else if (auth == XC_AUTH_NULL && cipher != XC_CIPHER_NULL && j->flags & XC_JOB_RTCP)
		XC_STORE(4, dst + len, xc_swap4(word));
	k->msg.head[l] = k->msg.tail[l] = dst;
	k->msg.full[l] = blocks;
	k->msg.blocks[l] = blocks;
	k->msg.last[l] = max(blocks, 1u) - 1;
}

/* Inner and outer states of each lane's key. */
#define XC_STATES(g, keys, in, out)                                                      \
	{                                                                                \
		xc_lanes w[16];                                                          \
                                                                                         \
		xc_gather(w, (keys) + (g) * XC_LANES);                                   \
		_Pragma("unroll") for (int i = 0; i < 5; i++)                            \
		{                                                                        \
			in[g][i] = w[XC_W_INNER + i];                                    \
			out[g][i] = w[XC_W_OUTER + i];                                   \
		}                                                                        \
	}

XC_INLINE void xc_extent(struct xc_message *m)
{
	m->least = m->most = m->blocks[0];
	m->heads = min(m->full[0], m->last[0] + 1);
	for (int l = 1; l < XC_WIDTH; l++) {
		m->least = min(m->least, m->blocks[l]);
		m->most = max(m->most, m->blocks[l]);
		m->heads = min(m->heads, min(m->full[l], m->last[l] + 1));
	}
}

XC_INLINE struct xc_cm xc_cm_of(const __global struct xc_key *k, ulong index, uint ssrc, uint clear)
{
	struct xc_cm c = {.key = k};
	ulong2 salt = XC_LOAD(16, k->salt);

	/* RFC 3711 4.1.1: SSRC in bytes 4 to 7, the 48-bit index in bytes 8 to 13. */
	if (k->cipher == XC_CIPHER_GCM)
		c.iv = xc_gcm_iv(k, index, ssrc, 2);
	else
		c.iv = (ulong2)(salt.x ^ (ulong)xc_swap4(ssrc) << 32, salt.y ^ xc_swap8(index) >> 16);
	c.rounds = (k->cipher == XC_CIPHER_AES_CM || k->cipher == XC_CIPHER_GCM) && !clear ? k->rounds : 0;
	return c;
}

XC_INLINE void xc_header(xc_out dst, xc_in src, uint len)
{
	for (uint i = 0; i < len; i += 16)
		XC_STORE(16, dst + i, XC_LOAD(16, src + i));
}

#ifdef XC_CM_MANY
/* Headers and bodies of XC_CM_MANY packets, or the count there are. */
XC_INLINE void xc_recrypt_many(const xc_out *dst, const xc_in *src,
	const __global struct xc_job *jobs, const __global uint *at, uint count,
	const __global struct xc_key *keys)
{
	struct xc_cm rx[XC_CM_MANY], tx[XC_CM_MANY];
	xc_out to[XC_CM_MANY];
	xc_in from[XC_CM_MANY];
	uint len[XC_CM_MANY];

	for (uint i = 0; i < XC_CM_MANY; i++) {
		uint l = min(i, count - 1);
		const __global struct xc_job *j = jobs + at[l];

		if (i < count)
			xc_header(dst[l], src[l], j->hdr_len);
		rx[i] = xc_cm_of(
			keys + j->rx_key, j->rx_index, j->ssrc, j->flags & XC_JOB_RX_CLEAR);
		tx[i] = xc_cm_of(
			keys + j->tx_key, j->tx_index, j->ssrc, j->flags & XC_JOB_TX_CLEAR);
		to[i] = dst[l] + j->hdr_len;
		from[i] = src[l] + j->hdr_len;
		len[i] = i < count ? j->body_len : 0;
	}
	xc_cm_recrypt_many(to, from, len, rx, tx);
}
#else
/* Header and body of one packet. */
XC_INLINE void xc_recrypt(
	xc_out dst, xc_in src, const __global struct xc_job *j, const __global struct xc_key *keys)
{
	struct xc_cm rx = xc_cm_of(
		keys + j->rx_key, j->rx_index, j->ssrc, j->flags & XC_JOB_RX_CLEAR);
	struct xc_cm tx = xc_cm_of(
		keys + j->tx_key, j->tx_index, j->ssrc, j->flags & XC_JOB_TX_CLEAR);

	xc_header(dst, src, j->hdr_len);
	xc_cm_recrypt(dst + j->hdr_len, src + j->hdr_len, j->body_len, rx, tx);
}
#endif

/* Every bit is looked at, whatever the others say. */
XC_INLINE uint xc_verdict(ulong2 tag, ulong2 got, uint len)
{
	ulong2 diff = (tag ^ got) & xc_mask16(len);

	return diff.x | diff.y ? XC_BAD_TAG : XC_OK;
}

/* A wiped slot is no plain one. */
XC_INLINE uint xc_no_key(const __global struct xc_key *k)
{
	return k->valid == XC_KEY_VALID ? XC_OK : XC_BAD_TAG;
}

XC_INLINE void xc_tag_put(xc_out p, ulong2 tag, uint len)
{
	XC_STORE(16, p, tag & xc_mask16(len));
}

/* --- F8 and AEAD, where a work-item has any ------------------------------------------------------------------------- */

/* The bytes of the E||index word that is to be sent, as they stand on the wire. */
XC_INLINE uint xc_tx_word(const __global struct xc_job *j)
{
	uint e = j->flags & XC_JOB_TX_CLEAR ? 0 : 0x80000000u;

	return xc_swap4(j->flags & XC_JOB_RTCP ? (uint)j->tx_index | e : (uint)(j->tx_index >> 16));
}

/* Adds the keystreams of all sides that speak F8. */
static __attribute__((noinline)) void xc_f8_all(const xc_out *dst, const xc_in *src,
	const __global struct xc_job *jobs, const __global uint *at, uint count,
	const __global struct xc_key *keys)
{
	struct xc_f8 chain[2 * XC_WIDTH];
	uint n = 0;

	for (uint l = 0; l < count; l++) {
		const __global struct xc_job *j = jobs + at[l];
		uint rtcp = j->flags & XC_JOB_RTCP, len = j->hdr_len + j->body_len;
		uint rx_word = rtcp ? XC_LOAD(4, src[l] + len) : xc_swap4((uint)(j->rx_index >> 16));
		struct xc_f8 c = {.key = keys + j->rx_key, .body = dst[l] + j->hdr_len, .len = j->body_len};

		if (c.key->cipher == XC_CIPHER_AES_F8 && !(j->flags & XC_JOB_RX_CLEAR)) {
			c.iv = xc_f8_iv(src[l], rtcp, rx_word);
			chain[n++] = c;
		}
		c.key = keys + j->tx_key;
		if (c.key->cipher == XC_CIPHER_AES_F8 && !(j->flags & XC_JOB_TX_CLEAR)) {
			c.iv = xc_f8_iv(src[l], rtcp, xc_tx_word(j));
			chain[n++] = c;
		}
	}
	for (uint i = 0; i < n; i += XC_F8_MANY)
		xc_f8_some(chain + i, n - i);
}

/* The verdict on a packet whose tag is GCM's. */
static __attribute__((noinline)) uint xc_gcm_open(
	xc_in src, const __global struct xc_job *j, const __global struct xc_key *key)
{
	/* RFC 7714 9.3: the word follows the tag. */
	uint word = XC_LOAD(4, src + j->rx_tag_off + key->tag_len);
	ulong2 tag = xc_gcm_tag(key, src, j, j->rx_index, word, j->flags & XC_JOB_RX_CLEAR);

	return xc_verdict(tag, XC_LOAD(16, src + j->rx_tag_off), key->tag_len);
}

static __attribute__((noinline)) void xc_gcm_seal(
	xc_out dst, const __global struct xc_job *j, const __global struct xc_key *key)
{
	uint word = xc_tx_word(j);

	xc_tag_put(dst + j->tx_tag_off,
		xc_gcm_tag(key, dst, j, j->tx_index, word, j->flags & XC_JOB_TX_CLEAR), key->tag_len);
	if (j->flags & XC_JOB_RTCP)
		XC_STORE(4, dst + j->tx_tag_off + key->tag_len, word);
}

/* What will be needed after the received packets' hashes. */
XC_INLINE void xc_prefetch_keys(const __global struct xc_key *rx, const __global struct xc_key *tx)
{
	XC_PREFETCH(rx->rk);
	XC_PREFETCH(rx->rk + 64);
	XC_PREFETCH(rx->rk + 128);
	XC_PREFETCH(tx->rk);
	XC_PREFETCH(tx->rk + 64);
	XC_PREFETCH(tx->rk + 128);
	XC_PREFETCH((xc_in)tx + XC_KEY_WORDS);
	XC_PREFETCH((xc_in)tx + XC_KEY_WORDS + 16);
}

/* The first 16 bytes of each lane's digest, as they stand on the wire. */
struct xc_tags {
	uint w[4][XC_WIDTH];
};

#if XC_LANES == 16
#define XC_TAG_WORDS(g, s, t)                                     \
	_Pragma("unroll") for (int i = 0; i < 4; i++)             \
		vstore16(xc_swap_lanes(s[g][i]), g, (t)->w[i]);
#else
#define XC_TAG_WORDS(g, s, t) \
	_Pragma("unroll") for (int i = 0; i < 4; i++)(t)->w[i][g] = xc_swap_lanes(s[g][i]);
#endif

XC_INLINE ulong2 xc_tag(const struct xc_tags *t, int l)
{
	return (ulong2)(t->w[0][l] | (ulong)t->w[1][l] << 32, t->w[2][l] | (ulong)t->w[3][l] << 32);
}

/* A work-item of wide lanes is a work-group: there is nothing for the compiler to vectorise across. */
#if XC_LANES > 1
__attribute__((reqd_work_group_size(1, 1, 1)))
#endif
__kernel void xc_recrypt_batch(
	const __global struct xc_job *jobs, uint n, const __global struct xc_key *keys, xc_in in,
	xc_out out, __global uint *status, const __global uint *order)
{
	struct xc_work k;
	struct xc_tags tags;
	uint base = (uint)get_global_id(0) * XC_WIDTH, count = min(n - base, (uint)XC_WIDTH);
	uint ciphers = 0, rx_auths = 0, tx_auths = 0; /* a bit for each kind that there is */
	const __global uint *at = order + base; /* jobs of similar length side by side */
	xc_in rows[XC_WIDTH];

	if (base >= n)
		return;
	for (uint l = 0; l < count; l++)
		XC_PREFETCH((xc_in)(keys + jobs[at[l]].rx_key) + XC_KEY_WORDS);
	/* Lanes without a packet repeat the last one's hashing. */
	for (int l = 0; l < XC_WIDTH; l++) {
		const __global struct xc_job *j = jobs + at[min((uint)l, count - 1)];
		const __global struct xc_key *key = keys + j->rx_key;

		k.src[l] = in + j->in_off;
		k.dst[l] = out + j->out_off;
		rows[l] = (xc_in)key + XC_KEY_WORDS;
		xc_rx_message(&k, l, j, key->auth);
		xc_prefetch_keys(key, keys + j->tx_key);
		rx_auths |= 1u << key->auth;
		ciphers |= 1u << key->cipher;
	}
	if (rx_auths & 1u << XC_AUTH_HMAC_SHA1) {
		XC_EACH_GROUP(XC_STATES, rows, k.rx, k.rx_outer)
		xc_extent(&k.msg);
		xc_sha1_messages(k.rx, &k.msg);
		xc_hmac_outer(k.rx, k.rx_outer);
		XC_EACH_GROUP(XC_TAG_WORDS, k.rx, &tags)
	}
	for (uint l = 0; l < count; l++) {
		const __global struct xc_job *j = jobs + at[l];
		const __global struct xc_key *key = keys + j->rx_key;

		const __global struct xc_key *tx_key = keys + j->tx_key;
		uint verdict = xc_no_key(key) | xc_no_key(tx_key);

		if (key->auth == XC_AUTH_GCM)
			verdict |= xc_gcm_open(k.src[l], j, key);
		else if (key->auth == XC_AUTH_HMAC_SHA1)
			verdict |= xc_verdict(xc_tag(&tags, l),
				XC_LOAD(16, k.src[l] + j->rx_tag_off), key->tag_len);
		status[at[l]] = verdict;
	}

#ifdef XC_CM_MANY
	for (uint l = 0; l < count; l += XC_CM_MANY)
		xc_recrypt_many(k.dst + l, k.src + l, jobs, at + l, count - l, keys);
#else
	for (uint l = 0; l < count; l++)
		xc_recrypt(k.dst[l], k.src[l], jobs + at[l], keys);
#endif

	for (int l = 0; l < XC_WIDTH; l++) {
		const __global struct xc_job *j = jobs + at[min((uint)l, count - 1)];
		const __global struct xc_key *key = keys + j->tx_key;

		rows[l] = (xc_in)key + XC_KEY_WORDS;
		tx_auths |= 1u << key->auth;
		ciphers |= 1u << key->cipher;
	}
	if (ciphers & 1u << XC_CIPHER_AES_F8)
		xc_f8_all(k.dst, k.src, jobs, at, count, keys);
	for (int l = 0; l < XC_WIDTH; l++) {
		const __global struct xc_job *j = jobs + at[min((uint)l, count - 1)];
		const __global struct xc_key *key = keys + j->tx_key;

		xc_tx_message(&k, l, j, key->auth, key->cipher);
	}
	if (tx_auths & 1u << XC_AUTH_HMAC_SHA1) {
		XC_EACH_GROUP(XC_STATES, rows, k.tx, k.tx_outer)
		xc_extent(&k.msg);
		xc_sha1_messages(k.tx, &k.msg);
		xc_hmac_outer(k.tx, k.tx_outer);
		XC_EACH_GROUP(XC_TAG_WORDS, k.tx, &tags)
	}
	for (uint l = 0; l < count; l++) {
		const __global struct xc_job *j = jobs + at[l];
		const __global struct xc_key *key = keys + j->tx_key;

		if (key->auth == XC_AUTH_HMAC_SHA1)
			xc_tag_put(k.dst[l] + j->tx_tag_off, xc_tag(&tags, l), key->tag_len);
		else if (key->auth == XC_AUTH_GCM)
			xc_gcm_seal(k.dst[l], j, key);
	}
}
