/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ng over TCP. Each connection is bounded: one unfinished message of NG_STREAM_MAX, and replies up
 * to OUT_HIGH plus one. A client that does not read its replies is not read from. A turn serves
 * BUDGET messages, then the others have theirs.
 *
 * With too many connections, the address with most of them loses one if it has more than the new
 * client's address. Otherwise the connection that was silent longest is closed, if that was longer
 * than evict_ns. Otherwise the new one is refused.
 *
 * A message that is not ng gets an error reply, and the connection ends, because the next message
 * cannot be found. */
#include "control/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/secmem.h"
#include "control/listen.h"
#include "control/budget.h"
#include "proto/ng_proxy.h"
#include "proto/ng_stream.h"

#define BUDGET    8 /* messages per turn */
#define CHUNK     65536u
#define OUT_HIGH  65536u
#define REPLY_MAX (1u << 20)

#define CONNECTIONS 64
#define IDLE_NS     (300 * NS_PER_SEC)
#define EVICT_NS    (10 * NS_PER_SEC)
#define STALL_NS    (30 * NS_PER_SEC)

struct connection {
	struct ng_tcp *tcp;
	struct connection *next, **prev;
	struct loop_io *io;
	struct budget_turn again; /* queued because the budget is used up */
	int fd;
	uint32_t events; /* events that the loop waits for */
	struct endpoint from;
	struct sbuf in, out;
	size_t out_sent;
	struct ng_stream walk;
	struct ng_proxy_request proxied; /* the message at walk.start, on a Unix socket */
	uint64_t heard_ns;               /* when data was last received or sent */
	uint64_t message_ns;             /* time since which a message is incomplete; 0: none is */
	bool eof;                        /* the client has closed its sending side */
	bool closing;                    /* close once all replies are sent */
};

struct ng_tcp {
	struct ng_tcp_config cfg;
	struct loop *loop;
	struct ng_dispatch *dispatch;
	struct listener listener;
	struct loop_timer *timer;
	struct budget round;
	struct connection *first;
	uint32_t connections;
	char chunk[CHUNK]; /* wiped after use: SDP holds keys */
};

static void connection_close(struct connection *c)
{
	budget_leave(&c->tcp->round, &c->again);
	loop_io_remove(c->io);
	close(c->fd);
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->tcp->connections--;
	sbuf_fini(&c->in);
	sbuf_fini(&c->out);
	free(c);
}

/* --- Replies ------------------------------------------------------------------------------- */

static size_t unsent(const struct connection *c)
{
	return c->out.len - c->out_sent;
}

/* False: the connection was closed. */
static bool flush(struct connection *c)
{
	while (c->out_sent < c->out.len) {
		ssize_t n =
			send(c->fd, c->out.p + c->out_sent, c->out.len - c->out_sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			return true;
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			connection_close(c);
			return false;
		}
		c->out_sent += (size_t)n;
		c->heard_ns = clock_mono_ns();
	}
	sbuf_fini(&c->out);
	sbuf_init(&c->out, OUT_HIGH + REPLY_MAX);
	c->out_sent = 0;
	return true;
}

/* --- Requests ------------------------------------------------------------------------------ */

/* The daemon checks the command again, because xcipher-web is not trusted with keys. */
static enum ng_proxy_status execute_proxied(
	struct connection *c, struct str message, struct sbuf *reply)
{
	struct ng_dispatch *dispatch = c->tcp->dispatch;
	const struct ng_proxy_request *r = &c->proxied;
	int err;

	if (r->client.family && !r->token && ng_dispatch_has_keys(dispatch))
		return NG_PROXY_DENIED;
	err = r->plain ? ng_dispatch_plain(dispatch, message, clock_real_ns(), reply)
		       : ng_dispatch_http(dispatch, &r->client, message, clock_real_ns(), reply);
	return !err ? NG_PROXY_OK : err == -ENOMSG ? NG_PROXY_DROPPED : NG_PROXY_FAILED;
}

