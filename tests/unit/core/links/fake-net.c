/* The networks of the host of the fake devices. See fake-verbs.h. */
#include "fake-private.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <string.h>

static struct sockaddr_in net_addr[3];
static struct ifaddrs net[3];

static char eth0[] = "eth0", ib0[] = "ib0";

/* An Ethernet interface, and the IPoIB interface of fake0's port. The hardware address of the
 * latter is flags, the number of a queue pair, and the port's GID. */
static struct ifaddrs *ipoib(void)
{
	static union {
		struct sockaddr_ll ll;
		uint8_t bytes[32];
	} hw[2];
	static struct sockaddr_in v4[2];
	static struct sockaddr_in6 v6[2];
	static struct ifaddrs list[6];
	const union ibv_gid gid = fake_port_gid(0);
	size_t n = 0;

	memset(list, 0, sizeof(list));
	hw[0].ll = (struct sockaddr_ll){.sll_family = AF_PACKET,
					.sll_hatype = ARPHRD_ETHER,
					.sll_halen = 6};
	hw[1].ll = (struct sockaddr_ll){.sll_family = AF_PACKET,
					.sll_hatype = ARPHRD_INFINIBAND,
					.sll_halen = 20};
	memcpy(hw[1].bytes + offsetof(struct sockaddr_ll, sll_addr) + 4, gid.raw, 16);
	v4[0] = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xcb007105)};
	v4[1] = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002)};
	v6[0] = (struct sockaddr_in6){.sin6_family = AF_INET6,
				      .sin6_addr.s6_addr = {0xfe, 0x80, [15] = 9}};
	v6[1] = (struct sockaddr_in6){.sin6_family = AF_INET6,
				      .sin6_addr.s6_addr = {0x20, 1, 0xd, 0xb8, [15] = 9}};
	list[n++] = (struct ifaddrs){.ifa_name = eth0, .ifa_addr = (struct sockaddr *)&hw[0]};
	list[n++] = (struct ifaddrs){.ifa_name = eth0, .ifa_addr = (struct sockaddr *)&v4[0]};
	if (!fake_faults.has_no_ipoib)
		list[n++] =
			(struct ifaddrs){.ifa_name = ib0, .ifa_addr = (struct sockaddr *)&hw[1]};
	list[n++] = (struct ifaddrs){.ifa_name = ib0, .ifa_addr = (struct sockaddr *)&v6[0]};
	list[n++] = (struct ifaddrs){.ifa_name = ib0, .ifa_addr = (struct sockaddr *)&v6[1]};
	if (!fake_faults.ipoib_has_v6_only)
		list[n++] =
			(struct ifaddrs){.ifa_name = ib0, .ifa_addr = (struct sockaddr *)&v4[1]};
	for (size_t i = 0; i < n; i++) {
		list[i].ifa_flags =
			list[i].ifa_name == ib0 && fake_faults.ipoib_is_down ? 0 : IFF_UP;
		list[i].ifa_next = i + 1 < n ? &list[i + 1] : NULL;
	}
	return list;
}

/* 127.0.0.1/8 first; addresses without a network mask are met, too */
int fake_get_networks(struct ifaddrs **ret)
{
	static const uint32_t addr[3] = {0x7f000001, 0xc6336401, 0xc6336402};
	static struct sockaddr_in mask[3];
	static struct ifaddrs bare;

	if (fake_faults.is_infiniband) {
		*ret = ipoib();
		return 0;
	}
	for (int i = 0; i < 3; i++) {
		net_addr[i] = (struct sockaddr_in){.sin_family = AF_INET,
						   .sin_addr.s_addr = htonl(addr[i])};
		mask[i] =
			(struct sockaddr_in){.sin_family = AF_INET,
					     .sin_addr.s_addr = htonl(i ? 0xffffff00 : 0xff000000)};
		net[i] = (struct ifaddrs){.ifa_flags = IFF_UP,
					  .ifa_addr = (struct sockaddr *)&net_addr[i],
					  .ifa_netmask = (struct sockaddr *)&mask[i],
					  .ifa_next = i < 2 ? &net[i + 1] : NULL};
	}
	bare.ifa_next = fake_faults.has_rails ? net : NULL;
	*ret = &bare;
	return 0;
}

void fake_free_networks(struct ifaddrs *list)
{
	(void)list;
}
