/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ICE agent of daemon/ice/ on real sockets, for tests with other implementations.
 *
 *   ice_peer offer|answer full|lite ADDR:PORT[/COMPONENT]...
 *
 * Prints its ICE attributes as SDP and "end". Reads the peer's from standard input, up to "end".
 * Then prints "state NAME" at each change, and "selected COMPONENT ADDR" for nominated pairs. It
 * returns other datagrams of a valid source to the selected address. "restart" on standard input
 * prints new attributes, then it reads the peer's again. The end of standard input ends it. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sbuf.h"
#include "base/secmem.h"
#include "ice/agent.h"

struct peer {
	struct ice_agent *agent;
	struct ice_config config;
	int fd[ICE_LOCALS];
	char line[4096]; /* of standard input */
	size_t line_len;
	char sdp[8192]; /* the peer's attributes so far */
	size_t sdp_len;
	uint32_t changes;
	enum ice_state state;
};

static void fatal(const char *what)
{
	perror(what);
	exit(1);
}

static void open_local(struct peer *p, const char *arg)
{
	struct str component = str_from(arg), addr = str_cut(&component, '/');
	struct ice_local *l = &p->config.local[p->config.local_count];
	struct sockaddr_storage sa;
	socklen_t len;
	int fd;

	if (p->config.local_count == ICE_LOCALS || endpoint_parse(&l->addr, addr)) {
		fprintf(stderr, "ice_peer: not ADDR:PORT: %s\n", arg);
		exit(2);
	}
	l->component = component.len > 0 && component.s[0] == '2' ? 2 : 1;
	if (l->component > p->config.components)
		p->config.components = l->component;
	len = endpoint_to_sockaddr(&l->addr, &sa);
	fd = socket(l->addr.family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, len))
		fatal(arg);
	p->fd[p->config.local_count++] = fd;
}

static void send_to(const struct peer *p, uint8_t local, const struct endpoint *dst,
	const uint8_t *packet, size_t len)
{
	struct sockaddr_storage sa;
	socklen_t sa_len = endpoint_to_sockaddr(dst, &sa);

	/* A packet that cannot be sent is lost, as in the network. */
	if (sendto(p->fd[local], packet, len, 0, (struct sockaddr *)&sa, sa_len) < 0)
		return;
}

static void print_attributes(const struct peer *p)
{
	struct ice_candidate c[ICE_LOCALS];
	struct sdp_ice_write w = {.ufrag = ice_ufrag(p->agent),
		.pwd = ice_pwd(p->agent),
		.lite = ice_is_lite(p->agent),
		.end_of_candidates = true,
		.candidate = c,
		.eol = "\n"};
	struct sbuf b;

	w.count = ice_local_candidates(p->agent, c, ICE_LOCALS);
	sbuf_init(&b, 0);
	sdp_ice_write(&b, &w);
	printf("%.*send\n", (int)b.len, b.p);
	fflush(stdout);
	sbuf_fini(&b);
}

static void report(struct peer *p)
{
	struct ice_out out;
	struct ice_pair_selected s;
	char text[ENDPOINT_STRLEN];

	while (ice_next(p->agent, &out))
		send_to(p, out.local, &out.dst, out.packet, out.len);
	if (ice_changes(p->agent) == p->changes)
		return;
	p->changes = ice_changes(p->agent);
	if (ice_state(p->agent) != p->state)
		printf("state %s\n", ice_state_name(ice_state(p->agent)));
	p->state = ice_state(p->agent);
	for (uint8_t c = 1; c <= ICE_COMPONENTS; c++)
		if (ice_selected(p->agent, c, &s) && s.nominated)
			printf("selected %u %s\n", c, endpoint_fmt(&s.remote, text));
	fflush(stdout);
}

static int take_section(void *ctx, const struct sdp_ice_section *s)
{
	struct peer *p = ctx;
	struct ice_remote r = {.ufrag = s->ice.ufrag,
		.pwd = s->ice.pwd,
		.lite = s->ice.lite,
		.last = s->ice.end_of_candidates,
		.candidate = s->ice.candidate,
		.count = s->ice.count};

	return ice_set_remote(p->agent, &r, clock_mono_ns());
}