static void answer_proxied(struct connection *c, struct str message)
{
	struct ng_proxy_reply line = {0};
	struct sbuf reply;

	sbuf_init(&reply, NG_PROXY_REPLY_MAX);
	line.status = execute_proxied(c, message, &reply);
	line.len = line.status == NG_PROXY_OK ? reply.len : 0;
	ng_proxy_write_reply(&c->out, &line);
	sbuf_put(&c->out, reply.p, line.len);
	sbuf_fini(&reply);
	c->closing |= c->out.err != 0;
}

static void answer(struct connection *c, struct str message)
{
	struct sbuf reply;
	int err;

	if (c->tcp->cfg.path) {
		answer_proxied(c, message);
		return;
	}
	sbuf_init(&reply, REPLY_MAX);
	err = ng_dispatch_framed(c->tcp->dispatch, &c->from, message, clock_real_ns(), &reply);
	if (!err || err == -EAGAIN)
		sbuf_str(&c->out, sbuf_view(&reply));
	sbuf_fini(&reply);
	/* unsigned: not one of our clients */
	if (c->out.err || err == -ENOMSG)
		c->closing = true;
}

static void refuse(struct connection *c, struct str rest, int err)
{
	struct str cookie = str_cut(&rest, ' ');
	const char *reason = err == -EPROTO ? "Invalid NG data format"
		: err == -EMSGSIZE          ? "Message is too long"
					    : "Could not decode bencode dictionary";
	struct sbuf reply;

	sbuf_init(&reply, REPLY_MAX);
	if (c->tcp->cfg.path)
		log_warn("%s sent a request that violates the protocol: connection closed",
			c->tcp->cfg.path);
	else if (err == -ENOMSG)
		ng_dispatch_drop(c->tcp->dispatch, NG_DROP_COOKIE, &c->from, 1);
	else if (ng_dispatch_reject(c->tcp->dispatch, cookie, reason, &reply) == 0)
		sbuf_str(&c->out, sbuf_view(&reply));
	else
		ng_dispatch_drop(c->tcp->dispatch, NG_DROP_UNSIGNED, &c->from, 1);
	sbuf_fini(&reply);
	c->closing = true;
}

/* Removes the served message from the buffer. */
static void consume(struct connection *c, size_t len)
{
	size_t rest = c->in.len - len;

	if (len == 0)
		return;
	memmove(c->in.p, c->in.p + len, rest);
	secmem_wipe(c->in.p + rest, len);
	c->in.len = rest;
	if (rest == 0) {
		sbuf_fini(&c->in);
		sbuf_init(&c->in, NG_STREAM_MAX + CHUNK);
	}
}

static int walk_proxied(struct connection *c, struct str rest)
{
	int n = ng_proxy_read_request(&c->proxied, rest, NG_STREAM_MAX);
	bool whole = n > 0 && rest.len - (size_t)n >= c->proxied.len;

	c->walk.state = rest.len ? NG_STREAM_COOKIE : NG_STREAM_BETWEEN;
	c->walk.start = n > 0 ? (size_t)n : 0;
	c->walk.at = whole ? c->walk.start + c->proxied.len : rest.len;
	return n < 0 ? n : whole;
}

/* As ng_stream_walk() returns it. */
static int walk(struct connection *c, struct str rest)
{
	return c->tcp->cfg.path ? walk_proxied(c, rest) : ng_stream_walk(&c->walk, rest);
}

