/* How the workers of a job come to an nboxd when no command has started one for them:
 *
 *   LD_PRELOAD=libnbox.so torchrun --nproc-per-node=8 train.py
 *
 * Before main() each worker's libnbox.so runs `nboxd --join RANK --ranks N --local N` and waits for
 * it. It reads the same configuration as nboxd itself, knocks at the door of this job's nboxd
 * (door.h), and prints what the worker must know: NAME=VALUE, each ended by a NUL byte. Where
 * nobody has bound the door's name it binds it, and forks: the child is this job's nboxd, the
 * parent knocks like all others. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "config/config.h"

struct door;
struct loop;

#define JOIN_FILE \
	"nbox.yaml" /* the cluster file of the working directory, where NBOX_CONFIG names none */

struct join {
	int32_t rank; /* of the worker, as its launcher counts */
	pid_t worker; /* whose helper this is */
	uint32_t n_ranks,
		n_local;   /* that the launcher started; of them on this node; 0: not known */
	bool is_elsewhere; /* the configuration says where nboxd is: none is to be started */
	int door;          /* of JOIN_HOST: the listening socket */
};

/* Before config_finish(): what no option says comes from the launcher, and from what nbox run does.
 * Return: 0; -ENOMEM. */
int join_configure(struct join *j, struct config *c);
/* After config_finish(): are the ranks that have a process those that the launcher started? Return:
 * 0; -EINVAL with the sentence. */
int join_check(const struct join *j, const struct config *c, struct err *err);

/* Return: 0: the worker was told on stdout, the process is to end; JOIN_HOST: this is the child,
 * which is to be nboxd, and stdout is no more the worker's; negative errno with the sentence. */
enum { JOIN_HOST = 1 };
int join_run(struct join *j, const struct config *c, struct err *err);
/* In the child, once it listens at @addr, and at @store (NULL: no store): workers may come. Return:
 * 0; negative errno with the sentence. */
int join_open(const struct join *j, const struct config *c, const char *addr, const char *store,
	      struct door *door, struct loop *loop, struct err *err);
