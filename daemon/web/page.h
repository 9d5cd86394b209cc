/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clients with the page: snapshots, history, and requests to end a call. */
#ifndef WEB_PAGE_H
#define WEB_PAGE_H

#include "web/web.h"

void web_page_begin(struct web_client *c);
void web_page_end(struct web_client *c);
int web_page_second(struct web_client *c); /* -1: close */
int web_page_hear(struct web_client *c, struct str message);
void web_page_gone(struct web_client *c); /* the daemon */

#endif
