/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The RPC commands; they run in Kamailio's RPC processes (ctl, jsonrpcs), never in a SIP worker. */
#include "rpc.h"

#include <stdlib.h>

#include <core/str.h>

#include "call.h"
#include "health.h"
#include "settings.h"

static const char *state_of(const struct node *n)
{
	return !n->enabled ? "disabled" : n->down_until > now_ms() ? "down" : "up";
}

static void show(rpc_t *rpc, void *ctx)
{
	struct node *list = calloc(NODES_MAX, sizeof(*list));
	int n = list ? nodes_copy(list, NODES_MAX) : 0;
	void *h;

	for (int i = 0; i < n; i++) {
		struct node *d = &list[i];

		if (rpc->add(ctx, "{", &h) < 0)
			break;
		rpc->struct_add(h, "sudsdddddd", "node", d->id, "set", d->set, "weight",
			(int)d->weight, "state", state_of(d), "sent", (int)d->sent, "answered",
			(int)d->answered, "timeouts", (int)d->timeouts, "refused", (int)d->refused,
			"load_limit", (int)d->load_limit, "under_way", async_in_use());
	}
	free(list);
}

static void ping(rpc_t *rpc, void *ctx)
{
	int asked = 0, answered = health_round(&asked);
	void *h;

	if (rpc->add(ctx, "{", &h) == 0)
		rpc->struct_add(h, "dd", "nodes", asked, "answered", answered);
}

static void enable_or(rpc_t *rpc, void *ctx, bool on)
{
	str id;

	if (rpc->scan(ctx, "S", &id) < 1) {
		rpc->fault(ctx, 400, "which node? (as xcipher.show names it, or all)");
		return;
	}
	if (!nodes_enable((struct text){id.s, (size_t)id.len}, on))
		rpc->fault(ctx, 404, "no such node");
}

static void enable(rpc_t *rpc, void *ctx)
{
	enable_or(rpc, ctx, true);
}

static void disable(rpc_t *rpc, void *ctx)
{
	enable_or(rpc, ctx, false);
}

static void reload(rpc_t *rpc, void *ctx)
{
	int n;
	void *h;

	if (!settings.nodes_file && !settings.db_url) {
		rpc->fault(ctx, 400, "there is neither nodes_file nor db_url");
		return;
	}
	n = nodes_load_all(true);
	if (n < 0)
		rpc->fault(ctx, 500, "the list has an error, see the log; nothing was changed");
	else if (rpc->add(ctx, "{", &h) == 0)
		rpc->struct_add(h, "d", "nodes", n);
}

static const char *show_doc[] = {"All nodes: set, weight, state, counts", 0};
static const char *ping_doc[] = {"Ping all nodes now", 0};
static const char *enable_doc[] = {"Let a node (or all) take calls again", 0};
static const char *disable_doc[] = {"Give a node (or all) no new calls", 0};
static const char *reload_doc[] = {"Read nodes_file and the database again", 0};

rpc_export_t rpc_exports[] = {
	{"xcipher.show", show, show_doc, RET_ARRAY},
	{"xcipher.ping", ping, ping_doc, 0},
	{"xcipher.enable", enable, enable_doc, 0},
	{"xcipher.disable", disable, disable_doc, 0},
	{"xcipher.reload", reload, reload_doc, 0},
	{0, 0, 0, 0},
};
