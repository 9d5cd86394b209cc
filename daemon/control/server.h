/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ng over UDP. Control thread only. */
#ifndef CONTROL_SERVER_H
#define CONTROL_SERVER_H

#include "control/ng_dispatch.h"

struct ng_server;

/* Binds and opens; port 0 takes a free one. On error, returns -errno and sets *err to one line. The
 * dispatch must outlive the server. */
int ng_server_create(struct ng_server **out, const struct endpoint *listen,
	struct ng_dispatch *dispatch, char *err, size_t err_len);
void ng_server_destroy(struct ng_server *s);

/* Drops datagrams whose source is a media port of this relay, by is_media(), and counts them.
 * Somebody made the relay send them. */
void ng_server_refuse(
	struct ng_server *s, bool (*is_media)(void *arg, const struct endpoint *from), void *arg);

/* Counts and logs datagrams that the kernel dropped because the receive buffer was full. Call it
 * each second. now_ns: CLOCK_MONOTONIC. */
void ng_server_tick(struct ng_server *s, uint64_t now_ns);
/* Descriptor to poll for reading. */
int ng_server_fd(const struct ng_server *s);
/* Its address, with the port that the kernel chose if 0 was asked for. */
struct endpoint ng_server_local(const struct ng_server *s);
/* Reads up to 512 datagrams from the socket and executes up to 64 requests; sources take turns.
 * True: requests still wait, so call it again after other events. now_ns: CLOCK_REALTIME. */
bool ng_server_readable(struct ng_server *s, uint64_t now_ns);

#endif
