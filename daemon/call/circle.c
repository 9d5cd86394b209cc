/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds media that goes in a circle through something that call/links.h cannot see: address
 * translation, echoing terminals, another relay. Packets in a circle mostly arrive faster than any
 * terminal sends; such a stream is watched for some seconds (media/again.c). To find slow circles,
 * every plain stream is watched from time to time. Ports that wait for the answer are checked,
 * too, because early media may circle. Authenticated SRTP needs no watch: its repeated packets are
 * dropped as replays. */
#include "call/circle.h"
#include "base/clock.h"
#include "call/model.h"

#define LOOK_NS     NS_PER_SEC
#define CIRCLE_PPS  400u               /* G.711 has 50 with 20 ms, 400 with 2.5 ms */
#define KERNEL_PPS  (4 * CIRCLE_PPS)   /* the kernel's counters may be read only once in 4 s */
#define WATCH_NS    (10 * NS_PER_SEC)  /* from one watch of a fast stream to the next */
#define NOW_THEN_NS (300 * NS_PER_SEC) /* from one watch of any other stream to the next */

/* Whether to watch the stream now. */
static bool look(const struct relay *relay, const struct call *c, struct leg *l, bool rtcp,
	uint64_t took_ns, uint64_t now_ns)
{
	uint64_t before = l->circle_packets[rtcp], since = now_ns - l->circle_watched_ns[rtcp];
	uint64_t now, rate;
	bool kernel, fast;

	now = relay->ops->arrived(
		relay->arg, c->worker, rtcp ? l->port.rtcp_stream : l->port.rtp_stream, &kernel);
	l->circle_packets[rtcp] = now;
	/* A rate needs two readings; this is the first one. */
	if (!before || now <= before)
		return false;
	rate = (now - before) * NS_PER_SEC / took_ns;
	fast = rate >= (kernel ? KERNEL_PPS : CIRCLE_PPS);
	if (since < (fast ? WATCH_NS : NOW_THEN_NS) || (kernel && !fast))
		return false;
	l->circle_watched_ns[rtcp] = now_ns;
	return true;
}

static void look_at(const struct relay *relay, const struct call *c, struct leg *l,
	uint64_t took_ns, uint64_t now_ns)
{
	const uint32_t stream[2] = {l->port.rtp_stream, l->port.rtcp_stream};
	struct media_cmd cmd[2];
	uint32_t n = 0;

	for (int rtcp = 0; rtcp < 2; rtcp++)
		if (look(relay, c, l, rtcp, took_ns, now_ns))
			cmd[n++] = (struct media_cmd){
				.type = MEDIA_STREAM_WATCH, .id = stream[rtcp], .now_ns = now_ns};
	/* If the worker's ring is full, the next tick tries again. */
	if (n && relay->ops->commit(relay->arg, c->worker, cmd, n))
		memset(l->circle_watched_ns, 0, sizeof(l->circle_watched_ns));
}

void circle_look(const struct relay *relay, struct call *c, uint64_t now_ns)
{
	uint64_t took_ns = now_ns - c->circle_ns;

	/* The clock may have been set back. */
	if (c->circle_ns && now_ns > c->circle_ns && took_ns < LOOK_NS)
		return;
	for (uint32_t s = 0; s < c->sides; s++)
		for (uint32_t i = 0; i < c->side[s]->legs; i++) {
			struct leg *l = c->side[s]->leg[i];

			if (!l || !l->has_port || !l->committed)
				continue;
			if (!l->rx.keys || l->rx.pass)
				look_at(relay, c, l, took_ns, now_ns);
		}
	c->circle_ns = now_ns;
}
