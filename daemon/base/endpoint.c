/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Converts addresses to text and socket addresses. Never resolves names, because that would
 * block. */
#include "base/endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

int endpoint_parse_addr(struct endpoint *out, struct str text)
{
	struct endpoint e = {0};
	char z[INET6_ADDRSTRLEN];

	if (text.len >= 2 && text.s[0] == '[' && text.s[text.len - 1] == ']') {
		text.s++;
		text.len -= 2;
	}
	if (text.len == 0 || text.len >= sizeof(z) || memchr(text.s, 0, text.len))
		return -EINVAL;
	memcpy(z, text.s, text.len);
	z[text.len] = 0;
	if (inet_pton(AF_INET, z, e.addr) == 1)
		e.family = AF_INET;
	else if (inet_pton(AF_INET6, z, e.addr) == 1)
		e.family = AF_INET6;
	else
		return -EINVAL;
	*out = e;
	return 0;
}

int endpoint_parse(struct endpoint *out, struct str text)
{
	struct str addr = text, port;
	uint64_t number;

	for (size_t i = text.len; i-- > 0;) {
		if (text.s[i] != ':')
			continue;
		addr.len = i;
		port = (struct str){text.s + i + 1, text.len - i - 1};
		/* An IPv6 address needs brackets here: otherwise its last group would look like the
		 * port. */
		if (memchr(addr.s, ':', addr.len) && addr.s[0] != '[')
			return -EINVAL;
		if (str_to_u64(&number, port, 65535) || number == 0 ||
			endpoint_parse_addr(out, addr))
			return -EINVAL;
		out->port = (uint16_t)number;
		return 0;
	}
	return -EINVAL;
}

int endpoint_parse_net(struct endpoint *net, uint8_t *bits, struct str text)
{
	struct str prefix = text, addr = str_cut(&prefix, '/');
	struct endpoint e;
	uint64_t n;

	if (endpoint_parse_addr(&e, addr))
		return -EINVAL;
	n = e.family == AF_INET ? 32 : 128;
	if (prefix.s && str_to_u64(&n, prefix, n))
		return -EINVAL;
	*net = e;
	*bits = (uint8_t)n;
	return 0;
}

bool endpoint_in_net(const struct endpoint *e, const struct endpoint *net, uint8_t bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (e->family != net->family || memcmp(e->addr, net->addr, whole) != 0)
		return false;
	return !rest || !((e->addr[whole] ^ net->addr[whole]) >> (8 - rest));
}

bool endpoint_is_unspecified(const struct endpoint *e)
{
	static const uint8_t zero[16];

	return e->family == 0 || memcmp(e->addr, zero, 16) == 0;
}

bool endpoint_is_multicast(const struct endpoint *e)
{
	if (e->family == AF_INET)
		return e->addr[0] >> 4 == 0xe;
	return e->family == AF_INET6 && e->addr[0] == 0xff;
}

const char *endpoint_fmt_addr(const struct endpoint *e, char buf[ENDPOINT_STRLEN])
{
	if (e->family == 0 || !inet_ntop(e->family, e->addr, buf, ENDPOINT_STRLEN))
		memcpy(buf, "none", 5);
	return buf;
}

const char *endpoint_fmt(const struct endpoint *e, char buf[ENDPOINT_STRLEN])
{
	char addr[ENDPOINT_STRLEN];
	const char *form = e->family == AF_INET6 ? "[%.46s]:%u" : "%.46s:%u";

	endpoint_fmt_addr(e, addr);
	snprintf(buf, ENDPOINT_STRLEN, form, addr, (unsigned)e->port);
	return buf;
}

socklen_t endpoint_to_sockaddr(const struct endpoint *e, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	if (e->family == AF_INET6) {
		struct sockaddr_in6 *sa = (struct sockaddr_in6 *)out;

		sa->sin6_family = AF_INET6;
		sa->sin6_port = htons(e->port);
		memcpy(&sa->sin6_addr, e->addr, 16);
		return sizeof(*sa);
	}
	struct sockaddr_in *sa = (struct sockaddr_in *)out;

	sa->sin_family = AF_INET;
	sa->sin_port = htons(e->port);
	memcpy(&sa->sin_addr, e->addr, 4);
	return sizeof(*sa);
}

int endpoint_from_sockaddr(struct endpoint *out, const struct sockaddr_storage *sa)
{
	struct endpoint e = {0};

	if (sa->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)sa;

		e.family = AF_INET;
		e.port = ntohs(in->sin_port);
		memcpy(e.addr, &in->sin_addr, 4);
	} else if (sa->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)sa;
		bool mapped = IN6_IS_ADDR_V4MAPPED(&in->sin6_addr);

		e.family = mapped ? AF_INET : AF_INET6;
		e.port = ntohs(in->sin6_port);
		memcpy(e.addr, in->sin6_addr.s6_addr + (mapped ? 12 : 0), mapped ? 4 : 16);
	} else {
		return -EAFNOSUPPORT;
	}
	*out = e;
	return 0;
}
