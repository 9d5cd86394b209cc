/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A DTLS-SRTP association: its states, its deadlines, and the life of OpenSSL's memory. dtls_tls.c
 * has the settings of OpenSSL, dtls_io.c the way of datagrams. */
#include "keying/dtls.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <sys/time.h>

#include "base/secmem.h"
#include "keying/dtls_int.h"

#define BYE_MAX     96u      /* a close_notify, encrypted by any cipher */
#define STEP_NS     1000000u /* the least time between two deadlines */
#define READ_ROUNDS 64       /* records of one datagram */

/* Memory of a handshake, in addition to OpenSSL's. */
struct work {
	SSL *ssl;
	struct dtls_io io;
};

struct dtls {
	struct dtls_cert *cert;
	struct dtls_counts *counts;
	struct work *work;    /* NULL before the first packet, and after the hold */
	struct dtls_tls *tls; /* NULL once work is gone and the fingerprints were compared */
	uint64_t give_up_ns, hold_ns; /* durations */
	uint64_t limit_ns;            /* when the handshake fails, or the hold ends */
	uint64_t timer_ns;            /* when OpenSSL's timer expires; or DTLS_NO_DEADLINE */
	enum dtls_role role;
	enum dtls_state state;
	enum dtls_failure failure;
	uint16_t mtu;
	bool completed;  /* rx and tx are valid */
	bool over;       /* no further packets; the rest of the queue may still be sent */
	bool refused;    /* an alert in clear came: see dtls_take() */
	uint8_t bye_len; /* a close_notify to be sent after work is gone */
	bool bye_due;
	uint8_t bye[BYE_MAX];
	struct srtp_master rx, tx;
};

static bool config_valid(const struct dtls_config *c)
{
	if (!c->cert || (c->role != DTLS_ROLE_CLIENT && c->role != DTLS_ROLE_SERVER))
		return false;
	if (c->mtu && (c->mtu < DTLS_MTU_MIN || c->mtu > DTLS_MTU_MAX))
		return false;
	if (c->profiles == 0 || c->profiles > DTLS_PROFILES_MAX)
		return false;
	for (uint32_t i = 0; i < c->profiles; i++)
		if (!dtls_profile_known(c->profile[i]))
			return false;
	return true;
}

int dtls_create(struct dtls **out, const struct dtls_config *c)
{
	struct dtls *a;

	if (!config_valid(c))
		return -EINVAL;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->tls = calloc(1, sizeof(*a->tls));
	if (!a->tls) {
		free(a);
		return -ENOMEM;
	}
	a->cert = dtls_cert_get(c->cert);
	a->counts = c->counts;
	a->role = c->role;
	a->mtu = c->mtu ? c->mtu : DTLS_MTU_DEFAULT;
	a->give_up_ns = c->give_up_ns ? c->give_up_ns : DTLS_GIVE_UP_NS;
	a->hold_ns = c->hold_ns ? c->hold_ns : DTLS_HOLD_NS;
	a->limit_ns = a->timer_ns = DTLS_NO_DEADLINE;
	a->tls->first_ns = c->first_ns ? c->first_ns : DTLS_FIRST_NS;
	a->tls->allow_sha1 = c->allow_sha1;
	a->tls->profiles = c->profiles;
	memcpy(a->tls->profile, c->profile, sizeof(a->tls->profile));
	*out = a;
	return 0;
}

static void work_free(struct dtls *a)
{
	if (!a->work)
		return;
	SSL_free(a->work->ssl);
	dtls_io_fini(&a->work->io);
	free(a->work);
	a->work = NULL;
}

void dtls_destroy(struct dtls *a)
{
	if (!a)
		return;
	work_free(a);
	free(a->tls);
	dtls_cert_put(a->cert);
	secmem_wipe(a, sizeof(*a));
	free(a);
}

static int dropped(struct dtls *a, enum dtls_drop why)
{
	if (a->counts)
		a->counts->drop[why]++;
	return -EBADMSG;
}

/* OpenSSL's queue of errors belongs to the thread: leave no error in it. */
static int prepare(struct dtls *a)
{
	struct work *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->ssl = SSL_new(dtls_cert_ctx(a->cert));
	if (!w->ssl || !dtls_io_init(&w->io) ||
		!dtls_io_attach(w->ssl, dtls_cert_bio(a->cert), &w->io) ||
		!dtls_tls_attach(w->ssl, a->tls) || SSL_set_mtu(w->ssl, a->mtu) <= 0) {
		SSL_free(w->ssl);
		dtls_io_fini(&w->io);
		free(w);
		ERR_clear_error();
		return -ENOMEM;
	}
	if (a->role == DTLS_ROLE_CLIENT)
		SSL_set_connect_state(w->ssl);
	else
		SSL_set_accept_state(w->ssl);
	a->work = w;
	return 0;
}

