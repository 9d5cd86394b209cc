/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lets baresip 1 speak SRTP+ by sequence-aes, without a change of baresip. Preload it: it takes the
 * place of functions of libre that baresip's module srtp calls. It adds -xcipher-preauth to the
 * crypto lines that baresip writes, and looks for it in those that baresip reads. If both have it,
 * packets get and lose their tags here. The tags are computed by daemon/srtp/preauth*.
 * For tests: a process has one call at a time. It reports on stderr what it counted. */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "srtp/preauth.h"
#include "srtp/preauth_window.h"
#include "srtp/replay.h"

#define OUR    __attribute__((visibility("default")))
#define PLUS   "-xcipher-preauth=sequence-aes"
#define TAG    4u
#define REPORT 50u /* received packets */
#ifndef EAUTH
#define EAUTH 201 /* of libre */
#endif

enum { FLOWS = 16, RTP_HEADER = 12 };

/* Of libre 2 and 3. */
struct mbuf {
	uint8_t *buf;
	size_t size, pos, end;
};
struct srtp;
struct sdp_media;
typedef bool attr_handler(const char *name, const char *value, void *arg);
int re_vsnprintf(char *str, size_t size, const char *fmt, va_list ap);

/* One direction: libre has a context for each. */
struct flow {
	struct srtp *of;
	struct preauth_key key;
	uint64_t last; /* highest index */
	bool started;
	struct preauth_window window; /* received */
	uint32_t right, unknown, wrong;
};

static struct {
	struct flow flow[FLOWS];
	unsigned next; /* place of the oldest */
	bool theirs;   /* the peer's last crypto line has the parameter */
	attr_handler *handler;
} all;

static void *real(const char *name)
{
	void *f = dlsym(RTLD_NEXT, name);

	if (!f)
		abort();
	return f;
}

/* --- SDP -------------------------------------------------------------------------------------- */

OUR int sdp_media_set_lattr(
	struct sdp_media *m, bool replace, const char *name, const char *value, ...);
OUR const char *sdp_media_rattr_apply(
	const struct sdp_media *m, const char *name, attr_handler *h, void *arg);

int sdp_media_set_lattr(struct sdp_media *m, bool replace, const char *name, const char *value, ...)
{
	int (*set)(struct sdp_media *, bool, const char *, const char *, ...) =
		real("sdp_media_set_lattr");
	char text[1024] = "";
	va_list ap;

	if (value) {
		va_start(ap, value);
		(void)re_vsnprintf(text, sizeof(text), value, ap);
		va_end(ap);
	}
	return set(m, replace, name, value ? "%s%s" : NULL, text,
		strcmp(name, "crypto") == 0 ? " " PLUS : "");
}

/* baresip allocates its contexts in the handler. */
static bool see(const char *name, const char *value, void *arg)
{
	all.theirs = strstr(value, " " PLUS) != NULL;
	return all.handler(name, value, arg);
}

const char *sdp_media_rattr_apply(
	const struct sdp_media *m, const char *name, attr_handler *h, void *arg)
{
	const char *(*apply)(const struct sdp_media *, const char *, attr_handler *, void *) =
		real("sdp_media_rattr_apply");

	if (!h || strcmp(name, "crypto") != 0)
		return apply(m, name, h, arg);
	all.handler = h;
	return apply(m, name, see, arg);
}

/* --- Contexts --------------------------------------------------------------------------------- */

OUR int srtp_alloc(struct srtp **out, int suite, const uint8_t *key, size_t len, int flags);
OUR int srtp_encrypt(struct srtp *s, struct mbuf *mb);
OUR int srtp_decrypt(struct srtp *s, struct mbuf *mb);

static struct flow *flow_of(const struct srtp *s)
{
	for (unsigned i = 0; i < FLOWS; i++)
		if (all.flow[i].of == s)
			return &all.flow[i];
	return NULL;
}

