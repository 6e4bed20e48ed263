/* See verify.h. The parent opens all listeners, so that every process knows the addresses; the end
 * of the last process closes a pipe that the parent waits at. */
#include "nbox/reshard/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "mesh/route.h"

#define PATIENCE_MS 600000

struct crowd {
	struct actor_world world;
	struct actor_result *results; /* owned, shared with the processes */
	pid_t pids[VERIFY_DEVICES];   /* 0: none */
	int ended[2]; /* a pipe: it ends with the last process, or one that failed writes */
};

/* Ends what still runs, and waits for all. */
static void end_all(struct crowd *c)
{
	for (uint32_t d = 0; d < c->world.n; d++) {
		if (c->pids[d] <= 0)
			continue;
		kill(c->pids[d], SIGKILL);
		waitpid(c->pids[d], NULL, 0);
		c->pids[d] = 0;
	}
}

static void close_listeners(struct crowd *c)
{
	for (uint32_t d = 0; d < c->world.n; d++)
		c->world.listeners[d] = listener_free(c->world.listeners[d]);
}

static void crowd_deinit(struct crowd *c)
{
	end_all(c);
	close_listeners(c);
	closep(&c->ended[0]);
	closep(&c->ended[1]);
	if (c->results)
		munmap(c->results, VERIFY_DEVICES * sizeof(*c->results));
}

static void link_devices(struct actor_world *w, uint32_t a, uint32_t b)
{
	w->is_joined[a][b] = w->is_joined[b][a] = true;
}

/* Every pair of devices that a message goes between. */
static void find_links(struct actor_world *w)
{
	const struct verify *v = w->verify;

	for (uint32_t i = 0; i < v->plan->n; i++) {
		const struct turn *turn = &v->plan->turns[i];
		const struct mesh_task *t = &v->reshard->tasks[turn->task];
		uint32_t k = actor_pieces(v, t);

		for (uint32_t n = 0; n < mesh_parts(v->strategy, t->to, k); n++) {
			struct mesh_part part;

			mesh_part(v->strategy, t->bytes, t->to, k, n, &part);
			link_devices(w, actor_sender(v, turn),
				     actor_receiver(v, turn->task, part.first));
		}
		for (uint32_t p = 0; p < t->to.hosts * t->to.devices; p++) {
			uint32_t next = mesh_next(v->strategy, t->to, p);

			if (next != MESH_NOBODY && next != p)
				link_devices(w, actor_receiver(v, turn->task, p),
					     actor_receiver(v, turn->task, next));
		}
	}
}

static int listen_all(struct actor_world *w, struct err *err)
{
	char addr[64];
	int r = 0;

	for (uint32_t d = 0; r == 0 && d < w->n; d++) {
		if (!memchr(&w->is_joined[d][d], true, w->n - d))
			continue; /* nobody connects to it */
		if (strcmp(w->verify->link, "shm") == 0)
			snprintf(addr, sizeof(addr), "shm:@nbox-reshard-%d-%u", (int)getpid(), d);
		else
			snprintf(addr, sizeof(addr), "tcp:127.0.0.1:0");
		r = listener_open(addr, &w->listeners[d], err);
	}
	return r;
}

static _Noreturn void be(struct crowd *c, uint32_t device, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	signal(SIGPIPE, SIG_IGN);
	close(c->ended[0]);
	actor_play(&c->world, device, &c->results[device]);
	if (c->results[device].code)
		(void)!write(c->ended[1], "", 1); /* nobody need wait for this one */
	_exit(0);
}

static int start_all(struct crowd *c, struct err *err)
{
	pid_t parent = getpid();

	fflush(NULL);
	for (uint32_t d = 0; d < c->world.n; d++) {
		pid_t pid = fork();

		if (pid < 0)
			return err_set(err, errno, "fork: %s", strerror(errno));
		if (pid == 0)
			be(c, d, parent);
		c->pids[d] = pid;
	}
	return 0;
}

