/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bytes between us and a Redis server: a TCP connection, with TLS (OpenSSL) if the server is to be reached by TLS. Never
 * blocks. There is no way from TLS back to plain TCP. */
#ifndef CONTROL_REDIS_WIRE_H
#define CONTROL_REDIS_WIRE_H

#include <sys/types.h>

#include "control/redis_server.h"

struct redis_tls; /* certificates and rules, shared by connections */

struct redis_tls_config {
	const char *ca_file;              /* "" = the system's authorities */
	const char *cert_file, *key_file; /* ours; "" = none */
	const char *name; /* what the certificate must be for; "" = the host name or address */
};

/* err: one line. 0 or -errno. */
int redis_tls_create(
	struct redis_tls **out, const struct redis_tls_config *cfg, char *err, size_t err_len);
void redis_tls_destroy(struct redis_tls *t);

struct redis_wire;

/* Starts connecting. tls: NULL = plain TCP. turn: which of its addresses, counted round. 0 or -errno. */
int redis_wire_open(struct redis_wire **out, const struct redis_server *s,
	const struct redis_tls *tls, uint32_t turn);
void redis_wire_close(struct redis_wire *w);
int redis_wire_fd(const struct redis_wire *w);
/* Goes on with connecting and with the TLS handshake. 0 when data can flow, -EAGAIN, or another error. */
int redis_wire_shake(struct redis_wire *w);
/* Bytes, 0 = the server closed the connection, -EAGAIN, or another error. */
ssize_t redis_wire_read(struct redis_wire *w, void *p, size_t len);
ssize_t redis_wire_write(struct redis_wire *w, const void *p, size_t len);
/* EPOLLIN and EPOLLOUT: what the last call that returned -EAGAIN waits for. */
uint32_t redis_wire_wants(const struct redis_wire *w);
/* Why the last call failed, one line. */
const char *redis_wire_why(const struct redis_wire *w);

#endif
