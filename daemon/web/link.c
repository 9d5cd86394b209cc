/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See link.h. */
#include "web/link.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/secmem.h"

#define RETRY_NS (NS_PER_SEC / 2)
#define PING_NS  (30 * NS_PER_SEC)
#define PING     "d7:command4:pinge"
#define OUT_MAX  (64u << 20) /* each client has a few requests at most */

struct waiting {
	struct waiting *next;
	link_done *done; /* NULL: the client is gone */
	void *arg;
	uint64_t since_ns;
};

struct link {
	struct link_config cfg;
	struct lws *wsi; /* NULL: closed */
	int fd;
	bool up, down_logged; /* the daemon sent its greeting; its absence was logged */
	struct ng_proxy_hello hello;
	uint64_t opened_ns, used_ns;
	struct sbuf in, out;
	size_t out_sent;
	struct waiting *first, **last;
};

static void told(struct link *l, const char *why)
{
	if (!l->down_logged)
		log_warn("xcipherd does not answer at %s: %s", l->cfg.path, why);
	l->down_logged = true;
}

static struct waiting *take(struct link *l)
{
	struct waiting *w = l->first;

	l->first = w->next;
	if (!l->first)
		l->last = &l->first;
	return w;
}

static void answer(struct link *l, enum link_result result, struct str reply)
{
	struct waiting *w = take(l);

	if (w->done)
		w->done(w->arg, result, reply);
	free(w);
}

/* Call it when the socket is closed or about to be. */
static void down(struct link *l, const char *why)
{
	bool was_up = l->up;

	l->wsi = NULL;
	l->fd = -1;
	l->up = false;
	sbuf_fini(&l->in);
	sbuf_fini(&l->out);
	l->out_sent = 0;
	told(l, why);
	while (l->first)
		answer(l, LINK_GONE, STR_NONE);
	if (was_up && l->cfg.changed)
		l->cfg.changed(l->cfg.arg);
}

/* --- Opening ---------------------------------------------------------------------------------- */

