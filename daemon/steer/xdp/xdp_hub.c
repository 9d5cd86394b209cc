/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interfaces and XDP programs. Uses the interfaces that have a local address; for a VLAN interface,
 * the one below it. Attaches programs by BPF links, which end when the descriptor is closed, even
 * if the process is killed. They never replace other programs. The compiled program is embedded.
 * libxdp's dispatcher would let several programs share an interface, but it stays attached after
 * its owner was killed. */
#include "steer/xdp/xdp_hub.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/if_vlan.h>
#include <linux/sockios.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "steer/xdp/bpf/xdp_abi.h"
#include "steer/xdp/xdp_back.h"
#include "steer/xdp/xdp_guards.h"
#include "steer/xdp/xdp_log.h"
#include "steer/xdp/xdp_object.h"

_Static_assert(STEER_MAX_LOCAL <= XDP_ABI_LOCALS, "a bit for every local address");

#define NEEDS                                                                                        \
	"xdp steering needs root, or CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF and CAP_IPC_LOCK; without " \
	"them use --steering=udp"

static bool may_do_all(void)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {0};
	uint32_t low = 1u << CAP_NET_ADMIN | 1u << CAP_NET_RAW;

	if (syscall(SYS_capget, &h, d) || (d[0].effective & low) != low)
		return false;
	return (d[0].effective & 1u << CAP_SYS_ADMIN) ||
		(d[CAP_BPF / 32].effective & 1u << (CAP_BPF % 32));
}

/* --- Interfaces ------------------------------------------------------------------------------- */

/* name: the interface; of a VLAN interface, the one below. */
static void below_vlans(int fd, char name[IF_NAMESIZE])
{
	for (int depth = 0; depth < 2; depth++) {
		struct vlan_ioctl_args v = {.cmd = GET_VLAN_REALDEV_NAME_CMD};

		snprintf(v.device1, sizeof(v.device1), "%s", name);
		if (ioctl(fd, SIOCGIFVLAN, &v))
			return;
		snprintf(name, IF_NAMESIZE, "%.*s", IF_NAMESIZE - 1, v.u.device2);
	}
}

static void count_queues(int fd, struct hub_dev *d)
{
	struct ethtool_channels c = {.cmd = ETHTOOL_GCHANNELS};
	struct ifreq req = {.ifr_data = (void *)&c};

	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", d->name);
	d->queues = d->tx_queues = 1;
	if (ioctl(fd, SIOCETHTOOL, &req))
		return;
	d->queues = c.rx_count + c.combined_count;
	d->tx_queues = c.tx_count + c.combined_count;
	if (d->queues == 0)
		d->queues = 1;
	if (d->tx_queues == 0)
		d->tx_queues = 1;
	d->queues = min_u32(d->queues, XDP_ABI_QUEUES);
}

static int add_dev(struct steer_hub *h, int fd, const char *name, char *err, size_t err_len)
{
	struct hub_dev *d = &h->dev[h->devs];
	struct ifreq req = {0};
	char base[IF_NAMESIZE];

	snprintf(base, sizeof(base), "%.*s", (int)strcspn(name, ":"), name);
	below_vlans(fd, base);
	for (uint32_t i = 0; i < h->devs; i++)
		if (strcmp(h->dev[i].name, base) == 0)
			return 0;
	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", base);
	if (ioctl(fd, SIOCGIFHWADDR, &req)) {
		snprintf(err, err_len, "--xdp-interface=%s: %s", base, strerror(errno));
		return -errno;
	}
	if (req.ifr_hwaddr.sa_family != ARPHRD_ETHER) {
		snprintf(err, err_len,
			"xdp steering: %s is not an Ethernet interface, use --steering=nfqueue or udp",
			base);
		return -EOPNOTSUPP;
	}
	if (h->devs == HUB_DEVS_MAX) {
		snprintf(err, err_len, "xdp steering serves at most %u interfaces", HUB_DEVS_MAX);
		return -E2BIG;
	}
	*d = (struct hub_dev){.ifindex = (int)if_nametoindex(base), .xsks = -1, .link = -1};
	memcpy(d->name, base, sizeof(d->name));
	count_queues(fd, d);
	d->queues_max = d->queues;
	h->devs++;
	return 0;
}

