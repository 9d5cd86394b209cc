/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The compiled XDP program (bpf/xdp_prog.c), an ELF file that the Makefile embeds. */
#ifndef STEER_XDP_XDP_OBJECT_H
#define STEER_XDP_XDP_OBJECT_H

#include <stddef.h>

extern const unsigned char xdp_object[];
extern const size_t xdp_object_len;

#endif
