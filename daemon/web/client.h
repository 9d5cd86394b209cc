/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of clients. */
#ifndef WEB_CLIENT_H
#define WEB_CLIENT_H

#include "web/web.h"

bool web_client_admit(struct web *w, int fd); /* makes room, or refuses */
struct web_client *web_client_open(struct web *w, struct lws *wsi);
void web_client_close(struct web_client *c); /* its wsi no longer exists */
void web_client_kill(struct web_client *c);  /* closes it soon, and serves nothing more */
void web_client_sweep(struct web *w);        /* closes clients that exceed a time limit */

#endif
