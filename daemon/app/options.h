/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options: long options on the command line, also keys of section [xcipher] in an ini file. The
 * parser, --help and the check of the man page use one table. Names are rtpengine's where they mean
 * the same. */
#ifndef APP_OPTIONS_H
#define APP_OPTIONS_H

#include <stdio.h>

#include "observe/limits.h"
#include "record/record_file.h"
#include "base/endpoint.h"
#include "call/call.h"
#include "codec/registry.h"
#include "persist/redis_server.h"
#include "steer/steer.h"

/* Where our packages put plug-ins, and the program that tests and isolates them. */
#define CODEC_FOLDER "/usr/lib/xcipher/codecs"
#define CODEC_WORKER "/usr/lib/xcipher/xcipher-codec-worker"
/* The program that decodes Opus and MP3 files. */
#define PLAY_DECODER "/usr/lib/xcipher/xcipher-av"

/* X(name, when, kind, field, default, argument, help) when: LIVE: changes apply to a running daemon
 * (options_live.c); START: changes need a restart. */
#define OPTIONS(X)                                                                                  \
	X("config-file", START, CONFIG, config_file, "/etc/xcipher/xcipherd.conf", "FILE|none",     \
		"ini file with options, section [xcipher]")                                         \
	X("interface", START, INTERFACE, local, "", "[NAME/]ADDR[!ADVERTISED]",                     \
		"local address for media; repeatable; ALIAS=NAME gives NAME another name")          \
	X("listen-ng", START, ENDPOINT, listen_ng, "127.0.0.1:22222", "ADDR:PORT",                  \
		"receives ng commands by UDP; keep this address private, or set --ng-key-file too") \
	X("listen-tcp-ng", START, LISTEN, listen_tcp_ng, "off", "ADDR:PORT|off",                    \
		"receives ng commands by TCP, messages back to back")                               \
	X("ng-key-file", START, STRING, ng_key_file, "", "FILE",                                    \
		"keys that must sign ng commands by UDP and TCP; default: unsigned")                \
	X("listen-ng-unix", START, STRING, listen_ng_unix, "", "PATH",                              \
		"Unix socket on which xcipher-web forwards ng commands; default: none")             \
	X("ng-unix-group", START, STRING, ng_unix_group, "", "GROUP",                               \
		"members of this group may connect to --listen-ng-unix; default: root only")        \
	X("homer", START, LISTEN, homer, "off", "ADDR:PORT|off",                                    \
		"send RTCP reports to this Homer server, too (HEP by UDP)")                         \
	X("homer-id", START, UINT32, homer_id, "2001", "N", "capture id of these reports")          \
	X("media-allow", START, SOME_NETS, media_allow, "none", "NETWORK,...|none",                 \
		"exceptions: loopback, multicast or own addresses that media may be sent to")       \
	X("media-deny", START, NETS, media_deny, "none", "NETWORK,...|none",                        \
		"networks that media are never sent to, even if --media-allow names them")          \
	X("port-min", START, PORT, port_min, "30000", "PORT", "lowest local media port")            \
	X("port-max", START, PORT, port_max, "39999", "PORT", "highest local media port")           \
	X("steering", START, STEERING, steering, "udp", "udp|nfqueue|kernel|xdp",                   \
		"receive packets by sockets, netfilter, nf_xcipher or AF_XDP; all but udp as root") \
	X("udp-io", START, UDP_IO, udp_io, "auto", "auto|uring|plain",                              \
		"system calls for udp; auto = io_uring if the kernel allows it, else plain")        \
	X("nfqueue-num", START, UINT16, nfqueue_num, "220", "N",                                    \
		"first netfilter queue; worker w uses queue N + w")                                 \
	X("nfqueue-send", START, QUEUE_SEND, queue_send, "auto", "auto|raw|verdict",                \
		"how results are sent: by raw socket, or as verdict (the host must forward)")       \
	X("nfqueue-fail-open", START, BOOL, queue_fail_open, "yes", "yes|no",                       \
		"queue full: yes = fall back to sockets, no = drop and count")                      \
	X("kernel-relay", START, BOOL, kernel_relay, "yes", "yes|no",                               \
		"with --steering=kernel, relay plain media in the kernel unless recorded")          \
	X("kernel-ring", START, BOOL, kernel_ring, "yes", "yes|no",                                 \
		"with --steering=kernel, packets use a ring in memory, not a netlink queue")        \
	X("kernel-port-rate", START, UINT32, kernel_port_rate, "5000", "PACKETS",                   \
		"with --steering=kernel, most packets per second to one port; 0 = no limit")        \
	X("media-rate", START, UINT32, media_rate, "5000", "PACKETS",                               \
		"most packets per second from a terminal to one media port; 0 = no limit")          \
	X("source-rate", START, UINT32, source_rate, "0", "PACKETS",                                \
		"most packets per second from one source address; 0 = no limit; not for udp")       \
	X("kernel-source-rate", START, UINT32, source_rate, "0", "PACKETS",                         \
		"older name of --source-rate")                                                      \
	X("xdp-source-rate", START, UINT32, source_rate, "0", "PACKETS",                            \
		"older name of --source-rate")                                                      \
	X("xdp-interface", START, NAMES, xdp_interfaces, "", "NAME[,NAME...]",                      \
		"network cards for xdp; default: those of the local addresses")                     \
	X("xdp-mode", START, XDP_MODE, xdp_mode, "auto", "auto|zerocopy|copy|skb",                  \
		"how xdp uses a card; auto = the fastest mode that works")                          \
	X("engine", START, ENGINE, engine, "auto", "auto|opencl|serial",                            \
		"encryption engine; auto = opencl if a device works, else serial")                  \
	X("opencl-device", START, DEVICES, device, "", "DEVICE[:WEIGHT],...",                       \
		"devices by name, cpu, gpu or index; WEIGHT = share of the batches")                \
	X("opencl-min", START, MINS, opencl_min, "0", "PACKETS,...",                                \
		"smallest batch for a device, for all or each; 0 = measure at start")               \
	X("opencl-timeout", START, UINT16, opencl_timeout, "1000", "MILLISECONDS",                  \
		"time limit of a batch on a GPU; a slower GPU is no longer used")                   \
	X("opencl-start-timeout", START, UINT16, opencl_start_timeout, "60", "SECONDS",             \
		"time limit for the start of each device, tested in a child process")               \
	X("opencl-fallback", START, BOOL, opencl_fallback, "no", "yes|no",                          \
		"start without a named device that is missing; no = refuse to start")               \
	X("batches-in-flight", START, UINT16, batches_in_flight, "0", "N",                          \
		"batches per worker on a device at once; 0 = 2 for a GPU, 1 for a CPU")             \
	X("workers", START, UINT16, workers, "0", "N",                                              \
		"packet threads; 0 = one per processor, with xdp at most one per queue")            \
	X("batch-max", START, UINT16, batch_max, "256", "PACKETS", "largest batch")                 \
	X("batch-window", START, UINT32, batch_window, "250", "MICROSECONDS",                       \
		"longest wait for a batch to gather under load; 0 = never wait")                    \
	X("busy-poll", START, BOOL, busy_poll, "no", "yes|no",                                      \
		"workers never sleep: least delay, needs a dedicated processor for each")           \
	X("worker-priority", START, UINT8, worker_priority, "0", "0..99",                           \
		"real-time priority of the workers (SCHED_RR); 0 = none")                           \
	X("timeout", LIVE, UINT32, timeout, "60", "SECONDS",                                        \
		"end a call after this time without media")                                         \
	X("silent-timeout", LIVE, UINT32, silent_timeout, "3600", "SECONDS",                        \
		"end a call on hold after this time without media")                                 \
	X("offer-timeout", LIVE, UINT32, offer_timeout, "3600", "SECONDS",                          \
		"end a call that is not answered after this time")                                  \
	X("final-timeout", LIVE, UINT32, final_timeout, "0", "SECONDS",                             \
		"end any call this long after its first offer; 0 = never")                          \
	X("templates", START, STRING, templates, "", "SECTION",                                     \
		"section of the ini file with named flags, for template=NAME")                      \
	X("b2b-url", START, STRING, b2b_url, "", "URL",                                             \
		"report calls that time out here, by XML-RPC; %% = the proxy's address")            \
	X("xmlrpc-format", START, UINT8, xmlrpc_format, "0", "0|1|2",                               \
		"method for --b2b-url: 0 = SEMS, 1 = teardown with the Call-ID, 2 = Kamailio")      \
	X("b2b-allow", LIVE, NETS, b2b_allow, "any", "NETWORK,...|any|none",                        \
		"networks from which a request may choose the address for %%")                      \
	X("delete-delay", LIVE, UINT32, delete_delay, "30", "SECONDS",                              \
		"continue to relay a deleted call for this time")                                   \
	X("max-sessions", LIVE, UINT32, max_sessions, "0", "N",                                     \
		"refuse new calls above this number; 0 = as many as ports allow")                   \
	X("max-medias", LIVE, UINT8, max_medias, "8", "N",                                          \
		"m-lines relayed for each party, 1 to 64; reject more with port 0")                 \
	X("emergency-ports", START, UINT8, emergency_ports, "5", "PERCENT",                         \
		"share of local ports and key slots reserved for emergency calls, 0 to 50")         \
	X("max-cpu", LIVE, DECIMAL, limits.cpu, "0", "PERCENT",                                     \
		"refuse new calls while the processors are busier; 0 = no limit")                   \
	X("max-load", LIVE, DECIMAL, limits.load, "0", "LOAD",                                      \
		"refuse new calls while the load average of a minute is higher; 0 = no limit")      \
	X("max-bandwidth", LIVE, UINT64, limits.bandwidth, "0", "BYTES",                            \
		"refuse new calls while more relayed media is received per second; 0 = no limit")   \
	X("overload-age", START, UINT16, overload_age, "50", "MILLISECONDS",                        \
		"an overloaded worker drops packets that waited longer; 0 = never")                 \
	X("sdes-offer", LIVE, SDES_OFFER, sdes, "strong", "SUITE,...",                              \
		"suites offered to terminals, best first; strong = all that encrypt")               \
	X("sdes-accept", LIVE, SDES_ACCEPT, sdes, "strong", "SUITE,...",                            \
		"suites and session parameters accepted from terminals")                            \
	X("preauth", LIVE, PREAUTH, sdes.preauth, "accept", "off|accept|offer[:SCHEME]",            \
		"SRTP+ tags, which drop forged packets early: never, if offered, or offer them")    \
	X("keying-threads", START, UINT8, keying_threads, "1", "N",                                 \
		"threads for DTLS handshakes and ICE, 0 to 16; 0 = SDES and RTP only")              \
	X("codec-threads", START, UINT8, codec_threads, "1", "N",                                   \
		"threads that transcode audio, 0 to 16; 0 = only G.711 is transcoded")              \
	X("dtls-cert", START, STRING, dtls_cert, "", "FILE",                                        \
		"PEM certificate for DTLS; default: a new one at each start")                       \
	X("dtls-key", START, STRING, dtls_key, "", "FILE",                                          \
		"PEM private key of --dtls-cert, mode 0640 or stricter; default: the same file")    \
	X("dtls-profiles", START, PROFILES, dtls_profile, "strong", "PROFILE,...",                  \
		"SRTP profiles of DTLS, best first; strong = all that encrypt")                     \
	X("dtls-sha1", START, BOOL, dtls_sha1, "no", "yes|no",                                      \
		"accept certificates that SDP names by SHA-1 only")                                 \
	X("codec-dir", START, NAMES, codec_dir, CODEC_FOLDER, "DIR[,DIR...]|none",                  \
		"folders of codec plug-ins; none = only the built-in codecs")                       \
	X("codec-isolation", START, ISOLATION, codec_isolation, "foreign", "foreign|all|none",      \
		"plug-ins to isolate in processes; foreign = those outside the default folder")     \
	X("codec-worker", START, STRING, codec_worker, CODEC_WORKER, "FILE",                        \
		"program that tests codec plug-ins, and runs those that are isolated")              \
	X("mikey-config", START, STRING, mikey_config, "", "FILE",                                  \
		"identities and keys for MIKEY; default: MIKEY is off")                             \
	X("mikey", START, STRING, mikey, "accept", "accept|offer|require",                          \
		"MIKEY towards terminals without a flag: only in answers, offered, or required")    \
	X("mikey-state", START, STRING, mikey_state, "", "FILE",                                    \
		"file that keeps each peer's latest MIKEY timestamp over restarts; default: none")  \
	X("zrtp", LIVE, ZRTP, zrtp, "passthrough", "passthrough|terminate|off",                     \
		"ZRTP (RFC 6189): pass end to end, or end here if only one side speaks it")         \
	X("zrtp-cache", START, STRING, zrtp_cache, "", "FILE",                                      \
		"encrypted file that keeps ZRTP's retained secrets of terminals; default: none")    \
	X("zrtp-cache-key", START, STRING, zrtp_cache_key, "", "FILE",                              \
		"file with the key of --zrtp-cache, mode 0640 or stricter")                         \
	X("zrtp-cache-size", START, UINT32, zrtp_cache_size, "10000", "N",                          \
		"most terminals in --zrtp-cache, 1 to 1000000; replaces the least recently used")   \
	X("zrtp-cache-days", START, UINT32, zrtp_cache_days, "365", "DAYS",                         \
		"days without a ZRTP call after which a terminal is forgotten; 0 = never")          \
	X("zrtp-preshared", START, BOOL, zrtp_preshared, "no", "yes|no",                            \
		"offer ZRTP's preshared mode, without forward secrecy; needs --zrtp-cache")         \
	X("zrtp-disclosure", START, BOOL, zrtp_disclosure, "no", "yes|no",                          \
		"tell ZRTP terminals that keys or media may be disclosed to others (flag D)")       \
	X("replay-window", START, UINT16, replay_window, "128", "PACKETS",                          \
		"how far a packet may be behind the newest and be accepted; 64 to 32768")           \
	X("enforce-lifetime", START, BOOL, enforce_lifetime, "no", "yes|no",                        \
		"drop packets after a key's signalled lifetime; no = only log it")                  \
	X("srtcp-tag-32", LIVE, BOOL, short_tags, "no", "yes|no",                                   \
		"accept SRTCP tags of 32 bits with suites _32, and send them then")                 \
	X("tos", START, UINT8, tos, "0", "0..255", "TOS or traffic class of sent packets")          \
	X("endpoint-learning", LIVE, LEARNING, learning, "heuristic",                               \
		"off|immediate|delayed|heuristic", "how a terminal's address is learned")           \
	X("strict-source", LIVE, BOOL, strict_source, "yes", "yes|no",                              \
		"drop packets from other sources than the confirmed one")                           \
	X("early-media", LIVE, BOOL, early_media, "yes", "yes|no",                                  \
		"relay the callee's plain RTP to a plain caller before the answer")                 \
	X("redis", START, REDIS, redis, "off", "[PW@]ADDR:PORT[/DB]|URL|off",                       \
		"Redis server that stores calls; URL with TLS: rediss://USER@HOST:PORT/DB")         \
	X("redis-write", START, REDIS, redis_write, "off", "[PW@]ADDR:PORT[/DB]|URL|off",           \
		"Redis master to write calls to, if --redis is a read-only replica")                \
	X("redis-password-file", START, STRING, redis_password_file, "", "FILE",                    \
		"file with the password of Redis in its first line; used if --redis has none")      \
	X("redis-tls-ca", START, STRING, redis_tls_ca, "", "FILE",                                  \
		"PEM certificates of trusted authorities for Redis; default: the system's")         \
	X("redis-tls-name", START, STRING, redis_tls_name, "", "NAME",                              \
		"name expected in the certificate of Redis; default: the host in --redis")          \
	X("redis-tls-cert", START, STRING, redis_tls_cert, "", "FILE",                              \
		"PEM client certificate for Redis; default: none")                                  \
	X("redis-tls-key", START, STRING, redis_tls_key, "", "FILE",                                \
		"PEM private key of --redis-tls-cert, mode 0640 or stricter")                       \
	X("redis-key-file", START, STRING, redis_key_file, "", "FILE|none",                         \
		"key that encrypts stored calls and SRTP keys; none = stored in the clear")         \
	X("redis-expires", START, UINT32, redis_expires, "86400", "SECONDS",                        \
		"lifetime of a stored call; renewed while the call exists")                         \
	X("standby", START, BOOL, standby, "no", "yes|no",                                          \
		"start as standby: follow another node's calls until \"xcipherctl active\"")        \
	X("recording-dir", START, STRING, recording_dir, "", "FOLDER",                              \
		"folder for recordings; default: no recordings")                                    \
	X("play-dir", START, STRING, play_dir, "", "FOLDER",                                        \
		"folder of audio files for ng's play media; default: no files are played")          \
	X("play-decoder", START, STRING, play_decoder, PLAY_DECODER, "FILE",                        \
		"program that decodes Opus, Vorbis and MP3 files for play media")                   \
	X("recording-format", START, RECORDING, recording_format, "raw", "raw|eth",                 \
		"first header of recorded packets: IP (raw) or Ethernet (eth)")                     \
	X("output-mixed", START, BOOL, output_mixed, "no", "yes|no",                                \
		"record NAME-mix.wav, the audio of all parties, in addition to packets")            \
	X("output-single", START, BOOL, output_single, "no", "yes|no",                              \
		"record NAME-1.wav, NAME-2.wav, ...: the audio of each party")                      \
	X("output-format", START, FORMAT, output_opus, "wav", "wav|opus",                           \
		"format of recorded audio; opus needs the package xcipher-codec-opus")              \
	X("mix-method", START, MIX, mix_channels, "direct", "direct|channels",                      \
		"NAME-mix.wav: all parties added, or caller left and others right")                 \
	X("resample-to", START, UINT32, resample_to, "8000", "HZ",                                  \
		"sample rate of recorded audio, a multiple of 8000 up to 48000")                    \
	X("recording-max-age", START, UINT32, recording_max_age, "0", "HOURS",                      \
		"remove older recordings; 0 = never")                                               \
	X("recording-max-size", START, UINT32, recording_max_size, "0", "MEGABYTES",                \
		"remove the oldest recordings above this total size; 0 = never")                    \
	X("cdr-file", START, STRING, cdr_file, "", "FILE",                                          \
		"file to append a JSON record of each ended call to; default: none")                \
	X("foreground", START, FLAG, foreground, "no", "", "stay in the foreground")                \
	X("pidfile", START, STRING, pidfile, "", "FILE", "file to write the process id to")         \
	X("user", START, STRING, user, "", "NAME",                                                  \
		"run as this user, if started as root; default: stay root")                         \
	X("group", START, STRING, group, "", "NAME",                                                \
		"run as this group; default: the group of --user")                                  \
	X("log-level", LIVE, LEVEL, log_level, "6", "0..7",                                         \
		"3 = errors, 4 = warnings, 5 = notices, 6 = information, 7 = debugging")            \
	X("log-stderr", START, FLAG, log_stderr, "no", "",                                          \
		"log to standard error instead of syslog")

