/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests over WebSocket. */
#ifndef WEB_WS_H
#define WEB_WS_H

#include "web/web.h"

/* 0: continue; 1: refused; -1: close */
int web_ws_confirm(struct web_client *c, const char *upgrade);
int web_ws_open(struct web_client *c, const char *protocol);
int web_ws_receive(struct web_client *c, struct str bytes);
int web_ws_write(struct web_client *c);
void web_ws_send(struct web_client *c, enum lws_write_protocol type, struct str text);
/* Starts the closing handshake; returns -1. */
int web_ws_close(struct web_client *c, enum lws_close_status code, const char *reason);

#endif
