/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Plug-ins that misbehave, one per BAD_* macro, for test_codec_isolation and test_codec_loader.
 * LATE passes all tests, and does harm when a payload asks for it by its first four bytes. OLD does
 * not misbehave: its structures are shorter than those of this version, LONG's are longer. */
#include "xcipher_codec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "codec/shared.h"

struct state {
	uint32_t packets;
};

#ifdef BAD_CONSTRUCTOR
__attribute__((constructor)) static void crash_early(void)
{
	*(volatile int *)8 = 1;
}
#endif

#if defined(BAD_FORGE) || defined(BAD_SILENT)
/* Takes the program over before it can report. Then offers a process that is not its own to be
 * killed: the host. Or it never answers. */
__attribute__((constructor)) static void forge(void)
{
	static struct codec_hello h = {.loaded = 1,
		.codecs = 1,
		.about = {{.name = "x-bad",
			.clock = 8000,
			.rate = 8000,
			.channels = 1,
			.static_pt = -1,
			.ptime = 20,
			.frame_samples = 1,
			.can = CODEC_DECODES}}};
	char bytes[CMSG_SPACE(sizeof(int))] = {0}, in[256];
	struct iovec v = {in, 4};
	struct msghdr m = {.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = bytes,
		.msg_controllen = sizeof(bytes)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int host = (int)syscall(__NR_pidfd_open, getppid(), 0);

	if (write(CODEC_CONTROL_FD, &h, sizeof(h)) < 0)
		_exit(1);
	while (read(CODEC_CONTROL_FD, in, sizeof(in)) > 0) {
#ifdef BAD_SILENT
		continue;
#endif
		memset(in, 0, sizeof(in));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &host, sizeof(host));
		sendmsg(CODEC_CONTROL_FD, &m, 0);
	}
	_exit(0);
}
#endif

#ifdef BAD_SHORT
/* Writes an invalid description to the socket, and does not end. */
__attribute__((constructor)) static void write_short(void)
{
	char in[4];

	if (write(CODEC_CONTROL_FD, "abc", 3) < 0)
		_exit(1);
	for (;;)
		(void)!read(CODEC_CONTROL_FD, in, sizeof(in));
}
#endif

/* Number of forbidden actions that succeeded. */
static int escapes(void)
{
	int n = 0;

	n += open("/etc/hostname", O_RDONLY) >= 0;
	n += open("/proc/self/mem", O_RDWR) >= 0;
	n += socket(AF_INET, SOCK_DGRAM, 0) >= 0;
	n += socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
	n += kill(getppid(), 0) == 0;
	n += fork() >= 0;
	n += ptrace(PTRACE_ATTACH, 1, NULL, NULL) == 0;
	n += mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0) != MAP_FAILED;
	n += execl("/bin/true", "true", NULL) == 0;
	return n;
}

static int harm(const uint8_t *in, int16_t *pcm, size_t cap)
{
	volatile int16_t *out = pcm;

	if (memcmp(in, "LOOP", 4) == 0)
		for (;;)
			out[0]++;
	if (memcmp(in, "WAIT", 4) == 0) {
		static int lock;

		for (;;)
			syscall(__NR_futex, &lock, 0 /* FUTEX_WAIT */, 0, NULL, NULL, 0);
	}
	if (memcmp(in, "OVER", 4) == 0)
		out[cap] = 1;
	if (memcmp(in, "UNDR", 4) == 0)
		out[-1] = 1;
	if (memcmp(in, "DIES", 4) == 0)
		_exit(0);
	if (memcmp(in, "LIES", 4) == 0)
		return 1 << 30;
	if (memcmp(in, "FREE", 4) == 0)
		return escapes();
	return 0;
}

