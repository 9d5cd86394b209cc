/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ports: gives the sockets to the worker, and the handles of two streams to the call. */
#include "bridge/bridge_int.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define FOREIGN_LOG_NS (3600 * NS_PER_SEC)

static int port_undo(struct bridge *r, const struct ports_pair *pair, int err)
{
	close(pair->rtp_fd);
	close(pair->rtcp_fd);
	ports_put(r->cfg.ports, pair->rtp, clock_mono_ns());
	return err;
}

/* Gives the sockets to the worker, and two stream handles to the call. */
static int port_publish(
	struct bridge *r, uint32_t worker, const struct ports_pair *pair, struct relay_port *out)
{
	struct bridge_site *s = &r->site[worker];
	struct worker_cmd cmd[2];
	int err;

	memset(cmd, 0, sizeof(cmd));
	cmd[0].kind = cmd[1].kind = WORKER_PORT_ADD;
	cmd[0].more = true;
	cmd[0].local = pair->rtp;
	cmd[0].fd = pair->rtp_fd;
	cmd[1].local = pair->rtcp;
	cmd[1].fd = pair->rtcp_fd;
	err = bridge_queue(r, s, cmd, 2);
	if (err)
		return port_undo(r, pair, err);
	out->rtp = pair->rtp;
	out->rtcp = pair->rtcp;
	handles_take(&s->streams, &out->rtp_stream);
	handles_take(&s->streams, &out->rtcp_stream);
	bridge_touch(s, MEDIA_HANDLE_STREAM, out->rtp_stream);
	bridge_touch(s, MEDIA_HANDLE_STREAM, out->rtcp_stream);
	s->ports++;
	return 0;
}

/* Usually a second daemon with the same port range: both take each other's ports, unnoticed until
 * one finds none. */
static void warn_foreign(struct bridge *r)
{
	uint64_t n = ports_foreign_count(r->cfg.ports), held;

	if (n == r->foreign)
		return;
	r->foreign = n;
	if (log_limit_pass(&r->foreign_log, clock_mono_ns(), FOREIGN_LOG_NS, &held))
		log_warn(
			"another program uses ports between port-min and port-max, perhaps another xcipherd: they are skipped. Give each program a range of its own");
}

int bridge_op_port_take(void *arg, struct relay_port *out, uint32_t worker, uint8_t local)
{
	struct bridge *r = arg;
	struct ports_pair pair;
	int err;

	if (r->site[worker].streams.n < 2)
		return bridge_shortage(r, SHORT_PORTS, -ENOSPC);
	if (r->emergency)
		err = ports_take(r->cfg.ports, local, worker, clock_mono_ns(), &pair);
	else
		err = ports_take_ordinary(r->cfg.ports, local, worker, clock_mono_ns(), &pair);
	warn_foreign(r);
	if (err == -ENOSPC)
		return bridge_shortage(r, SHORT_PORTS, -ENOSPC);
	if (err == -EMFILE)
		return bridge_shortage(r, SHORT_FILES, -ENOSPC);
	if (err == -ENOBUFS || err == -ENOMEM)
		return bridge_shortage(r, SHORT_MEMORY, -ENOSPC);
	if (err)
		return err;
	return port_publish(r, worker, &pair, out);
}

int bridge_op_port_take_more(void *arg, struct relay_port *out, uint32_t worker, uint8_t local)
{
	struct bridge *r = arg;
	struct ports_pair pair;
	int err = r->site[worker].streams.n < 2
		? -ENOSPC
		: ports_take_plenty(r->cfg.ports, local, worker, clock_mono_ns(), &pair);

	warn_foreign(r);
	return err ? err : port_publish(r, worker, &pair, out);
}

int bridge_op_port_take_at(
	void *arg, struct relay_port *out, uint32_t *worker, uint8_t local, uint16_t rtp_port)
{
	struct bridge *r = arg;
	struct local_port at = {.port = rtp_port, .addr = local};
	struct ports_pair pair;
	uint32_t owner;
	int err = ports_take_at(r->cfg.ports, at, &owner, &pair);

	if (err)
		return err;
	if (*worker == UINT32_MAX)
		*worker = owner;
	err = *worker != owner && r->cfg.ports_bound_to_workers ? -EXDEV
		: r->site[*worker].streams.n < 2                ? -ENOSPC
								: 0;
	return err ? port_undo(r, &pair, err) : port_publish(r, *worker, &pair, out);
}

/* The acknowledgement carries the port as one number: local address and even port. */
static uint32_t port_id(struct local_port p)
{
	return (uint32_t)p.addr << 16 | p.port;
}

void bridge_op_port_release(void *arg, uint32_t worker, const struct relay_port *port)
{
	struct bridge *r = arg;
	struct bridge_site *s = &r->site[worker];
	const uint32_t stream[] = {port->rtp_stream, port->rtcp_stream};
	const struct local_port local[] = {port->rtp, port->rtcp};

	offload_release(r->offload, worker, port->rtp_stream);
	offload_release(r->offload, worker, port->rtcp_stream);
	for (int i = 0; i < 2; i++) {
		struct worker_cmd del = {.kind = WORKER_MEDIA};

		del.media.type = MEDIA_STREAM_DEL;
		del.media.id = stream[i];
		s->sent.has_stream[stream[i]] = false;
		bridge_push_deletion(r, s, &del);
	}
	for (int i = 0; i < 2; i++) {
		struct worker_cmd del = {.kind = WORKER_PORT_DEL};

		del.local = local[i];
		del.id = port_id(local[i]);
		bridge_push_deletion(r, s, &del);
	}
}

void bridge_port_closed(struct bridge *r, struct bridge_site *s, uint32_t id, uint64_t now_ns)
{
	struct local_port rtp = {
		.port = (uint16_t)((id & 0xffff) - 1), .addr = (uint8_t)(id >> 16)};

	/* The odd port goes last: then both sockets are closed. */
	if (!(id & 1))
		return;
	ports_put(r->cfg.ports, rtp, now_ns);
	s->ports--;
}
