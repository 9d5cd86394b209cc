/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel of a dispatch: authenticates, decrypts, re-encrypts and tags XC_LANES packets per
 * work-item. layout.h describes a job; srtp/ref.c does the same in plain C. The input is only read.
 * Encryption comes first, packet by packet, because the host ignores the output of packets that
 * fail authentication. Then each lane takes a packet, and hashes of received and sent packets run
 * over all lanes. Descriptors and keys are rows of 64 bytes, transposed into lanes. */

/* Indexes of the words of xc_job and xc_key after xc_gather(). */
enum { XC_J_RX_INDEX = 0, XC_J_TX_INDEX = 2, XC_J_IN_OFF = 4, XC_J_OUT_OFF, XC_J_RX_KEY, XC_J_TX_KEY,
	XC_J_HDR_LEN, XC_J_BODY_LEN, XC_J_RX_TAG_OFF, XC_J_TX_TAG_OFF, XC_J_SSRC, XC_J_FLAGS,
	XC_J_SSRC_CHANGE, XC_J_CONVERT };
enum { XC_K_INNER = 0, XC_K_OUTER = 5, XC_K_CIPHER = 10, XC_K_AUTH, XC_K_ROUNDS, XC_K_TAG_LEN,
	XC_K_VALID };

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

/* The SSRC of the sent packet. */
XC_INLINE uint xc_tx_ssrc(const __global struct xc_job *j)
{
	return j->ssrc ^ j->ssrc_change;
}

/* Returns the law to convert the body by. */
XC_INLINE uint xc_header(xc_out dst, xc_in src, const __global struct xc_job *j)
{
	for (uint i = 0; i < j->hdr_len; i += 16)
		XC_STORE(16, dst + i, XC_LOAD(16, src + i));
	if (j->ssrc_change)
		XC_STORE(4, dst + (j->flags & XC_JOB_RTCP ? 4 : 8), xc_swap4(xc_tx_ssrc(j)));
	if (j->convert)
		dst[1] ^= (uchar)XC_FLIP(j->convert);
	return XC_LAW(j->convert);
}

#ifdef XC_CM_MANY
/* Re-encrypts headers and bodies of XC_CM_MANY packets, or of the remaining count. */
XC_INLINE void xc_recrypt_many(const xc_out *dst, const xc_in *src,
	const __global struct xc_job *jobs, const __global uint *at, uint count,
	const __global struct xc_key *keys)
{
	struct xc_cm rx[XC_CM_MANY], tx[XC_CM_MANY];
	xc_out to[XC_CM_MANY];
	xc_in from[XC_CM_MANY];
	uint len[XC_CM_MANY], law[XC_CM_MANY];

	for (uint i = 0; i < XC_CM_MANY; i++) {
		uint l = min(i, count - 1);
		const __global struct xc_job *j = jobs + at[l];

		law[i] = i < count ? xc_header(dst[l], src[l], j) : XC_LAW_KEEP;
		rx[i] = xc_cm_of(
			keys + j->rx_key, j->rx_index, j->ssrc, j->flags & XC_JOB_RX_CLEAR);
		tx[i] = xc_cm_of(
			keys + j->tx_key, j->tx_index, xc_tx_ssrc(j), j->flags & XC_JOB_TX_CLEAR);
		to[i] = dst[l] + j->hdr_len;
		from[i] = src[l] + j->hdr_len;
		len[i] = i < count ? j->body_len : 0;
	}
	xc_cm_recrypt_many(to, from, len, rx, tx, law);
}
#else
/* Header and body of one packet. */
XC_INLINE void xc_recrypt(
	xc_out dst, xc_in src, const __global struct xc_job *j, const __global struct xc_key *keys)
{
	struct xc_cm rx = xc_cm_of(
		keys + j->rx_key, j->rx_index, j->ssrc, j->flags & XC_JOB_RX_CLEAR);
	struct xc_cm tx = xc_cm_of(
		keys + j->tx_key, j->tx_index, xc_tx_ssrc(j), j->flags & XC_JOB_TX_CLEAR);

	uint law = xc_header(dst, src, j);

	xc_cm_recrypt(dst + j->hdr_len, src + j->hdr_len, j->body_len, rx, tx, law);
}
#endif

/* Compares every bit, in constant time. */
XC_INLINE uint xc_verdict(ulong2 tag, ulong2 got, uint len)
{
	ulong2 diff = (tag ^ got) & xc_mask16(len);

	return diff.x | diff.y ? XC_BAD_TAG : XC_OK;
}

XC_INLINE void xc_tag_put(xc_out p, ulong2 tag, uint len)
{
	XC_STORE(16, p, tag & xc_mask16(len));
}

