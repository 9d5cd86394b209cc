/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Known answers for engines. */
#ifndef BATCH_SELFTEST_H
#define BATCH_SELFTEST_H

#include "batch/engine.h"

/* Tests an engine on known answers after it was opened, against srtp/ref: each suite that it
 * supports, RTP and RTCP, good and damaged packets. 0, or -EIO with a line in err. */
int batch_selftest(const struct engine_ops *ops, struct engine *e, char *err, size_t err_len);

#endif
