/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher.show, ping, enable, disable, reload. */
#ifndef MODULE_RPC_H
#define MODULE_RPC_H

#include <core/rpc.h>

extern rpc_export_t rpc_exports[];

#endif
