/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What libbpf says. */
#ifndef STEER_XDP_XDP_LOG_H
#define STEER_XDP_XDP_LOG_H

#include <bpf/libbpf.h>

/* For libbpf_set_print(): writes its warnings to the log, at level debug. These include the
 * kernel's reasons for refusing a program, a line each. Always 0. */
int xdp_log(enum libbpf_print_level level, const char *fmt, va_list args);

#endif
