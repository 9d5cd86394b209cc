/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is anything branched on, or looked up by, what is secret? Run under valgrind's memcheck
 * (t/ct/run.sh): keys, bodies and tags are marked undefined, and memcheck reports every branch and
 * address that depends on an undefined bit, and what strays beyond a packet. Verdicts are public,
 * once tags have been compared. The idea is Adam Langley's (ctgrind). ct_check NAME: the "leaky"
 * ones must be reported, so that silence means something. Outside valgrind it only runs, which
 * fills PoCL's cache (pocl_cpu.c). */
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/memcheck.h>
#include <valgrind/valgrind.h>

#include "batch/engine.h"
#include "../unit/engine_mock.h"
#include "batch/sample.h"
#include "base/secmem.h"
#include "keying/mikey_int.h"
#include "packet/arena.h"
#include "srtp/kdf.h"
#include "srtp/ref.h"

enum { SLOTS = 64, KEY_SLOTS = 4 * SUITE_COUNT };

static void secret(void *p, size_t len)
{
	(void)VALGRIND_MAKE_MEM_UNDEFINED(p, len);
}

static void public(void *p, size_t len)
{
	(void)VALGRIND_MAKE_MEM_DEFINED(p, len);
}

/* Whether a bit of these bytes depends on a secret. */
static bool depends(const void *p, size_t len)
{
	uint8_t bits[64] = {0};

	(void)VALGRIND_GET_VBITS(p, bits, len);
	for (size_t i = 0; i < len; i++)
		if (bits[i])
			return true;
	return false;
}

/* --- Verdicts are public, what leads to them is not ------------------------------------------- */

bool I_WRAP_SONAME_FNNAME_ZU(NONE, secmem_equal)(const void *a, const void *b, size_t len);
bool I_WRAP_SONAME_FNNAME_ZU(NONE, secmem_equal)(const void *a, const void *b, size_t len)
{
	unsigned long res;
	OrigFn fn;

	VALGRIND_GET_ORIG_FN(fn);
	CALL_FN_W_WWW(res, fn, a, b, len);
	public(&res, sizeof(res));
	return res & 0xff;
}

int I_WRAP_SONAME_FNNAME_ZU(libcryptoZdsoZa, CRYPTO_memcmp)(const void *a, const void *b, size_t n);
int I_WRAP_SONAME_FNNAME_ZU(libcryptoZdsoZa, CRYPTO_memcmp)(const void *a, const void *b, size_t n)
{
	unsigned long res;
	OrigFn fn;

	VALGRIND_GET_ORIG_FN(fn);
	CALL_FN_W_WWW(res, fn, a, b, n);
	public(&res, sizeof(res));
	return (int)res;
}

/* --- Negative controls ------------------------------------------------------------------------ */

static volatile uint8_t sink;

static __attribute__((noinline)) bool leaky_equal(const uint8_t *a, const uint8_t *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (a[i] != b[i])
			return false;
	return true;
}

static void leaky_branch(void)
{
	uint8_t tag[16] = {1}, got[16] = {1};

	secret(tag, sizeof(tag));
	sink = leaky_equal(tag, got, sizeof(tag));
}

/* Both in a kernel: does memcheck see into what OpenCL compiled? */
static void leaky_kernel(void)
{
	static const char *const text =
		"__kernel void leak(__global uint *key, __global uint *table)\n"
		"{ if (table[key[0] & 63] == 5) table[1] = 7; }\n";
	uint32_t *mem = aligned_alloc(4096, 8192);
	cl_uint n;
	cl_int r;
	cl_platform_id platform;
	cl_device_id dev;
	cl_context ctx;
	cl_command_queue q;
	cl_program p;
	cl_kernel k;
	cl_mem buf[2];
	size_t one = 1;

	setenv("POCL_DEVICES", "basic", 0);
	if (!mem || clGetPlatformIDs(1, &platform, &n) ||
		clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &dev, &n))
		exit(3);
	memset(mem, 0, 8192);
	ctx = clCreateContext(NULL, 1, &dev, NULL, NULL, &r);
	q = clCreateCommandQueue(ctx, dev, 0, &r);
	p = clCreateProgramWithSource(ctx, 1, (const char **)(uintptr_t)&text, NULL, &r);
	if (clBuildProgram(p, 1, &dev, "", NULL, NULL))
		exit(3);
	k = clCreateKernel(p, "leak", &r);
	for (cl_uint i = 0; i < 2; i++) {
		buf[i] = clCreateBuffer(ctx, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, 4096,
			(uint8_t *)mem + 4096 * (size_t)i, &r);
		clSetKernelArg(k, i, sizeof(cl_mem), &buf[i]);
	}
	secret(mem, 4);
	if (clEnqueueNDRangeKernel(q, k, 1, NULL, &one, &one, 0, NULL, NULL) || clFinish(q))
		exit(3);
}

