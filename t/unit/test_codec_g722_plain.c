/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tests of test_codec_g722.c on the variant for processors without SSE2. */
#define G722_PLAIN 1
#include "codec/g722.c"      /* NOLINT(bugprone-suspicious-include) */
#include "test_codec_g722.c" /* NOLINT(bugprone-suspicious-include) */
