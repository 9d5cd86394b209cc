/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See redis_wire.h. TLS 1.2 and later (RFC 9325). The server's certificate is verified against the
 * authorities and its name (RFC 6125). If the handshake fails, the connection is closed. */
#include "persist/redis_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/secmem.h"
#include "base/secret_file.h"

#define KEY_FILE_MAX 65536

struct redis_tls {
	SSL_CTX *ctx;
	char name[254];
};

struct redis_wire {
	int fd;
	bool connected, shaken;
	SSL *ssl;
	uint32_t wants;
	char why[160];
};

/* --- Certificates ----------------------------------------------------------------------------- */

static const char *ssl_error(char *out, size_t len)
{
	unsigned long code = ERR_peek_last_error();
	const char *text = code ? ERR_reason_error_string(code) : NULL;

	snprintf(out, len, "%s", text ? text : "TLS failed");
	ERR_clear_error();
	return out;
}

/* Never ask for a passphrase on the terminal. */
static int no_passphrase(char *buf, int size, int writing, void *arg)
{
	(void)buf, (void)size, (void)writing, (void)arg;
	return 0;
}

static int use_key(SSL_CTX *ctx, const char *path, char *err, size_t err_len)
{
	char *text = malloc(KEY_FILE_MAX), why[100];
	EVP_PKEY *key = NULL;
	BIO *bio = NULL;
	int len, res = -ENOMEM;

	if (!text)
		return res;
	res = len = secret_file_read("--redis-tls-key", path, text, KEY_FILE_MAX, err, err_len);
	if (len >= 0) {
		bio = BIO_new_mem_buf(text, len);
		key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
		res = key && SSL_CTX_use_PrivateKey(ctx, key) == 1 &&
				SSL_CTX_check_private_key(ctx) == 1
			? 0
			: -EINVAL;
		if (res)
			snprintf(err, err_len,
				"--redis-tls-key=%s: need the private key of --redis-tls-cert, in PEM without a passphrase: %s",
				path, ssl_error(why, sizeof(why)));
	}
	EVP_PKEY_free(key);
	BIO_free(bio);
	secmem_wipe(text, KEY_FILE_MAX);
	free(text);
	return res;
}

/* OpenSSL does not say why it could not open a file. */
static int check_readable(const char *option, const char *path, char *err, size_t err_len)
{
	int fd = path[0] ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1, res = 0;

	if (fd >= 0)
		close(fd);
	else if (path[0])
		res = -errno;
	if (res)
		snprintf(err, err_len, "%s=%s cannot be read: %s", option, path, strerror(-res));
	return res;
}

static int configure(SSL_CTX *ctx, const struct redis_tls_config *cfg, char *err, size_t err_len)
{
	char why[100];
	int res = check_readable("--redis-tls-ca", cfg->ca_file, err, err_len);

	res = res ? res : check_readable("--redis-tls-cert", cfg->cert_file, err, err_len);
	if (res)
		return res;
	if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1)
		return -EINVAL;
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	ERR_clear_error();
	if ((cfg->ca_file[0] ? SSL_CTX_load_verify_file(ctx, cfg->ca_file)
			     : SSL_CTX_set_default_verify_paths(ctx)) != 1) {
		snprintf(err, err_len, "--redis-tls-ca=%s: need certificates in PEM: %s",
			cfg->ca_file, ssl_error(why, sizeof(why)));
		return -EINVAL;
	}
	if (!cfg->cert_file[0])
		return 0;
	if (SSL_CTX_use_certificate_chain_file(ctx, cfg->cert_file) != 1) {
		snprintf(err, err_len, "--redis-tls-cert=%s: need a certificate in PEM: %s",
			cfg->cert_file, ssl_error(why, sizeof(why)));
		return -EINVAL;
	}
	return use_key(ctx, cfg->key_file, err, err_len);
}

int redis_tls_create(
	struct redis_tls **out, const struct redis_tls_config *cfg, char *err, size_t err_len)
{
	struct redis_tls *t = calloc(1, sizeof(*t));
	int res = -ENOMEM;

	if (t)
		t->ctx = SSL_CTX_new(TLS_client_method());
	if (t && t->ctx) {
		snprintf(t->name, sizeof(t->name), "%s", cfg->name);
		res = configure(t->ctx, cfg, err, err_len);
	}
	if (res) {
		redis_tls_destroy(t);
		return res;
	}
	*out = t;
	return 0;
}

void redis_tls_destroy(struct redis_tls *t)
{
	if (!t)
		return;
	SSL_CTX_free(t->ctx);
	free(t);
}

/* Sets the name or address that the certificate must contain. */
static int expect_name(SSL *ssl, const struct redis_tls *tls, const struct redis_server *s)
{
	const char *name = tls->name[0] ? tls->name : s->name;
	char ip[ENDPOINT_STRLEN], *end;

	if (name[0])
		return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1
			? 0
			: -EINVAL;
	endpoint_fmt_addr(&s->addr, ip);
	end = strchr(ip, ']');
	if (end)
		*end = 0;
	return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), end ? ip + 1 : ip) == 1 ? 0
											  : -EINVAL;
}

/* --- A connection ----------------------------------------------------------------------------- */

