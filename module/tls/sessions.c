/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sessions of servers lie in a table in shared memory, each under a digest of the server's address,
 * its name, and of our certificate and authorities: a session of another configuration is not
 * offered. Clients keep their sessions themselves, in tickets. All processes use the same keys for
 * these, and a session's context (RFC 5246 7.4.1.2) ties it to our configuration, our address, and
 * the name that the client asked for. Nobody waits for the lock: a process that does not get it
 * does a full handshake. */
#include "sessions.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <time.h>

#include "names.h"

#define SLOTS       256
#define SESSION_MAX 8192 /* octets: certificates of both sides, one of them in the ticket */
#define DIGEST      32
#define TICKET_KEYS 80   /* OpenSSL's: name, and two keys */
#define KEYS_LIFE_S 7200 /* as long as OpenSSL's sessions */
#define ADDRESS_MAX 64
#define SSL_WORDS   3 /* of tls.so's data of a connection: configuration, SSL, BIO */

#if OPENSSL_VERSION_NUMBER < 0x30300000L
#define SSL_SESSION_get_time_ex SSL_SESSION_get_time
#endif

struct slot {
	unsigned char key[DIGEST];
	time_t expires; /* 0: empty */
	long len;
	unsigned char session[SESSION_MAX];
};

static struct shared {
	pthread_mutex_t lock; /* for the rest */
	time_t keys_since;
	unsigned char keys[TICKET_KEYS];
	int ssl_at; /* without the lock: see sessions_learn(). 0: unknown; n: word n */
	struct slot slot[SLOTS];
} * shared;

/* Indices: the key of the table or, as a server, the context without a name; the digest of a
 * configuration. */
static int of_ssl, of_ctx;
static bool verify_name;
/* Of the connection that is created. */
static struct {
	bool active, client; /* client: we are the client of the connection */
	size_t len;
	unsigned char address[ADDRESS_MAX]; /* of the server */
	const char *name;                   /* of the server; NULL: only the address is known */
	const SSL *made;
} conn;

/* --- Table ------------------------------------------------------------------------------------ */

static void clear(struct slot *s)
{
	OPENSSL_cleanse(s, offsetof(struct slot, session) + (size_t)s->len);
}

/* The place for a key: its own, else one that is empty, else the one that expires first. */
static struct slot *place_for(const unsigned char *key)
{
	struct slot *best = shared->slot;

	for (struct slot *s = shared->slot; s < shared->slot + SLOTS; s++) {
		if (s->expires && !memcmp(s->key, key, DIGEST))
			return s;
		if (s->expires < best->expires)
			best = s;
	}
	return best;
}

static void put(const unsigned char *key, SSL_SESSION *session, time_t expires)
{
	int len = i2d_SSL_SESSION(session, NULL);
	unsigned char *p;
	struct slot *s;

	if (len <= 0 || len > SESSION_MAX || pthread_mutex_trylock(&shared->lock))
		return;
	s = place_for(key);
	clear(s);
	p = s->session;
	s->len = i2d_SSL_SESSION(session, &p);
	memcpy(s->key, key, DIGEST);
	s->expires = expires;
	pthread_mutex_unlock(&shared->lock);
}

/* Removes the session from the table, so it is not offered again if the handshake fails. */
static SSL_SESSION *take(const unsigned char *key, time_t now)
{
	SSL_SESSION *found = NULL;
	struct slot *s;

	if (pthread_mutex_trylock(&shared->lock))
		return NULL;
	s = place_for(key);
	if (s->expires && !memcmp(s->key, key, DIGEST)) {
		const unsigned char *p = s->session;

		if (s->expires > now)
			found = d2i_SSL_SESSION(NULL, &p, s->len);
		clear(s);
	}
	pthread_mutex_unlock(&shared->lock);
	return found;
}

/* --- Configuration ---------------------------------------------------------------------------- */

