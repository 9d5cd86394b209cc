/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hiredis' asynchronous connection, hooked into our loop. What it lacks in this version is here: time limits, and coming back
 * with growing pauses. A server that is stopped keeps its connections open, so an answer that is due for too long counts as a
 * lost connection. */
#include "control/redis_link.h"

#include <errno.h>
#include <hiredis/async.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/clock.h"

#define LOOK_NS      250000000ull /* for time limits */
#define PAUSE_MIN_NS 250000000ull
#define PAUSE_MAX_NS 4000000000ull
#define WORDS_MAX    8

struct redis_link {
	struct redis_link_config cfg;
	redisAsyncContext *ac;
	struct loop_io *io;
	uint32_t events;
	struct loop_timer *timer;
	bool up, dropping;
	uint32_t greetings; /* not answered yet */
	uint32_t waiting;
	uint64_t since_ns; /* of the last sign of life */
	uint64_t pause_ns, again_ns;
	char why[160];
};

struct pending { /* a command on its way */
	struct redis_link *l;
	redis_reply_fn *fn;
	void *priv;
	bool stays; /* of SUBSCRIBE: for as long as the connection */
};

int redis_server_parse(struct redis_server *out, struct str text)
{
	struct redis_server s = {0};
	const char *at = memrchr(text.s, '@', text.len), *slash;
	uint64_t db = 0;

	if (at) {
		size_t len = (size_t)(at - text.s);

		if (len == 0 || len >= sizeof(s.password))
			return -EINVAL;
		memcpy(s.password, text.s, len);
		text = (struct str){at + 1, text.len - len - 1};
	}
	slash = memrchr(text.s, '/', text.len);
	if (slash) {
		struct str number = {slash + 1, (size_t)(text.s + text.len - slash - 1)};

		if (str_to_u64(&db, number, 65535))
			return -EINVAL;
		text.len = (size_t)(slash - text.s);
	}
	s.db = (uint32_t)db;
	if (endpoint_parse(&s.addr, text) || s.addr.port == 0)
		return -EINVAL;
	*out = s;
	return 0;
}

/* --- The loop's side ---------------------------------------------------------------------------------------------- */

static void on_io(void *arg, uint32_t events)
{
	struct redis_link *l = arg;

	if (events & (EPOLLIN | EPOLLERR | EPOLLHUP) && l->ac)
		redisAsyncHandleRead(l->ac);
	/* The first may have ended it, and another may be there by now: it only costs a try. */
	if (events & EPOLLOUT && l->ac && l->events & EPOLLOUT)
		redisAsyncHandleWrite(l->ac);
}

static void want(struct redis_link *l, uint32_t on, uint32_t off)
{
	uint32_t events = (l->events | on) & ~off;

	if (events != l->events && l->io)
		loop_io_change(l->io, events);
	l->events = events;
}

static void add_read(void *arg)
{
	want(arg, EPOLLIN, 0);
}

static void del_read(void *arg)
{
	want(arg, 0, EPOLLIN);
}

static void add_write(void *arg)
{
	want(arg, EPOLLOUT, 0);
}

static void del_write(void *arg)
{
	want(arg, 0, EPOLLOUT);
}

static void cleanup(void *arg)
{
	struct redis_link *l = arg;

	loop_io_remove(l->io);
	l->io = NULL;
	l->events = 0;
}

/* --- Life of a connection ------------------------------------------------------------------------------------------- */

static void gone(struct redis_link *l, const char *why)
{
	l->ac = NULL;
	l->up = false;
	l->waiting = 0;
	l->pause_ns = l->pause_ns ? 2 * l->pause_ns : PAUSE_MIN_NS;
	l->pause_ns = l->pause_ns > PAUSE_MAX_NS ? PAUSE_MAX_NS : l->pause_ns;
	l->again_ns = clock_mono_ns() + l->pause_ns;
	if (l->cfg.down)
		l->cfg.down(l->cfg.arg, l->why[0] ? l->why : why);
	l->why[0] = 0;
}

/* hiredis frees it after this. */
static void on_disconnect(const redisAsyncContext *ac, int status)
{
	struct redis_link *l = ac->data;

	if (l && l->ac == ac && !l->dropping)
		gone(l, status == REDIS_OK ? "closed" : ac->errstr);
}

/* Something is wrong with it: it is closed, down() is told, and it is opened again later. */
static void drop(struct redis_link *l, const char *why)
{
	redisAsyncContext *ac = l->ac;

	if (!ac || l->dropping)
		return;
	if (why != l->why)
		snprintf(l->why, sizeof(l->why), "%s", why);
	l->dropping = true;
	redisAsyncFree(ac);
	l->dropping = false;
	gone(l, l->why);
}

/* AUTH, SELECT, and PING behind them, whose answer says that it is usable: not loading, and we are let in. */
static void on_greeted(redisAsyncContext *ac, void *reply, void *priv)
{
	struct redis_link *l = priv;
	const redisReply *r = reply;

	if (!r || l->ac != ac)
		return;
	l->since_ns = clock_mono_ns();
	if (r->type == REDIS_REPLY_ERROR) {
		/* It is still in the hands of hiredis: the timer drops it. */
		if (!l->why[0])
			snprintf(l->why, sizeof(l->why), "%s", r->str);
		return;
	}
	if (--l->greetings || l->why[0])
		return;
	l->up = true;
	if (l->cfg.up)
		l->cfg.up(l->cfg.arg);
}

