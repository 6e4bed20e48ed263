/* Who is in a communicator: fake workers check in at nboxd as the ranks of a PyTorch job do, and
 * the test reads from nboxd's status what it found. */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmocka-all.h"
#include "engine/record-read.h"
#include "fake-worker.h"
#include "members/color.h"
#include "members/members.h"
#include "members/radix.h"
#include "nboxd/store/protocol.h"
#include "wire/unique-id.h"

#define N_MAX 8

static struct fake f[N_MAX];

static void start(struct daemon *d, const char *const *more, size_t n)
{
	const char *args[32] = {"--gpus-per-node", "4", "--model", "none"};
	static char addr[64];
	bool has_settle = false;
	size_t k = 4;

	if (getenv("NBOX_TEST_RDMA"))
		snprintf(addr, sizeof(addr), "%s", test_address("", NULL));
	else
		snprintf(addr, sizeof(addr), "shm:/tmp/nbox-members-%d.sock", (int)getpid());
	args[k++] = "--addr";
	args[k++] = addr;
	for (; *more; more++) {
		has_settle = has_settle || !strcmp(*more, "--settle");
		args[k++] = *more;
	}
	if (!has_settle) {
		args[k++] = "--settle";
		args[k++] = "1s";
	}
	args[k] = NULL;
	daemon_start(d, args);
	for (size_t i = 0; i < n; i++)
		fake_connect(&f[i], d->addr, "");
	assert_true(fakes_got(f, n, WIRE_WELCOME, 1));
}

static void end(struct daemon *d, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fake_close(&f[i]);
	daemon_stop(d);
}

/* The status of nboxd; it stays the fake's. */
static const char *status(void)
{
	unsigned n = f[0].n[WIRE_STATUS];

	fake_send(&f[0], WIRE_STATUS, 0, 0, 0, NULL, 0);
	assert_true(fakes_got(f, 1, WIRE_STATUS, n + 1));
	assert_non_null(f[0].status);
	return f[0].status;
}

static void says(const char *text)
{
	const char *s = status();

	if (!strstr(s, text))
		fail_msg("not in the status: %s\n%s", text, s);
}

static void init(struct fake *w, const void *id, uint32_t n_ranks, uint32_t rank, uint32_t world)
{
	struct wire_comm_init m = {.n_ranks = n_ranks,
				   .rank = rank,
				   .world_rank = world,
				   .cookie = 1};

	memcpy(m.id, id, sizeof(m.id));
	fake_send(w, WIRE_COMM_INIT, 0, rank, 0, &m, sizeof(m));
}

static struct wire_unique_id id_by(uint32_t creator, uint32_t serial)
{
	return (struct wire_unique_id){.magic = WIRE_UNIQUE_ID_MAGIC,
				       .version = 1,
				       .creator = creator,
				       .serial = serial};
}

/* --- guesses ----------------------------------------------------------------------- */

/* 16 nodes of 4. Rank 0's group alone may be waiting for the other real ranks: it is made when each
 * of those has come to a group of this size. */
static void a_guess_is_made_when_every_real_rank_has_come_somewhere(void **state)
{
	const char *const args[] = {"--nodes", "16", NULL};
	struct wire_unique_id id = id_by(0, 0);
	struct daemon d;

	(void)state;
	start(&d, args, 4);
	init(&f[0], &id, 16, 0, 0);
	usleep(1500000); /* settle is 1 s */
	assert_int_equal(f[0].n[WIRE_COMM_READY], 0);
	for (uint32_t i = 1; i < 4; i++) {
		id = id_by(i, 0);
		init(&f[i], &id, 16, 0, i);
	}
	assert_true(fakes_got(f, 4, WIRE_COMM_READY, 1));
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(f[i].ready[0].m.is_guess, 1);
	says("\"ranks\": 16, \"ranks_per_node\": 1, \"members\": \"guess, guessed\"");
	end(&d, 4);
}

static void the_maker_of_the_id_is_waited_for(void **state)
{
	const char *const args[] = {"--nodes", "16", NULL};
	struct wire_unique_id id = id_by(0, 0);
	struct daemon d;

	(void)state;
	start(&d, args, 4);
	for (uint32_t i = 1; i < 4; i++)
		init(&f[i], &id, 8, i, i);
	usleep(1500000);
	assert_non_null(strstr(status(), "world rank 0 made the id and has not come"));
	assert_int_equal(f[1].n[WIRE_COMM_READY], 0);
	init(&f[0], &id, 8, 0, 0);
	assert_true(fakes_got(f, 4, WIRE_COMM_READY, 1));
	assert_int_equal(f[0].ready[0].m.n_real, 4);
	end(&d, 4);
}