/* --- F8 and AEAD, if any lane needs them
 * ------------------------------------------------------------- */

/* The E||index word to send, in wire format. */
XC_INLINE uint xc_tx_word(const __global struct xc_job *j)
{
	uint e = j->flags & XC_JOB_TX_CLEAR ? 0 : 0x80000000u;

	return xc_swap4(j->flags & XC_JOB_RTCP ? (uint)j->tx_index | e : (uint)(j->tx_index >> 16));
}

/* SRTCP's E||index words, received and to be sent, as numbers. Writes the latter after the body
 * (AEAD writes it elsewhere itself). */
static __attribute__((noinline)) void xc_rtcp_words(uint *rx, uint *tx, xc_in src, xc_out dst,
	const __global struct xc_job *j, const __global struct xc_key *keys)
{
	const __global struct xc_key *key = keys + j->tx_key;
	uint len = j->hdr_len + j->body_len, word = xc_tx_word(j);

	if (!(j->flags & XC_JOB_RTCP))
		return;
	*rx = xc_swap4(XC_LOAD(4, src + len));
	*tx = xc_swap4(word);
	if (key->auth == XC_AUTH_HMAC_SHA1 || (key->auth == XC_AUTH_NULL && key->cipher != XC_CIPHER_NULL))
		XC_STORE(4, dst + len, word);
}

/* Adds the keystreams of all sides that use F8. The sent header is already there, with its SSRC. */
static __attribute__((noinline)) void xc_f8_all(const xc_out *dst, const xc_in *src,
	const __global struct xc_job *jobs, const __global uint *at, uint count,
	const __global struct xc_key *keys)
{
	struct xc_f8 chain[2 * XC_LANES];
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
			c.iv = xc_f8_iv(dst[l], rtcp, xc_tx_word(j));
			chain[n++] = c;
		}
	}
	for (uint i = 0; i < n; i += XC_F8_MANY)
		xc_f8_some(chain + i, n - i);
}

/* The verdict on a packet with a GCM tag. */
static __attribute__((noinline)) uint xc_gcm_open(
	xc_in src, const __global struct xc_job *j, const __global struct xc_key *key)
{
	/* RFC 7714 9.3: the word follows the tag. */
	uint word = XC_LOAD(4, src + j->rx_tag_off + key->tag_len);
	ulong2 tag = xc_gcm_tag(key, src, j, j->rx_index, j->ssrc, word, j->flags & XC_JOB_RX_CLEAR);

	return xc_verdict(tag, XC_LOAD(16, src + j->rx_tag_off), key->tag_len);
}

static __attribute__((noinline)) void xc_gcm_seal(
	xc_out dst, const __global struct xc_job *j, const __global struct xc_key *key)
{
	uint word = xc_tx_word(j);

	xc_tag_put(dst + j->tx_tag_off,
		xc_gcm_tag(key, dst, j, j->tx_index, xc_tx_ssrc(j), word, j->flags & XC_JOB_TX_CLEAR),
		key->tag_len);
	if (j->flags & XC_JOB_RTCP)
		XC_STORE(4, dst + j->tx_tag_off + key->tag_len, word);
}

/* --- Lanes ------------------------------------------------------------------------------------------------------- */

/* One side of all lanes. */
struct xc_side {
	xc_lanes auth, tag_len;
	uint auths, ciphers; /* a bit for each kind in use */
};

XC_INLINE void xc_side_of(struct xc_side *side, struct xc_message *m, xc_lanes *valid,
	const __global struct xc_key *keys, const uint *slot)
{
	xc_in row[XC_LANES];
	xc_lanes w[16];

#pragma unroll
	for (int l = 0; l < XC_LANES; l++)
		row[l] = (xc_in)(keys + slot[l]);
	xc_gather(w, row);
#pragma unroll
	for (int i = 0; i < 5; i++) {
		m->s[i] = w[XC_K_INNER + i];
		m->outer[i] = w[XC_K_OUTER + i];
	}
	side->auth = w[XC_K_AUTH];
	side->tag_len = w[XC_K_TAG_LEN];
	side->auths = xc_bits((xc_lanes)1u << w[XC_K_AUTH]);
	side->ciphers = xc_bits((xc_lanes)1u << w[XC_K_CIPHER]);
	/* A wiped slot is invalid, not plain. */
	*valid = w[XC_K_VALID] == XC_KEY_VALID ? *valid : (xc_lanes)XC_BAD_TAG;
}

