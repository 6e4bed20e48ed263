/* nboxd.addr: what is written is read again, by its owner alone; what is none of it is refused. */
#include <errno.h>
#include <stdint.h>

#include "cmocka-all.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "config/addr-file.h"

static void what_is_written_is_read(void **state)
{
	struct addr_file a = {.addr = "shm:@nbox-1-2", .token = "a b\n\xff#", .pid = 77}, b;
	char dir[] = "/tmp/nbox-addr-XXXXXX", path[64];
	struct err err = {""};
	mode_t before = umask(0);
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/%s", dir, ADDR_FILE_NAME);
	assert_int_equal(addr_file_read(dir, &b, &err), -ENOENT);
	assert_int_equal(addr_file_write(dir, &a, &err), 0);
	umask(before);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(addr_file_read(dir, &b, &err), 0);
	assert_string_equal(b.addr, a.addr);
	assert_string_equal(b.token, a.token);
	assert_int_equal(b.pid, 77);
	/* somebody else's is left alone */
	assert_int_equal(addr_file_write(dir, &a, &err), -EEXIST);
	assert_non_null(strstr(err.text, "choose another"));
	addr_file_remove(dir);
	assert_int_equal(addr_file_read(dir, &b, &err), -ENOENT);
	/* a link is not followed */
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_true(addr_file_write(dir, &a, &err) < 0);
	addr_file_remove(dir);
	rmdir(dir);
}

static void a_file_of_somebody_else_is_refused(void **state)
{
	static const char *const wrong[] = {"",
					    "addr x\n",
					    "pid 1\n",
					    "addr x\npid 0\n",
					    "addr x\npid 1x\n",
					    "addr x y\npid 1\n",
					    "addr x\npid 1\ntoken 6\n",
					    "addr x\npid 1\ntoken 6G\n",
					    "addr x\npid 1\ntoken 00\n",
					    "addr x\npid 1\nother 1\n",
					    "addr \npid 1\n",
					    "addr x\npid 1\ntoken\n"};
	struct err err;
	struct addr_file a;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		err.text[0] = 0;
		if (addr_file_parse(wrong[i], strlen(wrong[i]), &a, &err) != -EINVAL ||
		    !err.text[0])
			fail_msg("accepted: %s", wrong[i]);
	}
	assert_int_equal(addr_file_parse("addr x\npid 1\ntoken ", 19, &a, &err), 0);
	assert_string_equal(a.token, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(a_file_of_somebody_else_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