static int named_devs(
	struct steer_hub *h, int fd, const struct steer_config *cfg, char *err, size_t err_len)
{
	struct str rest = str_from(cfg->xdp_interfaces);

	while (rest.s) {
		struct str one = str_trim(str_cut(&rest, ','));
		char name[IF_NAMESIZE];
		int res;

		if (one.len == 0)
			continue;
		snprintf(name, sizeof(name), STR_FMT, STR_ARG(one));
		res = one.len < sizeof(name) ? add_dev(h, fd, name, err, err_len) : -ENODEV;
		if (res)
			return res;
	}
	return 0;
}

/* Finds the interface with this address: 0, -EADDRNOTAVAIL, or -EOPNOTSUPP for loopback, which the
 * stack serves. */
static int dev_of_address(struct steer_hub *h, int fd, const struct ifaddrs *all,
	const struct endpoint *local, char *err, size_t err_len)
{
	char text[ENDPOINT_STRLEN];

	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		struct sockaddr_storage sa = {0};
		struct endpoint e;

		if (!i->ifa_addr)
			continue;
		memcpy(&sa, i->ifa_addr,
			i->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
							  : sizeof(struct sockaddr_in6));
		if (endpoint_from_sockaddr(&e, &sa) || !endpoint_addr_eq(&e, local))
			continue;
		if (i->ifa_flags & IFF_LOOPBACK) {
			log_warn("xdp: %s is on the loopback interface: ordinary sockets serve it",
				endpoint_fmt_addr(local, text));
			return 0;
		}
		return add_dev(h, fd, i->ifa_name, err, err_len);
	}
	snprintf(err, err_len,
		"xdp steering: no interface has the address %s, name one with --xdp-interface=NAME",
		endpoint_fmt_addr(local, text));
	return -EADDRNOTAVAIL;
}

static int find_devs(struct steer_hub *h, const struct steer_config *cfg, char *err, size_t err_len)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), res = 0;
	struct ifaddrs *all = NULL;

	if (fd < 0 || getifaddrs(&all)) {
		res = -errno;
		snprintf(err, err_len, "xdp steering: interfaces: %s", strerror(errno));
	} else if (cfg->xdp_interfaces && cfg->xdp_interfaces[0]) {
		res = named_devs(h, fd, cfg, err, err_len);
	} else {
		for (uint32_t i = 0; i < cfg->locals && !res; i++)
			res = dev_of_address(h, fd, all, &cfg->local[i], err, err_len);
	}
	if (!res && h->devs == 0) {
		res = -ENODEV;
		snprintf(err, err_len,
			"xdp steering: no local address is on a network card, use --steering=udp");
	}
	if (all)
		freeifaddrs(all);
	if (fd >= 0)
		close(fd);
	return res;
}

/* --- Programs --------------------------------------------------------------------------------- */

static int map_fd(const struct bpf_object *obj, const char *name)
{
	return bpf_map__fd(bpf_object__find_map_by_name(obj, name));
}

/* The first program creates the maps that all share. */
static int load(struct steer_hub *h, struct hub_dev *d)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "xcipher");
	int res = 0;

	d->obj = bpf_object__open_mem(xdp_object, xdp_object_len, &opts);
	if (!d->obj)
		return -errno;
	if (h->ports >= 0) {
		res = bpf_map__reuse_fd(bpf_object__find_map_by_name(d->obj, "ports"), h->ports);
		res = res ? res
			  : bpf_map__reuse_fd(
				    bpf_object__find_map_by_name(d->obj, "locals"), h->locals);
		res = res ? res
			  : bpf_map__reuse_fd(bpf_object__find_map_by_name(d->obj, "addresses"),
				    h->addresses);
		res = res ? res : xdp_guards_share(h->guards, d->obj);
	}
	res = res ? res
		  : bpf_program__set_autoload(
			    bpf_object__find_program_by_name(d->obj, "xcipher_tc"), false);
	res = res ? res : bpf_object__load(d->obj);
	if (res)
		return res;
	d->xsks = map_fd(d->obj, "xsks");
	if (h->ports < 0) {
		h->ports = map_fd(d->obj, "ports");
		h->locals = map_fd(d->obj, "locals");
		h->addresses = map_fd(d->obj, "addresses");
		res = xdp_guards_create(&h->guards, d->obj, h->workers);
	}
	return res;
}

