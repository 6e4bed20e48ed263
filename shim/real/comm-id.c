/* See comm-id.h. Changing its first letter hides the variable: unsetenv() and setenv() would move
 * what other threads are reading. The letter changes in a copy, since the job's own text may be a
 * literal (putenv()). */
#include "shim/real/comm-id.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int n_hiding;
static char *copy; /* in environ, or was; never freed: any thread may be reading it */

/* Its place in environ; NULL: not set. */
static char **find(void)
{
	static const char rest[] = "CCL_COMM_ID=";

	for (char **e = environ; e && *e; e++)
		if ((**e == 'N' || **e == 'n') && !strncmp(*e + 1, rest, sizeof(rest) - 1))
			return e;
	return NULL;
}

static void make_copy(void)
{
	char **variable = find();

	if (!variable || *variable == copy)
		return;
	if (!copy || strcmp(copy, *variable)) {
		char *text = strdup(*variable);

		if (!text)
			return;
		copy = text;
	}
	__atomic_store_n(variable, copy, __ATOMIC_RELEASE);
}

/* @letter: 'N' to show it. */
static void set(char letter)
{
	if (copy)
		__atomic_store_n(copy, letter, __ATOMIC_RELAXED);
}

const char *comm_id_get(void)
{
	char **variable = find();

	return variable ? strchr(*variable, '=') + 1 : NULL;
}

void comm_id_hide(void)
{
	pthread_mutex_lock(&lock);
	if (n_hiding++ == 0) {
		make_copy();
		set('n');
	}
	pthread_mutex_unlock(&lock);
}

void comm_id_show(void)
{
	pthread_mutex_lock(&lock);
	if (--n_hiding == 0)
		set('N');
	pthread_mutex_unlock(&lock);
}

void comm_id_in_child(void)
{
	pthread_mutex_init(&lock, NULL);
	n_hiding = 0;
	set('N');
}
