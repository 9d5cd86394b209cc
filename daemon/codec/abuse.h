/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests whether a codec behaves as xcipher_codec.h demands, with hostile input and guarded buffers.
 * A codec that fails may crash or hang: run them in a process of their own. */
#ifndef CODEC_ABUSE_H
#define CODEC_ABUSE_H

#include "codec/check.h"

struct abuse_cfg {
	uint32_t rounds; /* of random input per test */
	uint32_t seed;
};

/* 0, or -EINVAL and a reason in why (CODEC_WHY_MAX bytes), without the codec's name. */
typedef int abuse_fn(const struct xcipher_codec *c, const struct abuse_cfg *cfg, char *why);

#define ABUSE_TESTS(X)                                                        \
	X(fmtp, "fmtp texts: unknown, hostile, random")                       \
	X(decode, "payloads of random bytes, 1 to 1,400, and small buffers")  \
	X(encode, "encoding into small buffers, and of wrong counts")         \
	X(round_trip, "a tone passes, and has the right length")              \
	X(independence, "states do not influence each other")                 \
	X(conceal, "gaps of lost packets and of silence, and FEC")            \
	X(dtx, "silence with DTX is shorter, and decodes")                    \
	X(batch, "batches have the results of single calls")                  \
	X(direct, "direct conversions of random payloads, and small buffers") \
	X(leak, "memory of states is released")

#define ABUSE_DECLARE(name, text) abuse_fn abuse_##name;
ABUSE_TESTS(ABUSE_DECLARE)
#undef ABUSE_DECLARE

struct abuse_test {
	const char *name, *text;
	abuse_fn *run;
};
extern const struct abuse_test abuse_tests[];
extern const size_t abuse_tests_n;

/* The resampler of a plug-in: lengths, rates, small buffers. */
int abuse_resampler(const struct xcipher_resampler *r, char *why);
/* All tests of all codecs. 0, or -EINVAL and a reason that names the codec and the test. */
int abuse_plugin(const struct xcipher_codec_plugin *p, const struct abuse_cfg *cfg, char *why);

#endif
