/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of packet verdicts. */
#include "packet/packet.h"

const char *packet_drop_name(enum packet_verdict v)
{
	static const char *const names[] = {
#define X(id, name, text) [PACKET_DROP_##id] = name,
		PACKET_DROPS(X)
#undef X
	};

	return v < PACKET_VERDICTS && names[v] ? names[v] : "";
}
