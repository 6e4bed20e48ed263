/* nbox doctor: what this machine has for nbox, what would be used, what is wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/suggest.h"
#include "base/units.h"
#include "nbox/commands.h"
#include "nbox/doctor/doctor.h"
#include "nbox/unknown.h"

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
		"GIDs, locked memory; sends messages over each link and measures them. What is given here,\n"
		"or in NBOX_LINK (or NBOX_ADDR), NBOX_IB_HCA and NBOX_DEVICE, has to work: exit code 1 if it does not.\n");
}

static int wrong_use(const char *what, const char *word)
{
	fprintf(stderr, "nbox doctor: %s '%s'; see nbox doctor --help\n", what, word);
	return 2;
}

/* Return: 0; 2 after a line when @value is none of the three @names. */
static int one_of(const char *what, const char *value, const char *const names[3])
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

static const char *const links[] = {"shm", "tcp", "rdma"};

/* As `nbox run` sees it: an address names its link. */
static const char *link_from_environment(void)
{
	const char *link = from_environment("NBOX_LINK"), *addr = from_environment("NBOX_ADDR");

	for (size_t i = 0; !link && addr && i < ARRAY_SIZE(links); i++)
		if (strncmp(addr, links[i], strlen(links[i])) == 0 && addr[strlen(links[i])] == ':')
			link = links[i];
	return link;
}

static int parse(struct doctor *d, int argc, char **argv, bool *is_json)
{
	static const char *const devices[] = {"auto", "host", "cuda"};
	static const char *const flags[] = {"--link", "--hca", "--device", "--json",
					    "--no-self-test"};
	const char **const targets[] = {&d->link, &d->hca, &d->device};
	int code;

	for (int i = 1; i < argc; i++) {
		const char *equals = strchr(argv[i], '=');
		size_t n = equals ? (size_t)(equals - argv[i]) : strlen(argv[i]), k;

		for (k = 0; k < ARRAY_SIZE(flags); k++)
			if (strlen(flags[k]) == n && strncmp(argv[i], flags[k], n) == 0)
				break;
		if (k == ARRAY_SIZE(flags))
			return unknown_option("doctor", argv[i], flags, ARRAY_SIZE(flags));
		if (k < ARRAY_SIZE(targets)) {
			if (!equals && i + 1 >= argc)
				return wrong_use("there is no value after", flags[k]);
			*targets[k] = equals ? equals + 1 : argv[++i];
		} else if (equals) {
			return wrong_use("no value belongs to", flags[k]);
		} else if (k == 3) {
			*is_json = true;
		} else {
			d->no_self_test = true;
		}
	}
	code = d->link ? one_of("link", d->link, links) : 0;
	return code ? code : one_of("device", d->device, devices);
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor d = {.findings = json_array(),
			   .link = link_from_environment(),
			   .hca = from_environment("NBOX_IB_HCA"),
			   .device = from_environment("NBOX_DEVICE")};
	bool is_json = false;
	int code;

	if (!d.device)
		d.device = "auto";
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") != 0 && strcmp(argv[i], "-h") != 0)
			continue;
		usage(stdout);
		json_decref(d.findings);
		return 0;
	}
	code = parse(&d, argc, argv, &is_json);
	if (code == 0 && d.hca && setenv("NBOX_IB_HCA", d.hca, 1) < 0) /* for the self-test */
		code = 1;
	if (code == 0) {
		doctor_programs(&d);
		doctor_rdma(&d);
		if (!d.no_self_test)
			doctor_links(&d);
		if (is_json) {
			code = print_json(&d);
		} else {
			doctor_print(&d);
			printf("\n`nbox run` would use: link %s, device %s. ", link_used(&d),
			       d.is_cuda ? "cuda" : "host");
			if (d.n_wrong)
				printf("%u of the things asked for %s wrong.\n", d.n_wrong,
				       d.n_wrong == 1 ? "is" : "are");
			else
				printf("Nothing that was asked for is wrong.\n");
		}
		code = code || d.n_wrong;
	}
	json_decref(d.findings);
	return code;
}
