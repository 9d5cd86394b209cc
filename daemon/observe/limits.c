/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Measures the machine's load once a second. Without hysteresis. CPU and bandwidth are means of
 * three seconds, so that one busy second refuses no call; the load average is a mean already. */
#include "observe/limits.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "call/call.h"

enum call_limit limits_step(struct limits *l, const struct limits_sample *s)
{
	uint32_t have = min_u32(l->samples, LIMITS_SAMPLES - 1);
	const struct limits_sample *then = &l->sample[(l->samples - have) % LIMITS_SAMPLES];

	l->load = s->load;
	l->cpu = l->bandwidth = 0;
	if (have && s->all > then->all && s->busy >= then->busy)
		l->cpu = 100.0 * (double)(s->busy - then->busy) / (double)(s->all - then->all);
	if (have && s->mono_ns > then->mono_ns && s->bytes >= then->bytes)
		l->bandwidth = (double)(s->bytes - then->bytes) * (double)NS_PER_SEC /
			(double)(s->mono_ns - then->mono_ns);
	l->sample[l->samples++ % LIMITS_SAMPLES] = *s;
	l->reached = l->draining                                              ? CALL_LIMIT_DRAIN
		: l->cfg.cpu > 0 && l->cpu > l->cfg.cpu                       ? CALL_LIMIT_CPU
		: l->cfg.load > 0 && l->load > l->cfg.load                    ? CALL_LIMIT_LOAD
		: l->cfg.bandwidth && l->bandwidth > (double)l->cfg.bandwidth ? CALL_LIMIT_BANDWIDTH
									      : CALL_LIMIT_NONE;
	return l->reached;
}

void limits_measure(struct limits_sample *s)
{
	uint64_t t[8] = {0}; /* user nice system idle iowait irq softirq steal: proc(5) */
	FILE *f = fopen("/proc/stat", "re");

	s->mono_ns = clock_mono_ns();
	if (f &&
		fscanf(f,
			"cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
			" %" SCNu64 " %" SCNu64,
			&t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]) >= 4) {
		for (int i = 0; i < 8; i++)
			s->all += t[i];
		s->busy = s->all - t[3] - t[4];
	}
	if (f)
		fclose(f);
	f = fopen("/proc/loadavg", "re");
	if (f && fscanf(f, "%lf", &s->load) != 1)
		s->load = 0;
	if (f)
		fclose(f);
}

const char *limits_text(const struct limits *l, enum call_limit which, char out[80])
{
	out[0] = 0;
	switch (which) {
	case CALL_LIMIT_CPU:
		snprintf(out, 80, "CPU %.1f %%, max-cpu %g", l->cpu, l->cfg.cpu);
		break;
	case CALL_LIMIT_LOAD:
		snprintf(out, 80, "load average %.2f, max-load %g", l->load, l->cfg.load);
		break;
	case CALL_LIMIT_BANDWIDTH:
		snprintf(out, 80, "%.0f bytes per second, max-bandwidth %" PRIu64, l->bandwidth,
			l->cfg.bandwidth);
		break;
	case CALL_LIMIT_DRAIN:
		snprintf(out, 80, "draining");
		break;
	default:
		break;
	}
	return out;
}
