/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher-bench preauth: the cost of each scheme of SRTP+, compared with SRTP's own check of a
 * 172-byte packet. As in the report, the overhead in normal operation is scheme / SRTP, and the
 * gain under attack is SRTP / check. The report computes its numbers when a packet arrives. Here a
 * receiver computes them ahead, so making a tag and checking one are measured separately. SHA-1 is
 * the same code in the schemes and in the first row of SRTP (srtp/sha1_block.h); the second row is
 * the serial engine. chain needs one more AES block of each payload, which is part of its rows. */
#include <getopt.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/secmem.h"
#include "bench.h"
#include "srtp/preauth.h"
#include "srtp/preauth_window.h"
#include "srtp/sha1_block.h"

enum { ROUNDS = 21, PER_ROUND = 4096, PACKET = 172, STREAMS = 20, BURST = 32 };
enum { CHAINED = 128 };                  /* tags that chain computes at once */
enum { AES_AT_ONCE = 64 };               /* blocks of an encryption */
enum { SIZE_FIRST = 20, SIZE_STEP = 4 }; /* bytes of the FIPS generator's key */

struct preauth_bench {
	struct preauth_key key[PREAUTH_SCHEMES_COUNT];
	struct preauth_fips fips;
	struct preauth_window window;
	uint32_t state[5], tag[PREAUTH_WINDOW], sink;
	uint64_t index;
	uint8_t block[64], packed[CHAINED], stream[16 * AES_AT_ONCE];
	EVP_CIPHER_CTX *aes;
};

/* Does something n times. */
typedef void job(struct preauth_bench *b, uint32_t n);

static double processor_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* Median of several rounds, in nanoseconds of this thread. */
static double measure(struct preauth_bench *b, job *j)
{
	double ns[ROUNDS];

	for (unsigned r = 0; r < ROUNDS; r++) {
		double start = processor_ns();

		j(b, PER_ROUND);
		ns[r] = (processor_ns() - start) / PER_ROUND;
	}
	return bench_quartiles(ns, ROUNDS).median;
}

/* --- Parts ------------------------------------------------------------------------------------ */

static void sha1_block(struct preauth_bench *b, uint32_t n)
{
	while (n--)
		srtp_sha1_block(b->state, b->block, b->key[PREAUTH_SEQUENCE_FIPS].fast_sha1);
}

/* HMAC over packet and ROC, pads computed ahead. */
static void srtp_hmac(struct preauth_bench *b, uint32_t n)
{
	sha1_block(b, n * ((PACKET + 4 + 9 + 63) / 64 + 1));
}

static void make_aes(struct preauth_bench *b, uint32_t n)
{
	for (; n; n -= PREAUTH_WINDOW, b->index += PREAUTH_WINDOW)
		preauth_sequence(
			&b->key[PREAUTH_SEQUENCE_AES], 1, b->index, b->tag, PREAUTH_WINDOW);
}

static void make_fips(struct preauth_bench *b, uint32_t n)
{
	for (; n; n -= PREAUTH_WINDOW)
		preauth_fips_next(&b->fips, b->tag, PREAUTH_WINDOW);
}

static void headers(struct preauth_bench *b, uint32_t n, enum preauth_scheme s)
{
	while (n--) {
		put_be32(b->block, n);
		b->sink += preauth_header(&b->key[s], b->block);
	}
}

static void header_hmac(struct preauth_bench *b, uint32_t n)
{
	headers(b, n, PREAUTH_HEADER_HMAC);
}

static void header_siphash(struct preauth_bench *b, uint32_t n)
{
	headers(b, n, PREAUTH_HEADER_SIPHASH);
}

/* The block of a packet, as the daemon does it (media/tags.c): the tags of the next packets are
 * packed together, twice because of the half bytes, and a block is a copy. A receiver reads the one
 * tag that it does not know. aes_blocks() measures the encryption. */
