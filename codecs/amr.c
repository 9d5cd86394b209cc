/* SPDX-License-Identifier: GPL-2.0-or-later */
/* AMR by opencore-amr (RFC 4867): 4.75 to 12.2 kbit/s, with DTX. */
#include <opencore-amrnb/interf_dec.h>
#include <opencore-amrnb/interf_enc.h>

#include "amr_rtp.h"

#define AMR_NAME   "AMR"
#define AMR_PLUGIN "amr"
#define AMR_RATE   8000

static const struct amr_kind kind = {
	.bits = {95, 103, 118, 134, 148, 159, 204, 244, 39},
	.bitrate = {4750, 5150, 5900, 6700, 7400, 7950, 10200, 12200},
	.modes = 8,
};

static void decode_frame(void *decoder, const uint8_t *in, int16_t *pcm)
{
	Decoder_Interface_Decode(decoder, in, pcm, 0);
}

static void encode_frame(void *encoder, unsigned mode, const int16_t *pcm, uint8_t *out, bool dtx)
{
	int16_t frame[AMR_RATE / 50]; /* the library clears the low bits of its input */

	(void)dtx;
	memcpy(frame, pcm, sizeof(frame));
	Encoder_Interface_Encode(encoder, (enum Mode)mode, frame, out, 0);
}

static const struct amr_library library = {
	.decoder = Decoder_Interface_init,
	.decoder_end = Decoder_Interface_exit,
	.decode = decode_frame,
	.encoder = Encoder_Interface_init,
	.encoder_end = Encoder_Interface_exit,
	.encode = encode_frame,
	.dtx_at_start = true,
};

#include "amr_plugin.h"
