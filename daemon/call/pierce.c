/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pierce-NAT: sends a few empty packets to the address in a terminal's SDP, to open its firewall
 * for media in both directions. Starts when a stream starts: with its first answer, and with each
 * later answered offer. Uses only the signalled address, never a terminal that must send first
 * (NAT-wait). Ends as soon as the terminal sends. Workers send the packets. */
#include "call/pierce.h"
#include "call/model.h"

#define PACKETS 3u /* some may be lost, or arrive before the terminal listens */

static uint64_t heard(const struct relay *relay, const struct call *c, uint32_t stream)
{
	struct relay_stats st;

	relay->ops->stats(relay->arg, c->worker, stream, &st);
	return st.packets;
}

static void command(struct media_cmd *cmd, uint32_t *n, uint32_t stream, uint64_t now_ns)
{
	cmd[*n] = (struct media_cmd){.type = MEDIA_STREAM_PIERCE, .id = stream, .now_ns = now_ns};
	(*n)++;
}

/* Sends one packet to each silent stream of a leg. */
static void pierce(const struct relay *relay, const struct call *c, struct leg *l, uint64_t now_ns)
{
	const uint32_t stream[2] = {l->port.rtp_stream, l->port.rtcp_stream};
	struct media_cmd cmd[2];
	uint32_t n = 0;

	l->pierce--;
	for (int rtcp = 0; rtcp < (l->mux ? 1 : 2); rtcp++)
		if (heard(relay, c, stream[rtcp]) == l->pierce_heard[rtcp])
			command(cmd, &n, stream[rtcp], now_ns);
	/* If the worker is busy, the next tick tries again. */
	if (n)
		(void)relay->ops->commit(relay->arg, c->worker, cmd, n);
	else
		l->pierce = 0;
}

void pierce_start(const struct relay *relay, struct call *c, uint64_t now_ns)
{
	for (uint32_t s = 0; s < c->sides; s++)
		for (uint32_t i = 0; i < c->side[s]->legs; i++) {
			struct leg *l = c->side[s]->leg[i];

			if (!l || !l->started || !l->committed)
				continue;
			l->pierce = 0;
			if (!c->side[s]->pierce || c->side[s]->nat_wait || !l->active)
				continue;
			l->pierce = PACKETS;
			l->pierce_heard[0] = heard(relay, c, l->port.rtp_stream);
			l->pierce_heard[1] = heard(relay, c, l->port.rtcp_stream);
			pierce(relay, c, l, now_ns);
		}
}

void pierce_again(const struct relay *relay, struct call *c, uint64_t now_ns)
{
	for (uint32_t s = 0; s < c->sides; s++)
		for (uint32_t i = 0; c->side[s]->pierce && i < c->side[s]->legs; i++) {
			struct leg *l = c->side[s]->leg[i];

			if (l && l->pierce && l->active && l->committed)
				pierce(relay, c, l, now_ns);
		}
}