static void begin(struct srtp *s, const uint8_t *key)
{
	struct srtp_master m = {.suite = SUITE_AES_CM_128_80}; /* the same for _32 */
	struct flow *f = flow_of(s); /* of an earlier context at this address */

	if (!f)
		f = &all.flow[all.next++ % FLOWS];
	*f = (struct flow){.of = all.theirs ? s : NULL};
	memcpy(m.key, key, 16);
	memcpy(m.salt, key + 16, 14);
	if (preauth_key_init(&f->key, PREAUTH_SEQUENCE_AES, &m))
		abort();
}

int srtp_alloc(struct srtp **out, int suite, const uint8_t *key, size_t len, int flags)
{
	int (*alloc)(struct srtp **, int, const uint8_t *, size_t, int) = real("srtp_alloc");
	int err = alloc(out, suite, key, len, flags);

	if (!err && len == 30)
		begin(*out, key);
	return err;
}

/* --- Packets ---------------------------------------------------------------------------------- */

static uint64_t index_of(const struct flow *f, const uint8_t *p)
{
	return f->started ? srtp_index_estimate(f->last, be16(p + 2)) : be16(p + 2);
}

static void advance(struct flow *f, uint64_t index)
{
	f->last = f->started && f->last > index ? f->last : index;
	f->started = true;
}

int srtp_encrypt(struct srtp *s, struct mbuf *mb)
{
	int (*encrypt)(struct srtp *, struct mbuf *) = real("srtp_encrypt");
	struct flow *f = flow_of(s);
	size_t start = mb->pos;
	int err = encrypt(s, mb);
	const uint8_t *p = mb->buf + start;
	uint64_t index;
	uint32_t tag;

	if (err || !f || mb->end < start + RTP_HEADER)
		return err;
	if (mb->size < mb->end + TAG)
		return ENOMEM;
	index = index_of(f, p);
	preauth_sequence(&f->key, be32(p + 8), index, &tag, 1);
	put_be32(mb->buf + mb->end, tag);
	mb->end += TAG;
	advance(f, index);
	return 0;
}

/* SRTP has authenticated the packet. */
static void take(struct flow *f, uint32_t ssrc, uint64_t index)
{
	uint32_t tag[PREAUTH_WINDOW];
	__u64 first;

	if (!f->started || index >= f->window.first + PREAUTH_WINDOW)
		preauth_window_init(&f->window, index, 32);
	preauth_window_take(&f->window, index);
	first = f->window.first;
	if (preauth_window_room(&f->window, &first)) {
		uint32_t n = PREAUTH_WINDOW - f->window.known;

		preauth_sequence(&f->key, ssrc, first, tag, n);
		preauth_window_add(&f->window, tag, n);
	}
	advance(f, index);
}

static void report(const struct flow *f)
{
	if ((f->right + f->unknown + f->wrong) % REPORT == 0)
		fprintf(stderr, "SRTP+: %u right, %u not known, %u wrong\n", f->right, f->unknown,
			f->wrong);
}

int srtp_decrypt(struct srtp *s, struct mbuf *mb)
{
	int (*decrypt)(struct srtp *, struct mbuf *) = real("srtp_decrypt");
	struct flow *f = flow_of(s);
	size_t start = mb->pos;
	uint8_t head[RTP_HEADER];
	enum preauth_result r;
	int err;

	if (!f || mb->end < start + RTP_HEADER + TAG)
		return decrypt(s, mb);
	mb->end -= TAG;
	memcpy(head, mb->buf + start, sizeof(head));
	r = f->started ? preauth_window_check(&f->window, be16(head + 2), be32(mb->buf + mb->end))
		       : PREAUTH_OUTSIDE;
	f->right += r == PREAUTH_TRUE;
	f->unknown += r == PREAUTH_OUTSIDE;
	f->wrong += r == PREAUTH_FORGED || r == PREAUTH_USED;
	report(f);
	if (r == PREAUTH_FORGED || r == PREAUTH_USED)
		return EAUTH;
	err = decrypt(s, mb);
	if (!err)
		take(f, be32(head + 8), index_of(f, head));
	return err;
}
