/* SPDX-License-Identifier: GPL-2.0-or-later */
/* URLs of LoST servers in DNS replies (U-NAPTR: RFC 5222 section 4, RFC 4848). Pure. */
#ifndef LOST_NAPTR_H
#define LOST_NAPTR_H

#include <stddef.h>
#include <stdint.h>

#define NAPTR_NAME_MAX 256

struct naptr {
	char url[NAPTR_NAME_MAX]; /* "": none; https: only */
	char next
		[NAPTR_NAME_MAX]; /* if there is no URL: the name to look up instead, "" for none */
	uint32_t ttl;             /* s */
};

/* The best record for LoST over HTTPS in a reply. Returns 0, or -1 if there is none. */
int naptr_read(const uint8_t *reply, size_t len, struct naptr *out);

#endif
