/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "http.h"

#include <curl/curl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "identity.h"
#include "reach.h"

#define CONNECTIONS_KEPT 64
#define FREE_KEPT        64
#define IDLE_SECONDS     86400L

struct http {
	const struct http_config *cfg;
	CURLM *multi;
	CURLSH *share;             /* TLS sessions of all handles */
	struct identity *identity; /* NULL: libcurl reads the files */
	struct exchange
		*free[FREE_KEPT]; /* kept, because the handles have buffers and TLS settings */
	int free_count;
};

struct exchange {
	struct http *h;
	CURL *easy;
	struct curl_slist *headers;
	http_done *done;
	void *arg;
	char *body;
	size_t len, size;
	bool too_large;
	bool stranger, refused; /* stranger: as in http_request; refused: the address was refused */
};

/* Whether libcurl uses the same OpenSSL, so that use_identity() gets a context of it. */
static bool has_openssl(void)
{
	const curl_version_info_data *v = curl_version_info(CURLVERSION_NOW);
	char ours[32];

	snprintf(ours, sizeof(ours), "OpenSSL/%u.", OPENSSL_version_major());
	return v->ssl_version && !strncmp(v->ssl_version, ours, strlen(ours));
}

struct http *http_new(const struct http_config *cfg)
{
	struct http *h = calloc(1, sizeof(*h));

	if (!h || curl_global_init(CURL_GLOBAL_ALL)) {
		free(h);
		return NULL;
	}
	h->cfg = cfg;
	h->multi = curl_multi_init();
	h->share = curl_share_init();
	if (cfg->cert_file && has_openssl())
		h->identity = identity_new(cfg->cert_file, cfg->key_file);
	if (!h->multi || !h->share) {
		http_free(h);
		return NULL;
	}
	curl_share_setopt(h->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
	curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_KEPT);
	return h;
}

static void exchange_free(struct exchange *x)
{
	curl_slist_free_all(x->headers);
	if (x->easy)
		curl_easy_cleanup(x->easy);
	free(x->body);
	free(x);
}

void http_free(struct http *h)
{
	if (!h)
		return;
	while (h->free_count)
		exchange_free(h->free[--h->free_count]);
	curl_multi_cleanup(h->multi);
	curl_share_cleanup(h->share);
	identity_free(h->identity);
	free(h);
}

static size_t on_body(char *data, size_t one, size_t n, void *arg)
{
	struct exchange *x = arg;
	size_t need = x->len + n;

	(void)one;
	if (need > x->h->cfg->max_response) {
		x->too_large = true;
		return 0;
	}
	if (need > x->size) {
		char *p = realloc(x->body, need + need / 2);

		if (!p)
			return 0;
		x->body = p;
		x->size = need + need / 2;
	}
	memcpy(x->body + x->len, data, n);
	x->len += n;
	return n;
}

/* The name is resolved by now, so no name server can evade this. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
	struct exchange *x = arg;

	(void)purpose;
	if (x->stranger && reach_is_near(&a->addr)) {
		x->refused = true;
		return CURL_SOCKET_BAD;
	}
	return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

/* libcurl made a context for a new connection. */
static CURLcode use_identity(CURL *easy, void *ctx, void *arg)
{
	(void)easy;
	return identity_use(arg, ctx) ? CURLE_OK : CURLE_SSL_CERTPROBLEM;
}

static void set_identity(struct exchange *x)
{
	const struct http_config *c = x->h->cfg;
	CURL *e = x->easy;

	if (x->h->identity) {
		curl_easy_setopt(e, CURLOPT_SSL_CTX_FUNCTION, use_identity);
		curl_easy_setopt(e, CURLOPT_SSL_CTX_DATA, x->h->identity);
		return;
	}
	if (c->cert_file)
		curl_easy_setopt(e, CURLOPT_SSLCERT, c->cert_file);
	if (c->key_file)
		curl_easy_setopt(e, CURLOPT_SSLKEY, c->key_file);
}

/* Options common to all exchanges of a handle. */
static void set_common(struct exchange *x)
{
	const struct http_config *c = x->h->cfg;
	CURL *e = x->easy;

	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	/* At a timeout libcurl would wait for its thread that looks up the name, and all other
	 * exchanges with it, as long as a name server likes. The thread ends on its own instead. */
	curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(e, CURLOPT_PRIVATE, x);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, x);
	curl_easy_setopt(e, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, x);
	curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(e, CURLOPT_PROXY, "");
	curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, c->verify ? 1L : 0L);
	curl_easy_setopt(e, CURLOPT_SSL_VERIFYHOST, c->verify ? 2L : 0L);
	curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)c->connect_timeout);
	curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
	/* The first call after a quiet night must not need a new handshake. The server decides how
	 * long a connection stays open. */
	curl_easy_setopt(e, CURLOPT_MAXAGE_CONN, IDLE_SECONDS);
	curl_easy_setopt(e, CURLOPT_USERAGENT, "xcipher_lost");
	if (c->ca_file) {
		curl_easy_setopt(e, CURLOPT_CAINFO, c->ca_file);
		curl_easy_setopt(e, CURLOPT_CAPATH, NULL);
	}
	set_identity(x);
	curl_easy_setopt(e, CURLOPT_SHARE, x->h->share);
}

