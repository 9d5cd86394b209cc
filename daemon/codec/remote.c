/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "codec/remote.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

enum { LOOK_MS = 10 }; /* between two looks at a process that does not answer */

/* Gives the turn to the process, and waits until it gives it back. 0, -ETIMEDOUT or -EPIPE. */
static int take_turns(struct codec_remote *r)
{
	uint64_t now = clock_mono_ns();
	uint64_t end = now + (uint64_t)codec_home_patience(r->home, now) * 1000000;
	struct pollfd p = {.fd = r->process.sock, .events = POLLIN};
	struct codec_look look = {.begun = false};
	bool over = false;
	uint8_t turn = 1;

	if (send(r->process.sock, &turn, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
		return -EPIPE;
	for (;;) {
		uint64_t left = over || now >= end ? 0 : (end - now + 999999) / 1000000;

		if (poll(&p, 1, left < LOOK_MS ? (int)left : LOOK_MS) > 0)
			return recv(r->process.sock, &turn, 1, MSG_DONTWAIT) == 1 ? 0 : -EPIPE;
		if (over)
			return -ETIMEDOUT;
		now = clock_mono_ns();
		/* It may have answered meanwhile. */
		over = now >= end || codec_process_hangs(&r->process, &look);
	}
}

/* One exchange. *result: what the process says, not checked. 0, or -EIO after a fault. */
static int exchange(struct codec_remote *r, const struct codec_request *q, int32_t *result)
{
	struct codec_faults *f = &r->home->faults;
	struct codec_shared *s = r->process.shared;
	int rc = 0;

	s->request = *q;
	s->overwrote = 0;
	rc = take_turns(r);
	if (rc == -ETIMEDOUT)
		codec_home_hung(r->home, clock_mono_ns());
	else if (rc)
		f->crashed++;
	else if (*(volatile uint32_t *)&s->overwrote)
		f->overwrote++;
	else {
		*result = *(volatile int32_t *)&s->result;
		return 0;
	}
	return -EIO;
}

/* Opens the codec in a process just started. */
static int open_codec(struct codec_remote *r)
{
	struct codec_request q = {.op = CODEC_OP_OPEN,
		.codec = r->codec,
		.len = (uint32_t)r->fmtp_len,
		.can = r->can,
		.wish = r->wish};
	int32_t result = 0;
	int rc = codec_home_start(r->home, &r->process);

	if (rc)
		return rc;
	memcpy(r->process.shared->in, r->fmtp, r->fmtp_len);
	rc = exchange(r, &q, &result);
	if (rc == 0)
		rc = result < 0 && result > -4096 ? result : 0;
	if (rc)
		codec_process_end(&r->process);
	return rc;
}

int codec_remote_open(
	struct codec_remote *r, struct codec_home *h, const struct codec_remote_cfg *cfg)
{
	*r = (struct codec_remote){.home = h,
		.process = {.sock = -1, .process = -1},
		.codec = cfg->codec,
		.can = cfg->can,
		.wish = cfg->wish};
	if (cfg->codec >= h->hello.codecs || cfg->fmtp_len > sizeof(r->fmtp))
		return -EINVAL;
	r->wish.size = sizeof(r->wish);
	r->frame = h->hello.about[cfg->codec].channels * (uint32_t)sizeof(int16_t);
	if (cfg->fmtp_len)
		memcpy(r->fmtp, cfg->fmtp, cfg->fmtp_len);
	r->fmtp_len = cfg->fmtp_len;
	return open_codec(r);
}

void codec_remote_close(struct codec_remote *r)
{
	codec_process_end(&r->process);
}

/* After a fault: a new process, if the limits allow one. -EIO or -EPIPE. */
static int replace(struct codec_remote *r)
{
	struct codec_home *h = r->home;
	bool allowed = false;

	codec_process_end(&r->process);
	if (r->restarts < h->cfg.per_stream) {
		pthread_mutex_lock(&h->lock);
		allowed = codec_budget_take(&h->budget, clock_mono_ns());
		pthread_mutex_unlock(&h->lock);
	}
	if (allowed && open_codec(r) == 0) {
		r->restarts++;
		h->faults.restarted++;
		return -EIO;
	}
	h->faults.given_up++;
	return -EPIPE;
}

/* Bytes of a number of samples or bytes. */
static size_t in_bytes(const struct codec_remote *r, const struct codec_call *c)
{
	return c->op == CODEC_OP_ENCODE     ? c->len * r->frame
		: c->op == CODEC_OP_CONCEAL ? 0
					    : c->len;
}

static size_t out_bytes(const struct codec_remote *r, const struct codec_call *c, size_t n)
{
	return c->op == CODEC_OP_ENCODE || c->op == CODEC_OP_FMTP ? n : n * r->frame;
}

int codec_remote_call(struct codec_remote *r, const struct codec_call *c)
{
	struct codec_request q = {.op = c->op, .gap = c->gap};
	size_t cap = c->cap, most = out_bytes(r, c, 1);
	int32_t n = 0;

	if (r->process.sock < 0)
		return -EPIPE;
	if (most && cap > CODEC_SHARED_BYTES / most)
		cap = CODEC_SHARED_BYTES / most;
	if (c->op == CODEC_OP_FMTP && cap > CODEC_FMTP_MAX)
		cap = CODEC_FMTP_MAX;
	if (c->len > CODEC_SHARED_BYTES || in_bytes(r, c) > CODEC_SHARED_BYTES)
		return c->op == CODEC_OP_ENCODE ? -EINVAL : -EBADMSG;
	q.len = (uint32_t)c->len;
	q.cap = (uint32_t)cap;
	if (in_bytes(r, c))
		memcpy(r->process.shared->in, c->in, in_bytes(r, c));
	if (exchange(r, &q, &n))
		return replace(r);
	if (n < 0 && n > -4096)
		return n;
	if (n < 0 || (c->out && (size_t)n > cap)) {
		r->home->faults.lied++;
		return replace(r);
	}
	if (c->out)
		memcpy(c->out, r->process.shared->out, out_bytes(r, c, (size_t)n));
	return n;
}

int codec_remote_adapt(struct codec_remote *r, const struct xcipher_codec_wish *wish)
{
	struct codec_request q = {.op = CODEC_OP_ADAPT, .wish = *wish};
	int32_t n = 0;

	if (r->process.sock < 0)
		return -EPIPE;
	q.wish.size = sizeof(q.wish);
	if (exchange(r, &q, &n))
		return replace(r);
	r->wish = q.wish; /* a process that replaces this one opens with it */
	return n < 0 && n > -4096 ? n : 0;
}