static void keep_alive(int fd)
{
	static const int on = 1, idle = 15, interval = 5, count = 3;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static int begin(struct redis_wire *w, const struct redis_server *s, const struct redis_tls *tls,
	uint32_t turn)
{
	const struct endpoint *to = s->alls ? &s->all[turn % s->alls] : &s->addr;
	struct sockaddr_storage sa;
	socklen_t len = endpoint_to_sockaddr(to, &sa);

	w->fd = socket(sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (w->fd < 0)
		return -errno;
	keep_alive(w->fd);
	if (connect(w->fd, (struct sockaddr *)&sa, len) && errno != EINPROGRESS)
		return -errno;
	w->wants = EPOLLOUT;
	if (!tls)
		return 0;
	w->ssl = SSL_new(tls->ctx);
	if (!w->ssl || SSL_set_fd(w->ssl, w->fd) != 1)
		return -ENOMEM;
	return expect_name(w->ssl, tls, s);
}

int redis_wire_open(struct redis_wire **out, const struct redis_server *s,
	const struct redis_tls *tls, uint32_t turn)
{
	struct redis_wire *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	w->fd = -1;
	err = s->tls && !tls ? -EINVAL : begin(w, s, s->tls ? tls : NULL, turn);
	if (err) {
		redis_wire_close(w);
		return err;
	}
	*out = w;
	return 0;
}

void redis_wire_close(struct redis_wire *w)
{
	if (!w)
		return;
	if (w->ssl && w->shaken)
		SSL_shutdown(w->ssl);
	SSL_free(w->ssl);
	if (w->fd >= 0)
		close(w->fd);
	ERR_clear_error();
	free(w);
}

int redis_wire_fd(const struct redis_wire *w)
{
	return w->fd;
}

uint32_t redis_wire_wants(const struct redis_wire *w)
{
	return w->wants;
}

const char *redis_wire_why(const struct redis_wire *w)
{
	return w->why;
}

static int failed(struct redis_wire *w, int err)
{
	snprintf(w->why, sizeof(w->why), "%s", strerror(-err));
	return err;
}

/* Translates the result of OpenSSL's last call on this connection: the event that it waits for, or
 * the error. */
static int ssl_failed(struct redis_wire *w, int res)
{
	int why = SSL_get_error(w->ssl, res), code = errno;
	long verified = SSL_get_verify_result(w->ssl);
	char text[100];

	if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
		w->wants = why == SSL_ERROR_WANT_READ ? EPOLLIN : EPOLLOUT;
		return -EAGAIN;
	}
	if (!w->shaken && verified != X509_V_OK)
		snprintf(w->why, sizeof(w->why), "certificate refused: %s",
			X509_verify_cert_error_string(verified));
	else if (why == SSL_ERROR_SYSCALL)
		snprintf(w->why, sizeof(w->why), "TLS: %s", code ? strerror(code) : "closed");
	else
		snprintf(w->why, sizeof(w->why), "TLS: %s", ssl_error(text, sizeof(text)));
	ERR_clear_error();
	return -EPROTO;
}

static int check_connected(struct redis_wire *w)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(int), peer_len = sizeof(peer);
	int err = 0;

	if (getsockopt(w->fd, SOL_SOCKET, SO_ERROR, &err, &len))
		err = errno;
	if (err)
		return failed(w, -err);
	if (getpeername(w->fd, (struct sockaddr *)&peer, &peer_len)) {
		w->wants = EPOLLOUT;
		return errno == ENOTCONN ? -EAGAIN : failed(w, -errno);
	}
	w->connected = true;
	return 0;
}

int redis_wire_shake(struct redis_wire *w)
{
	int err = w->connected ? 0 : check_connected(w), res;

	if (err)
		return err;
	if (w->ssl && !w->shaken) {
		ERR_clear_error();
		errno = 0;
		res = SSL_connect(w->ssl);
		if (res != 1)
			return ssl_failed(w, res);
	}
	w->shaken = true;
	w->wants = EPOLLIN;
	return 0;
}

ssize_t redis_wire_read(struct redis_wire *w, void *p, size_t len)
{
	ssize_t n;

	w->wants = EPOLLIN;
	if (w->ssl) {
		ERR_clear_error();
		errno = 0;
		n = SSL_read(w->ssl, p, (int)len);
		if (n > 0)
			return n;
		return SSL_get_error(w->ssl, (int)n) == SSL_ERROR_ZERO_RETURN
			? 0
			: ssl_failed(w, (int)n);
	}
	n = recv(w->fd, p, len, 0);
	if (n >= 0)
		return n;
	return errno == EAGAIN || errno == EINTR ? -EAGAIN : failed(w, -errno);
}

ssize_t redis_wire_write(struct redis_wire *w, const void *p, size_t len)
{
	ssize_t n;

	w->wants = EPOLLOUT;
	if (w->ssl) {
		ERR_clear_error();
		errno = 0;
		n = SSL_write(w->ssl, p, (int)(len > INT32_MAX ? INT32_MAX : len));
		return n > 0 ? n : ssl_failed(w, (int)n);
	}
	n = send(w->fd, p, len, MSG_NOSIGNAL);
	if (n >= 0)
		return n;
	return errno == EAGAIN || errno == EINTR ? -EAGAIN : failed(w, -errno);
}
