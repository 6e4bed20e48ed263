/* nbox doctor: what this machine has for nbox, what would be used, what is wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/suggest.h"
#include "base/units.h"
#include "nbox/commands.h"
#include "nbox/doctor/doctor.h"

/* What `nbox run` would take. */
static const char *link_used(const struct doctor *d)
{
	return d->link ? d->link : "shm";
}

static int print_json(const struct doctor *d)
{
	json_t *j = json_pack("{s:O, s:{s:s, s:s}, s:i}", "findings", d->findings, "would_use",
			      "link", link_used(d), "device", d->is_cuda ? "cuda" : "host", "wrong",
			      (int)d->n_wrong);
	int r = j ? json_dumpf(j, stdout, JSON_INDENT(1)) : -1;

	putchar('\n');
	json_decref(j);
	return r < 0 || fflush(stdout) ? 1 : 0;
}

static void usage(FILE *to)
{
	fprintf(to,
		"usage: nbox doctor [--link shm|tcp|rdma] [--hca NAME] [--device auto|host|cuda] [--json]\n"
		"                   [--no-self-test]\n\n"
		"Looks at this machine: nbox's parts, CUDA and NCCL, RDMA devices with their ports and\n"
		"GIDs, locked memory; measures each link and one core's reductions. What is given here, or\n"
		"in NBOX_LINK (or NBOX_ADDR), NBOX_IB_HCA and NBOX_DEVICE, has to work: exit code 1 if it does not.\n");
}

/* Return: 0; 2 after a line when @value is none of the three @names. */
static int one_of(const char *what, const char *value, const char *const *names)
{
	const char *near = suggest(value, names, 3);

	for (size_t i = 0; i < 3; i++)
		if (strcmp(value, names[i]) == 0)
			return 0;
	fprintf(stderr, "nbox doctor: there is no %s '%s'%s%s%s %s, %s or %s\n", what, value,
		near ? "; did you mean '" : ":", near ? near : "", near ? "'? There are" : "",
		names[0], names[1], names[2]);
	return 2;
}

static const char *from_environment(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? value : NULL;
}

/* As `nbox run` sees it: an address names its link. */
static const char *link_from_environment(void)
{
	const char *link = from_environment("NBOX_LINK"), *addr = from_environment("NBOX_ADDR");

	for (const char *const *l = options[FLAG_LINK].choices; !link && addr && *l; l++)
		if (strncmp(addr, *l, strlen(*l)) == 0 && addr[strlen(*l)] == ':')
			link = *l;
	return link;
}

/* Return: 0; 1 help was given; 2 after a line. */
static int parse(struct doctor *d, int argc, char **argv, bool *is_json)
{
	struct option_word w;
	struct err err = {""};
	int i = 1, r = 0;

	while (i < argc) {
		r = option_take(COMMAND_DOCTOR, argc, argv, &i, &w, &err);
		if (r == OPTION_NONE)
			r = option_unknown(COMMAND_DOCTOR, argv[i], &err);
		if (r < 0) {
			fprintf(stderr, "nbox doctor: %s\n", err.text);
			return 2;
		}
		if (w.id == FLAG_HELP) {
			usage(stdout);
			return 1;
		}
		if (w.id == FLAG_AS_JSON)
			*is_json = true;
		else if (w.id == FLAG_NO_SELF_TEST)
			d->no_self_test = true;
		else
			*(w.id == FLAG_LINK  ? &d->link
			  : w.id == FLAG_HCA ? &d->hca
					     : &d->device) = w.value;
	}
	r = d->link ? one_of("link", d->link, options[FLAG_LINK].choices) : 0;
	return r ? r : one_of("device", d->device, options[FLAG_DEVICE].choices);
}

/* Return: the exit code. */
static int look(struct doctor *d, bool is_json)
{
	if (d->hca && setenv("NBOX_IB_HCA", d->hca, 1) < 0) /* for the self-test */
		return 1;
	doctor_programs(d);
	doctor_rdma(d);
	if (!d->no_self_test) {
		doctor_links(d);
		doctor_reduce(d);
	}
	if (is_json)
		return print_json(d) || d->n_wrong;
	doctor_print(d);
	printf("\n`nbox run` would use: link %s, device %s. ", link_used(d),
	       d->is_cuda ? "cuda" : "host");
	if (d->n_wrong)
		printf("%u of the things asked for %s wrong.\n", d->n_wrong,
		       d->n_wrong == 1 ? "is" : "are");
	else
		printf("Nothing that was asked for is wrong.\n");
	return d->n_wrong != 0;
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor d = {.findings = json_array(),
			   .link = link_from_environment(),
			   .hca = from_environment("NBOX_IB_HCA"),
			   .device = from_environment("NBOX_DEVICE")};
	bool is_json = false;
	int r;

	if (!d.device)
		d.device = "auto";
	r = parse(&d, argc, argv, &is_json);
	if (r == 0)
		r = look(&d, is_json);
	else
		r = r == 1 ? 0 : 2;
	json_decref(d.findings);
	return r;
}
