/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A BIO that keeps datagrams apart, which OpenSSL's memory BIO does not. Input is the caller's
 * buffer, output a bounded queue. A full queue loses packets, as a network does. */
#include <errno.h>
#include <stdlib.h>

#include "keying/dtls_int.h"

static int io_read(BIO *b, char *buf, int cap)
{
	struct dtls_io *io = BIO_get_data(b);
	size_t n = min_u32((uint32_t)io->in_len, (uint32_t)cap);

	BIO_clear_retry_flags(b);
	if (!n) {
		BIO_set_retry_read(b);
		return -1;
	}
	memcpy(buf, io->in, n);
	io->in_len = 0;
	return (int)n;
}

/* Adds io->shift to the sequence number of each unencrypted record. Encrypted ones authenticate
 * theirs. */
static void renumber(const struct dtls_io *io, uint8_t *p, size_t len)
{
	size_t at = 0;

	while (io->shift && len >= at + DTLS_RECORD_HDR && p[at] >> 5 == 0) {
		uint64_t seq = (uint64_t)be16(p + at + 5) << 32 | be32(p + at + 7);

		if (be16(p + at + 3) == 0) {
			seq += io->shift;
			put_be16(p + at + 5, (uint16_t)(seq >> 32));
			put_be32(p + at + 7, (uint32_t)seq);
		}
		at += DTLS_RECORD_HDR + be16(p + at + 11);
	}
}

static void dtls_io_put(struct dtls_io *io, const uint8_t *p, size_t len)
{
	if (io->at == io->n)
		io->at = io->n = io->head = io->used = 0;
	if (io->n == DTLS_OUT_COUNT || io->used + len > io->cap || len > DTLS_PACKET_MAX) {
		io->lost++;
		return;
	}
	memcpy(io->out + io->used, p, len);
	renumber(io, io->out + io->used, len);
	io->used += (uint16_t)len;
	io->len[io->n++] = (uint16_t)len;
}

static int io_write(BIO *b, const char *p, int len)
{
	struct dtls_io *io = BIO_get_data(b);

	BIO_clear_retry_flags(b);
	if (!io->discard && len > 0)
		dtls_io_put(io, (const uint8_t *)p, (size_t)len);
	return len;
}

static long io_ctrl(BIO *b, int cmd, long num, void *ptr)
{
	(void)b;
	(void)num;
	(void)ptr;
	return cmd == BIO_CTRL_FLUSH || cmd == BIO_CTRL_DUP;
}

static int io_create(BIO *b)
{
	BIO_set_init(b, 1);
	return 1;
}

static int io_destroy(BIO *b)
{
	return b != NULL;
}

BIO_METHOD *dtls_io_method(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "datagrams");

	if (m &&
		(!BIO_meth_set_read(m, io_read) || !BIO_meth_set_write(m, io_write) ||
			!BIO_meth_set_ctrl(m, io_ctrl) || !BIO_meth_set_create(m, io_create) ||
			!BIO_meth_set_destroy(m, io_destroy))) {
		BIO_meth_free(m);
		return NULL;
	}
	return m;
}

bool dtls_io_attach(SSL *ssl, const BIO_METHOD *method, struct dtls_io *io)
{
	BIO *b = BIO_new(method);

	if (!b)
		return false;
	BIO_set_data(b, io);
	SSL_set_bio(ssl, b, b);
	return true;
}

bool dtls_io_init(struct dtls_io *io)
{
	io->out = malloc(DTLS_OUT_BYTES);
	io->cap = io->out ? DTLS_OUT_BYTES : 0;
	return io->out != NULL;
}

void dtls_io_fini(struct dtls_io *io)
{
	free(io->out);
	io->out = NULL;
	io->cap = 0;
}

void dtls_io_shrink(struct dtls_io *io)
{
	uint8_t *less;

	if (io->at != io->n || io->cap <= DTLS_OUT_HELD)
		return;
	less = realloc(io->out, DTLS_OUT_HELD);
	if (less) {
		io->out = less;
		io->cap = DTLS_OUT_HELD;
	}
}

int dtls_io_next(struct dtls_io *io, uint8_t *buf, size_t cap)
{
	uint16_t len;

	if (io->at == io->n)
		return 0;
	len = io->len[io->at];
	if (cap < len)
		return -EMSGSIZE;
	memcpy(buf, io->out + io->head, len);
	io->head += len;
	io->at++;
	return len;
}