/* --- the layout ------------------------------------------------------------------------ */

/* settle is 60 s here: nothing waits for it. */
static void what_the_layout_leaves_no_choice_about_is_ready_at_once(void **state)
{
	const char *const args[] = {"--nodes",        "16", "--settle", "60s", "--layout",
				    "tp=4,pp=2,dp=8", NULL};
	struct wire_unique_id id = id_by(0, 0);
	struct daemon d;

	(void)state;
	start(&d, args, 4);
	init(&f[0], &id, 16, 0, 0);
	assert_true(fakes_got(&f[0], 1, WIRE_COMM_READY, 1));
	says("\"members\": \"layout, exact, pp+dp\"");
	id = id_by(1, 0);
	init(&f[1], &id, 2, 0, 1);
	assert_true(fakes_got(&f[1], 1, WIRE_COMM_READY, 1));
	says("\"members\": \"layout, exact, pp\"");
	/* a group of tp and pp needs the whole node */
	id = id_by(0, 1);
	for (uint32_t i = 0; i < 4; i++)
		init(&f[i], &id, 8, i, i);
	assert_true(fakes_got(&f[3], 1, WIRE_COMM_READY, 1));
	assert_int_equal(f[3].ready[0].m.n_real, 4);
	says("\"members\": \"layout, exact, tp+pp\"");
	end(&d, 4);
}

/* --- splits ---------------------------------------------------------------------------- */

static int32_t tuple_color(uint32_t base, uint32_t stride, uint32_t n)
{
	struct color_hash h = COLOR_HASH_INIT;

	for (uint32_t i = 0; i < n; i++)
		color_hash_add(&h, base + i * stride);
	return color_of_tuple(&h);
}

/* Node 5 of 16 is real. A split by PyTorch's colors into groups of 16 with stride 4, then into
 * pairs that are part of no regular division. */
static void the_color_is_the_hash_of_the_list(void **state)
{
	const char *const args[] = {"--nodes", "16", "--real", "20-23", NULL};
	struct wire_unique_id id = id_by(0, 0);
	struct wire_comm_split m = {0};
	struct daemon d;

	(void)state;
	start(&d, args, 4);
	for (uint32_t i = 0; i < 4; i++)
		init(&f[i], &id, 64, 20 + i, 20 + i);
	assert_true(fakes_got(f, 4, WIRE_COMM_READY, 1));
	for (uint32_t i = 0; i < 4; i++) {
		m = (struct wire_comm_split){.parent = f[i].ready[0].comm,
					     .rank = 20 + i,
					     .color = tuple_color(i, 4, 16),
					     .key = 5,
					     .cookie = 2};
		fake_send(&f[i], WIRE_COMM_SPLIT, m.parent, m.rank, 0, &m, sizeof(m));
	}
	assert_true(fakes_got(f, 4, WIRE_COMM_READY, 2));
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(f[i].ready[1].m.n_ranks, 16);
		assert_int_equal(f[i].ready[1].m.rank, 5);
		assert_int_equal(f[i].ready[1].m.is_guess, 0);
	}
	says("\"members\": \"color, exact\"");
	for (uint32_t i = 0; i < 4; i++) {
		m = (struct wire_comm_split){.parent = f[i].ready[0].comm,
					     .rank = 20 + i,
					     .count = 1,
					     .color = -1,
					     .cookie = 3};
		if (i == 1) {
			m.color = tuple_color(21, 40, 2);
			m.key = 0;
		}
		fake_send(&f[i], WIRE_COMM_SPLIT, m.parent, m.rank, 0, &m, sizeof(m));
	}
	assert_true(fakes_got(f, 4, WIRE_COMM_READY, 3));
	assert_int_equal(f[1].ready[2].m.n_ranks, 2);
	assert_int_equal(f[1].ready[2].m.is_guess, 0);
	end(&d, 4);
}