static void chain(struct preauth_bench *b, uint32_t n)
{
	const struct preauth_chain c = preauth_chain_of(PREAUTH_CHAIN);

	while (n--) {
		uint32_t at = n % (CHAINED - c.next);

		if (!at) {
			preauth_chain_pack(c.width, b->packed, b->tag, CHAINED);
			preauth_chain_pack(
				c.width, b->packed + CHAINED / 2, b->tag + 1, CHAINED - 1);
		}
		memcpy(b->block, b->packed + at % 2 * (CHAINED / 2) + at / 2, c.next * c.width / 8);
		b->sink += preauth_chain_tag(c.width, b->block, c.next - 1u);
	}
}

/* AES-CM of the payload, in long runs. */
static void aes_blocks(struct preauth_bench *b, uint32_t n)
{
	int len;

	for (; n; n -= AES_AT_ONCE)
		(void)EVP_EncryptUpdate(b->aes, b->stream, &len, b->stream, (int)sizeof(b->stream));
}

/* Forged packets, with sequence numbers in the window and outside. */
static void check(struct preauth_bench *b, uint32_t n)
{
	while (n--)
		b->sink += preauth_window_check(&b->window, (uint16_t)(n * 40503u), n);
}

/* Window operations for a genuine packet: mark its tag, move the window, add the next tag. */
static void move(struct preauth_bench *b, uint32_t n)
{
	__u64 index;

	while (n--) {
		preauth_window_take(&b->window, b->window.first + PREAUTH_BEHIND + 1);
		preauth_window_add(&b->window, b->tag, preauth_window_room(&b->window, &index));
	}
}

/* --- Tables ----------------------------------------------------------------------------------- */

/* Verifies and decrypts: _80 to RTP by the serial engine. 0 on failure. */
static double srtp_serial(void)
{
	static struct bench_env env;
	const struct bench_class cls = {.rx = srtp_suite_get(SUITE_AES_CM_128_80),
		.tx = srtp_suite_get(SUITE_PLAIN),
		.hdr_len = 12,
		.payload = PACKET - 12,
		.weight = 1};
	struct load l = {.batch = BURST};
	struct contender c = {.im = &bench_impl_serial, .l = &l};
	char err[256] = "";
	double ns = 0;

	if (load_create(&l,
		    &(struct load_config){
			    .cls = &cls, .n_cls = 1, .streams = STREAMS, .slots = BURST},
		    &env))
		return 0;
	if (c.im->open(&c.p, &env, &l, err, sizeof(err)) == 0) {
		bench_measure(&c, 1, 300000000);
		ns = c.failed ? 0 : c.median;
		bench_measure_free(&c);
		c.im->close(c.p);
	}
	load_destroy(&l);
	return ns;
}

struct srtp_cost {
	double same_code, serial;
};

/* make: once per true packet, check: once per packet, also a forged one. receiver: all parts that
 * a receiver does for a true packet. report: the scheme's time, overhead and gain in table 2 of
 * the SRTP+ report, on its fastest machine. */
static void row(const char *name, double make, double test, double receiver, struct srtp_cost srtp,
	const char *report)
{
	printf("%-18s %8.1f %8.1f %9.4f %9.1f %% %9.1f %9.1f   %s\n", name, make, test,
		receiver / 1000, 100 * receiver / srtp.same_code, srtp.same_code / test,
		srtp.serial / test, report);
}

/* Nanoseconds of a block; 0 on failure. */
static double aes_block(struct preauth_bench *b, const EVP_CIPHER *cipher)
{
	static const uint8_t key[32] = {1}, iv[16] = {2};
	double ns = 0;

	b->aes = EVP_CIPHER_CTX_new();
	if (b->aes && EVP_EncryptInit_ex(b->aes, cipher, NULL, key, iv))
		ns = measure(b, aes_blocks);
	EVP_CIPHER_CTX_free(b->aes);
	b->aes = NULL;
	return ns;
}

/* For figure 8 of the report: schemes 1 and 3 by the size of their keys. rest: what chain takes
 * without its AES block. */
