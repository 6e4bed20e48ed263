/* See layers.h. */
#include "buckets/layers.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/suggest.h"
#include "base/units.h"

#define FILE_MAX (4 << 20)
#define BYTES_MAX (UINT64_C(1) << 44)

enum key { FORWARD, BACKWARD, FUSED, PARAMS, OUT, TEMP, GRAD, KEPT, CHECKPOINT, KEYS };
static const char *const keys[KEYS] = {
	"forward", "backward", "fused", "params", "out", "temp", "grad", "kept", "checkpoint",
};

static int take_answer(const char *text, bool *ret, struct err *err)
{
	if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
		return err_set(err, EINVAL, "'%.60s' is neither yes nor no", text);
	*ret = text[0] == 'y';
	return 0;
}

static int take_bytes(const char *text, uint64_t *ret, struct err *err)
{
	uint64_t bytes;
	int r = units_bytes(text, &bytes, err);

	if (r < 0)
		return r;
	if (bytes > BYTES_MAX)
		return err_set(err, EINVAL, "'%.60s' is more than 16 TiB", text);
	*ret = bytes;
	return 0;
}

static int take_value(struct layer *l, enum key key, const char *value, struct err *err)
{
	bool is_kept;
	int r;

	switch ((int)key) {
	case FORWARD:
		return units_time(value, &l->forward_ns, err);
	case BACKWARD:
		return units_time(value, &l->backward_ns, err);
	case FUSED:
		return units_time(value, &l->fused_ns, err);
	case PARAMS:
		return take_bytes(value, &l->params_bytes, err);
	case OUT:
		return take_bytes(value, &l->out_bytes, err);
	case TEMP:
		return take_bytes(value, &l->temp_bytes, err);
	case GRAD:
		return take_bytes(value, &l->grad_bytes, err);
	case KEPT:
		r = take_answer(value, &is_kept, err);
		l->is_dropped = r == 0 && !is_kept;
		return r;
	default:
		return take_answer(value, &l->is_checkpoint, err);
	}
}

static int unknown(const char *word, struct err *err)
{
	const char *near = suggest_long(word, keys, KEYS);

	return err_set(err, EINVAL,
		       "unknown key '%.60s'%s%s%s there are forward, backward, fused (times), "
		       "params, out, temp, grad (bytes), kept, checkpoint (yes, no)",
		       word, near ? "; did you mean '" : ";", near ? near : "", near ? "'?" : "");
}

static int take_word(struct layer *l, char *word, unsigned *given, struct err *err)
{
	char *value = strchr(word, '=');
	int key = 0, r;

	if (!value || !value[1])
		return err_set(err, EINVAL, "'%.60s': key=value is wanted, such as backward=2ms",
			       word);
	*value++ = '\0';
	while (key < KEYS && strcmp(word, keys[key]) != 0)
		key++;
	if (key == KEYS)
		return unknown(word, err);
	if (*given & 1u << key)
		return err_set(err, EINVAL, "%s is given twice", word);
	*given |= 1u << key;
	r = take_value(l, (enum key)key, value, err);
	return r < 0 ? err_prefix(err, r, "%s", word) : 0;
}

/* "x24". Return: 1 taken; 0 it is another word; -EINVAL with the sentence. */
static int take_times(const char *word, uint64_t *ret, struct err *err)
{
	if (word[0] != 'x' || strchr(word, '='))
		return 0;
	if (units_count(word + 1, ret, err) < 0 || *ret == 0 || *ret > LAYERS_MAX)
		return err_set(err, EINVAL, "'%.60s': so many layers, x1 to x%d", word, LAYERS_MAX);
	return 1;
}

static int parse_line(char *text, struct layers *ls, struct err *err)
{
	struct layer layer = {.fused_ns = NAN}, *more;
	char *save = NULL, *word;
	unsigned given = 0;
	uint64_t n = 1;
	int r = 0;

	text[strcspn(text, "#")] = '\0';
	word = strtok_r(text, " \t\r", &save);
	if (!word)
		return 0;
	snprintf(layer.name, sizeof(layer.name), "%s", word);
	for (int i = 0; r >= 0 && (word = strtok_r(NULL, " \t\r", &save)); i++) {
		r = i == 0 ? take_times(word, &n, err) : 0;
		if (r == 0)
			r = take_word(&layer, word, &given, err);
	}
	if (r < 0)
		return r;
	if (!(given & 1u << BACKWARD))
		return err_set(err, EINVAL,
			       "%s needs how long its backward pass takes: backward=2ms",
			       layer.name);
	if (!(given & 1u << GRAD))
		layer.grad_bytes = layer.out_bytes;
	if (n > LAYERS_MAX - ls->n)
		return err_set(err, EINVAL, "there are more than %d layers", LAYERS_MAX);
	more = realloc(ls->list, (ls->n + n) * sizeof(*more));
	if (!more)
		return err_set(err, ENOMEM, "no memory for %llu layers", (unsigned long long)n);
	ls->list = more;
	while (n-- > 0)
		ls->list[ls->n++] = layer;
	return 0;
}

int layers_parse(const char *name, const char *text, struct layers *ret, struct err *err)
{
	CLEANUP(layers_deinit) struct layers ls = {.n = 0};
	CLEANUP(freep) char *copy = strdup(text);
	char *rest = copy, *line;
	unsigned number = 0;
	int r;

	if (!copy)
		return err_set(err, ENOMEM, "no memory for %s", name);
	while ((line = strsep(&rest, "\n"))) {
		number++;
		r = parse_line(line, &ls, err);
		if (r < 0)
			return err_prefix(err, r, "%s:%u", name, number);
	}
	if (ls.n == 0)
		return err_set(err, EINVAL, "%s: it has no layer", name);
	*ret = ls;
	ls.list = NULL;
	return 0;
}

int layers_read(const char *path, struct layers *ret, struct err *err)
{
	CLEANUP(freep) char *text = NULL;
	size_t n;
	int r = file_read(path, FILE_MAX, &text, &n, err);

	if (r == 0 && strlen(text) != n)
		return err_set(err, EINVAL, "%s: is no text, and no list of layers", path);
	return r < 0 ? r : layers_parse(path, text, ret, err);
}

void layers_deinit(struct layers *l)
{
	free(l->list);
	*l = (struct layers){.n = 0};
}
