/* See metric.h. */
#include "base/metric.h"

void metric_head(FILE *to, const char *name, const char *type, const char *help)
{
	fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metric_one(FILE *to, const char *name, const char *type, const char *help, double value)
{
	metric_head(to, name, type, help);
	fprintf(to, "%s %.15g\n", name, value);
}

void metric_label(FILE *to, const char *text)
{
	putc('"', to);
	for (; *text; text++)
		if (*text == '\n')
			fputs("\\n", to);
		else
			fprintf(to, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	putc('"', to);
}