static void key_sizes(struct preauth_bench *b, double rest)
{
	const struct {
		uint32_t bits;
		const EVP_CIPHER *cipher;
		const char *report;
	} T[] = {{128, EVP_aes_128_ctr(), "0.47"}, {192, EVP_aes_192_ctr(), "0.56"},
		{256, EVP_aes_256_ctr(), "0.66"}};

	printf("\nsequence-fips by the generator's key; "
	       "report, figure 8: twice the time from 448 bits on\n"
	       "  bits  ns per tag\n");
	for (uint32_t bytes = SIZE_FIRST; bytes <= PREAUTH_SEED_MAX; bytes += SIZE_STEP) {
		preauth_fips_init(&b->fips, &b->key[PREAUTH_SEQUENCE_FIPS], 1, 0, bytes);
		printf("  %4u %11.1f\n", 8 * bytes, measure(b, make_fips));
	}
	printf("\nchain by the key of AES\n"
	       "  bits  ns of a block  us, a true packet  report, us\n");
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		double block = aes_block(b, T[i].cipher);

		printf("  %4u %14.2f %18.4f %11s\n", T[i].bits, block, (rest + block) / 1000,
			T[i].report);
	}
}

static void tables(struct preauth_bench *b)
{
	double block = measure(b, sha1_block), look = measure(b, check), moved = measure(b, move);
	struct srtp_cost srtp = {measure(b, srtp_hmac), srtp_serial()};
	double fips = measure(b, make_fips), aes = measure(b, make_aes), next = measure(b, chain);
	double hmac = measure(b, header_hmac), sip = measure(b, header_siphash);
	double aes_one = aes_block(b, EVP_aes_128_ctr());

	printf("one SHA-1 block          %8.1f ns; report, table 3: 1400\n", block);
	printf("HMAC of %d bytes        %8.1f ns, same code; report: 7750, with decryption\n",
		PACKET, srtp.same_code);
	printf("one AES block, 128 bits  %8.1f ns, in a long run\n", aes_one);
	printf("SRTP, serial engine      %8.1f ns, verified and decrypted\n", srtp.serial);
	printf("window, a true packet    %8.1f ns\n\n", moved);
	printf("scheme             make, ns check, ns  true, us    overhead  gain under attack: HMAC, "
	       "engine   report, table 2\n");
	row(preauth_name(PREAUTH_SEQUENCE_FIPS), fips, look, fips + moved + look, srtp,
		"2.04 us, 26 %, 3.8");
	row(preauth_name(PREAUTH_SEQUENCE_AES), aes, look, aes + moved + look, srtp, "");
	row(preauth_name(PREAUTH_HEADER_HMAC), hmac, hmac, hmac, srtp, "5.28 us, 68 %, 1.5");
	row(preauth_name(PREAUTH_HEADER_SIPHASH), sip, sip, sip, srtp, "");
	row(preauth_name(PREAUTH_CHAIN), next + aes_one, look, next + aes_one + moved + look, srtp,
		"0.47 us, 6 %, 16.5");
	key_sizes(b, next + moved + look);
}

int bench_preauth(int argc, char **argv)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
	static struct preauth_bench b;
	struct srtp_master m = {.suite = SUITE_AES_CM_128_80, .key = {1}, .salt = {2}};
	int c = getopt_long(argc, argv, "", options, NULL);

	if (c != -1 || optind < argc) {
		fprintf(c == 'h' ? stdout : stderr, "usage: xcipher-bench preauth\n");
		return c == 'h' ? 0 : 2;
	}
	for (int s = 0; s < PREAUTH_SCHEMES_COUNT; s++)
		if (preauth_key_init(&b.key[s], (enum preauth_scheme)s, &m))
			return 1;
	preauth_fips_init(&b.fips, &b.key[PREAUTH_SEQUENCE_FIPS], 1, 0, SIZE_FIRST);
	preauth_window_init(&b.window, 0, preauth_bits(PREAUTH_SEQUENCE_AES));
	preauth_sequence(&b.key[PREAUTH_SEQUENCE_AES], 1, 0, b.tag, PREAUTH_WINDOW);
	preauth_window_add(&b.window, b.tag, PREAUTH_WINDOW);
	tables(&b);
	for (int s = 0; s < PREAUTH_SCHEMES_COUNT; s++)
		secmem_wipe(&b.key[s], sizeof(b.key[s]));
	return 0;
}