/* Masks the first four words of the digests, in wire format, to the length of the tag. */
XC_INLINE void xc_tags(xc_lanes *tag, xc_lanes *mask, const struct xc_message *m, const struct xc_side *side)
{
	xc_lanes len = side->auth == XC_AUTH_HMAC_SHA1 ? side->tag_len : (xc_lanes)0u;

#pragma unroll
	for (uint i = 0; i < 4; i++) {
		xc_lanes n = max(len, (xc_lanes)(4 * i)) - 4 * i;

		mask[i] = n < 4u ? ((xc_lanes)1u << (n << 3u)) - 1u : (xc_lanes)0xffffffffu;
		tag[i] = xc_swap_lanes(m->s[i]) & mask[i];
	}
}

/* Compares every bit, in constant time. */
XC_INLINE xc_lanes xc_verdicts(const struct xc_message *m, const struct xc_side *side, const xc_in *at)
{
	xc_lanes tag[4], mask[4], got[4], diff;

	xc_tags(tag, mask, m, side);
	xc_gather4(got, at);
	diff = (tag[0] ^ (got[0] & mask[0])) | (tag[1] ^ (got[1] & mask[1])) |
		(tag[2] ^ (got[2] & mask[2])) | (tag[3] ^ (got[3] & mask[3]));
	return diff != 0u ? (xc_lanes)XC_BAD_TAG : (xc_lanes)XC_OK;
}

/* --- The kernel --------------------------------------------------------------------------------------------------- */

/* Headers and bodies of count packets. */
XC_INLINE void xc_cipher_all(const xc_out *dst, const xc_in *src, const __global struct xc_job *jobs,
	const __global uint *at, uint count, const __global struct xc_key *keys)
{
#ifdef XC_CM_MANY
	for (uint l = 0; l < count; l += XC_CM_MANY)
		xc_recrypt_many(dst + l, src + l, jobs, at + l, count - l, keys);
#else
	for (uint l = 0; l < count; l++)
		xc_recrypt(dst[l], src[l], jobs + at[l], keys);
#endif
}

/* Writes the tags of count packets to their places. */
XC_INLINE void xc_seal_all(const struct xc_side *side, const struct xc_message *m, const uint *off,
	const xc_out *dst, const __global struct xc_job *jobs, const __global uint *at, uint count,
	const __global struct xc_key *keys, const uint *slot)
{
	if (side->auths & 1u << XC_AUTH_HMAC_SHA1) {
		xc_lanes tag[4], mask[4];
		ulong2 wire[XC_LANES];

		xc_tags(tag, mask, m, side);
		xc_scatter4(wire, tag);
		for (uint l = 0; l < count; l++)
			if (keys[slot[l]].auth == XC_AUTH_HMAC_SHA1)
				XC_STORE(16, dst[l] + off[l], wire[l]);
	}
	if (side->auths & 1u << XC_AUTH_GCM)
		for (uint l = 0; l < count; l++)
			if (keys[slot[l]].auth == XC_AUTH_GCM)
				xc_gcm_seal(dst[l], jobs + at[l], keys + slot[l]);
}

/* Body of a work-item. A separate function on a CPU, because PoCL would compile three copies of the
 * kernel's body; on a GPU part of the kernel. */