static void leaky_table(void)
{
	static uint8_t table[256];
	uint8_t key = 1;

	for (int i = 0; i < 256; i++)
		table[i] = (uint8_t)(7 * i);
	secret(&key, 1);
	sink = table[key];
}

/* --- Key derivation --------------------------------------------------------------------------- */

static void pair_fill(struct xc_key *pair, enum srtp_suite_id suite, uint64_t seed)
{
	struct srtp_master m;

	sample_master(&m, suite, seed);
	secret(m.key, sizeof(m.key)); /* a master salt may be public (RFC 3711 3.2.1) */
	if (srtp_key_fill(pair, &m))
		abort();
}

static void kdf(void)
{
	struct xc_key pair[2];

	for (int s = 0; s < SUITE_COUNT; s++)
		pair_fill(pair, (enum srtp_suite_id)s, 1);
}

/* --- Envelope keys of MIKEY ------------------------------------------------------------------- */

/* Blocks that RSA decrypted, with a key of this length at the end: right and wrong. */
static void envelope(uint32_t key_len, uint8_t second)
{
	uint8_t block[256];
	struct mikey_envelope_key k;
	struct mikey_transport t;

	memset(block, 0x5a, sizeof(block));
	block[0] = 0;
	block[1] = second;
	block[sizeof(block) - 1 - key_len] = 0;
	secret(block, sizeof(block));
	if (!mikey_unpad(&k, block, sizeof(block)) ||
		!mikey_envelope_keys(&t, &k, 7, STR("0123456789abcdef")))
		abort();
	if (RUNNING_ON_VALGRIND && !depends(t.auth, sizeof(t.auth)))
		exit(3);
}

static void mikey(void)
{
	for (uint32_t len = 0; len <= MIKEY_ENVELOPE_MAX + 1; len += 13)
		for (uint8_t second = 1; second <= 2; second++)
			envelope(len, second);
}

/* --- Engines ---------------------------------------------------------------------------------- */

struct ct {
	const struct engine_ops *ops;
	struct engine *e;
	struct engine_queue *q;
	struct arena a;
	unsigned pairs, good, verdicts, outputs; /* the last two: those that secrets reached */
};

static void ct_open(struct ct *c, const struct engine_ops *ops, uint32_t flags)
{
	struct engine_config cfg = {.device = "", .flags = flags};
	char err[256] = "";

	c->ops = ops;
	if (arena_create(&c->a, SLOTS, KEY_SLOTS) || ops->open(&c->e, &cfg, err, sizeof(err)) ||
		ops->queue_create(&c->q, c->e, &c->a)) {
		fprintf(stderr, "%s does not open: %s\n", ops->name, err);
		exit(3);
	}
	printf("%s\n", ops->device(c->e));
	for (uint32_t slot = 0; slot < KEY_SLOTS; slot += 2) {
		pair_fill(&c->a.key[slot], (enum srtp_suite_id)(slot / 4), 100 + slot);
		if (ops->key_changed(c->q, slot))
			abort();
	}
}

/* Beside secrets: nothing is read or written further behind a packet than the layout allows. */
static void fence(uint8_t *slot, uint32_t end)
{
	(void)VALGRIND_MAKE_MEM_NOACCESS(slot + end + XC_SLACK, ARENA_SLOT_LEN - end - XC_SLACK);
}

static void job_add(struct ct *c, uint32_t n, int rx, int tx, uint64_t *rnd)
{
	static const uint16_t body[] = {0, 1, 16, 20, 79, 160, 333, 1200};
	uint64_t r = sample_random(rnd);
	bool rtcp = r & 1;
	struct sample s = {
		.rx_key = 4 * (uint32_t)rx + rtcp,
		.tx_key = 4 * (uint32_t)tx + 2 + rtcp,
		.hdr_len = rtcp ? 8 : 12 + 4 * (uint32_t)(r >> 8) % 4,
		.body_len = body[(r >> 16) % ARRAY_LEN(body)],
		.flags = (rtcp ? XC_JOB_RTCP : 0) | ((r >> 24) % 4 ? 0 : XC_JOB_RX_CLEAR) |
			((r >> 32) % 4 ? 0 : XC_JOB_TX_CLEAR) | ((r >> 36) % 4 ? 0 : XC_JOB_DOUBT),
		.rx_index = r >> 40,
		.tx_index = r >> 40,
		.seed = r,
	};
	struct xc_job *j = &c->a.job[n];
	uint32_t slot = n * ARENA_SLOT_LEN;
	uint8_t *p;

	public(c->a.in + slot, ARENA_SLOT_LEN);
	public(c->a.out + slot, ARENA_SLOT_LEN);
	sample_make(j, &c->a, n, &s);
	/* A header is public and so is SRTCP's word; all else of what came in is not. A few tags
	 * are wrong. */
	p = c->a.in + j->in_off;
	if (n % 5 == 4)
		p[j->hdr_len + j->body_len ? j->hdr_len - 1 : 0] ^= 1;
	public(p, 2048);
	secret(p + s.hdr_len, s.body_len);
	secret(p + j->rx_tag_off, c->a.key[s.rx_key].tag_len);
	fence(c->a.in + slot,
		j->in_off - slot + sample_len(j, &c->a.key[s.rx_key], j->rx_tag_off, 0));
	fence(c->a.out + slot,
		j->out_off - slot + sample_len(j, &c->a.key[s.tx_key], j->tx_tag_off, 0));
}

