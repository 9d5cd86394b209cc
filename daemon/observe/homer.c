/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each worker queues reports in a bounded ring; twice a second they are sent. One walk over the
 * calls finds the calls of all streams. The socket never blocks: reports that the kernel does not
 * take are lost and counted. */
#include "observe/homer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "call/call.h"
#include "media/rtcp_stats.h"
#include "proto/hep.h"

#define PERIOD_NS (NS_PER_SEC / 2)
/* reports of a worker in that time: 5,000 calls with one in 5 s each way */
#define RING         1024u
#define LOG_EVERY_NS (60 * NS_PER_SEC)
#define MESSAGE_MAX  4096

struct owner { /* of a stream; valid while calls do not change */
	struct str call_id;
	struct local_port local;
};

struct homer {
	struct homer_config cfg;
	struct loop_timer *timer;
	struct ring *ring;   /* [workers] */
	struct owner *owner; /* [workers * max_stream] */
	int fd;
	struct homer_counters counters;
	struct log_limit log;
};

static void own(void *arg, struct str call_id, uint32_t worker, const struct relay_port *port)
{
	struct homer *h = arg;
	struct owner *o;

	if (worker >= h->cfg.workers || port->rtp_stream >= h->cfg.max_stream ||
		port->rtcp_stream >= h->cfg.max_stream)
		return;
	o = &h->owner[(size_t)worker * h->cfg.max_stream];
	o[port->rtp_stream] = (struct owner){call_id, port->rtp};
	o[port->rtcp_stream] = (struct owner){call_id, port->rtcp};
}

static void send_report(struct homer *h, const struct owner *o, const struct media_rtcp_report *r)
{
	uint8_t message[MESSAGE_MAX];
	uint64_t held;
	struct sbuf json;
	int len;

	sbuf_init(&json, MESSAGE_MAX / 2);
	hep_rtcp_json(&json, &r->info);
	struct hep hep = {
		.src = r->src,
		.t_ns = r->t_ns,
		.kind = HEP_RTCP_JSON,
		.capture_id = h->cfg.capture_id,
		.correlation = o->call_id,
		.payload = sbuf_view(&json),
	};
	if (o->local.addr < h->cfg.locals) {
		hep.dst = h->cfg.local[o->local.addr].addr;
		hep.dst.port = o->local.port;
	}
	if (hep.correlation.len > MESSAGE_MAX / 4)
		hep.correlation.len = MESSAGE_MAX / 4;
	len = json.err || !o->call_id.len ? -ENOENT : hep_write(message, sizeof(message), &hep);
	sbuf_fini(&json);
	if (len > 0 && send(h->fd, message, (size_t)len, MSG_NOSIGNAL) == len) {
		h->counters.sent++;
		return;
	}
	h->counters.failed++;
	if (len > 0 && log_limit_pass(&h->log, clock_mono_ns(), LOG_EVERY_NS, &held))
		log_warn("homer: cannot send reports: %s%s", strerror(errno),
			log_held((char[LOG_HELD]){0}, held));
}

static void on_period(void *arg)
{
	struct homer *h = arg;
	struct media_rtcp_report r;
	bool known = false;

	for (uint32_t w = 0; w < h->cfg.workers; w++)
		for (uint32_t i = 0; i < RING && ring_pop(&h->ring[w], &r); i++) {
			if (!known) {
				memset(h->owner, 0,
					sizeof(*h->owner) * h->cfg.workers * h->cfg.max_stream);
				calls_each_port(h->cfg.calls, own, h);
				known = true;
			}
			send_report(h, &h->owner[(size_t)w * h->cfg.max_stream + r.stream], &r);
		}
}

static int open_socket(struct homer *h)
{
	struct sockaddr_storage sa;
	socklen_t len = endpoint_to_sockaddr(&h->cfg.server, &sa);

	h->fd = socket(h->cfg.server.family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	return h->fd < 0 || connect(h->fd, (struct sockaddr *)&sa, len) ? -errno : 0;
}

int homer_create(struct homer **out, struct loop *loop, const struct homer_config *cfg, char *err,
	size_t err_len)
{
	struct homer *h = calloc(1, sizeof(*h));
	char text[ENDPOINT_STRLEN];
	int ret;

	if (!h)
		return -ENOMEM;
	h->cfg = *cfg;
	ret = open_socket(h);
	if (ret)
		snprintf(err, err_len, "--homer=%s: %s", endpoint_fmt(&cfg->server, text),
			strerror(-ret));
	h->ring = calloc(cfg->workers, sizeof(*h->ring));
	h->owner = calloc((size_t)cfg->workers * cfg->max_stream, sizeof(*h->owner));
	ret = !ret && (!h->ring || !h->owner) ? -ENOMEM : ret;
	for (uint32_t w = 0; w < cfg->workers && !ret; w++)
		ret = ring_init(&h->ring[w], RING, sizeof(struct media_rtcp_report));
	ret = ret ? ret : loop_timer_add(loop, &h->timer, PERIOD_NS, PERIOD_NS, on_period, h);
	if (ret) {
		homer_destroy(h);
		return ret;
	}
	for (uint32_t w = 0; w < cfg->workers; w++)
		media_rtcp_tap(cfg->worker[w]->media, &h->ring[w]);
	*out = h;
	return 0;
}

void homer_stop(struct homer *h)
{
	if (!h)
		return;
	loop_timer_remove(h->timer);
	h->timer = NULL;
}

void homer_destroy(struct homer *h)
{
	if (!h)
		return;
	homer_stop(h);
	for (uint32_t w = 0; w < h->cfg.workers && h->ring; w++)
		ring_fini(&h->ring[w]);
	if (h->fd >= 0)
		close(h->fd);
	free(h->ring);
	free(h->owner);
	free(h);
}

struct homer_counters homer_counters(const struct homer *h)
{
	return h->counters;
}
