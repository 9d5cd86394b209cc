/* SPDX-License-Identifier: GPL-2.0-or-later */
/* AMR-WB by opencore-amr and vo-amrwbenc (RFC 4867): 6.6 to 23.85 kbit/s, with DTX. */
#include <opencore-amrwb/dec_if.h>
#include <vo-amrwbenc/enc_if.h>

#include "amr_rtp.h"

#define AMR_NAME   "AMR-WB"
#define AMR_PLUGIN "amrwb"
#define AMR_RATE   16000

static const struct amr_kind kind = {
	.bits = {132, 177, 253, 285, 317, 365, 397, 461, 477, 40},
	.bitrate = {6600, 8850, 12650, 14250, 15850, 18250, 19850, 23050, 23850},
	.modes = 9,
};

static void decode_frame(void *decoder, const uint8_t *in, int16_t *pcm)
{
	D_IF_decode(decoder, in, pcm, 0);
}

static void *encoder_init(int dtx)
{
	(void)dtx;
	return E_IF_init();
}

static void encode_frame(void *encoder, unsigned mode, const int16_t *pcm, uint8_t *out, bool dtx)
{
	E_IF_encode(encoder, (int)mode, pcm, out, dtx);
}

static const struct amr_library library = {
	.decoder = D_IF_init,
	.decoder_end = D_IF_exit,
	.decode = decode_frame,
	.encoder = encoder_init,
	.encoder_end = E_IF_exit,
	.encode = encode_frame,
};

#include "amr_plugin.h"
