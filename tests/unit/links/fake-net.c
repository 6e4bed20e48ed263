/* The networks of the host that has the devices. See fake-verbs.h. */
#include "fake-private.h"

#include <arpa/inet.h>
#include <net/if.h>

static struct sockaddr_in net_addr[3];
static struct ifaddrs net[3];

/* 127.0.0.1/8 first; addresses without a network mask are met, too */
int fake_get_networks(struct ifaddrs **ret)
{
	static const uint32_t addr[3] = {0x7f000001, 0xc6336401, 0xc6336402};
	static struct sockaddr_in mask[3];
	static struct ifaddrs bare;

	for (int i = 0; i < 3; i++) {
		net_addr[i] = (struct sockaddr_in){.sin_family = AF_INET,
						   .sin_addr.s_addr = htonl(addr[i])};
		mask[i] = (struct sockaddr_in){.sin_family = AF_INET,
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