static int put_locals(struct steer_hub *h, const struct steer_config *cfg)
{
	for (uint32_t i = 0; i < cfg->locals; i++) {
		struct xdp_local key = {.v6 = cfg->local[i].family == AF_INET6};
		uint32_t first = 0;

		while (!endpoint_addr_eq(&cfg->local[first], &cfg->local[i]))
			first++;
		h->first[i] = (uint8_t)first;
		h->doubled = h->doubled || first != i;
		memcpy(key.addr, cfg->local[i].addr, sizeof(key.addr));
		if (bpf_map_update_elem(h->locals, &key, &first, BPF_ANY) ||
			bpf_map_update_elem(h->addresses, &first, &key, BPF_ANY))
			return -errno;
	}
	return 0;
}

/* A worker without a queue only gets packets of other workers, which costs more than it helps. */
static uint32_t most_queues(const struct steer_hub *h)
{
	uint32_t most = 1;

	for (uint32_t i = 0; i < h->devs; i++)
		most = h->dev[i].queues > most ? h->dev[i].queues : most;
	return most;
}

int hub_open(struct steer_hub **out, struct steer_config *cfg, char *err, size_t err_len)
{
	struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
	struct steer_hub *h;
	int res;

	if (!may_do_all()) {
		snprintf(err, err_len, NEEDS);
		return -EPERM;
	}
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->ports = h->locals = h->addresses = -1;
	h->mode = cfg->xdp_mode;
	/* Packet memory is pinned, and older kernels count maps as locked memory. */
	(void)setrlimit(RLIMIT_MEMLOCK, &all);
	libbpf_set_print(xdp_log);
	res = find_devs(h, cfg, err, err_len);
	if (!res && cfg->workers_auto)
		cfg->workers = min_u32(cfg->workers, most_queues(h));
	h->workers = cfg->workers;
	for (uint32_t i = 0; i < h->devs && !res; i++) {
		res = load(h, &h->dev[i]);
		if (res)
			snprintf(err, err_len,
				"xdp steering: the kernel refuses the XDP program (%s): "
				"use --steering=nfqueue or udp",
				strerror(-res));
	}
	if (!res) {
		res = put_locals(h, cfg);
		res = res ? res : xdp_guards_limit(h->guards, cfg->source_rate);
		res = res ? res : hand_create(&h->hand, cfg->workers);
		res = res ? res : back_create(&h->back, h);
		if (res)
			snprintf(err, err_len, "xdp steering: %s", strerror(-res));
	}
	if (res) {
		hub_close(h);
		return res;
	}
	*out = h;
	return 0;
}

void hub_close(struct steer_hub *h)
{
	if (!h)
		return;
	back_destroy(h->back);
	hub_detach(h);
	for (uint32_t i = h->devs; i > 0; i--)
		bpf_object__close(h->dev[i - 1].obj);
	hand_destroy(h->hand);
	xdp_guards_destroy(h->guards);
	free(h);
}

static int attach_as(struct hub_dev *d, uint32_t flags)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = flags);
	struct bpf_program *prog = bpf_object__find_program_by_name(d->obj, "xcipher_xdp");

	d->link = bpf_link_create(bpf_program__fd(prog), d->ifindex, BPF_XDP, &opts);
	return d->link < 0 ? -errno : 0;
}

