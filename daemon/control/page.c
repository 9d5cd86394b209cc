/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Snapshots for the web page. Everything in them is either ours or a string that the page shows as text; never a key: calls
 * come by the same trees as ng's query. */
#include "control/page.h"

#include <errno.h>

#include "base/clock.h"

static int write_and_free(struct pool *p, const struct ngval *tree, struct sbuf *out)
{
	int err = pool_failed(p) ? -ENOMEM : 0;

	if (!err)
		json_write(out, tree, false);
	pool_destroy(p);
	return err ? err : out->err;
}

int page_snapshot(const struct page_source *s, struct str look, uint64_t now_ns, struct sbuf *out)
{
	struct str call_id = look, filter = str_cut(&call_id, '\n');
	struct ngval *d;
	struct pool *p;
	int err = pool_create(&p, HANDLER_POOL_LIMIT);

	if (err)
		return err;
	d = ngval_dict(p);
	ngval_add_int(p, d, STR("now"), (int64_t)(now_ns / 1000000));
	if (s->fill)
		s->fill(s->arg, p, d);
	/* words that are no filter are a part of a Call-ID, blanks included */
	if (calls_view(s->calls, p, &(struct calls_look){.filter = filter, .limit = PAGE_CALLS},
		    now_ns, d))
		calls_view(s->calls, p, &(struct calls_look){.part = filter, .limit = PAGE_CALLS},
			now_ns, d);
	if (call_id.len) {
		struct ng_request r = {.command = NG_QUERY, .call_id = call_id};
		struct ngval *detail = ngval_add_dict(p, d, STR("detail"));
		struct call_reply reply = {0};

		ngval_add_str(p, detail, STR("id"), call_id);
		calls_query(s->calls, p, &r, now_ns, &reply, detail);
		ngval_add_int(p, detail, STR("gone"), reply.error != NULL);
	}
	return write_and_free(p, d, out);
}

int page_end_call(struct ng_front *f, struct str call_id, uint64_t now_ns, struct sbuf *out)
{
	struct sbuf request, reply;
	struct ngval *d;
	struct pool *p;
	int err = pool_create(&p, HANDLER_POOL_LIMIT);

	if (err)
		return err;
	sbuf_init(&request, 0);
	sbuf_init(&reply, 0);
	d = ngval_dict(p);
	ngval_add_str(p, d, STR("command"), STR("delete"));
	ngval_add_str(p, d, STR("call-id"), call_id);
	ngval_add_int(p, d, STR("delete delay"), 0);
	ngval_add_str(p, d, STR("flags"), STR("fast"));
	/* bencode: Call-IDs need not be UTF-8 */
	bencode_write(&request, d);
	err = request.err ? request.err : ng_front_plain(f, sbuf_view(&request), now_ns, &reply);
	d = ngval_dict(p);
	ngval_add_str(p, d, STR("ended"), call_id);
	ngval_add_int(p, d, STR("ok"),
		!err && reply.len && memmem(reply.p, reply.len, "6:result2:ok", 12) &&
			!memmem(reply.p, reply.len, "7:warning", 9));
	sbuf_fini(&request);
	sbuf_fini(&reply);
	return write_and_free(p, d, out);
}
