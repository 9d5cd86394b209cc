/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See redis_link.h. Commands wait in a queue for their answers, which come in the same order. Each
 * round of the loop reads READ_ROUND bytes at most, so that a flood of messages leaves time for
 * calls. After a failure the link connects again, with growing pauses. */
#include "persist/redis_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/secmem.h"

#define LOOK_NS      250000000ull /* for time limits */
#define PAUSE_MIN_NS 250000000ull
#define PAUSE_MAX_NS 4000000000ull
#define READ_ONCE    65536u
#define READ_ROUND   262144u
#define IN_MAX       (8u << 20)
#define OUT_MAX      (64u << 20)
#define NODES_MAX    16384u
#define COMPACT      65536u

struct pending { /* a command without reply yet */
	struct pending *next;
	redis_reply_fn *fn;
	void *priv;
	uint32_t types; /* reply types that fit the command */
};

struct redis_link {
	struct redis_link_config cfg;
	struct redis_wire *wire;
	struct loop_io *io;
	struct loop_timer *timer;
	bool shaken, up, dropping;
	bool subscriber;    /* from now on the server sends messages */
	bool more;          /* the last read stopped at READ_ROUND */
	uint32_t greetings; /* not answered yet */
	uint32_t waiting;   /* commands and subscriptions without an answer */
	struct pending *first, *last;
	struct sbuf in, out;
	size_t out_at; /* bytes of out already sent */
	struct resp *node;
	uint64_t since_ns; /* time of the last data received */
	uint64_t pause_ns, again_ns;
	uint32_t turn; /* number of the next address to try */
	char why[160]; /* if not empty, the connection must be dropped, for this reason */
};

/* Every command may return an error. */
static uint32_t types_of(struct str command)
{
	static const struct {
		const char *command;
		uint32_t types;
	} T[] = {{"GET", RESP_STRING | RESP_NIL}, {"SET", RESP_STATUS}, {"HSET", RESP_INTEGER},
		{"HMGET", RESP_ARRAY}, {"DEL", RESP_INTEGER}, {"EXPIRE", RESP_INTEGER},
		{"PUBLISH", RESP_INTEGER}, {"SCAN", RESP_ARRAY}, {"AUTH", RESP_STATUS},
		{"SELECT", RESP_STATUS}, {"PING", RESP_STATUS}, {"TIME", RESP_ARRAY}};

	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		if (str_eq(command, str_from(T[i].command)))
			return T[i].types | RESP_ERROR;
	return 0;
}

/* --- Life of a connection --------------------------------------------------------------------- */

static void fail_pending(struct redis_link *l)
{
	struct pending *p;

	while ((p = l->first)) {
		l->first = p->next;
		if (p->fn)
			p->fn(l->cfg.arg, p->priv, NULL);
		free(p);
	}
	l->last = NULL;
	l->waiting = l->greetings = 0;
}

static void gone(struct redis_link *l)
{
	char why[sizeof(l->why)];

	snprintf(why, sizeof(why), "%s", l->why);
	l->why[0] = 0;
	l->pause_ns = l->pause_ns ? 2 * l->pause_ns : PAUSE_MIN_NS;
	l->pause_ns = l->pause_ns > PAUSE_MAX_NS ? PAUSE_MAX_NS : l->pause_ns;
	l->again_ns = clock_mono_ns() + l->pause_ns;
	if (l->cfg.down)
		l->cfg.down(l->cfg.arg, why);
}

void redis_link_fail(struct redis_link *l, const char *why)
{
	if (!l->why[0])
		snprintf(l->why, sizeof(l->why), "%s", why[0] ? why : "closed");
}

/* The log gets the server's text; log.c replaces control characters. */
static void fail_as_told(struct redis_link *l, struct str text)
{
	if (!l->why[0])
		snprintf(l->why, sizeof(l->why), STR_FMT, STR_ARG(text));
}

