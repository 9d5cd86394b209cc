/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The send path of xdp steering, from the kernel's replies to the bytes before an IP packet. The
 * test invents the kernel's messages, so that it needs no such interfaces. It includes both sources
 * to reach their static functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../../daemon/steer/xdp/xdp_route.c"
#include "../../daemon/host/rtnl.c"

static const uint8_t MAC[6] = {2, 0, 0, 0, 0, 1}, PEER[6] = {2, 0, 0, 0, 0, 2};

struct bench {
	struct routes r;
	_Alignas(8) char message[1024];
};

static int setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	b->r.generation = 1;
	b->r.since_ns = NS_PER_SEC;
	b->r.way = calloc(WAYS, sizeof(*b->r.way));
	b->r.hop = calloc(HOPS, sizeof(*b->r.hop));
	b->r.link = calloc(LINKS, sizeof(*b->r.link));
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	free(b->r.way);
	free(b->r.hop);
	free(b->r.link);
	free(b);
	return 0;
}

/* RTM_NEWLINK or RTM_DELLINK of an Ethernet interface; below != 0: a VLAN interface on that one. */
struct vlan {
	uint16_t proto, id;
};

static void link_is(
	struct bench *b, uint16_t type, int ifindex, bool up, int below, struct vlan vlan)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(b->message);
	struct event_sink sink = {news, &b->r};
	struct ifinfomsg *m;

	h->nlmsg_type = type;
	m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
	m->ifi_index = ifindex;
	m->ifi_type = ARPHRD_ETHER;
	m->ifi_flags = up ? IFF_UP : 0;
	mnl_attr_put(h, IFLA_ADDRESS, 6, MAC);
	mnl_attr_put_u32(h, IFLA_MTU, 1500);
	if (below) {
		uint8_t wire[2] = {(uint8_t)(vlan.proto >> 8), (uint8_t)vlan.proto};
		struct nlattr *info, *data;

		mnl_attr_put_u32(h, IFLA_LINK, (uint32_t)below);
		info = mnl_attr_nest_start(h, IFLA_LINKINFO);
		mnl_attr_put_strz(h, IFLA_INFO_KIND, "vlan");
		data = mnl_attr_nest_start(h, IFLA_INFO_DATA);
		mnl_attr_put_u16(h, IFLA_VLAN_ID, vlan.id);
		mnl_attr_put(h, IFLA_VLAN_PROTOCOL, 2, wire);
		mnl_attr_nest_end(h, data);
		mnl_attr_nest_end(h, info);
	}
	event_message(h, &sink);
}

static void neighbour_is(struct bench *b, uint16_t type, int ifindex, uint16_t nud)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(b->message);
	const uint8_t addr[4] = {192, 0, 2, 7};
	struct event_sink sink = {news, &b->r};
	struct ndmsg *m;

	h->nlmsg_type = type;
	m = mnl_nlmsg_put_extra_header(h, sizeof(*m));
	m->ndm_family = AF_INET;
	m->ndm_ifindex = ifindex;
	m->ndm_state = nud;
	mnl_attr_put(h, NDA_DST, 4, addr);
	mnl_attr_put(h, NDA_LLADDR, 6, PEER);
	event_message(h, &sink);
}

/* Adds a destination by way of 192.0.2.7 on this interface, as if the kernel had replied. */
static struct endpoint known(struct bench *b, int ifindex)
{
	struct endpoint hop, dst;
	struct way *w;
	struct hop *h = &b->r.hop[b->r.hops];

	endpoint_parse_addr(&hop, STR("192.0.2.7"));
	endpoint_parse_addr(&dst, STR("198.51.100.1"));
	*h = (struct hop){.neigh = {.ifindex = ifindex, .addr = hop}, .kernel_ns = NS_PER_SEC};
	h->possible = write_l2(&b->r, h);
	w = &b->r.way[way_hash(&b->r, &dst, 0) & ~1u];
	*w = (struct way){.dst = dst, .generation = 1, .hop = (uint16_t)b->r.hops++};
	return dst;
}