static struct exchange *take(struct http *h)
{
	struct exchange *x;

	if (h->free_count)
		return h->free[--h->free_count];
	x = calloc(1, sizeof(*x));
	if (!x)
		return NULL;
	x->h = h;
	x->easy = curl_easy_init();
	if (!x->easy) {
		free(x);
		return NULL;
	}
	set_common(x);
	return x;
}

static bool add_header(struct exchange *x, const char *name, const char *value)
{
	char line[256];
	struct curl_slist *l;
	size_t n = strlen(name) + strlen(value);

	if (n >= sizeof(line))
		return false;
	strcpy(line, name);
	strcat(line, value);
	l = curl_slist_append(x->headers, line);
	if (l)
		x->headers = l;
	return l;
}

static bool prepare(struct exchange *x, const struct http_request *r)
{
	CURL *e = x->easy;
	bool ok = add_header(x, "Accept: ", r->accept) && add_header(x, "Expect:", "");

	x->len = 0;
	x->too_large = x->refused = false;
	x->stranger = r->stranger;
	/* An open connection to one of our servers would not be judged. */
	curl_easy_setopt(e, CURLOPT_FRESH_CONNECT, r->stranger ? 1L : 0L);
	/* It would take the place of one to our servers, and nothing but these would use it. */
	curl_easy_setopt(e, CURLOPT_FORBID_REUSE, r->stranger ? 1L : 0L);
	if (r->body) {
		ok = ok && add_header(x, "Content-Type: ", r->type);
		curl_easy_setopt(e, CURLOPT_POSTFIELDS, r->body);
		curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE, (long)strlen(r->body));
	} else {
		curl_easy_setopt(e, CURLOPT_HTTPGET, 1L);
	}
	curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)(r->timeout > 0 ? r->timeout : 1));
	ok = ok && !curl_easy_setopt(e, CURLOPT_HTTPHEADER, x->headers);
	return ok && !curl_easy_setopt(e, CURLOPT_URL, r->url);
}

static void give_back(struct exchange *x)
{
	struct http *h = x->h;

	curl_slist_free_all(x->headers);
	x->headers = NULL;
	curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, NULL);
	if (h->free_count < FREE_KEPT)
		h->free[h->free_count++] = x;
	else
		exchange_free(x);
}

bool http_start(struct http *h, const struct http_request *r, http_done *done, void *arg)
{
	struct exchange *x = take(h);

	if (!x)
		return false;
	x->done = done;
	x->arg = arg;
	if (!prepare(x, r) || curl_multi_add_handle(h->multi, x->easy)) {
		give_back(x);
		return false;
	}
	return true;
}

void http_wait(struct http *h, int fd, int ms)
{
	struct curl_waitfd w = {.fd = fd, .events = CURL_WAIT_POLLIN};

	curl_multi_poll(h->multi, &w, fd >= 0, ms, NULL);
}

void http_wake(struct http *h)
{
	curl_multi_wakeup(h->multi);
}

static enum http_error error_of(CURLcode code, const struct exchange *x)
{
	if (code != CURLE_OK && x->refused)
		return HTTP_INSECURE;
	switch (code) {
	case CURLE_OK:
		return HTTP_NONE;
	case CURLE_WRITE_ERROR:
		return x->too_large ? HTTP_TOO_LARGE : HTTP_CONNECT;
	case CURLE_OPERATION_TIMEDOUT:
		return HTTP_TIMEOUT;
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CIPHER:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_INVALIDCERTSTATUS:
		return HTTP_TLS;
	default:
		return HTTP_CONNECT;
	}
}

static void finish(struct exchange *x, CURLcode code)
{
	struct http_reply r = {.error = error_of(code, x), .body = x->body, .len = x->len};
	long status = 0;

	curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
	r.status = (int)status;
	if (!r.error && status != 200)
		r.error = HTTP_STATUS;
	curl_multi_remove_handle(x->h->multi, x->easy);
	x->done(x->arg, &r);
	give_back(x);
}

void http_run(struct http *h)
{
	struct exchange *x;
	CURLMsg *m;
	int left;

	curl_multi_perform(h->multi, &left);
	while ((m = curl_multi_info_read(h->multi, &left))) {
		CURLcode code = m->data.result;

		if (m->msg == CURLMSG_DONE &&
			!curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &x))
			finish(x, code);
	}
}
