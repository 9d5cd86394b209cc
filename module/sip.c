/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads SIP messages with Kamailio's parser. Messages of a suspended transaction are in shared
 * memory: only headers parsed before the suspension are used. RFC 3261, RFC 3264 (who offers), RFC
 * 4412 (Resource-Priority), RFC 5031 (urn:service:sos). */
#include "sip.h"

#include <regex.h>
#include <stdlib.h>

#include <core/data_lump.h>
#include <core/dprint.h>
#include <core/ip_addr.h>
#include <core/mem/mem.h>
#include <core/parser/parse_body.h>
#include <core/parser/parse_content.h>
#include <core/parser/parse_cseq.h>
#include <core/parser/parse_from.h>
#include <core/parser/parse_to.h>
#include <core/parser/parse_uri.h>
#include <core/route.h>
#include <modules/tm/tm_load.h>

#include "settings.h"

extern struct tm_binds tmb;

static struct text text_of(str s)
{
	return (struct text){s.s, s.len > 0 ? (size_t)s.len : 0};
}

static bool is_request(const struct sip_msg *msg)
{
	return msg->first_line.type == SIP_REQUEST;
}

static struct text sdp_of(struct sip_msg *msg)
{
	int len = 0;
	char *s = get_body_part(msg, TYPE_APPLICATION, SUBTYPE_SDP, &len);

	return s && len > 0 ? (struct text){s, (size_t)len} : (struct text){NULL, 0};
}

/* Candidates of trickle ICE in an INFO (RFC 8840). Kamailio's parser does not know the type. */
static struct text fragment_of(struct sip_msg *msg)
{
	static const char type[] = "application/trickle-ice-sdpfrag";
	const size_t n = sizeof(type) - 1;
	char *body = parse_headers(msg, HDR_EOH_F, 0) == 0 ? get_body(msg) : NULL;
	struct text kind =
		msg->content_type ? text_of(msg->content_type->body) : (struct text){NULL, 0};

	if (!body || body >= msg->buf + msg->len || msg->REQ_METHOD != METHOD_INFO ||
		kind.len < n || !text_is((struct text){kind.s, n}, type) ||
		(kind.len > n && !strchr("; \t", kind.s[n])))
		return (struct text){NULL, 0};
	return (struct text){body, (size_t)(msg->buf + msg->len - body)};
}

/* The body up to that part, or after it. */
static struct text around(struct sip_msg *msg, struct text part, bool after)
{
	char *body = get_body(msg), *end = msg->buf + msg->len;

	if (!body || body >= end)
		return (struct text){NULL, 0};
	if (!part.len)
		return after ? (struct text){NULL, 0} : (struct text){body, (size_t)(end - body)};
	return after ? (struct text){part.s + part.len, (size_t)(end - part.s) - part.len}
		     : (struct text){body, (size_t)(part.s - body)};
}

/* Also finds SDP that Kamailio's parser misses, and treats malformed messages as if they had SDP:
 * sip_collect() refuses them. */
bool sip_has_sdp(struct sip_msg *msg)
{
	struct text sdp;

	if (parse_headers(msg, HDR_EOH_F, 0))
		return true;
	sdp = sdp_of(msg);
	return sdp.len || wire_has_sdp(around(msg, sdp, false));
}

/* Only the first SDP of a body is processed, so checks for a second one. The headers of the first
 * part, which name its type, precede it. */
static bool has_more_sdp(struct sip_msg *msg, struct text sdp)
{
	return wire_has_media(around(msg, sdp, false)) || wire_has_sdp(around(msg, sdp, true));
}

static struct text user_of(struct to_body *b)
{
	struct sip_uri u;

	return b && b->uri.len && parse_uri(b->uri.s, b->uri.len, &u) == 0 ? text_of(u.user)
									   : (struct text){NULL, 0};
}

/* The request of the transaction a reply belongs to; tm parsed it to its end before it cloned it.
 */
static struct sip_msg *request_of_reply(void)
{
	struct cell *t = tmb.t_gett();

