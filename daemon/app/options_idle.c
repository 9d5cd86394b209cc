/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds options that were set but have no effect, because another option disables the part that
 * they configure. */
#include "app/options_int.h"

/* X(option, condition under which it has an effect, option that it needs). o: the options. */
#define IDLE(X)                                                                          \
	X("udp-io", o->steering == &steer_udp, "--steering=udp")                         \
	X("nfqueue-num", uses_queue(o), "--steering=nfqueue or kernel")                  \
	X("nfqueue-send", uses_queue(o), "--steering=nfqueue or kernel")                 \
	X("nfqueue-fail-open", uses_queue(o), "--steering=nfqueue or kernel")            \
	X("kernel-relay", o->steering == &steer_kernel, "--steering=kernel")             \
	X("kernel-ring", o->steering == &steer_kernel, "--steering=kernel")              \
	X("kernel-port-rate", o->steering == &steer_kernel, "--steering=kernel")         \
	X("source-rate", o->steering != &steer_udp, "--steering=nfqueue, kernel or xdp") \
	X("xdp-interface", o->steering == &steer_xdp, "--steering=xdp")                  \
	X("xdp-mode", o->steering == &steer_xdp, "--steering=xdp")                       \
	X("opencl-device", o->engine != ENGINE_SERIAL, "--engine=auto or opencl")        \
	X("opencl-min", o->engine != ENGINE_SERIAL, "--engine=auto or opencl")           \
	X("opencl-timeout", o->engine != ENGINE_SERIAL, "--engine=auto or opencl")       \
	X("opencl-start-timeout", o->engine != ENGINE_SERIAL, "--engine=auto or opencl") \
	X("opencl-fallback", o->engine != ENGINE_SERIAL, "--engine=auto or opencl")      \
	X("batches-in-flight", o->engine != ENGINE_SERIAL, "--engine=auto or opencl")    \
	X("ng-unix-group", o->listen_ng_unix[0], "--listen-ng-unix")                     \
	X("homer-id", o->homer.family, "--homer")                                        \
	X("xmlrpc-format", o->b2b_url[0], "--b2b-url")                                   \
	X("b2b-allow", o->b2b_url[0], "--b2b-url")                                       \
	X("dtls-profiles", o->keying_threads, "--keying-threads=1 or more")              \
	X("dtls-sha1", o->keying_threads, "--keying-threads=1 or more")                  \
	X("zrtp-disclosure", o->keying_threads, "--keying-threads=1 or more")            \
	X("mikey", o->mikey_config[0], "--mikey-config")                                 \
	X("mikey-state", o->mikey_config[0], "--mikey-config")                           \
	X("zrtp-cache-key", o->zrtp_cache[0], "--zrtp-cache")                            \
	X("zrtp-cache-size", o->zrtp_cache[0], "--zrtp-cache")                           \
	X("zrtp-cache-days", o->zrtp_cache[0], "--zrtp-cache")                           \
	X("zrtp-preshared", o->zrtp_cache[0], "--zrtp-cache")                            \
	X("redis-write", redis_server_is_set(&o->redis), "--redis")                      \
	X("redis-password-file", redis_server_is_set(&o->redis), "--redis")              \
	X("redis-key-file", redis_server_is_set(&o->redis), "--redis")                   \
	X("redis-expires", redis_server_is_set(&o->redis), "--redis")                    \
	X("recording-format", o->recording_dir[0], "--recording-dir")                    \
	X("output-mixed", o->recording_dir[0], "--recording-dir")                        \
	X("output-single", o->recording_dir[0], "--recording-dir")                       \
	X("mix-method", o->output_mixed, "--output-mixed=yes")                           \
	X("resample-to", o->output_mixed || o->output_single,                            \
		"--output-mixed=yes or --output-single=yes")                             \
	X("output-format", o->output_mixed || o->output_single,                          \
		"--output-mixed=yes or --output-single=yes")                             \
	X("recording-max-age", o->recording_dir[0], "--recording-dir")                   \
	X("recording-max-size", o->recording_dir[0], "--recording-dir")

/* The steering kernel falls back to netfilter queues. */
static bool uses_queue(const struct options *o)
{
	return o->steering == &steer_nfqueue || o->steering == &steer_kernel;
}

/* NULL: the option has an effect. */
static const char *lacks(const struct options *o, const char *name)
{
#define X(option, effect, needs)       \
	if (strcmp(name, option) == 0) \
		return (effect) ? NULL : needs;
	IDLE(X)
#undef X
	return NULL;
}

void options_idle(const struct options *o,
	void (*idle)(void *arg, const char *name, const char *needs), void *arg)
{
	struct options defaults = {0};

	if (options_defaults(&defaults))
		for (size_t i = 0; i < OPTION_ROWS; i++) {
			const struct option_row *row = &option_rows[i];
			const char *needs = lacks(o, row->name);

			if (needs && option_differs(row, o, &defaults))
				idle(arg, row->name, needs);
		}
	options_free(&defaults);
}