/* Never called inside a reply function. */
static void drop(struct redis_link *l)
{
	if (!l->wire || l->dropping)
		return;
	l->dropping = true;
	loop_io_remove(l->io);
	l->io = NULL;
	redis_wire_close(l->wire);
	l->wire = NULL;
	l->shaken = l->up = l->subscriber = l->more = false;
	sbuf_fini(&l->in);
	sbuf_fini(&l->out);
	l->out_at = 0;
	fail_pending(l);
	l->dropping = false;
	gone(l);
}

static void watch(struct redis_link *l)
{
	uint32_t events = redis_wire_wants(l->wire);

	if (l->shaken) {
		events |= EPOLLIN;
		/* Data that TLS has already decrypted does not make the descriptor readable, so
		 * wait until it is writable. */
		if (l->more || l->out_at < l->out.len)
			events |= EPOLLOUT;
		else if (!(redis_wire_wants(l->wire) & EPOLLOUT))
			events &= ~(uint32_t)EPOLLOUT;
	}
	if (loop_io_change(l->io, events))
		redis_link_fail(l, "epoll failed");
}

/* --- Commands --------------------------------------------------------------------------------- */

static int put(struct redis_link *l, uint32_t words, const struct str *word)
{
	if (!l->wire || l->dropping || l->why[0])
		return -ENOTCONN;
	resp_write(&l->out, words, word);
	if (l->out.err) {
		redis_link_fail(l, "too much data waits to be sent");
		return -ENOTCONN;
	}
	if (l->waiting == 0)
		l->since_ns = clock_mono_ns();
	watch(l);
	return 0;
}