	return t && t != T_UNDEFINED ? t->uas.request : NULL;
}

/* The request begins a dialog and has an offer. */
static bool is_initial_offer(struct sip_msg *req)
{
	return req->REQ_METHOD == METHOD_INVITE && req->to && get_to(req) &&
		!get_to(req)->tag_value.len && sdp_of(req).len;
}

/* A proxy before us may fork a call, so that only the Via branches of its INVITEs differ. The
 * daemon keeps the branches apart if the INVITE, its answers, and its CANCEL or failure name that
 * Via branch. Requests in a dialog have other Via branches, which identify nothing. */
static bool is_of_branch(struct sip_msg *msg, enum op op)
{
	struct sip_msg *req = is_request(msg) ? msg : request_of_reply();
	struct cell *t;
	bool is;

	if (op != OP_OFFER && op != OP_ANSWER && op != OP_DELETE)
		return false;
	if (!req) /* tm has forgotten it; requests within a dialog are not record-routed */
		return op == OP_ANSWER && msg->record_route;
	if (req->REQ_METHOD != METHOD_CANCEL)
		return is_initial_offer(req);
	t = tmb.t_lookup_original(req);
	if (!t || t == T_UNDEFINED)
		return false;
	is = t->uas.request && is_initial_offer(t->uas.request);
	tmb.unref_cell(t);
	return is;
}

static struct text branch_of(struct sip_msg *msg, enum op op, const char *via)
{
	int number = *via == '1'                 ? 1
		: *via == '2'                    ? 2
		: !strcmp(via, "auto")           ? 1 + !is_request(msg)
		: !*via && is_of_branch(msg, op) ? 1 + !is_request(msg)
						 : 0;
	struct via_body *v = NULL;

	if (number == 1)
		v = msg->via1;
	else if (number == 2 && parse_headers(msg, HDR_VIA2_F, 0) == 0)
		v = msg->via2;
	return v && v->branch ? text_of(v->branch->value) : (struct text){NULL, 0};
}

/* Names of the parties are sent once per call: with the offer of an INVITE that begins a dialog, or
 * of its reply. */
static void names(struct wire_request *r, struct sip_msg *msg, enum op op)
{
	struct sip_msg *req = is_request(msg) ? msg : request_of_reply();

	if (!settings.names || op != OP_OFFER || !req || req->REQ_METHOD != METHOD_INVITE ||
		!req->to || !get_to(req) || get_to(req)->tag_value.len)
		return;
	r->from_name = user_of(get_from(msg));
	r->to_name = user_of(get_to(msg));
}

/* The daemon needs the offerer's tag. It is the From of a request, but the To if the offer came in
 * a reply or this is the answer in a request (ACK, PRACK). */
static void tags(struct wire_request *r, enum op op, struct text from, struct text to)
{
	bool swap = op == OP_ANSWER ? !r->reply : r->reply;

	r->from_tag = swap ? to : from;
	r->to_tag = swap ? from : to;
}

int sip_collect(
	struct wire_request *r, struct sip_msg *msg, enum op op, const char *via, const char **why)
{
	*r = (struct wire_request){
		.command = op_name(op == OP_FRAGMENT ? OP_OFFER : op), .reply = !is_request(msg)};
	if (r->reply)
		r->code = msg->first_line.u.reply.statuscode;
	*why = "malformed SIP message";
	if (parse_headers(msg, HDR_EOH_F, 0) < 0 || !msg->callid || parse_from_header(msg) < 0 ||
		!msg->to || !get_to(msg))
		return -1;
	r->call_id = text_of(msg->callid->body);
	tags(r, op, text_of(get_from(msg)->tag_value), text_of(get_to(msg)->tag_value));
	r->via_branch = branch_of(msg, op, via);
	*why = "no Call-ID or no From tag";
	if (!r->call_id.len || !r->from_tag.len)
		return -1;
	r->received_from = (struct text){ip_addr2a(&msg->rcv.src_ip), 0};
	r->received_from.len = strlen(r->received_from.s);
	r->ipv6 = msg->rcv.src_ip.af == AF_INET6;
	if (op == OP_FRAGMENT)
		r->sdp = fragment_of(msg);
	if (!op_has_sdp(op))
		return 0;
	r->sdp = sdp_of(msg);
	*why = "no SDP, or in a part of the body that cannot be replaced";
	if (!r->sdp.len)
		return -1;
	*why = "more than one SDP in the body";
	if (has_more_sdp(msg, r->sdp))
		return -1;
	names(r, msg, op);
	*why = "no To tag";
	return op == OP_ANSWER && !r->to_tag.len ? -1 : 0;
}