static void on_connect(const redisAsyncContext *ac, int status)
{
	struct redis_link *l = ac->data;
	const struct redis_server *s;

	if (!l || l->ac != ac)
		return;
	if (status != REDIS_OK) {
		if (!l->dropping)
			gone(l, ac->errstr);
		return;
	}
	s = l->cfg.server;
	l->since_ns = clock_mono_ns();
	redisEnableKeepAlive(&l->ac->c);
	l->greetings = 1 + (s->password[0] != 0) + (s->db != 0);
	if (s->password[0])
		redisAsyncCommand(l->ac, on_greeted, l, "AUTH %s", s->password);
	if (s->db)
		redisAsyncCommand(l->ac, on_greeted, l, "SELECT %u", (unsigned)s->db);
	redisAsyncCommand(l->ac, on_greeted, l, "PING");
}

static void open_connection(struct redis_link *l)
{
	char text[ENDPOINT_STRLEN], ip[ENDPOINT_STRLEN];
	redisAsyncContext *ac;
	int err;

	endpoint_fmt_addr(&l->cfg.server->addr, text);
	snprintf(ip, sizeof(ip), "%s", text);
	l->since_ns = clock_mono_ns();
	/* A numeric address: nothing is looked up. */
	ac = redisAsyncConnect(ip, l->cfg.server->addr.port);
	if (!ac || ac->err) {
		gone(l, ac ? ac->errstr : "out of memory");
		if (ac)
			redisAsyncFree(ac);
		return;
	}
	ac->data = l;
	ac->ev.data = l;
	ac->ev.addRead = add_read;
	ac->ev.delRead = del_read;
	ac->ev.addWrite = add_write;
	ac->ev.delWrite = del_write;
	ac->ev.cleanup = cleanup;
	l->ac = ac;
	l->events = 0;
	err = loop_io_add(l->cfg.loop, &l->io, ac->c.fd, 0, on_io, l);
	if (err) {
		drop(l, strerror(-err));
		return;
	}
	redisAsyncSetConnectCallback(ac, on_connect);
	redisAsyncSetDisconnectCallback(ac, on_disconnect);
}

static void on_timer(void *arg)
{
	struct redis_link *l = arg;
	uint64_t now = clock_mono_ns();

	if (!l->ac) {
		if (now >= l->again_ns)
			open_connection(l);
		return;
	}
	if (l->why[0])
		drop(l, l->why);
	else if ((l->waiting || !l->up) && now - l->since_ns > l->cfg.timeout_ns)
		drop(l, "does not answer");
}

/* --- Commands ------------------------------------------------------------------------------------------------------- */

/* The last that comes for a channel. */
static bool is_unsubscribed(const redisReply *r)
{
	return r->type == REDIS_REPLY_ARRAY && r->elements == 3 &&
		r->element[0]->type == REDIS_REPLY_STRING &&
		strcmp(r->element[0]->str, "unsubscribe") == 0;
}

static void on_reply(redisAsyncContext *ac, void *reply, void *priv)
{
	struct pending *p = priv;
	struct redis_link *l = p->l;
	redis_reply_fn *fn = p->fn;
	void *arg = p->priv;
	bool stays = p->stays && reply && !is_unsubscribed(reply);

	(void)ac;
	if (reply) {
		l->since_ns = clock_mono_ns();
		l->pause_ns = 0; /* it works */
	}
	if (!p->stays && l->waiting)
		l->waiting--;
	if (!stays)
		free(p);
	fn(l->cfg.arg, arg, reply);
}

int redis_link_send(struct redis_link *l, redis_reply_fn *fn, void *priv, uint32_t words,
	const struct str *word)
{
	const char *argv[WORDS_MAX];
	size_t len[WORDS_MAX];
	struct pending *p;

	if (!l->up || l->dropping || words > WORDS_MAX)
		return -ENOTCONN;
	p = malloc(sizeof(*p));
	if (!p)
		return -ENOMEM;
	*p = (struct pending){
		.l = l, .fn = fn, .priv = priv, .stays = str_eq(word[0], STR("SUBSCRIBE"))};
	for (uint32_t i = 0; i < words; i++) {
		argv[i] = word[i].s ? word[i].s : "";
		len[i] = word[i].len;
	}
	if (l->waiting == 0)
		l->since_ns = clock_mono_ns();
	if (redisAsyncCommandArgv(l->ac, on_reply, p, (int)words, argv, len) != REDIS_OK) {
		free(p);
		return -ENOTCONN;
	}
	l->waiting += !p->stays;
	return 0;
}

void redis_link_tell(struct redis_link *l, uint32_t words, const struct str *word)
{
	const char *argv[WORDS_MAX];
	size_t len[WORDS_MAX];

	if (!l->up || l->dropping || words > WORDS_MAX)
		return;
	for (uint32_t i = 0; i < words; i++) {
		argv[i] = word[i].s ? word[i].s : "";
		len[i] = word[i].len;
	}
	redisAsyncCommandArgv(l->ac, NULL, NULL, (int)words, argv, len);
}

bool redis_link_is_up(const struct redis_link *l)
{
	return l->up && !l->dropping;
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
	err = loop_timer_add(cfg->loop, &l->timer, 0, LOOK_NS, on_timer, l);
	if (err) {
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
	if (l->ac)
		drop(l, "");
	free(l);
}
