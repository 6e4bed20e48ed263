/* See screen.h. */
#include "nbox/status/screen.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"

#define TAKE "\033[?1049h\033[?25l"
#define GIVE_BACK "\033[?25h\033[?1049l"

volatile sig_atomic_t screen_signal;

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
static const int crashing[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};

static struct {
	struct termios before;
	bool has_keys;                          /* standard input is a terminal, and was changed */
	volatile sig_atomic_t is_taken, is_old; /* is_old: what is shown has another size */
} screen;

static void say(const char *text)
{
	ssize_t n = write(STDOUT_FILENO, text, strlen(text));

	(void)n; /* the terminal has gone */
}

/* Also in handlers of signals. */
static void take(void)
{
	struct termios now = screen.before;

	now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	if (screen.has_keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &now);
	say(TAKE);
	screen.is_taken = 1;
}

static void give_back(void)
{
	if (!screen.is_taken)
		return;
	screen.is_taken = 0;
	say(GIVE_BACK);
	if (screen.has_keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &screen.before);
}

static void on_end(int number)
{
	screen_signal = number;
}

static void on_crash(int number)
{
	give_back();
	raise(number); /* SA_RESETHAND */
}

static void on_stop(int number)
{
	int before = errno;

	(void)number;
	give_back();
	raise(SIGSTOP);
	take();
	screen.is_old = 1;
	errno = before;
}

static void on_size(int number)
{
	(void)number;
	screen.is_old = 1;
}

static void handle(const int *numbers, size_t n, void (*handler)(int), int flags)
{
	struct sigaction a = {.sa_handler = handler, .sa_flags = flags};

	for (size_t i = 0; i < n; i++)
		sigaction(numbers[i], &a, NULL);
}

int screen_open(void)
{
	screen.has_keys = isatty(STDIN_FILENO);
	if (screen.has_keys && tcgetattr(STDIN_FILENO, &screen.before) < 0)
		return -errno;
	screen_signal = 0;
	handle(ending, ARRAY_SIZE(ending), on_end, 0);
	handle(crashing, ARRAY_SIZE(crashing), on_crash, (int)SA_RESETHAND);
	handle((const int[]){SIGTSTP}, 1, on_stop, 0);
	handle((const int[]){SIGWINCH}, 1, on_size, 0);
	take();
	return 0;
}

void screen_close(void)
{
	give_back();
	handle(ending, ARRAY_SIZE(ending), SIG_DFL, 0);
	handle(crashing, ARRAY_SIZE(crashing), SIG_DFL, 0);
	handle((const int[]){SIGTSTP, SIGWINCH}, 2, SIG_DFL, 0);
}

enum screen_event screen_wait(int ms)
{
	struct pollfd keys = {.fd = screen.has_keys ? STDIN_FILENO : -1, .events = POLLIN};
	int n = screen_signal ? 0 : poll(&keys, 1, ms);
	char c = 0;

	if (screen_signal || (n > 0 && read(STDIN_FILENO, &c, 1) <= 0))
		return SCREEN_QUIT;
	if (c == 'q' || c == 'Q')
		return SCREEN_QUIT;
	if (screen.is_old || n > 0) {
		screen.is_old = 0;
		return SCREEN_AGAIN;
	}
	return SCREEN_TIME;
}

void screen_size(unsigned *ret_columns, unsigned *ret_rows)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_col || !size.ws_row)
		size = (struct winsize){.ws_col = 80, .ws_row = 24};
	*ret_columns = size.ws_col;
	*ret_rows = size.ws_row;
}

int screen_show(const char *text)
{
	fputs("\033[H", stdout);
	for (; *text; text++)
		*text == '\n' ? fputs("\033[K\r\n", stdout) : putchar(*text);
	fputs("\033[J", stdout);
	return fflush(stdout) == EOF ? -EIO : 0;
}
