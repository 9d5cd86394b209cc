/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets of several sessions that wait to be encoded together, for codecs that have encode_batch.
 * audio/tx.c adds them. A session has one at most, because its next packet needs the state of the
 * encoder. */
#ifndef AUDIO_TX_BATCH_H
#define AUDIO_TX_BATCH_H

#include "audio/tx.h"

#define TX_BATCH     16u  /* packets */
#define TX_BATCH_PCM 480u /* samples of a packet; longer ones are encoded at once */

struct audio_tx_batch {
	uint32_t n;
	struct {
		struct audio_tx *tx;
		uint64_t t_ns;
		uint32_t ts;
		bool marker;
	} item[TX_BATCH];
	struct codec_stream *stream[TX_BATCH];
	struct xcipher_codec_job job[TX_BATCH];
	int16_t pcm[TX_BATCH][TX_BATCH_PCM];
	uint8_t out[TX_BATCH][2 * TX_BATCH_PCM];
};

#endif
