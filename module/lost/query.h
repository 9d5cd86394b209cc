/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One query from its begin to its answer, as a state machine without sockets and clock: which HTTP
 * exchange comes next, and what its outcome means. It fetches locations, asks the servers in turn,
 * follows redirects, and tries the next location if the server does not know one. */
#ifndef LOST_QUERY_H
#define LOST_QUERY_H

#include "ask.h"
#include "buf.h"

#define SERVERS_MAX   8
#define REDIRECTS_MAX 8

/* X(id, name in $xlost(error)): why an HTTP exchange has no usable body */
#define HTTP_ERRORS(X)                                                  \
	X(NONE, "")                                                     \
	X(CONNECT, "connect") /* no connection, or it broke */          \
	X(TIMEOUT, "timeout")                                           \
	X(TLS, "tls")     /* certificate, name, handshake */            \
	X(STATUS, "http") /* a status other than 200 */                 \
	X(TOO_LARGE, "too-large")                                       \
	X(GARBAGE, "garbage")   /* not the expected XML */              \
	X(REDIRECT, "redirect") /* too many, or to an unknown server */ \
	X(INSECURE, "insecure") /* reference not https:, or to another host */

enum http_error {
#define X(id, name) HTTP_##id,
	HTTP_ERRORS(X)
#undef X
};
const char *http_error_name(enum http_error e);

/* A server as all processes see it, in shared memory; the client process alone writes. */
struct server {
	const char *url;    /* or "lost:NAME", a name that DNS resolves to a URL */
	int64_t down_until; /* ms of the clock that the client passes */
	uint64_t asked, failed;
};

struct query_config {
	struct server *server; /* LoST */
	struct server *lis;    /* HELD */
	int servers, lises;
	int timeout, down_time; /* ms */
	int max_redirects;
	enum boundary boundary;
	enum profile prefer;
	bool recursive;
	bool http_references; /* dereference http: URIs */
	const char *hosts; /* allowed in references: names or ".suffix", with commas; NULL: all */
	const char *const *redirect; /* "name=url" each; targets of redirects */
	int redirects;
	bool discover; /* look up other targets of redirects in the DNS */
	/* Looks up the cache. True: it had the answer, which the caller frees. */
	bool (*cached)(void *arg, const char *service, const struct spot *s, struct answer *a);
	void *arg;
	size_t trace;  /* octets of exchanges that are kept for $xlost(exchanges); 0: none are */
	int64_t epoch; /* ms since 1970 when the clock of the queries was 0 */
};

struct http_request {
	const char *url;
	const char *type; /* of the body */
	const char *accept;
	const char *body; /* NULL: GET */
	int timeout;      /* ms */
	/* The URL comes from a caller: refuse addresses of this host, link-local and multicast. */
	bool stranger;
};

struct http_reply {
	enum http_error error;
	const char *body;
	size_t len;
	int status;
};

enum step { STEP_HTTP, STEP_NAME, STEP_DONE };

struct query {
	const struct query_config *cfg;
	const struct ask *ask;
	int64_t deadline;
	struct http_request http;
	struct answer answer;
	struct extent extent; /* of a findService that may enter the cache; freed by query_free() */
	struct spot spot;     /* the place that was asked for; valid if known */
	bool known;
	/* Its own: */
	struct ask fetched; /* locations from a reference */
	bool from_fetched;
	int source, fetched_source;
	unsigned tried; /* bit i: server i was asked about this location */
	int server;     /* the one being asked; -1: none (reference or redirect) */
	int redirects;
	bool posted;     /* the reference refused GET */
	bool redirected; /* the name comes from a server */
	char *name, *url, *body;
	int64_t began;    /* the exchange */
	struct buf trace; /* the exchanges of all servers and references; see trace.h */
};

/* The caller keeps the ask, which must outlive the query. All return STEP_HTTP: send q->http;
 * STEP_NAME: find the URL of the LoST server q->name in the DNS, before q->deadline, and pass it
 * to query_named() (NULL: there is none); or STEP_DONE: q->answer is the result. Times are ms. */
enum step query_begin(struct query *q, const struct query_config *cfg, const struct ask *ask,
	int64_t now, int64_t deadline);
enum step query_reply(struct query *q, const struct http_reply *r, int64_t now);
enum step query_named(struct query *q, const char *url, int64_t now);
void query_free(struct query *q);

#endif