/* The self-check: a verdict on a tag and an enciphered result depend on secrets, or memcheck has
 * lost the trail. */
static void batch(struct ct *c, uint32_t n)
{
	struct batch b = {.job = c->a.job, .status = c->a.status, .n = n};

	for (uint32_t i = 0; i < n; i++)
		b.status[i] = XC_NOT_DONE;
	if (c->ops->run(c->q, &b))
		abort();
	for (uint32_t i = 0; i < n; i++) {
		const struct xc_job *j = &b.job[i];

		c->verdicts += depends(&b.status[i], sizeof(*b.status));
		public(&b.status[i], sizeof(*b.status));
		c->good += b.status[i] == XC_OK;
		c->outputs += b.status[i] == XC_OK && c->a.key[j->tx_key].auth != XC_AUTH_NULL &&
			depends(c->a.out + j->out_off + j->tx_tag_off, 4);
	}
	c->pairs += n;
}

/* Every pair of suites that the engine can. */
static void engine(const struct engine_ops *ops, uint32_t flags)
{
	struct ct c = {0};
	uint64_t rnd = 3711;
	unsigned n = 0;

	ct_open(&c, ops, flags);
	for (int rx = 0; rx < SUITE_COUNT; rx++)
		for (int tx = 0; tx < SUITE_COUNT; tx++) {
			if (!ops->can(c.q, &c.a.key[4 * rx], &c.a.key[4 * tx + 2]))
				continue;
			job_add(&c, n++, rx, tx, &rnd);
			if (n == SLOTS) {
				batch(&c, n);
				n = 0;
			}
		}
	batch(&c, n);
	printf("%u pairs of suites, %u good packets; secrets reached %u tags and %u verdicts\n",
		c.pairs, c.good, c.outputs, c.verdicts);
	if (c.pairs != SUITE_COUNT * SUITE_COUNT || c.good == 0 || c.good == c.pairs ||
		(RUNNING_ON_VALGRIND && c.outputs < c.good * 3 / 4))
		exit(3);
	public(c.a.in, (size_t)SLOTS * ARENA_SLOT_LEN);
	public(c.a.out, (size_t)SLOTS * ARENA_SLOT_LEN);
	ops->queue_destroy(c.q);
	ops->close(c.e);
	arena_destroy(&c.a);
}

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";
	static const struct {
		const char *name;
		uint32_t flags;
	} opencl[] = {
		{"opencl", 0},
		{"opencl-portable", ENGINE_PORTABLE_AES},
		{"opencl-scalar", ENGINE_SCALAR_LANES | ENGINE_PORTABLE_AES},
	};
	static const struct {
		const char *name;
		void (*run)(void);
	} other[] = {
		{"leaky-branch", leaky_branch},
		{"leaky-table", leaky_table},
		{"leaky-kernel", leaky_kernel},
		{"kdf", kdf},
		{"mikey", mikey},
	};
	bool known = true;

	if (strcmp(what, "reference") == 0)
		engine(&engine_mock, 0);
	else if (strcmp(what, "serial") == 0)
		engine(&engine_serial, 0);
	else if (strcmp(what, "serial-libcrypto") == 0)
		engine(&engine_serial, ENGINE_LIBCRYPTO);
	else
		known = false;
	for (size_t i = 0; i < ARRAY_LEN(opencl); i++)
		if (strcmp(what, opencl[i].name) == 0) {
			known = true;
			engine(&engine_opencl, opencl[i].flags);
		}
	for (size_t i = 0; i < ARRAY_LEN(other); i++)
		if (strcmp(what, other[i].name) == 0) {
			known = true;
			other[i].run();
		}
	return known ? 0 : 3;
}
