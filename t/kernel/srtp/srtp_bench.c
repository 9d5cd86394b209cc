// SPDX-License-Identifier: GPL-2.0-or-later
/* What the ciphers of SRTP cost inside the kernel: AES_CM_128_HMAC_SHA1_80 to _32, packets with 160
 * bytes of payload, in softirq, as a module that relays SRTP would do it. Measures while it is
 * loaded, and prints to the kernel's log. In the guest a nanosecond is an instruction. Not part of
 * nf_xcipher (notes/srtp-in-module.md). */
#include <crypto/aes.h>
#include <crypto/algapi.h>
#include <crypto/hash.h>
#include <crypto/skcipher.h>
#include <linux/bottom_half.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#define HEADER  12u
#define PAYLOAD 160u
#define RTP     (HEADER + PAYLOAD)
#define ROC     4u
#define PACKETS 8u
#define ROUNDS  200u

struct side {
	struct crypto_skcipher *ctr;
	struct skcipher_request *request;
	struct crypto_shash *hmac;
	struct shash_desc *state;
	u32 late; /* packets that were ciphered by another thread */
};

static struct side in, out;
/* Not the module's own memory, which has no linear address. */
static u8 (*packet)[RTP + ROC + 20];

static void over(struct crypto_async_request *request, int err)
{
}

static int open(struct side *s, const char *ctr, const char *hmac, u8 fill)
{
	u8 key[20];

	memset(key, fill, sizeof(key));
	s->ctr = crypto_alloc_skcipher(ctr, 0, 0);
	if (IS_ERR(s->ctr))
		return PTR_ERR(s->ctr);
	s->hmac = crypto_alloc_shash(hmac, 0, 0);
	if (IS_ERR(s->hmac))
		return PTR_ERR(s->hmac);
	s->request = skcipher_request_alloc(s->ctr, GFP_KERNEL);
	s->state = kzalloc(sizeof(*s->state) + crypto_shash_descsize(s->hmac), GFP_KERNEL);
	if (!s->request || !s->state)
		return -ENOMEM;
	s->state->tfm = s->hmac;
	skcipher_request_set_callback(s->request, 0, over, NULL);
	return crypto_skcipher_setkey(s->ctr, key, 16) ?: crypto_shash_setkey(s->hmac, key, 20);
}

static void close(struct side *s)
{
	if (!IS_ERR_OR_NULL(s->request))
		skcipher_request_free(s->request);
	kfree_sensitive(s->state);
	if (!IS_ERR_OR_NULL(s->ctr))
		crypto_free_skcipher(s->ctr);
	if (!IS_ERR_OR_NULL(s->hmac))
		crypto_free_shash(s->hmac);
	memset(s, 0, sizeof(*s));
}

static void tag(struct side *s, const u8 *p, u8 digest[20])
{
	crypto_shash_digest(s->state, p, RTP + ROC, digest);
}

static void cipher(struct side *s, u8 *p, u16 index)
{
	u8 iv[16] = {[13] = (u8)index};
	struct scatterlist sg;

	sg_init_one(&sg, p + HEADER, PAYLOAD);
	skcipher_request_set_crypt(s->request, &sg, &sg, PAYLOAD, iv);
	if (crypto_skcipher_encrypt(s->request))
		s->late++;
}

/* Returns whether the tag was right, which it is not here; so the compiler leaves nothing out. */
static bool check(u8 *p)
{
	u8 digest[20];

	tag(&in, p, digest);
	return !crypto_memneq(digest, p + RTP + ROC, 10);
}

static u32 one_by_one(void)
{
	u32 good = 0;

	for (u32 i = 0; i < PACKETS; i++) {
		good += check(packet[i]);
		cipher(&in, packet[i], i);
		cipher(&out, packet[i], i);
		tag(&out, packet[i], packet[i] + RTP + ROC);
	}
	return good;
}

/* Each step for all packets, as a batch would. */
static u32 together(void)
{
	u32 good = 0;

	for (u32 i = 0; i < PACKETS; i++)
		good += check(packet[i]);
	for (u32 i = 0; i < PACKETS; i++)
		cipher(&in, packet[i], i);
	for (u32 i = 0; i < PACKETS; i++)
		cipher(&out, packet[i], i);
	for (u32 i = 0; i < PACKETS; i++)
		tag(&out, packet[i], packet[i] + RTP + ROC);
	return good;
}

static u32 tags_only(void)
{
	u32 good = 0;

	for (u32 i = 0; i < PACKETS; i++) {
		good += check(packet[i]);
		tag(&out, packet[i], packet[i] + RTP + ROC);
	}
	return good;
}

static u64 measure(u32 (*run)(void))
{
	u64 begin;

	local_bh_disable(); /* as a packet arrives */
	run();
	begin = ktime_get_ns();
	for (u32 i = 0; i < ROUNDS; i++)
		run();
	begin = ktime_get_ns() - begin;
	local_bh_enable();
	return div_u64(begin, ROUNDS * PACKETS);
}

static int measure_all(const char *name, const char *ctr, const char *hmac)
{
	int err = open(&in, ctr, hmac, 1) ?: open(&out, ctr, hmac, 2);

	if (!err) {
		u64 one = measure(one_by_one), eight = measure(together), tags = measure(tags_only);

		pr_info("srtp_bench: %s (%s, %s): %llu instructions per packet, %llu if each step is done for %u packets, of that %llu for the two tags; %u late\n",
			name, crypto_skcipher_driver_name(in.ctr),
			crypto_shash_driver_name(in.hmac), one, eight, PACKETS, tags,
			in.late + out.late);
	}
	close(&in);
	close(&out);
	return err;
}

static int __init bench_init(void)
{
	int err;

	packet = kcalloc(PACKETS, sizeof(*packet), GFP_KERNEL);
	if (!packet)
		return -ENOMEM;
	err = measure_all("the best", "ctr(aes)", "hmac(sha1)")
		?: measure_all("without FPU", "ctr(aes-generic)", "hmac(sha1-generic)");
	kfree(packet);
	return err;
}

static void __exit bench_exit(void)
{
}

module_init(bench_init);
module_exit(bench_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("measures the ciphers of SRTP in the kernel");