#define OPTION_DEVICES_MAX 8

struct option_device {
	char name[64]; /* "" = any */
	uint32_t weight;
};

enum engine_choice { ENGINE_AUTO, ENGINE_OPENCL, ENGINE_SERIAL };

struct options {
	struct redis_server redis, redis_write;
	uint32_t redis_expires;
	bool standby;
	const char *recording_dir, *play_dir, *play_decoder, *cdr_file;
	enum record_format recording_format;
	uint32_t recording_max_age, recording_max_size, resample_to;
	bool output_mixed, output_single, output_opus, mix_channels;
	const char *config_file, *pidfile, *user, *group, *redis_key_file, *xdp_interfaces;
	const char *redis_password_file, *redis_tls_ca, *redis_tls_name, *redis_tls_cert,
		*redis_tls_key;
	struct option_device device[OPTION_DEVICES_MAX];
	uint32_t devices; /* at least 1 */
	uint32_t opencl_min[OPTION_DEVICES_MAX];
	const char *listen_ng_unix, *ng_unix_group;
	const char *ng_key_file, *b2b_url, *templates, *mikey_config, *mikey, *mikey_state;
	struct ng_templates ng_templates; /* templates of that section; strings are ours */
	struct call_nets b2b_allow, media_allow, media_deny;
	struct endpoint listen_ng, listen_tcp_ng, homer; /* family 0 = off */
	uint32_t homer_id;
	struct relay_local local[STEER_MAX_LOCAL];
	uint32_t locals;
	const struct steer_ops *steering;
	enum engine_choice engine;
	enum media_learning learning;
	enum steer_xdp_mode xdp_mode;
	enum steer_queue_send queue_send;
	bool kernel_relay, kernel_ring, queue_fail_open, opencl_fallback;
	uint32_t kernel_port_rate, media_rate, source_rate;
	enum steer_udp_io udp_io;
	struct sdes_policy sdes;
	uint16_t port_min, port_max, nfqueue_num, workers, batch_max, replay_window, opencl_timeout,
		opencl_start_timeout, batches_in_flight, overload_age;
	struct limits_config limits;
	uint32_t batch_window, timeout, silent_timeout, offer_timeout, final_timeout, delete_delay,
		max_sessions;
	uint8_t tos, xmlrpc_format, worker_priority, max_medias, emergency_ports;
	bool workers_auto;                       /* the number was not given */
	bool password_in_file, password_in_args; /* of Redis */
	char other_section[64]; /* of the file, if it has entries, but none of [xcipher]; or "" */
	uint8_t keying_threads;
	uint8_t codec_threads;
	const char *dtls_cert, *dtls_key;
	uint8_t dtls_profile[SUITE_COUNT]; /* suites; SUITE_PLAIN ends the list */
	const char *codec_dir, *codec_worker;
	enum codec_isolation codec_isolation;
	bool dtls_sha1, zrtp_preshared, zrtp_disclosure;
	enum zrtp_policy zrtp;
	const char *zrtp_cache, *zrtp_cache_key;
	uint32_t zrtp_cache_size, zrtp_cache_days;
	bool strict_source, early_media, short_tags, enforce_lifetime, busy_poll, foreground,
		log_stderr;
	int log_level;
	FILE *complaints; /* during reading; NULL: standard error */
};

enum options_result { OPTIONS_RUN, OPTIONS_EXIT_OK, OPTIONS_EXIT_ERROR };

/* Reads defaults, file, command line. --help and --version print and return OPTIONS_EXIT_OK. An
 * error prints one line with cause and remedy. */
enum options_result options_read(struct options *o, int argc, char **argv);
void options_free(struct options *o);
/* Logs warnings: other users of the machine can read the password of Redis; an option has no
 * effect. */
void options_warn(const struct options *o);
/* Calls idle() for each option that was set but has no effect; needs: the option that would give it
 * one. */
void options_idle(const struct options *o,
	void (*idle)(void *arg, const char *name, const char *needs), void *arg);

/* The same for a running daemon: errors go to err. Free o in any case. */
enum options_result options_again(
	struct options *o, int argc, char **argv, char *err, size_t err_len);
/* NULL, or a description of valid values. */
const char *options_set(struct options *o, const char *name, const char *value);
/* Copies the options that may change at run time from next. Calls other() for each other option
 * that differs. Returns the number of changed options. */
uint32_t options_take_live(struct options *now, struct options *next,
	void (*other)(void *arg, const char *name), void *arg);

#endif
