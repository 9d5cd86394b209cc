/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parameters of the module, read-only once Kamailio has read its configuration; what all processes
 * share; counters. */
#ifndef LOST_SETTINGS_H
#define LOST_SETTINGS_H

#include <core/counters.h>
#include <core/locking.h>

#include "cache.h"
#include "http.h"
#include "query.h"

#define CLIENTS_MAX 16

struct settings {
	char *server_url[SERVERS_MAX], *lis_url[SERVERS_MAX];
	char *redirect[SERVERS_MAX];
	int servers, lises, redirects;
	int timeout, connect_timeout, deadline, down_time; /* ms */
	char *ca_file, *cert_file, *key_file;
	int verify, allow_http_reference, recursive, discover, log_location;
	char *reference_hosts;
	char *boundary_name, *prefer_name;
	int max_redirects, max_response;
	int cache_entries, cache_size /* KiB */, cache_max_age /* s */;
	int clients, queries;
	int keep_exchanges; /* octets */
	enum boundary boundary;
	enum profile prefer;
};
extern struct settings settings;

/* Checks all parameters and resolves names. Returns 0, or -1 after an error in the log. */
int settings_check(void);

struct shared {
	gen_lock_t lock; /* of the cache */
	struct cache cache;
	struct server server[SERVERS_MAX], lis[SERVERS_MAX];
	int in_flight;  /* atomic */
	int references; /* of these, those that may fetch a location by a caller's URI; atomic */
	int pipe[CLIENTS_MAX][2];
};
extern struct shared *shared;

/* X(id, description) */
#define COUNTERS(X)                                                                               \
	X(requests, "functions called that need an answer")                                       \
	X(cache_hits, "answers from the cache")                                                   \
	X(cache_misses, "places that no cached boundary covers")                                  \
	X(cache_ambiguous, "places that several cached boundaries cover")                         \
	X(cache_inserted, "mappings stored in the cache")                                         \
	X(boundaries_fetched, "boundaries fetched by reference")                                  \
	X(boundaries_refused,                                                                     \
		"boundaries that do not cover the place they were sent for, or cannot be judged") \
	X(exchanges, "HTTP requests sent")                                                        \
	X(failed_exchanges, "HTTP requests without a usable answer")                              \
	X(failovers, "functions that needed more than one server")                                \
	X(answered, "functions that succeeded")                                                   \
	X(no_answer, "functions that no server answered")                                         \
	X(no_location, "functions without a usable location")                                     \
	X(refused, "functions that a server answered with an error")                              \
	X(references_failed, "location references that could not be fetched")                     \
	X(suspended, "transactions suspended")                                                    \
	X(waited, "functions for which a SIP worker waited")                                      \
	X(busy, "functions refused because too many were in flight")                              \
	X(gone, "answers whose transaction had ended")

struct counters {
#define X(id, text) counter_handle_t id;
	COUNTERS(X)
#undef X
};
extern struct counters counters;

#endif
