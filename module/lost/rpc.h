/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The RPC commands xlost.show, xlost.cache and xlost.clear. */
#ifndef LOST_RPC_H
#define LOST_RPC_H

#include <core/rpc.h>

extern rpc_export_t rpc_exports[];

#endif