/* The earlier replacement of this body, so that a failure route sees the request route's result. Of
 * two replacements of one body Kamailio writes only the first. NULL: none. */
static struct lump *replaced(const struct sip_msg *msg, struct text old)
{
	for (struct lump *l = msg->body_lumps; l; l = l->next)
		if (l->op == LUMP_DEL && l->u.offset == old.s - msg->buf && l->after &&
			l->after->op == LUMP_ADD && l->after->flags & LUMPFLAG_SHMEM)
			return l->after;
	return NULL;
}

int sip_replace_body(struct sip_msg *msg, struct text sdp)
{
	struct text old = sdp_of(msg);
	struct lump *at;
	char *copy;

	if (!old.len)
		return -1;
	at = replaced(msg, old);
	if (at && (size_t)at->len < sdp.len)
		return -1; /* it stays in shared memory as long as the message */
	if (at) {
		memcpy(at->u.value, sdp.s, sdp.len);
		at->len = (int)sdp.len;
		return 0;
	}
	copy = pkg_malloc(sdp.len + 1);
	if (!copy)
		return -1;
	memcpy(copy, sdp.s, sdp.len);
	copy[sdp.len] = 0;
	at = del_lump(msg, (int)(old.s - msg->buf), (int)old.len, 0);
	if (at && insert_new_lump_after(at, copy, (int)sdp.len, 0))
		return 0;
	wire_wipe(copy, sdp.len);
	pkg_free(copy);
	return -1;
}

static bool header_says(
	const struct hdr_field *h, const char *name, const char *value, bool anywhere)
{
	size_t n = strlen(value);

	if (!text_is(text_of(h->name), name))
		return false;
	for (int i = 0; i + (int)n <= h->body.len; i++) {
		if (text_is((struct text){h->body.s + i, n}, value) &&
			(anywhere || (i == 0 && h->body.len == (int)n)))
			return true;
	}
	return false;
}

/* --- Emergency calls -------------------------------------------------------------------------- */

#define PEERS_MAX 32

static struct {
	bool numbers_set;
	regex_t numbers;
	int count;
	struct net peer[PEERS_MAX];
} emergency; /* constant once processes are forked */

int sip_emergency_init(void)
{
	char *copy = settings.emergency_peers ? strdup(settings.emergency_peers) : NULL,
	     *save = NULL;
	int err = 0;

	for (char *w = copy ? strtok_r(copy, ", \t", &save) : NULL; w && !err;
		w = strtok_r(NULL, ", \t", &save)) {
		str net = {w, (int)strlen(w)};

		err = emergency.count == PEERS_MAX ||
			mk_net_str(&emergency.peer[emergency.count++], &net) < 0;
		if (err)
			LM_ERR("emergency_peers: \"%s\" is not an address or network, or the list is too long\n",
				w);
	}
	free(copy);
	if (!err && settings.emergency_numbers) {
		err = regcomp(
			&emergency.numbers, settings.emergency_numbers, REG_EXTENDED | REG_NOSUB);
		emergency.numbers_set = !err;
		if (err)
			LM_ERR("emergency_numbers: \"%s\" is not a regular expression\n",
				settings.emergency_numbers);
	}
	return err ? -1 : 0;
}

