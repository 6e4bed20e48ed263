/* Numbers for people; see units.h. */
#include <math.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/units.h"

struct scale {
	double factor;
	const char *name;
};

/* Three significant digits in the largest unit that is at most @value. */
static char *print_scaled(double value, const struct scale *scales, size_t n, char *buf,
			  size_t size)
{
	double magnitude = fabs(value), shown;
	size_t i = 0;

	while (i + 1 < n && magnitude >= scales[i + 1].factor * 0.9995)
		i++;
	shown = value / scales[i].factor;
	magnitude /= scales[i].factor;
	if (value == 0)
		snprintf(buf, size, "0 %s", scales[i].name);
	else
		snprintf(buf, size, "%.*f %s",
			 magnitude < 9.995   ? 2
			 : magnitude < 99.95 ? 1
					     : 0,
			 shown, scales[i].name);
	return buf;
}

char *units_print_time(double ns, char *buf, size_t size)
{
	static const struct scale scales[] = {{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}};

	return print_scaled(ns, scales, ARRAY_SIZE(scales), buf, size);
}

/* As a person would write it: "25 MB", of up to three digits. Return: NULL: no such number. */
static char *print_decimal(uint64_t bytes, char *buf, size_t size)
{
	static const char *const names[] = {"B", "KB", "MB", "GB", "TB"};
	uint64_t unit = 1, digits = bytes;
	size_t i = 0;

	while (digits % 10 == 0)
		digits /= 10;
	if (digits > 999)
		return NULL;
	for (; i + 1 < ARRAY_SIZE(names) && bytes / 1000 >= unit; i++)
		unit *= 1000;
	snprintf(buf, size, "%g %s", (double)bytes / (double)unit, names[i]);
	return buf;
}

char *units_print_bytes(uint64_t bytes, char *buf, size_t size)
{
	static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	uint64_t factor = 1;
	size_t i = 0;

	while (i + 1 < ARRAY_SIZE(names) && bytes / 1024 >= factor) {
		factor *= 1024;
		i++;
	}
	if (bytes % factor == 0)
		snprintf(buf, size, "%llu %s", (unsigned long long)(bytes / factor), names[i]);
	else if (bytes % (factor / 4) == 0 || !print_decimal(bytes, buf, size))
		snprintf(buf, size, "%.2f %s", (double)bytes / (double)factor, names[i]);
	return buf;
}