static void command(struct peer *p, struct str line)
{
	if (str_eq(line, STR("restart"))) {
		ice_restart(p->agent, clock_mono_ns());
		print_attributes(p);
	} else if (str_eq(line, STR("end"))) {
		int err = sdp_ice_fragment_read((struct str){p->sdp, p->sdp_len}, take_section, p);

		if (err)
			printf("error %d\n", err);
		p->sdp_len = 0;
	} else if (p->sdp_len + line.len + 1 <= sizeof(p->sdp)) {
		memcpy(p->sdp + p->sdp_len, line.s, line.len);
		p->sdp_len += line.len;
		p->sdp[p->sdp_len++] = '\n';
	}
}

static bool read_commands(struct peer *p)
{
	ssize_t n = read(0, p->line + p->line_len, sizeof(p->line) - p->line_len);
	struct str rest;
	size_t kept;

	if (n <= 0)
		return false;
	p->line_len += (size_t)n;
	rest = (struct str){p->line, p->line_len};
	while (memchr(rest.s, '\n', rest.len))
		command(p, str_cut(&rest, '\n'));
	kept = rest.len;
	memmove(p->line, rest.s, kept);
	p->line_len = kept;
	return true;
}

static void receive(struct peer *p, uint8_t local)
{
	struct sockaddr_storage sa;
	socklen_t sa_len = sizeof(sa);
	uint8_t packet[2048];
	struct endpoint src;
	ssize_t n =
		recvfrom(p->fd[local], packet, sizeof(packet), 0, (struct sockaddr *)&sa, &sa_len);

	if (n < 0 || endpoint_from_sockaddr(&src, &sa))
		return;
	if (stun_is(packet, (size_t)n))
		ice_take(p->agent, local, &src, packet, (size_t)n, clock_mono_ns());
	else if (ice_is_valid_source(p->agent, local, &src))
		send_to(p, local, &src, packet, (size_t)n);
}

static void loop(struct peer *p)
{
	struct pollfd fds[1 + ICE_LOCALS] = {{.fd = 0, .events = POLLIN}};
	nfds_t n = 1u + p->config.local_count;

	for (nfds_t i = 1; i < n; i++)
		fds[i] = (struct pollfd){.fd = p->fd[i - 1], .events = POLLIN};
	for (;;) {
		uint64_t now = clock_mono_ns(), at = ice_deadline(p->agent);
		uint64_t ms = at <= now         ? 0
			: at - now > NS_PER_SEC ? 1000
						: (at - now) / 1000000 + 1;

		if (poll(fds, n, (int)ms) < 0 && errno != EINTR)
			fatal("poll");
		if (fds[0].revents && !read_commands(p))
			return;
		for (nfds_t i = 1; i < n; i++)
			if (fds[i].revents)
				receive(p, (uint8_t)(i - 1));
		if (ice_deadline(p->agent) <= clock_mono_ns())
			ice_tick(p->agent, clock_mono_ns());
		report(p);
	}
}

int main(int argc, char **argv)
{
	static struct peer p;
	uint8_t seed[ICE_SEED_LEN];

	if (argc < 4) {
		fprintf(stderr,
			"usage: ice_peer offer|answer full|lite ADDR:PORT[/COMPONENT]...\n");
		return 2;
	}
	p.config.components = 1;
	p.config.controlling = strcmp(argv[1], "offer") == 0;
	p.config.lite = strcmp(argv[2], "lite") == 0;
	p.config.pace_ns = 20 * NS_PER_SEC / 1000;
	for (int i = 3; i < argc; i++)
		open_local(&p, argv[i]);
	p.agent = malloc(ice_size());
	if (!p.agent || secmem_random(seed, sizeof(seed)))
		fatal("ice_peer");
	if (ice_init(p.agent, &p.config, seed, clock_mono_ns())) {
		fprintf(stderr, "ice_peer: a component has no address\n");
		return 2;
	}
	print_attributes(&p);
	loop(&p);
	ice_fini(p.agent);
	free(p.agent);
	return 0;
}