static int attach(struct steer_hub *h, struct hub_dev *d, char *err, size_t err_len)
{
	int res = -EOPNOTSUPP, driver = 0;

	if (h->mode != STEER_XDP_SKB)
		res = driver = attach_as(d, XDP_FLAGS_DRV_MODE);
	if (res && res != -EBUSY && res != -EEXIST && h->mode != STEER_XDP_ZEROCOPY &&
		h->mode != STEER_XDP_COPY) {
		res = attach_as(d, XDP_FLAGS_SKB_MODE);
		d->skb = res == 0;
	}
	if (res == -EBUSY || res == -EEXIST)
		snprintf(err, err_len,
			"xdp steering: %s has an XDP program already (another xcipherd, a firewall): remove "
			"it (\"ip link set %s xdp off\"), or use --steering=nfqueue",
			d->name, d->name);
	else if (res)
		snprintf(err, err_len,
			"xdp steering: no program on %s: %s; try --xdp-mode=auto, or --steering=nfqueue",
			d->name, strerror(-res));
	else if (d->skb && driver)
		log_warn(
			"xdp: the driver of %s refuses the XDP program (%s): falling back to the generic mode, which is slower",
			d->name, strerror(-driver));
	return res;
}

int hub_attach(struct steer_hub *h, char *err, size_t err_len)
{
	int res = 0;

	for (uint32_t i = 0; i < h->devs && !res; i++) {
		struct hub_dev *d = &h->dev[i];

		res = attach(h, d, err, err_len);
		if (res)
			break;
		log_info("xdp: program on %s (%s), %u queue%s for %u worker%s", d->name,
			d->skb ? "behind the driver" : "in the driver", d->queues,
			d->queues == 1 ? "" : "s", h->workers, h->workers == 1 ? "" : "s");
		if (d->queues < h->workers)
			log_warn(
				"xdp: %s has fewer queues than there are workers: some receive all "
				"packets from other workers. Set --workers=%u, or add queues (ethtool -L)",
				d->name, d->queues);
	}
	if (res)
		hub_detach(h);
	return res;
}

void hub_detach(struct steer_hub *h)
{
	for (uint32_t i = 0; i < h->devs; i++) {
		if (h->dev[i].link >= 0)
			close(h->dev[i].link);
		h->dev[i].link = -1;
	}
}

/* --- Gone and back ---------------------------------------------------------------------------- */

void hub_dev_gone(struct hub_dev *d)
{
	atomic_fetch_add_explicit(&d->life, 1, memory_order_relaxed);
	if (d->link >= 0)
		close(d->link);
	d->link = -1;
	d->ifindex = 0;
	/* A dead socket in the map would lose the new interface's packets. */
	for (uint32_t q = 0; q < d->queues_max; q++)
		(void)bpf_map_delete_elem(d->xsks, &q);
}

int hub_dev_back(struct steer_hub *h, struct hub_dev *d, char *err, size_t err_len)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ifindex, res;
	struct ifreq req = {0};

	if (fd < 0) {
		snprintf(err, err_len, "%s", strerror(errno));
		return -errno;
	}
	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", d->name);
	ifindex = (int)if_nametoindex(d->name);
	res = ifindex && ioctl(fd, SIOCGIFFLAGS, &req) == 0 && (req.ifr_flags & IFF_UP) ? 0
											: -ENODEV;
	if (!res) {
		d->ifindex = ifindex;
		count_queues(fd, d);
		d->queues = min_u32(d->queues, d->queues_max);
	}
	close(fd);
	if (res || d->link >= 0)
		return res;
	d->skb = false;
	return attach(h, d, err, err_len);
}

/* A program stays with its interface, but a link does not show that the interface moved to another
 * network namespace. */
bool hub_dev_attached(const struct hub_dev *d)
{
	struct bpf_link_info info = {0};
	uint32_t len = sizeof(info);
	char name[IF_NAMESIZE];

	return d->link < 0 || bpf_obj_get_info_by_fd(d->link, &info, &len) ||
		((int)info.xdp.ifindex == d->ifindex && if_indextoname((unsigned)d->ifindex, name));
}

int hub_port(struct steer_hub *h, struct local_port local, bool in_use)
{
	uint32_t key = local.port, used = 0, bit = 1u << h->first[local.addr], on;

	/* Only the port's worker writes this entry. */
	if (bpf_map_lookup_elem(h->ports, &key, &used))
		return -errno;
	on = (in_use ? used | bit : used & ~bit) & XDP_PORT_LOCALS;
	used = on ? on | XDP_PORT_NUMBER(__builtin_ctz(on)) | (used & XDP_PORT_GUARDED) : 0;
	return bpf_map_update_elem(h->ports, &key, &used, BPF_ANY) ? -errno : 0;
}