static bool add_store(EVP_MD_CTX *md, SSL_CTX *ctx)
{
	STACK_OF(X509_OBJECT) *all = X509_STORE_get0_objects(SSL_CTX_get_cert_store(ctx));
	unsigned char one[EVP_MAX_MD_SIZE];
	unsigned len;

	for (int i = 0; i < sk_X509_OBJECT_num(all); i++) {
		const X509_OBJECT *o = sk_X509_OBJECT_value(all, i);
		X509 *cert = X509_OBJECT_get0_X509(o);
		X509_CRL *crl = X509_OBJECT_get0_X509_CRL((X509_OBJECT *)(uintptr_t)o);

		if (cert ? !X509_digest(cert, EVP_sha256(), one, &len)
			 : !crl || !X509_CRL_digest(crl, EVP_sha256(), one, &len))
			return false;
		EVP_DigestUpdate(md, one, len);
	}
	return true;
}

/* What decides how a handshake is checked. A callback may accept what OpenSSL refuses, and a server
 * that resumes a session does not ask whether its own ciphers are still those of the session. */
static bool add_how(EVP_MD_CTX *md, const SSL_CTX *ctx)
{
	int how[2] = {SSL_CTX_get_verify_mode(ctx), SSL_CTX_get_verify_depth(ctx)};
	SSL_verify_cb callback = SSL_CTX_get_verify_callback(ctx); /* the same in all processes */
	STACK_OF(SSL_CIPHER) *all = SSL_CTX_get_ciphers(ctx);
	bool ok = EVP_DigestUpdate(md, how, sizeof(how)) &&
		EVP_DigestUpdate(md, &callback, sizeof(callback));

	for (int i = 0; ok && i < sk_SSL_CIPHER_num(all); i++) {
		uint32_t id = SSL_CIPHER_get_id(sk_SSL_CIPHER_value(all, i));

		ok = EVP_DigestUpdate(md, &id, sizeof(id));
	}
	return ok;
}

/* Digest of what decides whom we trust, and who we are. NULL: OpenSSL failed. */
static const unsigned char *configuration(SSL_CTX *ctx)
{
	unsigned char *known = SSL_CTX_get_ex_data(ctx, of_ctx), one[EVP_MAX_MD_SIZE];
	X509 *own = SSL_CTX_get0_certificate(ctx);
	EVP_MD_CTX *md;
	unsigned len;
	bool ok;

	if (known)
		return known;
	md = EVP_MD_CTX_new();
	known = OPENSSL_malloc(DIGEST);
	ok = md && known && EVP_DigestInit_ex(md, EVP_sha256(), NULL) && add_how(md, ctx) &&
		add_store(md, ctx) &&
		(!own ||
			(X509_digest(own, EVP_sha256(), one, &len) &&
				EVP_DigestUpdate(md, one, len))) &&
		EVP_DigestFinal_ex(md, known, NULL) && SSL_CTX_set_ex_data(ctx, of_ctx, known);
	EVP_MD_CTX_free(md);
	if (ok)
		return known;
	OPENSSL_free(known);
	return NULL;
}

/* Gives the connection a digest of its configuration and of the server's address. NULL: OpenSSL
 * failed. */
static const unsigned char *bind_address(SSL_CTX *ctx, CRYPTO_EX_DATA *data)
{
	const unsigned char *own = configuration(ctx);
	unsigned char *key = own ? OPENSSL_malloc(DIGEST) : NULL;
	EVP_MD_CTX *md = key ? EVP_MD_CTX_new() : NULL;
	bool ok = md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) &&
		EVP_DigestUpdate(md, own, DIGEST) && EVP_DigestUpdate(md, conn.address, conn.len) &&
		EVP_DigestFinal_ex(md, key, NULL) && CRYPTO_set_ex_data(data, of_ssl, key);

	EVP_MD_CTX_free(md);
	if (ok)
		return key;
	OPENSSL_free(key);
	return NULL;
}

/* --- As a client ------------------------------------------------------------------------------ */

/* A session ends with its server's certificate, because a resumed one is not verified again. */
static time_t expiry(const SSL_SESSION *session)
{
	time_t end = (time_t)(SSL_SESSION_get_time_ex(session) + SSL_SESSION_get_timeout(session));
	X509 *cert = SSL_SESSION_get0_peer((SSL_SESSION *)(uintptr_t)session);
	struct tm tm;
	time_t until;

	if (!cert || !ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm))
		return 0;
	until = timegm(&tm);
	return until < end ? until : end;
}

