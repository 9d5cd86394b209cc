/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "observe/mikey.h"

#include <stdio.h>

#include "observe/metrics_int.h"

static const char *const roles[] = {"responder", "initiator"};

static const char *mode(uint32_t m)
{
	return m < MIKEY_MODE_COUNT ? mikey_mode_name((enum mikey_mode)m) : "unknown";
}

static const char *result(uint32_t f)
{
	return f == MIKEY_OK ? "completed" : mikey_failure_name((enum mikey_failure)f);
}

void mikey_stats(const struct mikey_host *h, struct pool *p, struct ngval *dict)
{
	struct ngval *d = ngval_add_dict(p, dict, STR("MIKEY"));

	ngval_add_int(p, d, STR("peers"), mikey_config_peers(h->config));
	ngval_add_int(p, d, STR("waiting"), h->talks);
	for (uint32_t m = 0; m <= MIKEY_MODE_COUNT; m++)
		for (uint32_t role = 0; role < 2; role++)
			for (uint32_t f = 0; f < MIKEY_FAIL_COUNT; f++)
				if (h->count[m][role][f])
					ngval_add_int(p, d,
						pool_printf(p, "%s %s %s", mode(m), roles[role],
							result(f)),
						(int64_t)h->count[m][role][f]);
}

/* Failures that never happened have no sample. */
void mikey_metrics(const struct mikey_host *h, struct sbuf *b)
{
	char labels[128];

	metrics_family(b, "mikey_exchanges_total", COUNTER,
		"MIKEY exchanges that ended, by mode, our role and result.");
	for (uint32_t m = 0; m <= MIKEY_MODE_COUNT; m++)
		for (uint32_t role = 0; role < 2; role++)
			for (uint32_t f = 0; f < MIKEY_FAIL_COUNT; f++) {
				if (f != MIKEY_OK && !h->count[m][role][f])
					continue;
				snprintf(labels, sizeof(labels),
					"mode=\"%s\",role=\"%s\",result=\"%s\"", mode(m),
					roles[role], result(f));
				metrics_u64(
					b, "mikey_exchanges_total", labels, h->count[m][role][f]);
			}
	metrics_one(
		b, "mikey_waiting", GAUGE, "MIKEY exchanges kept for their other half.", h->talks);
}
