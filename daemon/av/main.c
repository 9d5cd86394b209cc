/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xcipher-av: decodes the audio file on its standard input (Ogg Opus, Ogg Vorbis or MP3, by
 * libavformat and libavcodec), and writes samples to its standard output (audio/decoded.h).
 * xcipherd starts it for each file (audio/decoder.c). It has no keys, because it is a program of
 * its own, and gives up all privileges before it reads the first byte. */
#include <errno.h>
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
#include <libswresample/swresample.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "audio/clip.h"
#include "audio/decoded.h"
#include "codec/helper_jail.h"

enum { CPU_SECONDS = 40, NICE = 10, BUFFER = 1 << 16, MOST = AUDIO_CLIP_MAX / sizeof(int16_t) };

struct av {
	AVFormatContext *format;
	AVCodecContext *codec;
	AVPacket *packet;
	AVFrame *frame;
	SwrContext *resampler;
	/* Format of the frames for which the resampler was opened. */
	AVChannelLayout layout;
	int sample_format, in_rate;
	int rate; /* of the output, Hz; 0: no frame yet */
	int stream;
	uint64_t samples;
};

/* --- Standard output -------------------------------------------------------------------------- */

/* If xcipherd has closed the pipe, nobody would read an error. */
static void put(const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	while (len) {
		ssize_t n = write(STDOUT_FILENO, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(1);
		at += n;
		len -= (size_t)n;
	}
}

static void put_block(const int16_t *pcm, int n)
{
	put(&(struct decoded_block){.n = n}, sizeof(struct decoded_block));
	if (n > 0)
		put(pcm, (size_t)n * sizeof(*pcm));
}

/* --- The file --------------------------------------------------------------------------------- */

static int read_bytes(void *opaque, uint8_t *to, int len)
{
	ssize_t n = read(STDIN_FILENO, to, (size_t)len);

	(void)opaque;
	return n > 0 ? (int)n : n == 0 ? AVERROR_EOF : AVERROR(EIO);
}

static int64_t seek(void *opaque, int64_t to, int whence)
{
	off_t size;

	(void)opaque;
	if (whence != AVSEEK_SIZE)
		return lseek(STDIN_FILENO, to, whence & ~AVSEEK_FORCE);
	to = lseek(STDIN_FILENO, 0, SEEK_CUR);
	size = lseek(STDIN_FILENO, 0, SEEK_END);
	return lseek(STDIN_FILENO, to, SEEK_SET) < 0 ? AVERROR(EIO) : size;
}

static int open_format(struct av *a)
{
	uint8_t *buffer = av_malloc(BUFFER);
	AVIOContext *io =
		buffer ? avio_alloc_context(buffer, BUFFER, 0, NULL, read_bytes, NULL, seek) : NULL;

	a->format = avformat_alloc_context();
	if (!io || !a->format)
		return -ENOMEM;
	a->format->pb = io;
	a->format->format_whitelist = av_strdup("ogg,mp3");
	a->format->codec_whitelist = av_strdup("opus,vorbis,mp3float");
	if (!a->format->format_whitelist || !a->format->codec_whitelist)
		return -ENOMEM;
	if (avformat_open_input(&a->format, "", NULL, NULL) < 0 ||
		avformat_find_stream_info(a->format, NULL) < 0)
		return -EBADMSG;
	a->stream = av_find_best_stream(a->format, AVMEDIA_TYPE_AUDIO, -1, -1, NULL, 0);
	return a->stream < 0 ? -ENOTSUP : 0;
}

static int open_codec(struct av *a)
{
	static const struct {
		enum AVCodecID id;
		const char *name;
	} codecs[] = {{AV_CODEC_ID_OPUS, "opus"}, {AV_CODEC_ID_VORBIS, "vorbis"},
		{AV_CODEC_ID_MP3, "mp3float"}};
	const AVCodecParameters *par = a->format->streams[a->stream]->codecpar;
	const AVCodec *codec = NULL;

	for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++)
		if (codecs[i].id == par->codec_id)
			codec = avcodec_find_decoder_by_name(codecs[i].name);
	if (!codec)
		return -ENOTSUP;
	a->codec = avcodec_alloc_context3(codec);
	a->packet = av_packet_alloc();
	a->frame = av_frame_alloc();
	if (!a->codec || !a->packet || !a->frame ||
		avcodec_parameters_to_context(a->codec, par) < 0)
		return -ENOMEM;
	a->codec->thread_count = 1;
	a->codec->pkt_timebase = a->format->streams[a->stream]->time_base;
	return avcodec_open2(a->codec, codec, NULL) < 0 ? -EBADMSG : 0;
}

