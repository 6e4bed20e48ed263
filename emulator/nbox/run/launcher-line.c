/* See launcher-line.h; the launchers' options: launcher-options.h. */
#include "nbox/run/launcher-line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "nbox/run/launcher-options.h"

/* --- what it says ------------------------------------------------------------------------ */

static int number(const struct launcher_line *l, const char *option, const char *text, uint64_t max,
		  uint64_t *ret, struct err *err)
{
	uint64_t n;

	if (units_count(text, &n, NULL) < 0 || n > max)
		return err_set(err, EINVAL, "%s: %s: '%.64s' is no number from 0 to %llu", l->name,
			       option, text, (unsigned long long)max);
	*ret = n;
	return 0;
}

static uint32_t count_hosts(const char *list)
{
	uint32_t n = 0;

	for (const char *p = list; *p; p++)
		n += *p != ',' && (p == list || p[-1] == ',');
	return n;
}

/* Lines that are neither empty nor comments. 0: no such file. */
static uint32_t count_lines(const char *path)
{
	FILE *f = fopen(path, "re");
	char line[4096];
	uint32_t n = 0;

	while (f && fgets(line, sizeof(line), f)) {
		size_t at = strspn(line, " \t");

		n += line[at] != '\n' && line[at] != '#' && line[at] != 0;
	}
	if (f)
		fclose(f);
	return n;
}

static int read_value(struct launcher_line *l, const char *option, const struct launcher_found *f,
		      struct err *err)
{
	const char *text = f->value ? f->value : "";
	const char *colon;
	uint64_t n = 0;
	int r = 0;

	switch (f->class) {
	case LAUNCHER_NODES:
		colon = strpbrk(text, ":-");
		l->is_range = colon && strncmp(text, colon + 1, (size_t)(colon - text)) != 0;
		r = number(l, option, colon ? colon + 1 : text, 65536, &n, err);
		l->n_nodes = (uint32_t)n;
		l->has_cluster |= n > 1;
		break;
	case LAUNCHER_TOTAL:
		r = number(l, option, text, 65536, &n, err);
		l->n_total = (uint32_t)n;
		if (l->kind == LAUNCHER_SRUN) /* goes before SLURM_NTASKS_PER_NODE */
			l->n_procs = 0;
		break;
	case LAUNCHER_PROCS:
		l->n_procs = 0;
		if (l->kind == LAUNCHER_TORCHRUN &&
		    (strcmp(text, "gpu") == 0 || strcmp(text, "auto") == 0)) {
			l->n_procs = UINT32_MAX; /* as many as there are devices */
			break;
		}
		r = number(l, option, text, 1024, &n, err);
		l->n_procs = (uint32_t)n;
		break;
	case LAUNCHER_RANK:
		/* "$SLURM_NODEID" that is not set: the launcher says it better */
		if (!*text)
			break;
		r = number(l, option, text, 65535, &n, err);
		l->node_rank = (int64_t)n;
		l->has_cluster = true;
		break;
	case LAUNCHER_HOSTS:
		n = count_hosts(text);
		l->n_nodes = n ? (uint32_t)n : l->n_nodes;
		l->has_cluster = true;
		break;
	case LAUNCHER_HOSTFILE:
		n = count_lines(text);
		if (n && !l->n_nodes)
			l->n_nodes = (uint32_t)n;
		l->has_cluster = true;
		break;
	case LAUNCHER_SLOTS:
		if (strncmp(text, "localhost:", 10) == 0 && !strchr(text, '@'))
			l->n_procs = count_hosts(text + 10); /* GPUs of this machine, by number */
		else
			l->has_cluster = true;
		break;
	case LAUNCHER_ADDR:
		l->has_cluster = true;
		break;
	case LAUNCHER_MAP:
		if (sscanf(text, "ppr:%u:node", &l->n_procs) == 1)
			l->has_cluster = true;
		break;
	case LAUNCHER_STANDALONE:
		l->is_standalone = true;
		break;
	case LAUNCHER_KEEP:
	case LAUNCHER_RDZV:
	case LAUNCHER_CLASSES:
	default:
		break;
	}
	return r;
}