/* TLS 1.3: a ticket arrived. TLS 1.2: the handshake is complete. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
	const unsigned char *key = SSL_get_ex_data(ssl, of_ssl);

	if (key && SSL_SESSION_is_resumable(session))
		put(key, session, expiry(session));
	return 0; /* no reference is kept */
}

/* Called when the handshake starts, because the server's name is not known before. */
static void offer(SSL *ssl)
{
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	unsigned char *key = SSL_get_ex_data(ssl, of_ssl);
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	SSL_SESSION *session;

	if (md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) && EVP_DigestUpdate(md, key, DIGEST) &&
		EVP_DigestUpdate(md, name ? name : "", name ? strlen(name) : 0) &&
		EVP_DigestFinal_ex(md, key, NULL)) {
		session = take(key, time(NULL));
		if (session)
			SSL_set_session(ssl, session);
		SSL_SESSION_free(session);
	}
	EVP_MD_CTX_free(md);
}

static void on_info(const SSL *s, int where, int ret)
{
	void (*other)(const SSL *, int, int) = SSL_CTX_get_info_callback(SSL_get_SSL_CTX(s));
	SSL *ssl = (SSL *)(uintptr_t)s;

	if (where & SSL_CB_HANDSHAKE_START && !SSL_get0_session(ssl))
		offer(ssl);
	/* In TLS 1.2 a resumed handshake brings no new session: the old one is stored again. */
	if (where & SSL_CB_HANDSHAKE_DONE && SSL_session_reused(s) &&
		SSL_version(s) < TLS1_3_VERSION)
		on_session(ssl, SSL_get0_session(ssl));
	if (other)
		other(s, where, ret);
}

/* After OpenSSL's own verification. */
static int on_verify(X509_STORE_CTX *store, void *arg)
{
	const SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	int ok = X509_verify_cert(store);

	(void)arg;
	if (ok <= 0 || !name || names_match(X509_STORE_CTX_get0_cert(store), name))
		return ok;
	X509_STORE_CTX_set_error(store, X509_V_ERR_HOSTNAME_MISMATCH);
	return 0;
}

/* The server has to show its name, or its address if only that is known. Without memory for the
 * check no certificate must pass: at a time in 1970 none is valid yet. */
static void expect(SSL *ssl, SSL_CTX *ctx)
{
	X509_VERIFY_PARAM *how = SSL_get0_param(ssl);

	SSL_CTX_set_cert_verify_callback(ctx, on_verify, NULL);
	/* conn.address ends with the port. */
	if (conn.name ? !SSL_set_tlsext_host_name(ssl, conn.name)
		      : !X509_VERIFY_PARAM_set1_ip(how, conn.address, conn.len - sizeof(uint16_t)))
		X509_VERIFY_PARAM_set_time(how, 1);
}

static void begin_client(SSL *ssl, SSL_CTX *ctx, CRYPTO_EX_DATA *data)
{
	if (verify_name)
		expect(ssl, ctx);
	if (!bind_address(ctx, data))
		return;
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, on_session);
	SSL_set_info_callback(ssl, on_info);
}

/* --- As a server ------------------------------------------------------------------------------ */

/* OpenSSL looks for the session before the name selects another context, which may demand a
 * certificate of the client. */
static int on_hello(SSL *ssl, int *alert, void *arg)
{
	const unsigned char *key = SSL_get_ex_data(ssl, of_ssl), *name;
	unsigned char named[EVP_MAX_MD_SIZE];
	EVP_MD_CTX *md;
	size_t len;
	bool ok;

	(void)arg;
	if (!key || !SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &name, &len))
		return SSL_CLIENT_HELLO_SUCCESS;
	md = EVP_MD_CTX_new();
	ok = md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) && EVP_DigestUpdate(md, key, DIGEST) &&
		EVP_DigestUpdate(md, name, len) && EVP_DigestFinal_ex(md, named, NULL) &&
		SSL_set_session_id_context(ssl, named, DIGEST);
	EVP_MD_CTX_free(md);
	*alert = SSL_AD_INTERNAL_ERROR;
	return ok ? SSL_CLIENT_HELLO_SUCCESS : SSL_CLIENT_HELLO_ERROR;
}

