/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A client of the HTTP server: its socket, its buffers, its time. Knows nothing of what is asked and answered. A turn serves
 * BUDGET requests or messages, then others have theirs; who does not read what it is told is not read from, and what it
 * is told must be read in time. A connection ends in three steps (RFC 9112 9.6): the reply is sent, then our end is
 * shut, then what the client still says is thrown away until it hangs up or its time is over. When there are too many
 * connections, one that lingers makes room; else one of
 * the address that has most, if it has more than the newcomer's; else the one without a request for the longest; else the new one is closed. */
#include "control/http_int.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/secmem.h"

#define BUDGET 8 /* requests or messages per turn */

size_t http_client_unsent(const struct http_client *c)
{
	return c->out.len - c->out_sent;
}

void http_client_state(struct http_client *c, enum http_state state)
{
	c->state = state;
	c->since_ns = clock_mono_ns();
}

void http_client_close(struct http_client *c)
{
	http_page_end(c);
	round_leave(&c->http->round, &c->again);
	loop_io_remove(c->io);
	close(c->fd);
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->http->connections--;
	sbuf_fini(&c->in);
	sbuf_fini(&c->out);
	secmem_wipe(&c->ws, sizeof(c->ws));
	free(c);
}

/* --- Sending --------------------------------------------------------------------------------------------------- */

/* All that there is to be sent now must have gone by then. */
static void set_due(struct http_client *c)
{
	c->out_due = http_client_unsent(c);
	c->due_ns = clock_mono_ns() + c->http->cfg.request_ns;
}

/* What was sent leaves the buffer when it is more than what is not. */
static void forget_sent(struct http_client *c)
{
	size_t rest = http_client_unsent(c);

	if (c->out_sent < rest)
		return;
	memmove(c->out.p, c->out.p + c->out_sent, rest);
	secmem_wipe(c->out.p + rest, c->out_sent);
	c->out.len = rest;
	c->out_sent = 0;
}

/* False: the connection is no more. */
static bool flush(struct http_client *c)
{
	while (http_client_unsent(c)) {
		ssize_t n =
			send(c->fd, c->out.p + c->out_sent, http_client_unsent(c), MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			if (c->out_due == 0)
				set_due(c);
			forget_sent(c);
			return true;
		}
		if (n <= 0) {
			http_client_close(c);
			return false;
		}
		c->out_sent += (size_t)n;
		c->out_due -= (size_t)n < c->out_due ? (size_t)n : c->out_due;
	}
	sbuf_fini(&c->out);
	c->out_sent = c->out_due = 0;
	return true;
}

/* --- Serving --------------------------------------------------------------------------------------------------- */

/* What was served leaves the buffer. */
static void tidy(struct http_client *c)
{
	size_t rest = c->in.len - c->in_at;

	if (rest == 0) {
		sbuf_fini(&c->in);
	} else if (c->in_at) {
		memmove(c->in.p, c->in.p + c->in_at, rest);
		secmem_wipe(c->in.p + rest, c->in_at);
		c->in.len = rest;
	}
	c->in_at = 0;
}

static bool serves(const struct http_client *c)
{
	return c->state < HTTP_ENDING && http_client_unsent(c) < HTTP_OUT_HIGH;
}

/* True: there may be more to serve, but others first, or the client has to read. */
static bool serve(struct http_client *c)
{
	bool more = true;

	for (int i = 0;
		i < BUDGET && more && serves(c) && round_takes(&c->http->round, c->http->loop); i++)
		more = c->state == HTTP_IN_WEBSOCKET ? http_ws_serve(c) : http_request_serve(c);
	if (c->out.err) { /* no memory */
		c->keep = false;
		http_client_state(c, HTTP_ENDING);
	}
	if (!more && c->eof && c->state < HTTP_ENDING)
		http_client_state(c, HTTP_ENDING); /* it will not say the rest */
	if (c->state >= HTTP_ENDING)
		c->in_at = c->in.len;
	tidy(c);
	return more && c->state < HTTP_ENDING;
}

/* All was sent. False: the connection is no more. */
static bool end(struct http_client *c)
{
	if (c->eof || shutdown(c->fd, SHUT_WR)) {
		http_client_close(c);
		return false;
	}
	http_client_state(c, HTTP_LINGERING);
	return true;
}

static void on_again(void *arg)
{
	http_client_turn(arg);
}

void http_client_turn(struct http_client *c)
{
	bool more = serve(c), reads;
	uint32_t events;

	if (!flush(c))
		return;
	if (c->state == HTTP_ENDING && http_client_unsent(c) == 0 && !end(c))
		return;
	more = more && serves(c);
	if (more && round_wait(&c->http->round, c->http->loop, &c->again, on_again, c)) {
		http_client_close(c);
		return;
	}
	reads = c->state == HTTP_LINGERING || (!more && !c->eof && serves(c));
	events = (http_client_unsent(c) ? EPOLLOUT : 0u) | (reads ? EPOLLIN : 0u);
	if (events != c->events && loop_io_change(c->io, events) == 0)
		c->events = events;
}