/* Variables that the launchers take for options. */
static int read_variables(struct launcher_line *l, const char *(*get)(const char *),
			  struct err *err)
{
	static const struct {
		enum launcher_kind kind;
		const char *name;
		enum launcher_class class;
	} vars[] = {
		{LAUNCHER_TORCHRUN, "PET_NNODES", LAUNCHER_NODES},
		{LAUNCHER_TORCHRUN, "PET_NODE_RANK", LAUNCHER_RANK},
		{LAUNCHER_TORCHRUN, "PET_NPROC_PER_NODE", LAUNCHER_PROCS},
		{LAUNCHER_SRUN, "SLURM_NNODES", LAUNCHER_NODES},
		{LAUNCHER_SRUN, "SLURM_NTASKS", LAUNCHER_TOTAL},
		{LAUNCHER_SRUN, "SLURM_NTASKS_PER_NODE", LAUNCHER_PROCS},
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(vars); i++) {
		struct launcher_found f = {vars[i].class, get(vars[i].name), 1};

		if (vars[i].kind == l->kind && f.value && *f.value)
			r = read_value(l, vars[i].name, &f, err);
	}
	return r;
}

int launcher_line_read(char *const *command, const char *(*get)(const char *name),
		       struct launcher_line *ret, struct err *err)
{
	const struct launcher *launcher;
	struct launcher_line l = {.node_rank = -1};
	size_t at = 0;
	int r;

	launcher = launcher_find(command, &at);
	if (!launcher) {
		*ret = l;
		return 0;
	}
	l.kind = launcher_kind(launcher);
	l.name = launcher_kind(launcher) == LAUNCHER_MPIRUN ? basename(command[at - 1])
							    : launcher_name(launcher);
	l.options_at = at;
	while (command[l.n_words])
		l.n_words++;
	l.words = calloc(l.n_words + 1, sizeof(*l.words));
	l.class_of = calloc(l.n_words + 1, 1);
	if (!l.words || !l.class_of) {
		launcher_line_deinit(&l);
		return err_set(err, ENOMEM, "out of memory");
	}
	memcpy(l.words, command, l.n_words * sizeof(*l.words));
	r = read_variables(&l, get, err);
	while (r == 0 && at < l.n_words) {
		struct launcher_found f;
		char option[64];

		if (!launcher_take(launcher, command + at, &f))
			break;
		memset(l.class_of + at, (int)f.class, f.n_words);
		snprintf(option, sizeof(option), "%.*s", (int)strcspn(command[at], "="),
			 command[at]);
		r = read_value(&l, option, &f, err);
		at += f.n_words;
	}
	l.script_at = at;
	if (r < 0) {
		launcher_line_deinit(&l);
		return r;
	}
	*ret = l;
	return 0;
}

void launcher_line_deinit(struct launcher_line *l)
{
	free(l->words);
	free(l->class_of);
	l->words = NULL;
	l->class_of = NULL;
}

/* --- how many ranks it starts here ------------------------------------------------------- */

int launcher_line_procs(const struct launcher_line *l, uint32_t n_nodes, uint32_t gpus,
			uint32_t n_devices, uint32_t *ret, struct err *err)
{
	uint32_t n = l->n_procs;

	if (n == UINT32_MAX) {
		n = gpus ? gpus : n_devices;
		if (!n)
			return err_set(err, EINVAL,
				       "%s is to start a rank on each GPU, and there is none",
				       l->name);
	}
	if (!n && l->n_total) {
		if (l->n_nodes > 1 && l->n_total % l->n_nodes)
			return err_set(err, EINVAL,
				       "%s: %u processes are no multiple of %u machines", l->name,
				       l->n_total, l->n_nodes);
		if (l->n_nodes > 1)
			n = l->n_total / l->n_nodes;
		else if (gpus && n_nodes > 1 && (uint64_t)l->n_total == (uint64_t)n_nodes * gpus)
			n = gpus; /* the number is the virtual cluster's */
		else
			n = l->n_total;
	}
	if (!n && l->kind == LAUNCHER_TORCHRUN)
		n = 1; /* its default */
	if (!n && l->kind == LAUNCHER_SRUN)
		n = gpus ? gpus : 1;
	if (!n)
		n = gpus ? gpus : n_devices;
	if (!n)
		return err_set(err, EINVAL,
			       "%s does not say how many ranks it starts on this machine: say "
			       "--gpus-per-node before the command",
			       l->name);
	*ret = n;
	return 0;
}

/* --- the command for one machine ------------------------------------------------------------ */