static void begin_server(SSL *ssl, SSL_CTX *ctx, CRYPTO_EX_DATA *data)
{
	const unsigned char *own = bind_address(ctx, data);
	unsigned char keys[TICKET_KEYS], its[TICKET_KEYS];
	time_t now = time(NULL);
	bool has;

	if (!own)
		return;
	SSL_CTX_set_client_hello_cb(ctx, on_hello, NULL);
	/* It has that of the context before. */
	SSL_set_session_id_context(ssl, own, DIGEST);
	if (pthread_mutex_trylock(&shared->lock))
		return;
	/* Also if there are none yet, or the clock was set back: the first ones are zeros. */
	if (!shared->keys_since || now < shared->keys_since ||
		now - shared->keys_since >= KEYS_LIFE_S)
		shared->keys_since = RAND_bytes(shared->keys, sizeof(shared->keys)) == 1 ? now : 0;
	has = shared->keys_since;
	memcpy(keys, shared->keys, sizeof(keys));
	pthread_mutex_unlock(&shared->lock);
	if (!has)
		return;
	if (SSL_CTX_get_tlsext_ticket_keys(ctx, its, sizeof(its)) == 1 &&
		memcmp(keys, its, sizeof(keys)) && SSL_CTX_set_session_id_context(ctx, own, DIGEST))
		SSL_CTX_set_tlsext_ticket_keys(ctx, keys, sizeof(keys));
	OPENSSL_cleanse(keys, sizeof(keys));
	OPENSSL_cleanse(its, sizeof(its));
}

/* --- Connections ------------------------------------------------------------------------------ */

/* At the end of SSL_new() */
static void on_ssl(void *parent, void *ptr, CRYPTO_EX_DATA *data, int idx, long argl, void *argp)
{
	SSL_CTX *ctx = conn.active ? SSL_get_SSL_CTX(parent) : NULL;

	(void)ptr;
	(void)idx;
	(void)argl;
	(void)argp;
	if (ctx)
		conn.made = parent;
	if (ctx && conn.client)
		begin_client(parent, ctx, data);
	else if (ctx)
		begin_server(parent, ctx, data);
}

static void on_free(void *parent, void *ptr, CRYPTO_EX_DATA *data, int idx, long argl, void *argp)
{
	(void)parent;
	(void)data;
	(void)idx;
	(void)argl;
	(void)argp;
	OPENSSL_free(ptr);
}

bool sessions_init(void)
{
	pthread_mutexattr_t a;
	void *p = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return false;
	shared = p;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&shared->lock, &a);
	pthread_mutexattr_destroy(&a);
	of_ssl = SSL_get_ex_new_index(0, NULL, on_ssl, NULL, on_free);
	of_ctx = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, on_free);
	return of_ssl >= 0 && of_ctx >= 0;
}

void sessions_verify_name(bool on)
{
	verify_name = on;
}

void sessions_begin(const void *address, size_t len, bool client, const char *name)
{
	conn.active = len <= sizeof(conn.address);
	conn.client = client;
	conn.len = len;
	conn.name = name;
	conn.made = NULL;
	if (conn.active)
		memcpy(conn.address, address, len);
}

void sessions_end(void)
{
	conn.active = false;
}

void sessions_learn(const void *own)
{
	const void *const *word = own;

	for (int i = 0; own && conn.made && i < SSL_WORDS; i++) {
		if (word[i] == conn.made)
			__atomic_store_n(&shared->ssl_at, i + 1, __ATOMIC_RELAXED);
	}
	conn.made = NULL;
}

bool sessions_peer_is(const void *own, const char *name)
{
	int at = __atomic_load_n(&shared->ssl_at, __ATOMIC_RELAXED);
	SSL *ssl = at ? ((SSL *const *)own)[at - 1] : NULL;
	X509 *cert = ssl ? SSL_get1_peer_certificate(ssl) : NULL;
	const char *asked;
	bool ok;

	if (cert) {
		ok = names_match(cert, name);
		X509_free(cert);
		return ok;
	}
	/* Before the end of the handshake, which compares the name that it asked for. */
	asked = ssl && !SSL_is_server(ssl) ? SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name)
					   : NULL;
	return asked && !strcasecmp(asked, name);
}
