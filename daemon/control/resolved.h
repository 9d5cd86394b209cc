/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether a name of the operator's may be followed to the address that DNS answered: DNS is not the operator. */
#ifndef CONTROL_RESOLVED_H
#define CONTROL_RESOLVED_H

#include <curl/curl.h>

#include "base/endpoint.h"

struct resolved {
	bool (*may)(void *arg, const struct endpoint *e); /* NULL: to any */
	void *arg;
	bool refused; /* out: an address was not allowed */
};

/* The transfer asks before each connection, if the host of its URL is a name and not localhost. r lives as long as the transfer. */
void resolved_watch(CURL *c, const char *url, struct resolved *r);

#endif
