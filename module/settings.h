/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Module parameters, read-only once Kamailio has read its configuration; counters. */
#ifndef MODULE_SETTINGS_H
#define MODULE_SETTINGS_H

#include <core/counters.h>

struct wire_keys;

struct settings {
	int timeout_ms, retries;      /* per node: wait for a reply, then retry so often */
	int max_nodes;                /* nodes tried in turn for one request */
	int ping_interval, down_time; /* s */
	int affinity_timeout;         /* s */
	int receivers;                /* processes that continue suspended transactions */
	int slots;                    /* asynchronous requests in flight at once */
	char *node_line[64];          /* of the parameter node */
	int node_lines;
	char *nodes_file;
	char *ng_key_file;
	struct wire_keys *keys; /* of ng_key_file; NULL: requests are not signed */
	char *db_url, *db_table;
	int names;                /* send the user parts of From and To */
	char *emergency_fallback; /* "suites,rtp" */
	char *emergency_numbers;  /* regular expression for the user part of a request's URI */
	char *emergency_peers;    /* addresses and networks whose headers may mark a call */
	char *emergency_flags;    /* flags added to the script's */
	char *emergency_offer;    /* likewise, of the first offer of a call only */
};
extern struct settings settings;

/* X(id, description) */
#define COUNTERS(X)                                                                            \
	X(requests, "requests sent to daemons, retransmissions and further nodes not counted") \
	X(retransmissions, "datagrams sent again")                                             \
	X(replies, "requests answered")                                                        \
	X(failures, "requests that no node answered")                                          \
	X(refused, "requests answered with an error")                                          \
	X(load_limits, "replies that said load limit")                                         \
	X(failovers, "requests that went to a further node")                                   \
	X(suspended, "transactions suspended")                                                 \
	X(slots_full, "requests made synchronously because all slots were taken")              \
	X(stray_replies, "datagrams that answer nothing under way, or nothing at all")         \
	X(forged_replies, "replies that no key of ng_key_file signed")                         \
	X(garbage, "replies that could not be read")                                           \
	X(emergency_calls, "calls treated as emergency calls")                                 \
	X(emergency_widened, "messages of emergency calls whose limits on suites were lifted") \
	X(emergency_fallbacks, "fall-backs used for emergency calls")                          \
	X(policy_refused, "messages refused by the security policy")                           \
	X(calls_ended, "calls ended because their answer was refused")                         \
	X(policy_downgraded, "messages let through by the security policy with a warning")

struct counters {
#define X(id, text) counter_handle_t id;
	COUNTERS(X)
#undef X
};
extern struct counters counters;

#endif
