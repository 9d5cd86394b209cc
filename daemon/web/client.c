/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of clients. If it is full, a new client displaces: a client that is being closed; else
 * one of the address with the most clients, if that has more than the newcomer's address; else the
 * one that has been idle longest. Otherwise the new client is closed. */
#include "web/client.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "base/secmem.h"
#include "web/page.h"

#define LOG_EVERY_NS (10 * NS_PER_SEC)

static void address_of(struct endpoint *e, int fd)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);

	*e = (struct endpoint){0};
	if (getpeername(fd, (struct sockaddr *)&sa, &len) == 0)
		(void)endpoint_from_sockaddr(e, &sa);
}

/* --- Coming and going ------------------------------------------------------------------------- */

struct web_client *web_client_open(struct web *w, struct lws *wsi)
{
	struct web_client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->web = w;
	c->wsi = wsi;
	c->idle = true;
	c->since_ns = clock_mono_ns();
	c->out_last = &c->out;
	address_of(&c->from, lws_get_socket_fd(wsi));
	c->next = w->first;
	c->prev = &w->first;
	if (c->next)
		c->next->prev = &c->next;
	w->first = c;
	w->clients++;
	lws_set_opaque_user_data(wsi, c);
	return c;
}

void web_client_close(struct web_client *c)
{
	struct web_message *m;

	link_forget(c->web->link, c);
	web_page_end(c);
	while ((m = c->out)) {
		c->out = m->next;
		secmem_wipe(m, sizeof(*m) + LWS_PRE + m->len);
		free(m);
	}
	if (c->reply)
		secmem_wipe(c->reply, LWS_PRE + c->reply_len);
	free(c->reply);
	sbuf_fini(&c->body);
	sbuf_fini(&c->message);
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->web->clients--;
	lws_set_opaque_user_data(c->wsi, NULL);
	free(c);
}

void web_client_kill(struct web_client *c)
{
	c->closing = true;
	link_forget(c->web->link, c);
	lws_set_timeout(c->wsi, PENDING_TIMEOUT_KILLED_BY_PARENT, LWS_TO_KILL_ASYNC);
}

/* --- Limits ----------------------------------------------------------------------------------- */

static uint32_t clients_from(const struct web *w, const struct endpoint *from)
{
	uint32_t n = 0;

	for (const struct web_client *c = w->first; c; c = c->next)
		n += endpoint_addr_eq(&c->from, from);
	return n;
}

/* Of the address with the most clients, if it has at least two more than from: the client that has
 * been in its state longest. */
static struct web_client *one_of_most(const struct web *w, const struct endpoint *from)
{
	uint32_t most = clients_from(w, from) + 1, n;
	struct web_client *found = NULL;

	for (struct web_client *c = w->first; c; c = c->next) {
		n = clients_from(w, &c->from);
		if (n > most ||
			(found && n == most && endpoint_addr_eq(&c->from, &found->from) &&
				c->since_ns < found->since_ns)) {
			found = c;
			most = n;
		}
	}
	return found;
}

static struct web_client *least_missed(const struct web *w, const struct endpoint *from)
{
	uint64_t now = clock_mono_ns();
	struct web_client *oldest = NULL;

	for (struct web_client *c = w->first; c; c = c->next) {
		if (c->closing)
			return c;
		if (c->idle && now - c->since_ns >= WEB_EVICT_NS &&
			(!oldest || c->since_ns < oldest->since_ns))
			oldest = c;
	}
	return one_of_most(w, from) ?: oldest;
}

bool web_client_admit(struct web *w, int fd)
{
	char text[ENDPOINT_STRLEN];
	struct web_client *c;
	struct endpoint from;
	uint64_t held;

	/* Clients that are being closed end in this turn of the loop, so at most twice as many are
	 * open until then. */
	if (w->clients < WEB_CLIENTS)
		return true;
	address_of(&from, fd);
	c = w->clients < 2 * WEB_CLIENTS ? least_missed(w, &from) : NULL;
	if (c) {
		web_client_kill(c);
		return true;
	}
	if (log_limit_pass(&w->log_full, clock_mono_ns(), LOG_EVERY_NS, &held))
		log_warn("HTTP: connection from %s refused, %u are open%s",
			endpoint_fmt(&from, text), w->clients, log_held((char[LOG_HELD]){0}, held));
	return false;
}

/* --- Time limits ------------------------------------------------------------------------------ */

static bool is_late(struct web_client *c, uint64_t now)
{
	if (!lws_partial_buffered(c->wsi))
		c->stuck_ns = 0;
	else if (c->stuck_ns == 0)
		c->stuck_ns = now;
	if (c->stuck_ns && now - c->stuck_ns >= WEB_REQUEST_NS)
		return true;
	if (c->kind != WEB_HTTP)
		return c->message_ns && now - c->message_ns >= WEB_REQUEST_NS;
	return !c->idle && !c->waits && now - c->since_ns >= WEB_REQUEST_NS;
}

void web_client_sweep(struct web *w)
{
	uint64_t now = clock_mono_ns();

	for (struct web_client *c = w->first, *next; c; c = next) {
		next = c->next;
		if (c->closing)
			continue;
		if (is_late(c, now) || (c->kind == WEB_PAGE && web_page_second(c)))
			web_client_kill(c);
	}
}