static int ask(struct redis_link *l, redis_reply_fn *fn, void *priv, uint32_t words,
	const struct str *word)
{
	struct pending *p = malloc(sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	*p = (struct pending){.fn = fn, .priv = priv, .types = types_of(word[0])};
	err = put(l, words, word);
	if (err) {
		free(p);
		return err;
	}
	if (l->last)
		l->last->next = p;
	else
		l->first = p;
	l->last = p;
	l->waiting++;
	return 0;
}

int redis_link_send(struct redis_link *l, redis_reply_fn *fn, void *priv, uint32_t words,
	const struct str *word)
{
	return l->up && !l->subscriber ? ask(l, fn, priv, words, word) : -ENOTCONN;
}

static int subscription(struct redis_link *l, struct str command, const char *channel)
{
	const struct str word[] = {command, str_from(channel)};
	int err = l->up ? put(l, 2, word) : -ENOTCONN;

	if (err)
		return err;
	l->subscriber = true;
	l->waiting++;
	return 0;
}

int redis_link_subscribe(struct redis_link *l, const char *channel)
{
	return subscription(l, STR("SUBSCRIBE"), channel);
}

int redis_link_unsubscribe(struct redis_link *l, const char *channel)
{
	return subscription(l, STR("UNSUBSCRIBE"), channel);
}

/* --- Greeting: AUTH, SELECT, PING; the answer to PING shows a usable server ------------------- */

static void on_greeted(struct redis_link *l, const struct resp *r)
{
	l->since_ns = clock_mono_ns();
	if (r->type == RESP_ERROR) {
		fail_as_told(l, r->text);
		return;
	}
	if (--l->greetings)
		return;
	l->up = true;
	if (l->cfg.up)
		l->cfg.up(l->cfg.arg);
}

static void greet(struct redis_link *l)
{
	const struct redis_server *s = l->cfg.server;
	char db[16];
	const struct str user[] = {STR("AUTH"), str_from(s->user), str_from(s->password)},
			 alone[] = {STR("AUTH"), str_from(s->password)},
			 select[] = {STR("SELECT"),
				 {db, (size_t)snprintf(db, sizeof(db), "%u", (unsigned)s->db)}},
			 ping[] = {STR("PING")};

	if (s->user[0])
		l->greetings += ask(l, NULL, NULL, 3, user) == 0;
	else if (s->password[0])
		l->greetings += ask(l, NULL, NULL, 2, alone) == 0;
	if (s->db)
		l->greetings += ask(l, NULL, NULL, 2, select) == 0;
	l->greetings += ask(l, NULL, NULL, 1, ping) == 0;
}

/* --- Answers ---------------------------------------------------------------------------------- */

static bool is_message(const struct resp *r)
{
	return r->type == RESP_ARRAY && r->elements == 3 && r->element[0].type == RESP_STRING &&
		(r->element[1].type == RESP_STRING || r->element[1].type == RESP_NIL);
}

/* ["message", channel, text], ["subscribe", channel, count] or ["unsubscribe", channel, count]. */
static void take_message(struct redis_link *l, const struct resp *r)
{
	struct str kind = r->element[0].text;
	bool begins = str_eq(kind, STR("subscribe")), ends = str_eq(kind, STR("unsubscribe"));

	if (str_eq(kind, STR("message")) && r->element[2].type == RESP_STRING) {
		l->cfg.message(l->cfg.arg, r->element[1].text,
			r->element[2].text.len ? r->element[2].text : STR(""));
		return;
	}
	if ((!begins && !ends) || !l->waiting) {
		redis_link_fail(l, "it sent a message of an unknown kind");
		return;
	}
	l->waiting--;
	l->since_ns = clock_mono_ns();
	l->pause_ns = 0;
	if (begins)
		l->cfg.message(l->cfg.arg, r->element[1].text, STR_NONE);
}

static void take_answer(struct redis_link *l, const struct resp *r)
{
	struct pending *p = l->first;

	if (!(p->types & r->type)) {
		redis_link_fail(l, "the type of its reply does not fit the command");
		return;
	}
	l->first = p->next;
	if (!l->first)
		l->last = NULL;
	l->waiting--;
	if (l->greetings) {
		on_greeted(l, r);
	} else {
		l->since_ns = clock_mono_ns();
		l->pause_ns = 0; /* the connection works */
		if (p->fn)
			p->fn(l->cfg.arg, p->priv, r);
	}
	free(p);
}

static void take(struct redis_link *l, const struct resp *r)
{
	if (l->first)
		take_answer(l, r);
	else if (l->subscriber && is_message(r))
		take_message(l, r);
	else if (r->type == RESP_ERROR)
		fail_as_told(l, r->text);
	else
		redis_link_fail(l, "it sent a reply without a command");
}

/* Processes all complete replies. */
static void take_all(struct redis_link *l)
{
	size_t at = 0;

	while (at < l->in.len && !l->why[0]) {
		int n = resp_parse(l->node, NODES_MAX, l->in.p + at, l->in.len - at);

		if (n == 0)
			break;
		if (n < 0) {
			redis_link_fail(l,
				n == -EMSGSIZE ? "its reply is too large"
					       : "its reply is not RESP");
			return;
		}
		take(l, l->node);
		at += (size_t)n;
	}
	if (at && at < l->in.len)
		memmove(l->in.p, l->in.p + at, l->in.len - at);
	l->in.len -= at;
}

static void read_some(struct redis_link *l)
{
	size_t got = 0;
	char *p = malloc(READ_ONCE);

	l->more = false;
	while (p && got < READ_ROUND && !l->why[0]) {
		ssize_t n = redis_wire_read(l->wire, p, READ_ONCE);

		if (n == -EAGAIN)
			break;
		if (n <= 0) {
			redis_link_fail(l, n ? redis_wire_why(l->wire) : "closed");
			break;
		}
		sbuf_put(&l->in, p, (size_t)n);
		if (l->in.err)
			redis_link_fail(l, "its reply is too large");
		else
			take_all(l);
		got += (size_t)n;
	}
	l->more = got >= READ_ROUND;
	if (p)
		secmem_wipe(p, READ_ONCE);
	free(p);
}

/* Frees bytes that the server already has, so that a slow server does not make the buffer grow. */
static void compact(struct sbuf *b, size_t *at)
{
	if (*at < COMPACT || b->len > 2 * *at)
		return;
	memmove(b->p, b->p + *at, b->len - *at);
	b->len -= *at;
	*at = 0;
}

static void write_some(struct redis_link *l)
{
	while (l->out_at < l->out.len) {
		ssize_t n = redis_wire_write(l->wire, l->out.p + l->out_at, l->out.len - l->out_at);

		if (n == -EAGAIN) {
			compact(&l->out, &l->out_at);
			return;
		}
		if (n < 0) {
			redis_link_fail(l, redis_wire_why(l->wire));
			return;
		}
		l->out_at += (size_t)n;
	}
	if (l->out.p)
		secmem_wipe(l->out.p, l->out.len);
	l->out.len = l->out_at = 0;
}

/* --- The loop's side -------------------------------------------------------------------------- */

static void shake(struct redis_link *l)
{
	int err = redis_wire_shake(l->wire);

	if (err == -EAGAIN)
		return;
	if (err) {
		redis_link_fail(l, redis_wire_why(l->wire));
		return;
	}
	l->shaken = true;
	l->since_ns = clock_mono_ns();
	greet(l);
}

/* Leaves failures to the timer, because any function may call this. */
void redis_link_flush(struct redis_link *l)
{
	if (!l->up || l->dropping || l->why[0] || l->out_at == l->out.len)
		return;
	write_some(l);
	if (!l->why[0])
		watch(l);
}

static void on_io(void *arg, uint32_t events)
{
	struct redis_link *l = arg;

	if (!l->shaken) {
		shake(l);
	} else {
		bool more = l->more;

		if (events & EPOLLOUT)
			write_some(l);
		if (!l->why[0] && (more || events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
			read_some(l);
	}
	if (l->why[0])
		drop(l);
	else
		watch(l);
}

static void open_connection(struct redis_link *l)
{
	int err = redis_wire_open(&l->wire, l->cfg.server, l->cfg.tls, l->turn++);

	l->since_ns = clock_mono_ns();
	err = err ? err
		  : loop_io_add(l->cfg.loop, &l->io, redis_wire_fd(l->wire),
			    redis_wire_wants(l->wire), on_io, l);
	if (!err)
		return;
	redis_link_fail(l, strerror(-err));
	if (l->wire)
		drop(l);
	else
		gone(l);
}

static void on_timer(void *arg)
{
	struct redis_link *l = arg;
	uint64_t now = clock_mono_ns();

	if (!l->wire) {
		if (now >= l->again_ns)
			open_connection(l);
		return;
	}
	if ((l->waiting || !l->up) && now - l->since_ns > l->cfg.timeout_ns)
		redis_link_fail(l,
			l->cfg.server->tls && !l->shaken ? "does not speak TLS"
							 : "does not answer");
	if (l->why[0])
		drop(l);
}

bool redis_link_is_up(const struct redis_link *l)
{
	return l->up && !l->dropping && !l->why[0];
}

uint32_t redis_link_waiting(const struct redis_link *l)
{
	return l->waiting;
}

int redis_link_create(struct redis_link **out, const struct redis_link_config *cfg)
{
	struct redis_link *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->cfg = *cfg;
	sbuf_init(&l->in, IN_MAX);
	sbuf_init(&l->out, OUT_MAX);
	l->node = malloc(NODES_MAX * sizeof(*l->node));
	err = l->node ? loop_timer_add(cfg->loop, &l->timer, 0, LOOK_NS, on_timer, l) : -ENOMEM;
	if (err) {
		free(l->node);
		free(l);
		return err;
	}
	*out = l;
	return 0;
}

void redis_link_destroy(struct redis_link *l)
{
	if (!l)
		return;
	loop_timer_remove(l->timer);
	l->cfg.down = NULL;
	drop(l);
	free(l->node);
	free(l);
}