void sip_emergency_destroy(void)
{
	if (emergency.numbers_set)
		regfree(&emergency.numbers);
	emergency.numbers_set = false;
}

/* "sip:112@..." or "tel:112" as it was dialled. A location service may have replaced it by a
 * stranger's contact. */
static bool is_number(struct text uri)
{
	const char *colon = uri.len ? memchr(uri.s, ':', uri.len) : NULL;
	char user[64];
	size_t n = 0;

	if (!emergency.numbers_set || !colon)
		return false;
	for (const char *p = colon + 1; p < uri.s + uri.len && !strchr("@;:", *p); p++) {
		if (n + 1 == sizeof(user))
			return false;
		user[n++] = *p;
	}
	user[n] = 0;
	return regexec(&emergency.numbers, user, 0, NULL, 0) == 0;
}

static bool is_peer(struct sip_msg *msg)
{
	for (int i = 0; i < emergency.count; i++)
		if (matchnet(&msg->rcv.src_ip, &emergency.peer[i]) == 1)
			return true;
	return false;
}

static bool is_marked(struct sip_msg *msg)
{
	if (policy_sos(text_of(get_to(msg)->uri)))
		return true;
	for (const struct hdr_field *h = msg->headers; h; h = h->next)
		if (header_says(h, "Priority", "emergency", false) ||
			header_says(h, "Resource-Priority", "esnet.", true))
			return true;
	return false;
}

bool sip_is_emergency(struct sip_msg *msg)
{
	struct sip_msg *req = is_request(msg) ? msg : request_of_reply();
	struct text uri;

	/* Within a dialog the URI is the other side's contact, which that side chooses. */
	if (!req || !req->to || !get_to(req) || get_to(req)->tag_value.len)
		return false;
	uri = text_of(req->first_line.u.request.uri);
	return policy_sos(uri) || is_number(uri) || (is_peer(req) && is_marked(req));
}

/* --- Operation that a message needs ----------------------------------------------------------- */

static bool manage_reply(enum op *op, struct sip_msg *msg)
{
	struct sip_msg *req = request_of_reply();
	int code = msg->first_line.u.reply.statuscode;

	if (code < 300) {
		if (!sip_has_sdp(msg))
			return false;
		*op = req && !sdp_of(req).len ? OP_OFFER : OP_ANSWER;
		return true;
	}
	/* A refused re-INVITE leaves the call unchanged, and other forked branches may still
	 * answer. */
	*op = OP_DELETE;
	return req && req->REQ_METHOD == METHOD_INVITE && req->to && !get_to(req)->tag_value.len &&
		tmb.t_gett()->nr_of_outgoings == 1;
}

/* A refused or cancelled re-INVITE leaves the call unchanged. */
static bool in_dialog(struct sip_msg *msg)
{
	return parse_headers(msg, HDR_TO_F, 0) == 0 && msg->to && get_to(msg) &&
		get_to(msg)->tag_value.len;
}

bool sip_manage(enum op *op, struct sip_msg *msg)
{
	struct cell *t = tmb.t_gett();
	/* A continued request runs as if in a failure route. */
	bool continued = t && t != T_UNDEFINED && (t->flags & T_ASYNC_CONTINUE);

	if (!is_request(msg))
		return manage_reply(op, msg);
	*op = OP_DELETE;
	if (msg->REQ_METHOD == METHOD_BYE)
		return true;
	if ((is_route_type(FAILURE_ROUTE) && !continued) || msg->REQ_METHOD == METHOD_CANCEL)
		return !in_dialog(msg);
	*op = OP_FRAGMENT;
	if (msg->REQ_METHOD == METHOD_INFO)
		return fragment_of(msg).len && in_dialog(msg);
	*op = msg->REQ_METHOD & (METHOD_ACK | METHOD_PRACK) ? OP_ANSWER : OP_OFFER;
	return (msg->REQ_METHOD & (METHOD_INVITE | METHOD_UPDATE | METHOD_ACK | METHOD_PRACK)) &&
		sip_has_sdp(msg);
}
