/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Transport to a Redis server: TCP, with TLS (OpenSSL) for rediss://. Never blocks, and never falls
 * back from TLS to plain TCP. */
#ifndef PERSIST_REDIS_WIRE_H
#define PERSIST_REDIS_WIRE_H

#include <sys/types.h>

#include "persist/redis_server.h"

struct redis_tls; /* certificates and rules, shared by connections */

struct redis_tls_config {
	const char *ca_file;              /* "" = the system's authorities */
	const char *cert_file, *key_file; /* ours; "" = none */
	const char *name; /* expected in the certificate; "" = the host name or address */
};

/* err: one line. 0 or -errno. */
int redis_tls_create(
	struct redis_tls **out, const struct redis_tls_config *cfg, char *err, size_t err_len);
void redis_tls_destroy(struct redis_tls *t);

struct redis_wire;

/* Starts connecting. tls: NULL = plain TCP. turn: number of the address, modulo how many there are.
 * 0 or -errno. */
int redis_wire_open(struct redis_wire **out, const struct redis_server *s,
	const struct redis_tls *tls, uint32_t turn);
void redis_wire_close(struct redis_wire *w);
int redis_wire_fd(const struct redis_wire *w);
/* Continues to connect, and the TLS handshake. 0 when data can be sent, -EAGAIN, or another
 * error. */
int redis_wire_shake(struct redis_wire *w);
/* Bytes, 0 = the server closed the connection, -EAGAIN, or another error. */
ssize_t redis_wire_read(struct redis_wire *w, void *p, size_t len);
ssize_t redis_wire_write(struct redis_wire *w, const void *p, size_t len);
/* The events (EPOLLIN, EPOLLOUT) that the last call with -EAGAIN waits for. */
uint32_t redis_wire_wants(const struct redis_wire *w);
/* The cause of the last failure, one line. */
const char *redis_wire_why(const struct redis_wire *w);

#endif