#if XC_LANES > 1
__attribute__((noinline))
#endif
static void xc_recrypt_item(uint item, const __global struct xc_job *jobs, uint n,
	const __global struct xc_key *keys, xc_in in, xc_out out, __global uint *status,
	const __global uint *order)
{
	uint base = item * XC_LANES, count = min(n - base, (uint)XC_LANES);
	const __global uint *at = order + base; /* jobs of similar length in neighbouring lanes */
	struct xc_message m[2];                 /* received, sent */
	struct xc_side side[2];
	struct xc_ends ends;
	xc_lanes job[16], len, verdict = (xc_lanes)XC_OK, zero = (xc_lanes)0u;
	uint slot[2][XC_LANES], off[XC_LANES], word[2][XC_LANES], bad[XC_LANES];
	xc_in row[XC_LANES], src[XC_LANES], ahead[2][XC_LANES];
	xc_out dst[XC_LANES];
	uint flags;

	if (base >= n)
		return;
	/* Lanes without a packet repeat the last packet's hash. */
#pragma unroll
	for (int l = 0; l < XC_LANES; l++)
		row[l] = (xc_in)(jobs + at[min((uint)l, count - 1)]);
	xc_gather(job, row);
	xc_put(slot[0], job[XC_J_RX_KEY]);
	xc_put(slot[1], job[XC_J_TX_KEY]);
	xc_put(off, job[XC_J_IN_OFF]);
#pragma unroll
	for (int l = 0; l < XC_LANES; l++)
		src[l] = in + off[l];
	xc_put(off, job[XC_J_OUT_OFF]);
#pragma unroll
	for (int l = 0; l < XC_LANES; l++)
		dst[l] = out + off[l];
	xc_side_of(&side[0], &m[0], &verdict, keys, slot[0]);
	xc_side_of(&side[1], &m[1], &verdict, keys, slot[1]);

	xc_cipher_all(dst, src, jobs, at, count, keys);
	if ((side[0].ciphers | side[1].ciphers) & 1u << XC_CIPHER_AES_F8)
		xc_f8_all(dst, src, jobs, at, count, keys);

	len = job[XC_J_HDR_LEN] + job[XC_J_BODY_LEN];
	m[0].base = in;
	m[0].off = job[XC_J_IN_OFF];
	m[0].word = job[XC_J_RX_INDEX] >> 16u | job[XC_J_RX_INDEX + 1] << 16u;
	m[1].base = out;
	m[1].off = job[XC_J_OUT_OFF];
	m[1].word = job[XC_J_TX_INDEX] >> 16u | job[XC_J_TX_INDEX + 1] << 16u;
	flags = xc_bits(job[XC_J_FLAGS]);
	if (flags & XC_JOB_RTCP) {
		xc_put(word[0], m[0].word);
		xc_put(word[1], m[1].word);
		for (uint l = 0; l < count; l++)
			xc_rtcp_words(&word[0][l], &word[1][l], src[l], dst[l], jobs + at[l], keys);
		m[0].word = xc_take(word[0]);
		m[1].word = xc_take(word[1]);
	}
	xc_ends_of(&ends, len,
		side[0].auth == XC_AUTH_HMAC_SHA1 ? (len + 76u) >> 6u
			: side[1].auth == XC_AUTH_HMAC_SHA1 ? (len + 76u) >> 6u : zero);
	/* Keys of a later work-item, or of the last packet. */
	for (uint l = 0; l < XC_LANES; l++) {
		const __global struct xc_job *j = jobs + at[min(XC_AHEAD_PACKETS + l, n - base - 1)];

		ahead[0][l] = (xc_in)(keys + j->rx_key);
		ahead[1][l] = (xc_in)(keys + j->tx_key);
	}
#if XC_LANES == 16 && XC_GROUPS == 1
	if (side[0].auths & side[1].auths & 1u << XC_AUTH_HMAC_SHA1 && ends.most > ends.least + 1u)
		xc_hmac_paired(m, &ends, ahead);
	else
#endif
#pragma unroll 1
	for (uint i = 0; i < 2; i += XC_GROUPS)
		if ((side[i].auths | side[i + XC_GROUPS - 1].auths) & 1u << XC_AUTH_HMAC_SHA1)
			xc_hmac(m + i, &ends, ahead[i]);

	if (side[0].auths & 1u << XC_AUTH_HMAC_SHA1) {
		xc_put(off, job[XC_J_RX_TAG_OFF]);
#pragma unroll
		for (int l = 0; l < XC_LANES; l++)
			row[l] = src[l] + off[l];
		verdict |= xc_verdicts(&m[0], &side[0], row);
	}
	xc_put(bad, verdict);
	for (uint l = 0; l < count; l++) {
		if (side[0].auths & 1u << XC_AUTH_GCM && keys[slot[0][l]].auth == XC_AUTH_GCM)
			bad[l] |= xc_gcm_open(src[l], jobs + at[l], keys + slot[0][l]);
		status[at[l]] = bad[l];
	}
	xc_put(off, job[XC_J_TX_TAG_OFF]);
	xc_seal_all(&side[1], &m[1], off, dst, jobs, at, count, keys, slot[1]);
}

/* A work-item of wide lanes is a work-group of its own: the compiler must not vectorise across
 * work-items. */
#if XC_LANES > 1
__attribute__((reqd_work_group_size(1, 1, 1)))
#endif
#ifdef XC_BY_ADDRESS
__kernel void xc_recrypt_place(ulong place)
{
	const __global struct xc_place *p = (const __global struct xc_place *)place;

	xc_recrypt_item((uint)get_global_id(0), (const __global struct xc_job *)p->job, p->n,
		(const __global struct xc_key *)p->key, (xc_in)p->in, (xc_out)p->out,
		(__global uint *)p->status, (const __global uint *)p->order);
}
#else
__kernel void xc_recrypt_batch(
	const __global struct xc_job *jobs, uint n, const __global struct xc_key *keys, xc_in in,
	xc_out out, __global uint *status, const __global uint *order)
{
	xc_recrypt_item((uint)get_global_id(0), jobs, n, keys, in, out, status, order);
}
#endif