/* Return: 0: all have ended well; a negative errno with the first sentence. */
static int wait_all(struct crowd *c, struct err *err)
{
	struct pollfd fd = {.fd = c->ended[0], .events = POLLIN};
	int status, r;

	do
		r = poll(&fd, 1, PATIENCE_MS);
	while (r < 0 && errno == EINTR);
	if (r <= 0)
		return err_set(err, ETIMEDOUT, "the processes have not ended within ten minutes");
	for (uint32_t d = 0; d < c->world.n; d++)
		if (c->results[d].code)
			return err_set(err, -c->results[d].code, "%s", c->results[d].err.text);
	r = 0;
	for (uint32_t d = 0; d < c->world.n; d++) {
		waitpid(c->pids[d], &status, 0);
		c->pids[d] = 0;
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			r = err_set(err, ECHILD, "the process of device %u was ended", d);
	}
	return r;
}

static int check(const struct verify *v, struct err *err)
{
	const struct mesh_reshard *r = v->reshard;
	uint64_t n_src = r->src.hosts * r->src.devices, n_dst = r->dst.hosts * r->dst.devices;
	uint64_t bytes = mesh_bytes(&r->tensor);

	if (v->strategy == MESH_SIGNAL)
		return err_set(err, EINVAL, "signal moves no tensor: nothing to verify");
	if (n_src + n_dst > VERIFY_DEVICES)
		return err_set(err, EINVAL,
			       "%llu devices: a process for each, at most %d; take smaller meshes",
			       (unsigned long long)(n_src + n_dst), VERIFY_DEVICES);
	/* a tile, and what is sent or received besides */
	if (bytes > VERIFY_BYTES_MAX ||
	    2 * bytes * (n_src / mesh_tiles(&r->src) + n_dst / mesh_tiles(&r->dst)) >
		    VERIFY_BYTES_MAX)
		return err_set(err, EINVAL,
			       "the tiles of all devices, twice, are more than 1 GiB; take a "
			       "smaller tensor: layouts and order stay the same");
	return 0;
}

static void add_up(const struct crowd *c, struct verified *ret)
{
	const struct verify *v = c->world.verify;

	*ret = (struct verified){.processes = c->world.n};
	for (uint32_t d = 0; d < c->world.n; d++) {
		ret->elements += c->results[d].elements;
		ret->wrong += c->results[d].wrong;
		ret->crossing_bytes += c->results[d].crossing_bytes;
		ret->inside_bytes += c->results[d].inside_bytes;
	}
	for (uint32_t i = 0; i < v->reshard->n; i++)
		ret->expected_bytes += mesh_crossing_bytes(v->strategy, v->reshard->tasks[i].bytes,
							   v->reshard->tasks[i].to);
}

static int crowd_init(struct crowd *c, const struct verify *v, struct err *err)
{
	const struct mesh_reshard *r = v->reshard;

	*c = (struct crowd){.world.verify = v, .ended = {-1, -1}};
	c->world.n = r->src.hosts * r->src.devices + r->dst.hosts * r->dst.devices;
	c->results = mmap(NULL, VERIFY_DEVICES * sizeof(*c->results), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (c->results == MAP_FAILED) {
		c->results = NULL;
		return err_set(err, ENOMEM, "no memory that processes share");
	}
	if (pipe2(c->ended, O_CLOEXEC) < 0)
		return err_set(err, errno, "pipe: %s", strerror(errno));
	find_links(&c->world);
	return listen_all(&c->world, err);
}

int verify_run(const struct verify *v, struct verified *ret, struct err *err)
{
	int r = check(v, err);

	if (r == 0) {
		CLEANUP(crowd_deinit) struct crowd c;

		r = crowd_init(&c, v, err);
		r = r < 0 ? r : start_all(&c, err);
		close_listeners(&c);
		closep(&c.ended[1]);
		c.ended[1] = -1;
		r = r < 0 ? r : wait_all(&c, err);
		if (r == 0)
			add_up(&c, ret);
	}
	return r;
}