/* --- Samples ---------------------------------------------------------------------------------- */

/* Converts n samples of each channel. With in NULL it writes what the resampler still holds. */
static int convert(struct av *a, const uint8_t **in, int n)
{
	int16_t pcm[DECODED_BLOCK];
	uint8_t *out = (uint8_t *)pcm;
	int got;

	/* The resampler keeps what does not fit into a block. */
	do {
		got = swr_convert(a->resampler, &out, DECODED_BLOCK, in, n);
		if (got < 0)
			return -EBADMSG;
		a->samples += (uint64_t)got;
		if (a->samples > MOST)
			return -EFBIG;
		if (got > 0)
			put_block(pcm, got);
		n = 0;
	} while (got == DECODED_BLOCK);
	return 0;
}

static bool is_new(const struct av *a)
{
	const AVFrame *f = a->frame;

	return !a->resampler || f->format != a->sample_format || f->sample_rate != a->in_rate ||
		av_channel_layout_compare(&f->ch_layout, &a->layout) != 0;
}

/* Mixes all channels into one, and limits the rate to those of clips. */
static int open_resampler(struct av *a)
{
	AVChannelLayout mono = AV_CHANNEL_LAYOUT_MONO;
	const AVFrame *f = a->frame;

	if (f->sample_rate <= 0 || f->ch_layout.nb_channels <= 0)
		return -EBADMSG;
	if (!a->rate) {
		a->rate = f->sample_rate < DECODED_MIN_RATE ? DECODED_MIN_RATE
			: f->sample_rate > DECODED_MAX_RATE ? DECODED_MAX_RATE
							    : f->sample_rate;
		put(&(struct decoded_head){.rate = (uint32_t)a->rate}, sizeof(struct decoded_head));
	}
	swr_free(&a->resampler);
	av_channel_layout_uninit(&a->layout);
	a->sample_format = f->format;
	a->in_rate = f->sample_rate;
	if (av_channel_layout_copy(&a->layout, &f->ch_layout) < 0 ||
		swr_alloc_set_opts2(&a->resampler, &mono, AV_SAMPLE_FMT_S16, a->rate, &a->layout,
			f->format, f->sample_rate, 0, NULL) < 0 ||
		swr_init(a->resampler) < 0)
		return -ENOTSUP;
	return 0;
}

/* Converts all frames that the codec has decoded. */
static int take_frames(struct av *a)
{
	int err = 0;

	while (!err && avcodec_receive_frame(a->codec, a->frame) >= 0) {
		if (is_new(a))
			err = open_resampler(a);
		err = err ? err
			  : convert(a, (const uint8_t **)a->frame->extended_data,
				    a->frame->nb_samples);
		av_frame_unref(a->frame);
	}
	return err;
}

/* Decodes the whole file. Skips damaged packets, as players do. */
static int decode(struct av *a)
{
	int err = 0;

	while (!err && av_read_frame(a->format, a->packet) >= 0) {
		if (a->packet->stream_index == a->stream &&
			avcodec_send_packet(a->codec, a->packet) >= 0)
			err = take_frames(a);
		av_packet_unref(a->packet);
	}
	if (!err && avcodec_send_packet(a->codec, NULL) >= 0)
		err = take_frames(a);
	if (!err && a->resampler)
		err = convert(a, NULL, 0);
	return err ? err : a->samples ? 0 : -EBADMSG;
}

int main(int argc, char **argv)
{
	struct av a = {0};
	struct stat st;
	int err;

	(void)argv;
	if (argc != 1 || fstat(STDIN_FILENO, &st) || !S_ISREG(st.st_mode) ||
		isatty(STDOUT_FILENO)) {
		fprintf(stderr,
			"xcipher-av: only xcipherd starts this program, see --play-decoder\n");
		return 2;
	}
	syscall(__NR_close_range, STDERR_FILENO + 1, ~0U, 0);
	/* Media come first, also where xcipherd runs above the normal priority. */
	(void)sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	if (jail_file(CPU_SECONDS))
		return 1;
	av_log_set_level(AV_LOG_QUIET);
	err = open_format(&a);
	err = err ? err : open_codec(&a);
	err = err ? err : decode(&a);
	if (!a.rate)
		put(&(struct decoded_head){.rate = DECODED_MIN_RATE}, sizeof(struct decoded_head));
	put_block(NULL, err);
	_exit(0); /* the process is all that is to be freed */
}