/* After the handshake OpenSSL's record buffers, 33 KiB, exist only while a packet is processed. */
static bool buffers_take(struct dtls *a)
{
	return !a->completed || SSL_alloc_buffers(a->work->ssl) == 1;
}

static void buffers_give(struct dtls *a)
{
	if (a->completed && a->work && a->work->ssl)
		(void)SSL_free_buffers(a->work->ssl);
}

/* Makes a close_notify. While work exists it goes to the queue with the other packets; after the
 * hold it is the one that was kept. */
static void say_goodbye(struct dtls *a)
{
	if (a->over) {
		a->bye_due = a->bye_len > 0;
		return;
	}
	ERR_clear_error();
	if (a->work && a->work->ssl && SSL_is_init_finished(a->work->ssl) &&
		!(SSL_get_shutdown(a->work->ssl) & SSL_SENT_SHUTDOWN) && buffers_take(a))
		SSL_shutdown(a->work->ssl);
	ERR_clear_error();
}

/* The association needs OpenSSL no longer. The queue stays until dtls_next() has emptied it. */
static void finish_work(struct dtls *a)
{
	a->over = true;
	a->limit_ns = a->timer_ns = DTLS_NO_DEADLINE;
	if (!a->work)
		return;
	SSL_free(a->work->ssl);
	a->work->ssl = NULL;
	if (a->work->io.at == a->work->io.n)
		work_free(a);
}

/* Frees what only the handshake needs. Without fingerprints the peer's digests wait for them.
 * Called at the end of each public function that may end the handshake or the hold. */
static void forget(struct dtls *a)
{
	if (!a->over || a->state == DTLS_UNCHECKED)
		return;
	free(a->tls);
	a->tls = NULL;
}

static void fail(struct dtls *a, enum dtls_failure why)
{
	a->state = DTLS_FAILED;
	a->failure = why;
	a->completed = false;
	secmem_wipe(&a->rx, sizeof(a->rx));
	secmem_wipe(&a->tx, sizeof(a->tx));
	finish_work(a);
}

/* --- Time ------------------------------------------------------------------------------------- */

/* Reads when OpenSSL's timer will expire. Its duration bounds the wait, in case that the wall clock
 * was set back. */
static void read_timer(struct dtls *a, uint64_t now_ns)
{
	struct timeval tv;
	uint64_t left;

	a->timer_ns = DTLS_NO_DEADLINE;
	if (a->state != DTLS_HANDSHAKE || !a->work || !DTLSv1_get_timeout(a->work->ssl, &tv))
		return;
	left = (uint64_t)tv.tv_sec * 1000000000u + (uint64_t)tv.tv_usec * 1000u;
	if (left > a->tls->timer_ns)
		left = a->tls->timer_ns;
	a->timer_ns = now_ns + (left > STEP_NS ? left : STEP_NS);
}

static void count_repeats(struct dtls *a)
{
	if (a->tls->repeated && a->counts)
		a->counts->retransmitted++;
	a->tls->repeated = false;
	if (a->work && a->work->io.lost) {
		if (a->counts)
			a->counts->drop[DTLS_DROP_QUEUE] += a->work->io.lost;
		a->work->io.lost = 0;
	}
}

/* --- The handshake ---------------------------------------------------------------------------- */

static void complete(struct dtls *a, uint64_t now_ns)
{
	enum dtls_failure why = dtls_tls_export(a->work->ssl, a->role, &a->rx, &a->tx);

	if (why == DTLS_FAIL_NONE && !a->tls->peer.known)
		why = DTLS_FAIL_NO_CERTIFICATE;
	if (why == DTLS_FAIL_NONE && a->tls->expecting && !dtls_tls_match(a->tls))
		why = DTLS_FAIL_FINGERPRINT;
	if (why != DTLS_FAIL_NONE) {
		say_goodbye(a);
		fail(a, why);
		return;
	}
	a->completed = true;
	a->state = a->tls->expecting ? DTLS_OPEN : DTLS_UNCHECKED;
	a->limit_ns = now_ns + a->hold_ns;
}

/* After the handshake: alerts, and repeated messages that OpenSSL answers. Application data has no
 * meaning here and is thrown away. */
