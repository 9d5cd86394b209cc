/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The host's end of xcipher-av (audio/decoder.h): starts it, and reads samples from a pipe. */
#include "audio/decoder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audio/clip.h"
#include "audio/decoded.h"
#include "base/bytes.h"
#include "base/clock.h"

enum { FIRST_ROOM = 1 << 20 /* samples */, MOST = AUDIO_CLIP_MAX / sizeof(int16_t) };

struct run {
	const struct audio_decoder *cfg;
	uint64_t end_ns;
	int pipe; /* not blocking */
	int16_t *pcm;
	size_t samples, room;
};

bool audio_decoder_knows(const uint8_t *b, size_t len)
{
	if (len < 4)
		return false;
	/* A frame of MPEG audio begins with eleven bits of 1; layer III is 01. */
	return memcmp(b, "OggS", 4) == 0 || memcmp(b, "ID3", 3) == 0 ||
		(b[0] == 0xff && (b[1] & 0xe0) == 0xe0 && (b[1] & 0x06) == 0x02);
}

/* --- The process ------------------------------------------------------------------------------ */

/* It gets the file, a pipe, no environment and no other descriptors. */
static int spawn(pid_t *pid, const char *program, int file, int out)
{
	char *argv[] = {(char *)program, NULL}, *env[] = {NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	int rc;

	if (!program[0])
		return -ENOPKG;
	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_adddup2(&actions, file, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	rc = posix_spawn(pid, program, &actions, &attr, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return rc == ENOENT || rc == EACCES || rc == ENOEXEC ? -ENOPKG : -rc;
}

/* Waits until the pipe has bytes. */
static int await(const struct run *r)
{
	struct pollfd p[] = {
		{.fd = r->pipe, .events = POLLIN}, {.fd = r->cfg->stop_fd, .events = POLLIN}};

	for (;;) {
		uint64_t now = clock_mono_ns();
		int n;

		if (now >= r->end_ns)
			return -ETIME;
		n = poll(p, ARRAY_LEN(p), (int)((r->end_ns - now) / 1000000 + 1));
		if (n < 0 && errno != EINTR)
			return -EIO;
		if (n > 0 && p[1].revents)
			return -ECANCELED;
		if (n > 0 && p[0].revents)
			return 0;
	}
}

static int take(const struct run *r, void *to, size_t len)
{
	uint8_t *at = to;

	while (len) {
		ssize_t n = read(r->pipe, at, len);
		int err = 0;

		if (n > 0) {
			at += n;
			len -= (size_t)n;
		} else if (n == 0) {
			return -EBADMSG; /* it crashed, or exceeded a limit */
		} else if (errno == EAGAIN) {
			err = await(r);
		} else if (errno != EINTR) {
			err = -EIO;
		}
		if (err)
			return err;
	}
	return 0;
}

/* --- Samples ---------------------------------------------------------------------------------- */

static int make_room(struct run *r, size_t n)
{
	size_t room = r->room ? r->room : FIRST_ROOM;
	int16_t *more;

	if (n > MOST || r->samples > MOST - n)
		return -EFBIG;
	while (room < r->samples + n)
		room *= 2;
	if (room == r->room)
		return 0;
	more = realloc(r->pcm, room * sizeof(*more));
	if (!more)
		return -ENOMEM;
	r->pcm = more;
	r->room = room;
	return 0;
}

static int error_of(int32_t n)
{
	return n == -ENOTSUP || n == -EFBIG || n == -ENOMEM ? n : -EBADMSG;
}

static int take_all(struct run *r, struct audio_clip **out)
{
	struct decoded_head head;
	struct decoded_block b = {.n = 1};
	int err = take(r, &head, sizeof(head));

	while (!err) {
		err = take(r, &b, sizeof(b));
		if (err || b.n <= 0)
			break;
		err = b.n > DECODED_BLOCK ? -EBADMSG : make_room(r, (size_t)b.n);
		err = err ? err : take(r, r->pcm + r->samples, (size_t)b.n * sizeof(*r->pcm));
		r->samples += err ? 0 : (size_t)b.n;
	}
	if (err)
		return err;
	if (b.n < 0)
		return error_of(b.n);
	if (!r->samples || head.rate < DECODED_MIN_RATE || head.rate > DECODED_MAX_RATE)
		return -EBADMSG;
	*out = audio_clip_create(head.rate, (uint32_t)r->samples);
	if (!*out)
		return -ENOMEM;
	memcpy((*out)->pcm, r->pcm, r->samples * sizeof(*r->pcm));
	return 0;
}

int audio_decoder_file(const struct audio_decoder *d, int file, struct audio_clip **out)
{
	struct run r = {.cfg = d, .end_ns = clock_mono_ns() + (uint64_t)d->limit_ms * 1000000};
	int pipes[2], err;
	pid_t pid = 0;

	if (lseek(file, 0, SEEK_SET) < 0 || pipe2(pipes, O_CLOEXEC))
		return -EIO;
	r.pipe = pipes[0];
	/* Only this end: the program must block when it is faster. */
	err = fcntl(r.pipe, F_SETFL, O_NONBLOCK) ? -EIO : spawn(&pid, d->program, file, pipes[1]);
	close(pipes[1]);
	if (!err) {
		err = take_all(&r, out);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	close(r.pipe);
	free(r.pcm);
	return err;
}

int audio_decoder_bytes(
	const struct audio_decoder *d, const uint8_t *bytes, size_t len, struct audio_clip **out)
{
	int fd = memfd_create("xcipher-av", MFD_CLOEXEC), err = 0;

	if (fd < 0)
		return -ENOMEM;
	while (len && !err) {
		ssize_t n = write(fd, bytes, len);

		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			err = -ENOMEM;
		}
	}
	err = err ? err : audio_decoder_file(d, fd, out);
	close(fd);
	return err;
}
