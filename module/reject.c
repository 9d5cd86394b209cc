/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rejects answers that the daemon or the policy refused, so that no call continues around the
 * gateway. The callee gets ACK and BYE in the caller's name (RFC 3261 13.2.2.4, 15). The caller
 * gets the refusal as if the callee had sent it, so failure routes work: tm reads the status again
 * after the reply route. The BYE goes where the INVITE went or came from, which is right behind NAT
 * and for TLS. Route names further proxies. */
#include "reject.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <core/data_lump.h>
#include <core/dprint.h>
#include <core/forward.h>
#include <core/ip_addr.h>
#include <core/mem/mem.h>
#include <core/parser/contact/parse_contact.h>
#include <core/parser/parse_cseq.h>
#include <core/parser/parse_from.h>
#include <core/parser/parse_rr.h>
#include <core/parser/parse_to.h>
#include <core/parser/parse_uri.h>
#include <modules/tm/tm_load.h>

#include "call.h"
#include "settings.h"
#include "sip.h"

extern struct tm_binds tmb;

/* Higher than the CSeq of any request of the callee, which the proxy has not recorded. */
#define CSEQ_HIGH 0x40000000u

struct leg {
	str target;               /* the Contact */
	struct to_body *us, *far; /* From and To of the request to send */
	unsigned cseq;            /* of the INVITE */
	char dst[96];
	struct socket_info *sock;
	char headers[2048];
};

/* Parsed into a copy: the message may be in shared memory, where pointers of this process must not
 * remain. */
static bool contact_of(str *out, struct sip_msg *msg)
{
	struct hdr_field copy;
	contact_body_t *b;
	bool found;

	if (!msg->contact)
		return false;
	copy = *msg->contact;
	copy.parsed = NULL;
	if (parse_contact(&copy) < 0)
		return false;
	b = copy.parsed;
	found = b && b->contacts;
	if (found)
		*out = b->contacts->uri;
	free_contact(&b);
	return found;
}

static void write_dst(char *out, size_t size, const struct ip_addr *ip, int port, int proto)
{
	bool v6 = ip->af == AF_INET6;

	snprintf(out, size, "sip:%s%s%s:%d;transport=%s", v6 ? "[" : "", ip_addr2a((void *)ip),
		v6 ? "]" : "", port,
		proto == PROTO_TLS                                ? "tls"
			: proto == PROTO_TCP                      ? "tcp"
			: proto == PROTO_WS || proto == PROTO_WSS ? "ws"
								  : "udp");
}

static bool is_us(const str *uri)
{
	struct sip_uri u;

	return parse_uri(uri->s, uri->len, &u) == 0 && check_self(&u.host, u.port_no, 0) == 1;
}

/* The proxies between us and the callee: the entries above our own Record-Route, the nearest
 * last. */
static void write_routes(struct leg *leg, struct sip_msg *msg)
{
	str found[16];
	size_t len = 0;
	bool ours = false;
	int n = 0;

	for (struct hdr_field *h = msg->record_route; h && !ours; h = next_sibling_hdr(h)) {
		rr_t *list = NULL;

		if (parse_rr_body(h->body.s, h->body.len, &list) < 0)
			return;
		for (rr_t *r = list; r && !ours; r = r->next) {
			ours = n == 16 || is_us(&r->nameaddr.uri);
			if (!ours)
				found[n++] = r->nameaddr.uri;
		}
		free_rr(&list);
	}
	while (n-- > 0 && len < sizeof(leg->headers))
		len += (size_t)snprintf(leg->headers + len, sizeof(leg->headers) - len,
			"Route: <%.*s>\r\n", found[n].len, found[n].s);
	if (len >= sizeof(leg->headers))
		leg->headers[0] = 0;
}

static void send_in_dialog(struct leg *leg, str call_id, const char *name, unsigned cseq)
{
	str method = {(char *)name, (int)strlen(name)};
	str headers = {leg->headers, (int)strlen(leg->headers)};
	uac_req_t request;
	dlg_t dlg;

	memset(&dlg, 0, sizeof(dlg));
	dlg.id = (dlg_id_t){
		.call_id = call_id, .rem_tag = leg->far->tag_value, .loc_tag = leg->us->tag_value};
	dlg.loc_seq.value = cseq;
	dlg.loc_seq.is_set = 1;
	dlg.loc_uri = leg->us->uri;
	dlg.rem_uri = leg->far->uri;
	dlg.rem_target = leg->target;
	dlg.dst_uri = (str){leg->dst, (int)strlen(leg->dst)};
	dlg.state = DLG_CONFIRMED;
	dlg.send_sock = leg->sock;
	dlg.hooks.request_uri = &dlg.rem_target;
	dlg.hooks.next_hop = &dlg.dst_uri;
	memset(&request, 0, sizeof(request));
	request.method = &method;
	request.headers = &headers;
	request.dialog = &dlg;
	if (tmb.t_request_within(&request) < 0)
		LM_ERR("%s of call %.*s could not be sent\n", name, call_id.len, call_id.s);
}

static void end_callee(struct sip_msg *msg, struct cell *t, int branch, const char *why, bool ack)
{
	const struct dest_info *d = &t->uac[branch].request.dst;
	struct leg leg = {.us = get_from(msg), .far = get_to(msg), .sock = d->send_sock};
	struct ip_addr ip;

	if (!contact_of(&leg.target, msg)) {
		LM_ERR("no Contact to end the call by\n");
		return;
	}
	su2ip_addr(&ip, (void *)&d->to);
	write_dst(leg.dst, sizeof(leg.dst), &ip, su_getport(&d->to), d->proto);
	str2int(&get_cseq(msg)->number, &leg.cseq);
	write_routes(&leg, msg);
	if (ack)
		send_in_dialog(&leg, msg->callid->body, "ACK", leg.cseq);
	snprintf(leg.headers + strlen(leg.headers), sizeof(leg.headers) - strlen(leg.headers), "%s",
		why);
	send_in_dialog(&leg, msg->callid->body, "BYE", leg.cseq);
}