static void tags_are_written_from_the_outermost_on(void **state)
{
	struct bench *b = *state;
	static const struct {
		int by;
		uint8_t len, bytes[8];
		const char *why;
	} T[] = {
		{1, 14, {0}, "no VLAN"},
		{2, 18, {0x81, 0x00, 0x00, 0x64}, "one"},
		{3, 22, {0x88, 0xa8, 0x00, 0x0a, 0x81, 0x00, 0x0f, 0xff}, "one in a provider's"},
	};

	link_is(b, RTM_NEWLINK, 1, true, 0, (struct vlan){0, 0});
	link_is(b, RTM_NEWLINK, 2, true, 1, (struct vlan){0x8100, 100});
	link_is(b, RTM_NEWLINK, 3, true, 4, (struct vlan){0x8100, 4095});
	link_is(b, RTM_NEWLINK, 4, true, 1, (struct vlan){0x88a8, 10});
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct endpoint dst = known(b, T[i].by);
		const struct route_hop *hop;

		neighbour_is(b, RTM_NEWNEIGH, T[i].by, NUD_REACHABLE);
		hop = routes_find(&b->r, 0, &dst, NS_PER_SEC + 1);
		if (!hop)
			fail_msg("%s: no way", T[i].why);
		assert_int_equal(hop->ifindex, 1);
		assert_int_equal(hop->l2_len, T[i].len);
		assert_memory_equal(hop->l2, PEER, 6);
		assert_memory_equal(hop->l2 + 6, MAC, 6);
		assert_memory_equal(hop->l2 + 12, T[i].bytes, T[i].len - 14u);
		assert_int_equal(hop->mtu, 1500);
	}
}

static void what_is_not_ours_is_the_kernels(void **state)
{
	struct bench *b = *state;
	struct endpoint dst;

	link_is(b, RTM_NEWLINK, 1, true, 0, (struct vlan){0, 0});
	link_is(b, RTM_NEWLINK, 2, true, 1, (struct vlan){0x8100, 1});
	link_is(b, RTM_NEWLINK, 3, true, 2, (struct vlan){0x8100, 2});
	link_is(b, RTM_NEWLINK, 4, true, 3, (struct vlan){0x8100, 3});
	link_is(b, RTM_NEWLINK, 5, true, 99, (struct vlan){0x8100, 3});
	link_is(b, RTM_NEWLINK, 6, false, 0, (struct vlan){0, 0});
	link_is(b, RTM_NEWLINK, 7, true, 6, (struct vlan){0x8100, 3});
	for (int by = 4; by <= 8; by++) { /* three tags, unknown below, down, down below, unknown */
		dst = known(b, by);
		neighbour_is(b, RTM_NEWNEIGH, by, NUD_REACHABLE);
		assert_null(routes_find(&b->r, 0, &dst, NS_PER_SEC + 1));
	}
	/* A VLAN interface above itself. */
	link_is(b, RTM_NEWLINK, 1, true, 2, (struct vlan){0x8100, 9});
	dst = known(b, 2);
	neighbour_is(b, RTM_NEWNEIGH, 2, NUD_REACHABLE);
	assert_null(routes_find(&b->r, 0, &dst, NS_PER_SEC + 1));
}

static void news_of_neighbours_and_links_count_at_once(void **state)
{
	struct bench *b = *state;
	static const struct {
		uint16_t type, nud;
		bool usable;
	} T[] = {{RTM_NEWNEIGH, NUD_STALE, true}, {RTM_NEWNEIGH, NUD_INCOMPLETE, false},
		{RTM_NEWNEIGH, NUD_PROBE, true}, {RTM_NEWNEIGH, NUD_FAILED, false},
		{RTM_NEWNEIGH, NUD_PERMANENT, true}, {RTM_DELNEIGH, NUD_PERMANENT, false},
		{RTM_NEWNEIGH, NUD_DELAY, true}};
	struct endpoint dst;
	uint64_t now = NS_PER_SEC + 1;

	link_is(b, RTM_NEWLINK, 1, true, 0, (struct vlan){0, 0});
	dst = known(b, 1);
	assert_null(routes_find(&b->r, 0, &dst, now));
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		neighbour_is(b, T[i].type, 1, T[i].nud);
		assert_int_equal(routes_find(&b->r, 0, &dst, now) != NULL, T[i].usable);
	}
	link_is(b, RTM_NEWLINK, 1, false, 0, (struct vlan){0, 0});
	assert_null(routes_find(&b->r, 0, &dst, now));
	link_is(b, RTM_NEWLINK, 1, true, 0, (struct vlan){0, 0});
	assert_non_null(routes_find(&b->r, 0, &dst, now));
	link_is(b, RTM_DELLINK, 1, true, 0, (struct vlan){0, 0});
	assert_null(routes_find(&b->r, 0, &dst, now));
}

