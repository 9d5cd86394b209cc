/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks addresses that DNS returns for a host name in an operator's URL. The operator chose the
 * name, not the address. */
#ifndef CONTROL_RESOLVED_H
#define CONTROL_RESOLVED_H

#include <curl/curl.h>

#include "base/endpoint.h"

struct resolved {
	bool (*may)(void *arg, const struct endpoint *e); /* NULL: to any */
	void *arg;
	bool refused; /* out: an address was not allowed */
};

/* Makes the transfer check each address before it connects, if the host of url is a name other than
 * localhost. r must live as long as the transfer. */
void resolved_watch(CURL *c, const char *url, struct resolved *r);

#endif
