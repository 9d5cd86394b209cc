/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the locations of a SIP message (RFC 6442). */
#ifndef LOST_SOURCE_H
#define LOST_SOURCE_H

#include <core/parser/msg_parser.h>

#include "ask.h"

/* Appends the locations by value, then the references, each in the order of the Geolocation
 * headers. routing false: Geolocation-Routing counts for nothing. Returns their number. */
int source_collect(struct ask *a, struct sip_msg *msg, enum profile prefer);
/* "Geolocation-Routing: no": only an emergency call may be routed by its location. */
bool source_routing_denied(struct sip_msg *msg);
/* Services for which a location may always be used: sos and its tests, RFC 5031, RFC 6881. */
bool source_is_emergency(const char *service);

#endif