static void one_packet_a_second_is_the_kernels(void **state)
{
	struct bench *b = *state;
	uint32_t kernels = 0;
	struct endpoint dst;

	link_is(b, RTM_NEWLINK, 1, true, 0, (struct vlan){0, 0});
	b->r.outdated = false; /* the test has no kernel to ask */
	dst = known(b, 1);
	neighbour_is(b, RTM_NEWNEIGH, 1, NUD_REACHABLE);
	for (uint32_t ms = 1; ms <= 10500; ms += 5)
		kernels += !routes_find(&b->r, 0, &dst, NS_PER_SEC + ms * 1000000ull);
	assert_int_equal(kernels, 10);
}

/* The interface of a frame with these tags. */
static uint32_t comes_by(struct bench *b, int card, const char *tags)
{
	uint8_t frame[32] = {0};
	uint32_t at = 12;

	for (; tags[0]; tags += 4, at += 4) {
		put_be16(frame + at, tags[0] == 'q' ? 0x8100 : 0x88a8);
		put_be16(frame + at + 2, (uint16_t)(0xe000 + atoi(tags + 1)));
	}
	put_be16(frame + at, ETH_P_IP);
	return routes_in(&b->r, card, frame, 0);
}

static void frames_come_by_the_interface_of_their_tags(void **state)
{
	static const struct {
		int card;
		const char *tags;
		uint32_t dev;
		const char *why;
	} T[] = {
		{1, "", 1, "no tag"},
		{1, "q100", 2, "a VLAN"},
		{1, "q101", 0, "one that nobody has"},
		{1, "q000", 1, "a priority alone"},
		{1, "a100", 0, "the same number, the other kind"},
		{1, "a010", 4, "a provider's"},
		{1, "a010q200", 3, "one in it"},
		{1, "q100q200", 0, "nobody has"},
		{5, "", 6, "a bond's card"},
		{5, "q100", 7, "a VLAN of the bond"},
		{9, "", 9, "not known: the kernel is asked about the card"},
		{9, "q100", 0, "not known"},
	};
	struct bench *b = *state;

	link_is(b, RTM_NEWLINK, 1, true, 0, (struct vlan){0, 0});
	link_is(b, RTM_NEWLINK, 2, true, 1, (struct vlan){0x8100, 100});
	link_is(b, RTM_NEWLINK, 3, true, 4, (struct vlan){0x8100, 200});
	link_is(b, RTM_NEWLINK, 4, true, 1, (struct vlan){0x88a8, 10});
	link_is(b, RTM_NEWLINK, 5, true, 0, (struct vlan){0, 0});
	link_find(&b->r, 5)->master = 6;
	link_is(b, RTM_NEWLINK, 6, true, 0, (struct vlan){0, 0});
	link_is(b, RTM_NEWLINK, 7, true, 6, (struct vlan){0x8100, 100});
	for (int again = 0; again < 2; again++)
		for (size_t i = 0; i < ARRAY_LEN(T); i++)
			if (comes_by(b, T[i].card, T[i].tags) != T[i].dev)
				fail_msg("%d %s: %s", T[i].card, T[i].tags, T[i].why);
}

/* Cards may remove tags. Then the local address selects the VLAN. */
static void a_frame_without_its_tag_is_of_the_interface_with_the_address(void **state)
{
	struct bench *b = *state;
	struct host_net net = {.bits = 32, .dev = 2};
	struct host *host;

	endpoint_parse_addr(&net.addr, STR("192.0.2.1"));
	b->r.local[0] = net.addr;
	assert_int_equal(host_create_fixed(&host, &net, 1), 0);
	b->r.host = host;
	link_is(b, RTM_NEWLINK, 1, true, 0, (struct vlan){0, 0});
	link_is(b, RTM_NEWLINK, 2, true, 1, (struct vlan){0x8100, 100});
	link_is(b, RTM_NEWLINK, 3, true, 0, (struct vlan){0, 0});
	assert_int_equal(comes_by(b, 1, ""), 2);
	assert_int_equal(comes_by(b, 3, ""), 3);
	host_destroy(host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			tags_are_written_from_the_outermost_on, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_not_ours_is_the_kernels, setup, teardown),
		cmocka_unit_test_setup_teardown(
			news_of_neighbours_and_links_count_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(
			one_packet_a_second_is_the_kernels, setup, teardown),
		cmocka_unit_test_setup_teardown(
			frames_come_by_the_interface_of_their_tags, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_frame_without_its_tag_is_of_the_interface_with_the_address, setup,
			teardown),
	};

	return cmocka_run_group_tests_name("xdp_route", tests, NULL, NULL);
}