/* Serves complete messages; true: more may remain, but other connections go first. */
static bool serve(struct connection *c)
{
	size_t done = 0;
	int got = 0;

	for (int i = 0; i < BUDGET && !c->closing && unsent(c) < OUT_HIGH; i++) {
		struct str rest = {c->in.p + done, c->in.len - done};

		if (!budget_takes(&c->tcp->round, c->tcp->loop)) {
			got = 1;
			break;
		}
		got = walk(c, rest);
		if (got == 0)
			break;
		rest = (struct str){rest.s + c->walk.start, c->walk.at - c->walk.start};
		if (got < 0) {
			refuse(c, rest, got);
			break;
		}
		answer(c, rest);
		done += c->walk.at;
		c->walk = (struct ng_stream){0};
		c->message_ns = 0;
	}
	if (got == 0 && c->walk.state != NG_STREAM_BETWEEN && c->message_ns == 0)
		c->message_ns = clock_mono_ns();
	if (c->closing)
		done = c->in.len;
	consume(c, done);
	if (got == 0 && c->eof)
		c->closing = true;
	return got == 1 && !c->closing && unsent(c) < OUT_HIGH;
}

static void turn(struct connection *c);

static void on_again(void *arg)
{
	turn(arg);
}

/* Serves, sends, and sets the events to wait for. */
static void turn(struct connection *c)
{
	bool more = serve(c);
	uint32_t events;

	if (!flush(c))
		return;
	if (c->closing && unsent(c) == 0) {
		connection_close(c);
		return;
	}
	/* sending may have made room for further replies */
	if (!c->closing && c->in.len && unsent(c) < OUT_HIGH && c->walk.at < c->in.len)
		more = true;
	if (more && budget_wait(&c->tcp->round, c->tcp->loop, &c->again, on_again, c)) {
		connection_close(c);
		return;
	}
	events = (unsent(c) ? EPOLLOUT : 0u) |
		(!c->closing && !c->eof && !more && unsent(c) < OUT_HIGH ? EPOLLIN : 0u);
	if (events != c->events && loop_io_change(c->io, events) == 0)
		c->events = events;
}

static void on_connection(void *arg, uint32_t events)
{
	struct connection *c = arg;
	struct ng_tcp *t = c->tcp;
	ssize_t n;

	/* an error, or closed in both directions: no reply could be read */
	if (events & (EPOLLERR | EPOLLHUP)) {
		connection_close(c);
		return;
	}
	if (events & EPOLLIN && c->events & EPOLLIN) {
		n = recv(c->fd, t->chunk, sizeof(t->chunk), 0);
		if (n < 0 && errno != EAGAIN && errno != EINTR) {
			connection_close(c);
			return;
		}
		if (n == 0)
			c->eof = true;
		if (n > 0) {
			c->heard_ns = clock_mono_ns();
			sbuf_put(&c->in, t->chunk, (size_t)n);
			secmem_wipe(t->chunk, (size_t)n);
		}
		if (c->in.err) {
			connection_close(c);
			return;
		}
	}
	turn(c);
}

/* --- Connections --------------------------------------------------------------------------- */

static uint32_t connections_from(const struct ng_tcp *t, const struct endpoint *from)
{
	uint32_t n = 0;

	for (const struct connection *c = t->first; c; c = c->next)
		n += endpoint_addr_eq(&c->from, from);
	return n;
}

/* The connection that was silent for the longest, of the address with most connections, if that has
 * at least two more than `from`. */
static struct connection *one_of_most(const struct ng_tcp *t, const struct endpoint *from)
{
	uint32_t most = connections_from(t, from) + 1, n;
	struct connection *found = NULL;

	for (struct connection *c = t->first; c; c = c->next) {
		n = connections_from(t, &c->from);
		if (n > most ||
			(found && n == most && endpoint_addr_eq(&c->from, &found->from) &&
				c->heard_ns < found->heard_ns)) {
			found = c;
			most = n;
		}
	}
	return found;
}

static bool make_room(void *server, const struct endpoint *from)
{
	struct ng_tcp *t = server;
	struct connection *oldest = t->first, *crowd;

	if (t->connections < t->cfg.connections)
		return true;
	crowd = one_of_most(t, from);
	if (crowd) {
		connection_close(crowd);
		return true;
	}
	for (struct connection *c = t->first; c; c = c->next)
		if (c->heard_ns < oldest->heard_ns)
			oldest = c;
	if (clock_mono_ns() - oldest->heard_ns < t->cfg.evict_ns)
		return false;
	connection_close(oldest);
	return true;
}

