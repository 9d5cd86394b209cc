/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "steer/xdp/xdp_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

int xdp_log(enum libbpf_print_level level, const char *fmt, va_list args)
{
	char *text, *rest, *line;

	if (level == LIBBPF_DEBUG || log_level() < LOG_DEBUG || vasprintf(&text, fmt, args) < 0)
		return 0;
	rest = text;
	while ((line = strsep(&rest, "\n")))
		if (*line)
			log_debug("libbpf: %s", line);
	free(text);
	return 0;
}
