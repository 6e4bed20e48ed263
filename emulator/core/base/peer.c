/* See peer.h. */
#include "base/peer.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int peer_check(int fd, struct err *err)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return err_set(err, errno, "SO_PEERCRED: %s", strerror(errno));
	if (peer.uid == geteuid() || peer.uid == 0)
		return 0;
	return err_set(
		err, EACCES,
		"it is held by the user with uid %u (pid %d), who is neither you (uid %u) nor root: "
		"nothing is sent there; end that process, or choose another address",
		(unsigned)peer.uid, (int)peer.pid, (unsigned)geteuid());
}