static void read_on(struct dtls *a)
{
	uint8_t junk[256];
	int n = 1, err;

	for (int i = 0; n > 0 && i < READ_ROUNDS; i++)
		n = SSL_read(a->work->ssl, junk, sizeof(junk));
	secmem_wipe(junk, sizeof(junk));
	err = n > 0 ? SSL_ERROR_NONE : SSL_get_error(a->work->ssl, n);
	ERR_clear_error();
	if (err == SSL_ERROR_ZERO_RETURN || a->tls->alerted) {
		if (a->state == DTLS_UNCHECKED) {
			fail(a, DTLS_FAIL_CLOSED);
			return;
		}
		say_goodbye(a);
		a->state = DTLS_CLOSED;
		finish_work(a);
	} else if (err != SSL_ERROR_NONE && err != SSL_ERROR_WANT_READ) {
		finish_work(a);
	}
}

static void advance(struct dtls *a, uint64_t now_ns)
{
	int rc, err;

	ERR_clear_error();
	if (a->state == DTLS_HANDSHAKE) {
		rc = SSL_do_handshake(a->work->ssl);
		if (rc == 1) {
			complete(a, now_ns);
		} else {
			err = SSL_get_error(a->work->ssl, rc);
			if (err == SSL_ERROR_ZERO_RETURN) /* close_notify */
				fail(a, DTLS_FAIL_REFUSED);
			else if (err != SSL_ERROR_WANT_READ && err != SSL_ERROR_WANT_WRITE)
				fail(a, dtls_tls_reason(a->tls));
		}
		ERR_clear_error();
	}
	if ((a->state == DTLS_OPEN || a->state == DTLS_UNCHECKED) && a->work && a->work->ssl)
		read_on(a);
	count_repeats(a);
	read_timer(a, now_ns);
}

static int begin(struct dtls *a, uint64_t now_ns)
{
	int err = prepare(a);

	if (err)
		return err;
	a->state = DTLS_HANDSHAKE;
	a->limit_ns = now_ns + a->give_up_ns;
	return 0;
}

int dtls_start(struct dtls *a, uint64_t now_ns)
{
	int err;

	if (a->role == DTLS_ROLE_SERVER)
		return 0;
	if (a->state != DTLS_IDLE)
		return -EALREADY;
	err = begin(a, now_ns);
	if (!err)
		advance(a, now_ns);
	forget(a);
	return err;
}

static int begin_server(struct dtls *a, const uint8_t *p, size_t len, uint64_t now_ns)
{
	struct dtls_hello h;
	int err;

	if (a->role != DTLS_ROLE_SERVER || dtls_hello_parse(&h, p, len) || h.message_seq > 1)
		return dropped(a, DTLS_DROP_STATE);
	err = begin(a, now_ns);
	if (err) {
		fail(a, DTLS_FAIL_INTERNAL);
		forget(a);
		return err;
	}
	if (h.message_seq == 1)
		dtls_tls_skip_cookie(a->work->ssl, &a->work->io, h.record_seq);
	return 0;
}

/* An alert in clear may be anybody's who forges an address. It ends the handshake only if that
 * does not complete soon. */
static int refused(struct dtls *a, uint64_t now_ns)
{
	uint64_t at = now_ns + DTLS_REFUSED_NS;

	if (a->state == DTLS_HANDSHAKE && at < a->limit_ns) {
		a->refused = true;
		a->limit_ns = at;
	}
	return dropped(a, DTLS_DROP_ALERT);
}

int dtls_take(struct dtls *a, const uint8_t *p, size_t len, uint64_t now_ns)
{
	enum dtls_drop why;
	int err;

	if (a->over)
		return dropped(a, a->state == DTLS_FAILED ? DTLS_DROP_STATE : DTLS_DROP_RELEASED);
	why = dtls_filter(p, len, a->completed);
	if (why != DTLS_DROP_NONE)
		return dropped(a, why);
	if (dtls_has_plain_alert(p, len))
		return refused(a, now_ns);
	if (a->state == DTLS_IDLE) {
		err = begin_server(a, p, len, now_ns);
		if (err)
			return err;
	}
	if (!buffers_take(a))
		return dropped(a, DTLS_DROP_LIBRARY);
	a->work->io.in = p;
	a->work->io.in_len = len;
	advance(a, now_ns);
	buffers_give(a);
	if (a->work) {
		a->work->io.in = NULL;
		a->work->io.in_len = 0;
	}
	forget(a);
	return 0;
}