/* False: the connection is no more. */
static bool receive(struct http_client *c)
{
	struct http *h = c->http;
	ssize_t n = recv(c->fd, h->chunk, sizeof(h->chunk), 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n < 0 || (n == 0 && c->state == HTTP_LINGERING)) {
		http_client_close(c);
		return false;
	}
	if (n == 0)
		c->eof = true;
	else if (c->state < HTTP_ENDING)
		sbuf_put(&c->in, h->chunk, (size_t)n);
	secmem_wipe(h->chunk, (size_t)n);
	c->heard_ns = clock_mono_ns();
	c->pinged = false;
	if (c->in.err) {
		http_client_close(c);
		return false;
	}
	return true;
}

static void on_client(void *arg, uint32_t events)
{
	struct http_client *c = arg;

	/* an error, or both directions are gone: nobody would read a reply */
	if (events & EPOLLERR || (events & EPOLLHUP && c->state != HTTP_LINGERING)) {
		http_client_close(c);
		return;
	}
	if (events & (EPOLLIN | EPOLLHUP) && c->events & EPOLLIN && !receive(c))
		return;
	http_client_turn(c);
}

/* --- Coming and going ------------------------------------------------------------------------------------------ */

void http_client_open(struct http *h, int fd, const struct endpoint *from)
{
	struct http_client *c = calloc(1, sizeof(*c));

	if (!c || loop_io_add(h->loop, &c->io, fd, EPOLLIN, on_client, c)) {
		free(c);
		close(fd);
		return;
	}
	c->http = h;
	c->fd = fd;
	c->from = *from;
	c->events = EPOLLIN;
	http_client_state(c, HTTP_IDLE);
	sbuf_init(&c->in, HTTP_HEAD_MAX + HTTP_BODY_MAX + HTTP_CHUNK);
	sbuf_init(&c->out, HTTP_OUT_HIGH + 2 * HTTP_REPLY_MAX);
	c->next = h->first;
	c->prev = &h->first;
	if (c->next)
		c->next->prev = &c->next;
	h->first = c;
	h->connections++;
}

static uint32_t clients_from(const struct http *h, const struct endpoint *from)
{
	uint32_t n = 0;

	for (const struct http_client *c = h->first; c; c = c->next)
		n += endpoint_addr_eq(&c->from, from);
	return n;
}

/* The client in its state for the longest time, of the address that has most clients, if that has
 * at least two more than `from`. */
static struct http_client *one_of_most(const struct http *h, const struct endpoint *from)
{
	uint32_t most = clients_from(h, from) + 1, n;
	struct http_client *found = NULL;

	for (struct http_client *c = h->first; c; c = c->next) {
		n = clients_from(h, &c->from);
		if (n > most ||
			(found && n == most && endpoint_addr_eq(&c->from, &found->from) &&
				c->since_ns < found->since_ns)) {
			found = c;
			most = n;
		}
	}
	return found;
}

bool http_client_make_room(struct http *h, const struct endpoint *from)
{
	uint64_t now = clock_mono_ns();
	struct http_client *oldest = NULL;

	if (h->connections < h->cfg.connections)
		return true;
	for (struct http_client *c = h->first; c; c = c->next) {
		if (c->state == HTTP_LINGERING) {
			oldest = c;
			break;
		}
		if (c->state == HTTP_IDLE && now - c->since_ns >= h->cfg.evict_ns &&
			(!oldest || c->since_ns < oldest->since_ns))
			oldest = c;
	}
	if (!oldest || oldest->state != HTTP_LINGERING) {
		struct http_client *crowd = one_of_most(h, from);

		oldest = crowd ? crowd : oldest;
	}
	if (oldest)
		http_client_close(oldest);
	return oldest;
}

static bool is_late(const struct http_client *c, uint64_t now)
{
	const struct http_config *cfg = &c->http->cfg;
	uint64_t took = now - c->since_ns;

	if (c->out_due && now >= c->due_ns)
		return true;
	switch (c->state) {
	case HTTP_IDLE:
		return took >= cfg->idle_ns && http_client_unsent(c) == 0;
	case HTTP_IN_HEAD:
		return took >= cfg->head_ns;
	case HTTP_IN_BODY:
		return took >= cfg->request_ns;
	case HTTP_IN_WEBSOCKET:
		if (c->message_ns && now - c->message_ns >= cfg->request_ns)
			return true;
		/* while it does not read it is not heard */
		return c->pinged && serves(c) && now - c->heard_ns >= cfg->ping_ns + cfg->pong_ns;
	case HTTP_ENDING:
		return false; /* see out_due */
	case HTTP_LINGERING:
		return took >= cfg->linger_ns;
	}
	return true;
}

void http_client_sweep(struct http *h)
{
	uint64_t now = clock_mono_ns();
	struct http_client *next;

	for (struct http_client *c = h->first; c; c = next) {
		next = c->next;
		if (is_late(c, now)) {
			http_client_close(c);
		} else if (c->state == HTTP_IN_WEBSOCKET && !c->pinged &&
			now - c->heard_ns >= h->cfg.ping_ns) {
			http_ws_ping(c);
			http_client_turn(c);
		}
	}
}