static void the_child_of_a_guess_is_a_guess(void **state)
{
	char out[] = "/tmp/nbox-members-XXXXXX", path[64], command[64];
	const char *const args[] = {"--nodes", "16",         "--settle", "30ms",
				    "--out",   mkdtemp(out), NULL};
	struct wire_unique_id id = id_by(0, 0);
	struct record rec = {0};
	struct err err = {""};
	struct {
		struct wire_comm_shrink m;
		uint32_t excluded;
	} body = {.m = {.rank = 0, .cookie = 2, .n_excluded = 1}, .excluded = 4};
	struct daemon d;

	(void)state;
	start(&d, args, 2);
	init(&f[0], &id, 5, 0, 0); /* no regular group of a world of 64 has 5 ranks */
	assert_true(fakes_got(f, 1, WIRE_COMM_READY, 1));
	assert_int_equal(f[0].ready[0].m.is_guess, 1);
	init(&f[1], &id, 5, 3, 1); /* too late */
	assert_true(fakes_got(&f[1], 1, WIRE_ABORT, 1));
	assert_non_null(strstr(f[1].abort.text,
			       "rank 3 came after communicator 1 was complete without it"));
	body.m.parent = f[0].ready[0].comm;
	fake_send(&f[0], WIRE_COMM_SHRINK, body.m.parent, 0, 0, &body, sizeof(body));
	assert_true(fakes_got(f, 1, WIRE_COMM_READY, 2));
	assert_int_equal(f[0].ready[1].m.n_ranks, 4);
	assert_int_equal(f[0].ready[1].m.is_guess, 1);
	says("\"members\": \"parent, guessed\"");
	/* the record says so of its communicator */
	fake_arrive(&f[0], &f[0].ready[1], 0, COLL_ALLREDUCE, 100, 0);
	assert_true(fakes_ops_over(f, 1));
	end(&d, 2);
	snprintf(path, sizeof(path), "%s/record.nbox", out);
	if (record_load(path, &rec, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(rec.n_ops, 1);
	assert_true(rec.ops[0].of->sure == MEMBERS_GUESSED);
	record_deinit(&rec);
	snprintf(command, sizeof(command), "rm -rf %s", out);
	assert_int_equal(system(command), 0);
}

/* --- the job's own lists -------------------------------------------------------------------- */

static void init_told(struct fake *w, struct wire_unique_id id, uint32_t rank, uint32_t world,
		      const uint32_t list[3])
{
	struct {
		struct wire_comm_init m;
		uint32_t list[3];
	} body = {.m = {.n_ranks = 3, .rank = rank, .world_rank = world, .cookie = 1}};

	memcpy(body.m.id, &id, sizeof(body.m.id));
	memcpy(body.list, list, sizeof(body.list));
	fake_send(w, WIRE_COMM_INIT, 0, rank, 0, &body, sizeof(body));
}

/* Irregular lists, which no other source could find. */
static void the_jobs_lists_are_believed_where_they_agree(void **state)
{
	static const uint32_t list[3] = {0, 2, 61}, other[3] = {0, 2, 62}, wrong[3] = {3, 1, 62},
			      twice[3] = {1, 61, 61};
	const char *const args[] = {"--nodes", "16", "--settle", "100ms", NULL};
	struct wire_unique_id id = id_by(0, 0);
	struct daemon d;

	(void)state;
	start(&d, args, 4);
	/* both real ones are waited for, nobody else */
	init_told(&f[0], id, 0, 0, list);
	init_told(&f[2], id, 1, 2, list);
	assert_true(fakes_got(&f[0], 1, WIRE_COMM_READY, 1));
	assert_int_equal(f[0].ready[0].m.n_real, 2);
	assert_int_equal(f[0].ready[0].m.is_guess, 0);
	says("\"members\": \"job's list, exact\"");
	/* two lists */
	id = id_by(0, 1);
	init_told(&f[0], id, 0, 0, list);
	init_told(&f[2], id, 1, 2, other);
	assert_true(fakes_got(&f[0], 1, WIRE_COMM_READY, 2));
	assert_int_equal(f[0].ready[1].m.is_guess, 1);
	daemon_will_say(&d, "neither is believed");
	/* a list without its sender: world rank 0 says that it is rank 1 */
	id = id_by(0, 2);
	init_told(&f[3], id, 0, 3, wrong);
	init_told(&f[0], id, 1, 0, wrong);
	assert_true(fakes_got(&f[3], 1, WIRE_COMM_READY, 1));
	daemon_will_say(&d, "is not believed: rank 1 says that it is world rank 0");
	/* a list with a virtual rank twice */
	id = id_by(0, 3);
	init_told(&f[1], id, 0, 1, twice);
	assert_true(fakes_got(&f[1], 1, WIRE_COMM_READY, 1));
	assert_int_equal(f[1].ready[0].m.is_guess, 1);
	daemon_will_say(&d, "is not believed: world rank 61 is in it twice");
	end(&d, 4);
}

/* A process of two devices that has one RANK only, and no communicator of the world yet. */
static void one_world_rank_is_no_two_members(void **state)
{
	const char *const args[] = {"--nodes", "16", NULL};
	struct wire_unique_id id = id_by(0, 0);
	struct daemon d;

	(void)state;
	start(&d, args, 1);
	init(&f[0], &id, 2, 0, 3);
	init(&f[0], &id, 2, 1, 3);
	assert_true(fakes_got(f, 1, WIRE_ABORT, 2));
	assert_non_null(strstr(f[0].abort.text, "both say that they are world rank 3"));
	end(&d, 1);
}

/* Real ranks 0 to 3 of 64 make a communicator of the world. */
static void start_world(struct daemon *d, const char *const *args)
{
	struct wire_unique_id id = id_by(0, 0);

	start(d, args, 4);
	for (uint32_t i = 0; i < 4; i++)
		init(&f[i], &id, 64, i, i);
	assert_true(fakes_got(f, 4, WIRE_COMM_READY, 1));
}

static void split_with_list(uint32_t rank, int32_t color, int32_t key, const uint32_t *list,
			    size_t n)
{
	struct {
		struct wire_comm_split m;
		uint32_t list[8];
	} body = {.m = {.parent = f[rank].ready[0].comm,
			.rank = rank,
			.color = color,
			.key = key,
			.cookie = 2}};

	memcpy(body.list, list, n * sizeof(*list));
	fake_send(&f[rank], WIRE_COMM_SPLIT, body.m.parent, rank, 0, &body,
		  sizeof(body.m) + n * sizeof(*list));
}

/* Colors that say nothing (PyTorch 2.11's split_group) with lists that say all. */
static void lists_say_what_colors_do_not(void **state)
{
	const char *const args[] = {"--nodes", "16", NULL};
	struct daemon d;

	(void)state;
	start_world(&d, args);
	for (uint32_t i = 0; i < 4; i++)
		split_with_list(i, (int32_t)i, 0,
				(const uint32_t[]){i, i + 7, i + 11, i + 30, i + 40}, 5);
	assert_true(fakes_got(f, 4, WIRE_COMM_READY, 2));
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(f[i].ready[1].m.n_ranks, 5);
		assert_int_equal(f[i].ready[1].m.is_guess, 0);
	}
	end(&d, 4);
}

/* A negative key is no place in a list: ranks 0 and 1 send a list with rank 0's place only, ranks
 * 2 and 3 one without any of theirs. nboxd answers all four. */
static void every_voter_of_a_split_is_answered_whatever_its_list_says(void **state)
{
	const char *const args[] = {"--nodes", "16", "--layout", "tp=4,dp=16", NULL};
	struct daemon d;

	(void)state;
	start_world(&d, args);
	for (uint32_t i = 0; i < 4; i++)
		split_with_list(i, (int32_t)i / 2, i ? -1 : 0,
				(const uint32_t[]){i / 2 ? 10 : 0, 11}, 2);
	assert_true(fakes_got(f, 4, WIRE_COMM_READY, 2));
	end(&d, 4);
}

/* --- the store -------------------------------------------------------------------------- */

static int store_connect(const struct daemon *d)
{
	struct sockaddr_in a = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint8_t hello[5] = {STORE_VALIDATE};
	uint32_t magic = STORE_MAGIC;
	unsigned port = 0;

	assert_int_equal(sscanf(d->store, "127.0.0.1:%u", &port), 1);
	a.sin_port = htons((uint16_t)port);
	inet_pton(AF_INET, "127.0.0.1", &a.sin_addr);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	memcpy(hello + 1, &magic, 4);
	assert_int_equal(write(fd, hello, sizeof(hello)), sizeof(hello));
	return fd;
}

static void store_put(int fd, uint8_t op, const char *key, const void *value, uint64_t n)
{
	uint8_t b[512] = {op};
	uint64_t n_key = strlen(key);
	size_t k = 1;

	memcpy(b + k, &n_key, 8);
	memcpy(b + k + 8, key, n_key);
	k += 8 + n_key;
	if (op == STORE_SET) {
		memcpy(b + k, &n, 8);
		memcpy(b + k + 8, value, n);
		k += 8 + n;
	}
	assert_int_equal(write(fd, b, k), k);
}

/* SET has no answer; the answer to this GET shows that it was done. */
static void store_get(int fd, const char *key, void *ret, uint64_t n)
{
	uint8_t b[512];
	size_t got = 0;

	store_put(fd, STORE_GET, key, NULL, 0);
	while (got < 8 + n) {
		struct pollfd p = {fd, POLLIN, 0};
		ssize_t r;

		assert_int_equal(poll(&p, 1, 20000), 1);
		r = read(fd, b + got, sizeof(b) - got);
		assert_true(r > 0);
		got += (size_t)r;
	}
	memcpy(ret, b + 8, n);
}

/* Point-to-point communicators: rank 5 of the world with its neighbours 4 and 6 (all
 * virtual but 5), and inside a group with known members. */
static void keys_of_the_store_name_pairs(void **state)
{
	const char *const args[] = {"--nodes",  "4",           "--real",   "4-7",
				    "--store",  "127.0.0.1:0", "--settle", "60s",
				    "--layout", "tp=4,dp=4",   NULL};
	struct wire_unique_id id = id_by(5, 0), got;
	struct daemon d;
	int fd;

	(void)state;
	start(&d, args, 4);
	fd = store_connect(&d);
	store_put(fd, STORE_SET, "/default_pg/0//cuda//5:9", &id, sizeof(id));
	store_get(fd, "/default_pg/0//cuda//5:9", &got, sizeof(got));
	assert_memory_equal(&got, &id, sizeof(id));
	init(&f[1], &id, 2, 0, 5);
	assert_true(fakes_got(&f[1], 1, WIRE_COMM_READY, 1));
	says("\"members\": \"store, exact\"");
	/* group 3 is dp through rank 6: 2, 6, 10, 14; then its pair of ranks 1 and 3 */
	id = id_by(6, 0);
	store_put(fd, STORE_SET, "/default_pg/0//3//cuda//0", &id, sizeof(id));
	store_get(fd, "/default_pg/0//3//cuda//0", &got, sizeof(got));
	init(&f[2], &id, 4, 1, 6);
	assert_true(fakes_got(&f[2], 1, WIRE_COMM_READY, 1));
	id = id_by(6, 1);
	store_put(fd, STORE_SET, "/default_pg/0//3//cuda//1:3", &id, sizeof(id));
	store_get(fd, "/default_pg/0//3//cuda//1:3", &got, sizeof(got));
	init(&f[2], &id, 2, 0, 6);
	assert_true(fakes_got(&f[2], 1, WIRE_COMM_READY, 2));
	assert_int_equal(f[2].ready[1].m.is_guess, 0);
	/* two real ones: both are waited for */
	id = id_by(4, 0);
	store_put(fd, STORE_SET, "/default_pg/0//cuda//4:7", &id, sizeof(id));
	store_get(fd, "/default_pg/0//cuda//4:7", &got, sizeof(got));
	init(&f[3], &id, 2, 1, 7);
	init(&f[0], &id, 2, 0, 4);
	assert_true(fakes_got(&f[0], 1, WIRE_COMM_READY, 1));
	assert_int_equal(f[0].ready[0].m.n_real, 2);
	close(fd);
	end(&d, 4);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_guess_is_made_when_every_real_rank_has_come_somewhere),
		cmocka_unit_test(the_maker_of_the_id_is_waited_for),
		cmocka_unit_test(what_the_layout_leaves_no_choice_about_is_ready_at_once),
		cmocka_unit_test(the_color_is_the_hash_of_the_list),
		cmocka_unit_test(the_child_of_a_guess_is_a_guess),
		cmocka_unit_test(the_jobs_lists_are_believed_where_they_agree),
		cmocka_unit_test(one_world_rank_is_no_two_members),
		cmocka_unit_test(lists_say_what_colors_do_not),
		cmocka_unit_test(every_voter_of_a_split_is_answered_whatever_its_list_says),
		cmocka_unit_test(keys_of_the_store_name_pairs),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
