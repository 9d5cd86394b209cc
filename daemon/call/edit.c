/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From what was agreed to how the SDP is changed on its way to the other side: our address and ports, the other side's
 * profile, our keys. Pure; the crypto lines live in the request's pool, which is wiped. */
#include "call/negotiate.h"

#include <errno.h>

static struct str write_line(struct pool *p, const struct sdes *s, const struct nego_in *in)
{
	struct sbuf b;
	struct str out;

	sbuf_init(&b, 0);
	/* Some phones cannot read keys without padding; none is known that cannot read it with. */
	sdes_write(&b, s, true, in->r->sdes.flags & NG_SDES_LIFETIME);
	out = b.err ? STR_NONE : pool_strdup(p, sbuf_view(&b));
	sbuf_fini(&b);
	return out;
}

static int write_lines(struct sdp_media_edit *me, struct pool *p, const struct sdes *s, uint32_t n,
	const struct nego_in *in)
{
	struct str *line = n ? pool_alloc(p, n * sizeof(*line)) : NULL;

	if (n && !line)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		line[i] = write_line(p, &s[i], in);
		if (!line[i].s)
			return -ENOMEM;
	}
	me->crypto = line;
	me->crypto_count = n;
	return 0;
}

static int edit_media(struct sdp_media_edit *me, struct pool *p, const struct nego_media *m,
	const struct nego_in *in, struct nego_port port, bool answer)
{
	const struct nego_end *to = &m->end[!in->from], *from = &m->end[in->from];

	me->keep = m->kept;
	if (m->kept)
		return 0;
	me->reject = from->rejected || (answer && to->rejected) || !m->wanted;
	me->drop_rtcp_mux = true;
	me->keep_feedback = sdp_proto_is_feedback(to->proto);
	if (me->reject)
		return 0;
	me->proto = to->proto;
	me->port = port.rtp;
	me->rtcp_mux = to->mux_ours;
	me->rtcp_full = ng_flag(in->r, NG_FLAG_FULL_RTCP_ATTRIBUTE);
	if (!ng_flag(in->r, NG_FLAG_NO_RTCP_ATTRIBUTE) && !(answer && to->mux))
		me->rtcp_port = port.rtcp;
	if (!answer)
		return write_lines(me, p, to->ours, to->ours_n, in);
	return write_lines(me, p, &to->tx, to->tx.master.suite != SUITE_PLAIN, in);
}

int nego_edit(struct sdp_edit *out, struct pool *p, const struct nego *n, const struct nego_in *in,
	const struct nego_port *port, bool answer)
{
	const struct ng_request *r = in->r;
	struct sdp_media_edit *me =
		pool_alloc(p, (in->sdp->media_count + 1) * sizeof(struct sdp_media_edit));
	struct endpoint forced;
	int err = me ? 0 : -ENOMEM;

	*out = (struct sdp_edit){.media = me, .remove_ice = true, .remove_dtls = true};
	out->addr = in->local[n->side[!in->from].local].advertised;
	if (r->media_address.len && endpoint_parse_addr(&forced, r->media_address) == 0)
		out->addr = forced;
	out->replace_origin = r->replace & (1u << NG_REPLACE_ORIGIN | 1u << NG_REPLACE_ORIGIN_FULL);
	if (r->replace & (1u << NG_REPLACE_ORIGIN_FULL | 1u << NG_REPLACE_USERNAME))
		out->origin_user = STR("-");
	if (r->replace & 1u << NG_REPLACE_SESSION_NAME)
		out->session_name = STR("-");
	out->keep_zero_conn = !(r->replace & 1u << NG_REPLACE_ZERO_ADDRESS);
	if (ng_flag(r, NG_FLAG_LOOP_PROTECT))
		out->loop_id = str_from(in->policy->loop_id);
	for (uint32_t i = 0; i < in->sdp->media_count && !err; i++)
		err = edit_media(&me[i], p, &n->media[i], in, port[i], answer);
	return err;
}