/* Words to put in, by launcher. Return: how many; each strdup'ed into one growing block. */
static size_t new_options(const struct launcher_line *l, uint32_t n_procs, int port,
			  const char *here, char out[10][64])
{
	size_t n = 0;

	switch (l->kind) {
	case LAUNCHER_TORCHRUN:
		if (l->is_standalone)
			break;
		snprintf(out[n++], 64, "--master-addr=127.0.0.1");
		snprintf(out[n++], 64, "--master-port=%d", port);
		break;
	case LAUNCHER_ACCELERATE:
		snprintf(out[n++], 64, "--num_machines=1");
		snprintf(out[n++], 64, "--machine_rank=0");
		snprintf(out[n++], 64, "--num_processes=%u", n_procs);
		snprintf(out[n++], 64, "--main_process_port=%d", port);
		break;
	case LAUNCHER_DEEPSPEED:
		snprintf(out[n++], 64, "--hostfile=/dev/null");
		snprintf(out[n++], 64, "--num_nodes=1");
		snprintf(out[n++], 64, "--num_gpus=%u", n_procs);
		snprintf(out[n++], 64, "--master_addr=127.0.0.1");
		snprintf(out[n++], 64, "--master_port=%d", port);
		break;
	case LAUNCHER_SRUN:
		snprintf(out[n++], 64, "--nodes=1");
		snprintf(out[n++], 64, "--ntasks=%u", n_procs);
		snprintf(out[n++], 64, "--ntasks-per-node=%u", n_procs);
		if (here && strlen(here) < 48)
			snprintf(out[n++], 64, "--nodelist=%s", here);
		break;
	case LAUNCHER_MPIRUN:
		snprintf(out[n++], 64, "-np");
		snprintf(out[n++], 64, "%u", n_procs);
		break;
	case LAUNCHER_NONE:
	default:
		break;
	}
	return n;
}

/* Does this line start other ranks than @n_procs here, or speak of other machines? */
static bool must_change(const struct launcher_line *l, uint32_t n_procs)
{
	if (l->kind == LAUNCHER_NONE)
		return false;
	if (l->has_cluster)
		return true;
	return l->n_total && l->n_total != n_procs;
}

static int add_text(char **text, const char *word)
{
	char *more;

	if (asprintf(&more, "%s %s", *text, word) < 0)
		return -ENOMEM;
	free(*text);
	*text = more;
	return 0;
}

int launcher_line_local(const struct launcher_line *l, uint32_t n_procs, int port, const char *here,
			char ***ret_argv, char **ret_changed)
{
	CLEANUP(freep) char *dropped = strdup("");
	CLEANUP(freep) char *added = strdup("");
	char extra[10][64], *changed = NULL, *texts;
	size_t n_extra = 0, n = 0;
	char **argv;
	int r = 0;

	if (!must_change(l, n_procs)) {
		*ret_changed = NULL;
		*ret_argv = calloc(l->n_words + 1, sizeof(**ret_argv));
		if (!*ret_argv)
			return -ENOMEM;
		memcpy(*ret_argv, l->words, l->n_words * sizeof(**ret_argv));
		return 0;
	}
	n_extra = new_options(l, n_procs, port, here, extra);
	/* one block: the array, then the texts of the new words */
	argv = calloc(1, (l->n_words + n_extra + 1) * sizeof(*argv) + sizeof(extra));
	if (!argv || !dropped || !added) {
		free(argv);
		return -ENOMEM;
	}
	texts = (char *)(argv + l->n_words + n_extra + 1);
	memcpy(texts, extra, sizeof(extra));
	for (size_t i = 0; r == 0 && i <= l->n_words; i++) {
		for (size_t k = 0; r == 0 && i == l->options_at && k < n_extra; k++) {
			argv[n++] = texts + 64 * k;
			r = add_text(&added, texts + 64 * k);
		}
		if (i == l->n_words)
			break;
		if (l->class_of[i] == LAUNCHER_KEEP || l->class_of[i] == LAUNCHER_STANDALONE ||
		    (l->class_of[i] == LAUNCHER_PROCS &&
		     l->kind == LAUNCHER_TORCHRUN)) /* as it is */
			argv[n++] = l->words[i];
		else if (r == 0)
			r = add_text(&dropped, l->words[i]);
	}
	if (r == 0 &&
	    asprintf(&changed, "%s runs on this machine alone, nbox plays the others:%s%s%s%s%s",
		     l->name, *dropped ? " without" : "", dropped, *dropped && *added ? "," : "",
		     *added ? " with" : "", added) < 0)
		r = -ENOMEM;
	if (r < 0) {
		free(argv);
		return r;
	}
	*ret_argv = argv;
	*ret_changed = changed;
	return 0;
}