/* One byte per sample, and the number of the packet added. */
static int decode(void *dec, const uint8_t *in, size_t len, int16_t *pcm, size_t cap)
{
	struct state *s = dec;

#ifdef BAD_LOOP
	for (volatile int i = 0; i >= 0; i = 1)
		;
#endif
#ifdef BAD_OVERWRITE
	*(volatile int16_t *)(pcm + cap) = 0;
#endif
	if (len > cap)
		return -ENOSPC;
#ifdef BAD_LATE
	if (len >= 4) {
		int n = harm(in, pcm, cap);

		if (n)
			return n;
	}
#else
	(void)harm;
#endif
	s->packets++;
	for (size_t i = 0; i < len; i++)
		pcm[i] = (int16_t)((int8_t)in[i] * 256 + (int)(s->packets & 0xff));
	return (int)len;
}

static int encode(void *enc, const int16_t *pcm, size_t samples, uint8_t *out, size_t cap)
{
	(void)enc;
	if (samples > cap)
		return -ENOSPC;
	for (size_t i = 0; i < samples; i++)
		out[i] = (uint8_t)(pcm[i] / 256);
#ifdef BAD_TONE
	memset(out, 0, samples);
#endif
	return (int)samples;
}

#ifdef BAD_OLD
/* Memory behind the structures is none of theirs. */
#define SIZE_OF_CODEC  offsetof(struct xcipher_codec, direct)
#define SIZE_OF_PLUGIN offsetof(struct xcipher_codec_plugin, resampler)
#define BEHIND         (void *)8
#define BEHIND_N       99
#else
#define SIZE_OF_CODEC  sizeof(struct xcipher_codec)
#define SIZE_OF_PLUGIN sizeof(struct xcipher_codec_plugin)
#define BEHIND         NULL
#define BEHIND_N       0
#endif

#ifdef BAD_LONG
static int to_l16(void *state, const uint8_t *in, size_t len, uint8_t *out, size_t cap)
{
	(void)state;
	if (2 * len > cap)
		return -ENOSPC;
	for (size_t i = 0; i < len; i++) {
		out[2 * i] = in[i];
		out[2 * i + 1] = 0;
	}
	return (int)(2 * len);
}

/* With a member of a later version. */
struct longer {
	struct xcipher_codec_direct now;
	uint64_t later;
};
#define TO(rate)                                                                             \
	{                                                                                    \
		{sizeof(struct longer), rate, "L16", 1, 0, NULL, to_l16}, 0xffffffffffffffff \
	}
static const struct longer conversions[] = {TO(16000), TO(8000)};
#endif

static const struct xcipher_codec codec = {
	.size = SIZE_OF_CODEC,
	.flags = XCIPHER_CODEC_PLAIN_STATE,
#ifdef BAD_NAME
	.name = "no name",
#else
	.name = "x-bad",
#endif
	.clock = 8000,
	.rate = 8000,
	.channels = 1,
	.static_pt = -1,
	.ptime = 20,
	.frame_samples = 1,
	.dec_size = sizeof(struct state),
	.align = 4,
	.decode = decode,
	.encode = encode,
#ifdef BAD_LONG
	.direct = &conversions[0].now,
	.direct_n = 2,
#else
	.direct = BEHIND,
	.direct_n = BEHIND_N,
	.decode_batch = BEHIND,
	.encode_batch = BEHIND,
#endif
};

static const struct xcipher_codec *const codecs[] = {&codec};

static const struct xcipher_codec_plugin plugin = {
#ifdef BAD_ABI
	.abi = 99,
#else
	.abi = XCIPHER_CODEC_ABI,
#endif
	.size = SIZE_OF_PLUGIN,
	.resampler = BEHIND,
	.name = "bad",
	.version = "1",
	.license = "GPL-2.0-or-later",
	.codec = codecs,
	.codecs = 1,
};

#ifndef BAD_SYMBOL
XCIPHER_CODEC_EXPORT const struct xcipher_codec_plugin *xcipher_codec_plugin(void)
{
	return &plugin;
}
#else
XCIPHER_CODEC_EXPORT const struct xcipher_codec_plugin *another_name(void);
const struct xcipher_codec_plugin *another_name(void)
{
	return &plugin;
}
#endif
