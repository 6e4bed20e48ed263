/* The log: levels, shape of a line, file names, errno. */
#include "cmocka-all.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

static char dir[] = "/tmp/nbox-test-log-XXXXXX";
static char path[256];

static size_t read_log(char *buf, size_t size)
{
	int fd = open(path, O_RDONLY);
	ssize_t n;

	assert_true(fd >= 0);
	n = read(fd, buf, size - 1);
	assert_true(n >= 0);
	close(fd);
	buf[n] = '\0';
	assert_int_equal(truncate(path, 0), 0);
	return (size_t)n;
}

static int group_setup(void **state)
{
	char pattern[128];

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(pattern, sizeof(pattern), "%s/log.%%p", dir);
	snprintf(path, sizeof(path), "%s/log.%d", dir, (int)getpid());
	setenv("NBOX_DEBUG", "info", 1);
	setenv("NBOX_DEBUG_FILE", pattern, 1);
	log_open();
	return 0;
}

static int group_teardown(void **state)
{
	(void)state;
	unlink(path);
	rmdir(dir);
	return 0;
}

static void assert_matches(const char *text, const char *pattern)
{
	regex_t re;

	assert_int_equal(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
	assert_int_equal(regexec(&re, text, 0, NULL, 0), 0);
	regfree(&re);
}

static void a_line_names_host_process_thread_and_rank(void **state)
{
	char buf[4096];

	(void)state;
	log_warn("a %s", "b");
	read_log(buf, sizeof(buf));
	assert_matches(buf, "^[^:. ]+:[0-9]+:[0-9]+ nbox WARN a b\n$");
	log_set_rank(12);
	log_info("with a newline\n");
	read_log(buf, sizeof(buf));
	assert_matches(buf, "^[^:. ]+:[0-9]+:[0-9]+ \\[12\\] nbox INFO with a newline\n$");
	log_set_rank(-1);
	log_warn("%s", "a worker's\x1b[2J\nforged line\n");
	read_log(buf, sizeof(buf));
	assert_matches(buf, " nbox WARN a worker's\\?\\[2J\\?forged line\n$");
}

static void levels_decide_what_is_written(void **state)
{
	char buf[4096];

	(void)state;
	assert_true(log_enabled(LOG_ERROR) && log_enabled(LOG_INFO) && !log_enabled(LOG_DEBUG));
	log_debug("not %s", "seen");
	assert_int_equal(read_log(buf, sizeof(buf)), 0);
	log_set_level(LOG_TRACE);
	log_trace("seen");
	assert_true(read_log(buf, sizeof(buf)) > 0);
	log_set_level(LOG_INFO);
}

static void errno_is_kept(void **state)
{
	char buf[4096];

	(void)state;
	errno = ENOENT;
	log_error("why: %m");
	assert_int_equal(errno, ENOENT);
	read_log(buf, sizeof(buf));
	assert_non_null(strstr(buf, "why: No such file or directory\n"));
	errno = EPIPE;
	log_open();
	assert_int_equal(errno, EPIPE);
}

static void a_long_line_is_cut_and_ends(void **state)
{
	char big[5000], buf[8192];
	size_t n;

	(void)state;
	memset(big, 'y', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	log_warn("%s", big);
	n = read_log(buf, sizeof(buf));
	assert_true(n < 2100 && buf[n - 1] == '\n' && buf[n - 2] == 'y');
}

#define THREADS 4
#define LINES 500

static void *talk(void *arg)
{
	for (int i = 0; i < LINES; i++)
		log_info("thread %ld line %d end", (long)(intptr_t)arg, i);
	return NULL;
}

static void threads_do_not_mix_lines(void **state)
{
	static char buf[THREADS * LINES * 128];
	pthread_t threads[THREADS];
	int n = 0;

	(void)state;
	for (intptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, talk, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	read_log(buf, sizeof(buf));
	for (char *save, *line = strtok_r(buf, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save), n++)
		assert_string_equal(line + strlen(line) - 4, " end");
	assert_int_equal(n, THREADS * LINES);
}

/* Runs log_open() with stderr in a pipe. */
static void capture_open(const char *level, const char *file, char *buf, size_t size)
{
	int fds[2], saved = dup(STDERR_FILENO);
	ssize_t n;

	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	dup2(fds[1], STDERR_FILENO);
	setenv("NBOX_DEBUG", level, 1);
	setenv("NBOX_DEBUG_FILE", file, 1);
	log_open();
	dup2(saved, STDERR_FILENO);
	n = read(fds[0], buf, size - 1);
	buf[n > 0 ? n : 0] = '\0';
	close(saved);
	close(fds[0]);
	close(fds[1]);
}

static void bad_variables_are_told(void **state)
{
	char buf[1024], longname[9000];

	(void)state;
	capture_open("LOUD", "", buf, sizeof(buf));
	assert_non_null(strstr(buf, "NBOX_DEBUG=LOUD"));
	assert_non_null(strstr(buf, "ERROR WARN INFO DEBUG TRACE"));
	assert_true(log_enabled(LOG_INFO) && !log_enabled(LOG_DEBUG)); /* as it was */
	capture_open("INFO", "/nonexistent/folder/log", buf, sizeof(buf));
	assert_non_null(strstr(buf, "cannot open /nonexistent/folder/log: No such file"));
	memset(longname, 'a', sizeof(longname) - 1);
	longname[sizeof(longname) - 1] = '\0';
	capture_open("INFO", longname, buf, sizeof(buf));
	assert_non_null(strstr(buf, "too long"));
	capture_open("INFO", "", buf, sizeof(buf));
	assert_string_equal(buf, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_names_host_process_thread_and_rank),
		cmocka_unit_test(levels_decide_what_is_written),
		cmocka_unit_test(errno_is_kept),
		cmocka_unit_test(a_long_line_is_cut_and_ends),
		cmocka_unit_test(threads_do_not_mix_lines),
		cmocka_unit_test(bad_variables_are_told),
	};

	return cmocka_run_group_tests_name("log", tests, group_setup, group_teardown);
}