static int connect_to(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd, err;

	if (strlen(path) >= sizeof(at.sun_path))
		return -ENAMETOOLONG;
	memcpy(at.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static void open_link(struct link *l, uint64_t now_ns)
{
	lws_sock_file_fd_type fd;
	int got = connect_to(l->cfg.path);

	l->opened_ns = now_ns;
	if (got < 0) {
		told(l, strerror(-got));
		return;
	}
	fd.sockfd = got;
	l->fd = got;
	sbuf_init(&l->in, NG_PROXY_LINE_MAX + NG_PROXY_REPLY_MAX + 65536);
	sbuf_init(&l->out, OUT_MAX);
	l->wsi =
		lws_adopt_descriptor_vhost(l->cfg.vhost, LWS_ADOPT_SOCKET, fd, LINK_PROTOCOL, NULL);
}

int link_create(struct link **out, const struct link_config *cfg)
{
	struct link *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->cfg = *cfg;
	l->fd = -1;
	l->last = &l->first;
	*out = l;
	open_link(l, clock_mono_ns());
	return 0;
}

void link_destroy(struct link *l)
{
	if (!l)
		return;
	while (l->first)
		free(take(l));
	sbuf_fini(&l->in);
	sbuf_fini(&l->out);
	free(l);
}

void link_tick(struct link *l, uint64_t now_ns)
{
	static const struct ng_proxy_request ping = {.plain = true};
	uint64_t since = l->first ? l->first->since_ns : l->opened_ns;

	if (!l->wsi && now_ns - l->opened_ns >= RETRY_NS)
		open_link(l, now_ns);
	else if (l->wsi && (!l->up || l->first) && now_ns - since >= LINK_LATE_NS)
		lws_set_timeout(l->wsi, PENDING_TIMEOUT_KILLED_BY_PARENT, LWS_TO_KILL_ASYNC);
	else if (l->up && !l->first && now_ns - l->used_ns >= PING_NS)
		(void)link_ask(l, &ping, STR(PING), NULL, NULL);
}

/* --- Requests --------------------------------------------------------------------------------- */

bool link_is_up(const struct link *l)
{
	return l->up;
}

bool link_needs_token(const struct link *l)
{
	return l->hello.keys;
}

int link_ask(struct link *l, const struct ng_proxy_request *request, struct str message,
	link_done *done, void *arg)
{
	struct ng_proxy_request line = *request;
	struct waiting *w;

	if (!l->up || l->out.err)
		return -ENOTCONN;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	line.len = message.len;
	ng_proxy_write_request(&l->out, &line);
	sbuf_str(&l->out, message);
	*w = (struct waiting){.done = done, .arg = arg, .since_ns = clock_mono_ns()};
	l->used_ns = w->since_ns;
	*l->last = w;
	l->last = &w->next;
	lws_callback_on_writable(l->wsi);
	return 0;
}

void link_forget(struct link *l, const void *arg)
{
	for (struct waiting *w = l->first; w; w = w->next)
		if (w->arg == arg)
			w->done = NULL;
}

/* --- Bytes ------------------------------------------------------------------------------------ */

static int send_some(struct link *l)
{
	while (l->out_sent < l->out.len) {
		ssize_t n = send(l->fd, l->out.p + l->out_sent, l->out.len - l->out_sent,
			MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			lws_callback_on_writable(l->wsi);
			return 0;
		}
		if (n <= 0)
			return -1;
		l->out_sent += (size_t)n;
	}
	if (l->out.err)
		return -1;
	sbuf_fini(&l->out);
	sbuf_init(&l->out, OUT_MAX);
	l->out_sent = 0;
	return 0;
}

/* Length of the parsed line, 0 if it is incomplete, or -EBADMSG. */
static int read_hello(struct link *l, struct str in)
{
	int n = ng_proxy_read_hello(&l->hello, in);

	if (n <= 0)
		return n;
	l->up = true;
	l->down_logged = false;
	l->used_ns = clock_mono_ns();
	log_info("xcipherd answers at %s", l->cfg.path);
	if (l->cfg.changed)
		l->cfg.changed(l->cfg.arg);
	return n;
}

static int read_reply(struct link *l, struct str in)
{
	static const enum link_result results[NG_PROXY_STATUS_COUNT] = {
		[NG_PROXY_OK] = LINK_OK,
		[NG_PROXY_DROPPED] = LINK_DROPPED,
		[NG_PROXY_DENIED] = LINK_DENIED,
		[NG_PROXY_FAILED] = LINK_FAILED,
	};
	struct ng_proxy_reply reply;
	int n = ng_proxy_read_reply(&reply, in);

	if (n <= 0 || in.len - (size_t)n < reply.len)
		return n < 0 ? n : 0;
	if (!l->first)
		return -EBADMSG;
	answer(l, results[reply.status], (struct str){in.s + n, reply.len});
	return n + (int)reply.len;
}

static int receive(struct link *l, const void *in, size_t len)
{
	size_t at = 0;
	int n;

	sbuf_put(&l->in, in, len);
	if (l->in.err)
		return -1;
	do {
		struct str rest = {l->in.p + at, l->in.len - at};

		n = l->up ? read_reply(l, rest) : read_hello(l, rest);
		at += n > 0 ? (size_t)n : 0;
	} while (n > 0 && at < l->in.len);
	memmove(l->in.p, l->in.p + at, l->in.len - at);
	secmem_wipe(l->in.p + l->in.len - at, at);
	l->in.len -= at;
	return n < 0 ? -1 : 0;
}

int link_event(struct link *l, enum lws_callback_reasons reason, void *in, size_t len)
{
	switch (reason) {
	case LWS_CALLBACK_RAW_RX:
		return receive(l, in, len);
	case LWS_CALLBACK_RAW_WRITEABLE:
		return send_some(l);
	case LWS_CALLBACK_RAW_CLOSE:
		down(l, "the connection was closed");
		return 0;
	default:
		return 0;
	}
}