static void add_connection(void *server, int fd, const struct endpoint *from)
{
	struct ng_tcp *t = server;
	struct connection *c = calloc(1, sizeof(*c));

	if (!c || loop_io_add(t->loop, &c->io, fd, EPOLLIN, on_connection, c)) {
		free(c);
		close(fd);
		return;
	}
	c->tcp = t;
	c->fd = fd;
	c->from = *from;
	c->events = EPOLLIN;
	c->heard_ns = clock_mono_ns();
	sbuf_init(&c->in, NG_STREAM_MAX + CHUNK);
	sbuf_init(&c->out, OUT_HIGH + REPLY_MAX);
	c->next = t->first;
	c->prev = &t->first;
	if (c->next)
		c->next->prev = &c->next;
	t->first = c;
	t->connections++;
	if (!t->cfg.path)
		return;
	ng_proxy_write_hello(
		&c->out, &(struct ng_proxy_hello){.keys = ng_dispatch_has_keys(t->dispatch)});
	turn(c);
}

static void on_second(void *arg)
{
	struct ng_tcp *t = arg;
	uint64_t now = clock_mono_ns();
	struct connection *next;

	listener_resume(&t->listener);
	for (struct connection *c = t->first; c; c = next) {
		bool stalled = c->message_ns && now - c->message_ns > t->cfg.stall_ns;

		next = c->next;
		stalled |= unsent(c) && now - c->heard_ns > t->cfg.stall_ns;
		if (stalled || now - c->heard_ns > t->cfg.idle_ns)
			connection_close(c);
	}
}

int ng_tcp_create(struct ng_tcp **out, struct loop *loop, struct ng_dispatch *dispatch,
	const struct ng_tcp_config *cfg, char *err, size_t err_len)
{
	struct ng_tcp *t = calloc(1, sizeof(*t));
	const struct listener_config listener = {.loop = loop,
		.at = cfg->listen,
		.path = cfg->path,
		.group = cfg->group,
		.what = cfg->path ? "ng over a Unix socket" : "ng over TCP",
		.room = make_room,
		.open = add_connection,
		.server = t,
		.connections = t ? &t->connections : NULL};
	uint64_t sweep_ns;
	int ret;

	if (!t)
		return -ENOMEM;
	t->cfg = (struct ng_tcp_config){
		.listen = cfg->listen,
		.path = cfg->path,
		.group = cfg->group,
		.connections = cfg->connections ? cfg->connections : CONNECTIONS,
		.idle_ns = cfg->idle_ns ? cfg->idle_ns : IDLE_NS,
		.evict_ns = cfg->evict_ns ? cfg->evict_ns : EVICT_NS,
		.stall_ns = cfg->stall_ns ? cfg->stall_ns : STALL_NS,
	};
	sweep_ns = t->cfg.stall_ns < NS_PER_SEC ? t->cfg.stall_ns / 2 : NS_PER_SEC;
	t->loop = loop;
	t->dispatch = dispatch;
	ret = listener_start(&t->listener, &listener, err, err_len);
	if (!ret)
		ret = loop_timer_add(loop, &t->timer, sweep_ns, sweep_ns, on_second, t);
	if (ret) {
		ng_tcp_destroy(t);
		return ret;
	}
	*out = t;
	return 0;
}

void ng_tcp_destroy(struct ng_tcp *t)
{
	if (!t)
		return;
	while (t->first)
		connection_close(t->first);
	budget_end(&t->round);
	loop_timer_remove(t->timer);
	listener_stop(&t->listener);
	free(t);
}

struct endpoint ng_tcp_local(const struct ng_tcp *t)
{
	return t->listener.local;
}

uint32_t ng_tcp_connections(const struct ng_tcp *t)
{
	return t->connections;
}