int dtls_next(struct dtls *a, uint8_t *buf, size_t cap)
{
	int n = a->work ? dtls_io_next(&a->work->io, buf, cap) : 0;

	if (n == 0 && a->work && !a->work->ssl)
		work_free(a);
	else if (n == 0 && a->work && a->completed)
		dtls_io_shrink(&a->work->io);
	if (n != 0 || !a->bye_due)
		return n;
	if (cap < a->bye_len)
		return -EMSGSIZE;
	memcpy(buf, a->bye, a->bye_len);
	a->bye_due = false;
	n = a->bye_len;
	a->bye_len = 0;
	return n;
}

/* --- Deadlines -------------------------------------------------------------------------------- */

uint64_t dtls_deadline(const struct dtls *a)
{
	return a->timer_ns < a->limit_ns ? a->timer_ns : a->limit_ns;
}

/* Keeps a close_notify as bytes, then frees OpenSSL's memory. Packets that were not fetched are
 * lost. */
static void release(struct dtls *a)
{
	struct dtls_io *io = &a->work->io;

	io->at = io->n;
	say_goodbye(a);
	if (io->n > io->at && io->len[io->at] <= sizeof(a->bye)) {
		a->bye_len = (uint8_t)io->len[io->at];
		memcpy(a->bye, io->out + io->head, a->bye_len);
	}
	io->at = io->n;
	finish_work(a);
}

void dtls_tick(struct dtls *a, uint64_t now_ns)
{
	if (a->over)
		return;
	if (now_ns >= a->limit_ns) {
		if (a->state == DTLS_HANDSHAKE)
			fail(a, a->refused ? DTLS_FAIL_REFUSED : DTLS_FAIL_TIMEOUT);
		else
			release(a);
		forget(a);
		return;
	}
	if (a->state != DTLS_HANDSHAKE || now_ns < a->timer_ns)
		return;
	ERR_clear_error();
	if (DTLSv1_handle_timeout(a->work->ssl) < 0)
		fail(a, dtls_tls_reason(a->tls));
	ERR_clear_error();
	count_repeats(a);
	read_timer(a, now_ns);
	forget(a);
}

void dtls_settle(struct dtls *a, uint64_t now_ns)
{
	(void)now_ns;
	if (a->state == DTLS_OPEN && !a->over)
		release(a);
	forget(a);
}

/* --- Results ---------------------------------------------------------------------------------- */

int dtls_expect(struct dtls *a, const struct dtls_fingerprints *f, uint64_t now_ns)
{
	(void)now_ns;
	if (a->state == DTLS_OPEN || a->state == DTLS_CLOSED) {
		struct dtls_tls t;

		if (!a->tls)
			return 0;
		t = *a->tls;
		t.expected = *f;
		t.expected.count = min_u32(f->count, DTLS_FINGERPRINTS);
		return dtls_tls_match(&t) ? 0 : -EKEYREJECTED;
	}
	if (a->state == DTLS_FAILED)
		return -EKEYREJECTED;
	a->tls->expected = *f;
	a->tls->expected.count = min_u32(f->count, DTLS_FINGERPRINTS);
	a->tls->expecting = true;
	if (a->state != DTLS_UNCHECKED)
		return 0;
	if (dtls_tls_match(a->tls)) {
		a->state = DTLS_OPEN;
		forget(a);
		return 0;
	}
	say_goodbye(a);
	fail(a, DTLS_FAIL_FINGERPRINT);
	forget(a);
	return -EKEYREJECTED;
}

enum dtls_state dtls_state(const struct dtls *a)
{
	return a->state;
}

enum dtls_failure dtls_failure(const struct dtls *a)
{
	return a->failure;
}

int dtls_keys(const struct dtls *a, struct srtp_master *rx, struct srtp_master *tx)
{
	if (!a->completed || (a->state != DTLS_OPEN && a->state != DTLS_CLOSED))
		return -EAGAIN;
	*rx = a->rx;
	*tx = a->tx;
	return 0;
}

void dtls_close(struct dtls *a, uint64_t now_ns)
{
	(void)now_ns;
	switch (a->state) {
	case DTLS_OPEN:
		say_goodbye(a);
		a->state = DTLS_CLOSED;
		finish_work(a);
		break;
	case DTLS_CLOSED:
	case DTLS_FAILED:
		return;
	default:
		say_goodbye(a);
		fail(a, DTLS_FAIL_CLOSED);
	}
	forget(a);
}