static void end_caller(struct sip_msg *msg, struct sip_msg *req, const char *why)
{
	struct leg leg = {.us = get_to(msg), .far = get_from(msg), .sock = req->rcv.bind_address};

	if (!contact_of(&leg.target, req))
		return;
	write_dst(leg.dst, sizeof(leg.dst), &req->rcv.src_ip, req->rcv.src_port, req->rcv.proto);
	snprintf(leg.headers, sizeof(leg.headers), "%s", why);
	send_in_dialog(&leg, msg->callid->body, "BYE", CSEQ_HIGH);
}

static void remove_header(struct sip_msg *msg, const struct hdr_field *h)
{
	if (h)
		del_lump(msg, (int)(h->name.s - msg->buf), h->len, 0);
}

static void remove_body(struct sip_msg *msg)
{
	char *body = get_body(msg);

	if (!body || body >= msg->buf + msg->len)
		return;
	del_lump(msg, (int)(body - msg->buf), (int)(msg->buf + msg->len - body), 0);
	remove_header(msg, msg->content_type);
}

int reject_sdp(struct sip_msg *msg)
{
	struct cell *t = tmb.t_gett();

	if (msg->first_line.type != SIP_REPLY || parse_headers(msg, HDR_EOH_F, 0) < 0 ||
		!get_cseq(msg))
		return -1;
	if (t && t != T_UNDEFINED && msg->first_line.u.reply.statuscode < 300 &&
		get_cseq(msg)->method_id & (METHOD_INVITE | METHOD_UPDATE))
		return 1;
	if (sip_has_sdp(msg))
		remove_body(msg);
	return 1;
}

static int rewrite(struct sip_msg *msg, int code, const char *reason)
{
	str *status = &msg->first_line.u.reply.status, *phrase = &msg->first_line.u.reply.reason;
	int len = (int)strlen(reason);
	struct lump *at = del_lump(msg, (int)(phrase->s - msg->buf), phrase->len, 0);
	char *copy = at ? pkg_malloc((size_t)len + 1) : NULL;

	if (!copy)
		return -1;
	memcpy(copy, reason, (size_t)len + 1);
	if (!insert_new_lump_after(at, copy, len, 0)) {
		pkg_free(copy);
		return -1;
	}
	msg->first_line.u.reply.statuscode = (unsigned)code;
	status->s[0] = (char)('0' + code / 100);
	status->s[1] = (char)('0' + code / 10 % 10);
	status->s[2] = (char)('0' + code % 10);
	return 1;
}

/* tm ends the branch parameter of its Via with ".", the branch's number in hexadecimal. */
static int branch_of(const struct sip_msg *msg)
{
	const struct via_param *p = msg->via1 ? msg->via1->branch : NULL;
	int n = 0;

	if (!p || p->value.len < 2)
		return -1;
	for (int i = p->value.len - 1, shift = 0; i > 0 && shift < 12; i--, shift += 4) {
		char c = p->value.s[i];

		if (c == '.')
			return n;
		n |= (c >= 'a' ? c - 'a' + 10 : c - '0') << shift;
	}
	return -1;
}

/* Text behind the last header field. */
static int add_header(struct sip_msg *msg, const char *name, const char *value)
{
	struct lump *at = anchor_lump(msg, (int)(msg->unparsed - msg->buf), 0, 0);
	size_t size = strlen(name) + strlen(value) + sizeof(": \r\n");
	char *text = at ? pkg_malloc(size) : NULL;

	if (!text)
		return -1;
	snprintf(text, size, "%s: %s\r\n", name, value);
	if (insert_new_lump_before(at, text, (int)size - 1, 0))
		return 1;
	pkg_free(text);
	return -1;
}

int reject_reply(struct sip_msg *msg, int code, const char *reason, const char *warning)
{
	struct cell *t = tmb.t_gett();
	int status, branch = branch_of(msg);
	char why[256];
	bool invite;

	if (msg->first_line.type != SIP_REPLY || code < 300 || code > 699 ||
		parse_headers(msg, HDR_EOH_F, 0) < 0 || !get_cseq(msg) ||
		parse_from_header(msg) < 0 || !get_to(msg))
		return -1;
	status = (int)msg->first_line.u.reply.statuscode;
	if (status >= 300)
		return -1;
	remove_body(msg);
	if (status < 200 || !t || t == T_UNDEFINED)
		return 1; /* without a transaction: a 200 repeated because of its lost ACK */
	invite = get_cseq(msg)->method_id == METHOD_INVITE;
	if (branch < 0 || branch >= t->nr_of_outgoings ||
		(!invite && get_cseq(msg)->method_id != METHOD_UPDATE))
		return -1;
	LM_NOTICE("call %.*s: its answer is refused, %d %s: %s\n", msg->callid->body.len,
		msg->callid->body.s, code, reason, last.reason);
	counter_inc(counters.calls_ended);
	snprintf(why, sizeof(why), "Reason: SIP;cause=%d;text=\"%.*s\"\r\n", code,
		(int)strcspn(reason, "\"\\\r\n"), reason);
	end_callee(msg, t, branch, why, invite);
	if (t->uas.request && t->uas.request->to && get_to(t->uas.request)->tag_value.len)
		end_caller(msg, t->uas.request, why);
	if (warning[0] && add_header(msg, "Warning", warning) < 0)
		LM_ERR("no memory for a Warning header field\n");
	return rewrite(msg, code, reason);
}
