/* See compare.h. */
#include <errno.h>
#include <jansson.h>
#include <math.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "nbox/shard/compare.h"

/* The most of any GPU. */
static struct shard_gpu most_of(const struct shard_task *t, const struct shard_row *row)
{
	struct shard_gpu most = {.bytes = 0};

	for (uint32_t g = 0; g < t->job.n_gpus; g++) {
		const struct shard_gpu *gpu = &row->plan.gpus[g];

		most.bytes = fmax(most.bytes, gpu->bytes);
		most.forward_ns = fmax(most.forward_ns, gpu->forward_ns);
		most.backward_ns = fmax(most.backward_ns, gpu->backward_ns);
	}
	return most;
}

static double regret(const struct shard_task *t, const struct shard_row *row)
{
	return 100 * (row->ns / t->rows[t->best].ns - 1);
}

static double error_pct(const struct shard_row *row)
{
	return 100 * (row->ns / row->emulated_ns - 1);
}

static void print_row(const struct shard_task *t, const struct shard_row *row, FILE *to)
{
	struct shard_gpu most;
	char bytes[32], memory[32];

	fprintf(to, "%-12s", sharder_names[row->sharder]);
	if (row->is_full) {
		fprintf(to, "  table %u has no room on its GPU\n", row->full);
		return;
	}
	most = most_of(t, row);
	fprintf(to, "%11.3f%11.3f%12s%12s%8.3f%12.3f%15.3f%9.1f %%", most.forward_ns / 1e6,
		most.backward_ns / 1e6,
		units_print_bytes((uint64_t)most.bytes, memory, sizeof(memory)),
		units_print_bytes(row->plan.skew.bytes, bytes, sizeof(bytes)),
		row->plan.skew.even > 0 ? (double)row->plan.skew.bytes / row->plan.skew.even : 1,
		row->alltoall_ns / 1e6, row->ns / 1e6, regret(t, row));
	if (t->is_emulated)
		fprintf(to, "%14.3f%8.2f %%", row->emulated_ns / 1e6, error_pct(row));
	fprintf(to, "%s\n", row == &t->rows[t->best] ? "  <- picked" : "");
}

void shard_print(const struct shard_task *t, FILE *to)
{
	fprintf(to, "# %s: %u tables on %u GPUs, batch %.0f\n", t->file, t->job.n_tables,
		t->job.n_gpus, t->job.batch);
	fprintf(to, "%-12s%11s%11s%12s%12s%8s%12s%15s%11s", "sharder", "lookup, ms", "back, ms",
		"memory", "alltoall", "skew", "takes, ms", "iteration, ms", "regret");
	fprintf(to, "%s\n", t->is_emulated ? "  emulated, ms     error" : "");
	for (uint32_t i = 0; i < t->n; i++)
		print_row(t, &t->rows[i], to);
	if (t->best == t->n)
		fprintf(to, "no plan fits the GPUs' memory\n");
}

void shard_print_picks(const struct shard_task *tasks, uint32_t n, FILE *to)
{
	uint32_t n_good = 0, n_exact = 0, n_rows = 0, n_tasks = 0;
	double off = 0;

	fprintf(to, "%-24s%-14s%-14s%12s%12s%10s\n", "task", "picked", "fastest", "picked, ms",
		"best, ms", "error");
	for (uint32_t i = 0; i < n; i++) {
		const struct shard_task *t = &tasks[i];
		const struct shard_row *picked, *fastest;

		if (t->best == t->n)
			continue;
		picked = &t->rows[t->pick.picked];
		fastest = &t->rows[t->pick.fastest];
		fprintf(to, "%-24s%-14s%-14s%12.3f%12.3f%8.2f %%%s\n", t->file,
			sharder_names[picked->sharder], sharder_names[fastest->sharder],
			picked->emulated_ns / 1e6, fastest->emulated_ns / 1e6, 100 * t->pick.excess,
			t->pick.is_success ? "" : "  missed");
		n_tasks++;
		n_good += t->pick.is_success;
		n_exact += t->pick.excess == 0;
		for (uint32_t k = 0; k < t->n; k++)
			if (!t->rows[k].is_full) {
				off += error_pct(&t->rows[k]);
				n_rows++;
			}
	}
	if (n_tasks)
		fprintf(to,
			"%u of %u picks are good (the fastest, or less than %g %% behind it), %u of them the fastest;\n"
			"predicted against emulated: %+.2f %% in the mean. Both by the same models: no GPU was asked.\n",
			n_good, n_tasks, 100 * PICK_NEAR, n_exact, off / n_rows);
}

/* --- JSON ----------------------------------------------------------------------- */

static json_t *row_json(const struct shard_task *t, const struct shard_row *row)
{
	json_t *o = json_pack("{s:s, s:b}", "sharder", sharder_names[row->sharder], "fits",
			      !row->is_full);
	json_t *gpu_of = json_array(), *gpus = json_array();

	for (uint32_t i = 0; i < t->job.n_tables && !row->is_full; i++)
		json_array_append_new(gpu_of, json_integer(row->gpu_of[i]));
	for (uint32_t g = 0; g < t->job.n_gpus && !row->is_full; g++) {
		const struct shard_gpu *gpu = &row->plan.gpus[g];

		json_array_append_new(gpus,
				      json_pack("{s:f, s:f, s:f, s:I}", "bytes", gpu->bytes,
						"lookup_ms", gpu->forward_ns / 1e6, "backward_ms",
						gpu->backward_ns / 1e6, "bytes_to_each",
						(json_int_t)gpu->pair_bytes));
	}
	json_object_set_new(o, "gpu_of_table", gpu_of);
	json_object_set_new(o, "gpus", gpus);
	if (row->is_full)
		return o;
	json_object_set_new(o, "alltoall_bytes", json_integer((json_int_t)row->plan.skew.bytes));
	json_object_set_new(o, "alltoall_even_bytes", json_real(row->plan.skew.even));
	json_object_set_new(o, "alltoall_ms", json_real(row->alltoall_ns / 1e6));
	json_object_set_new(o, "iteration_ms", json_real(row->ns / 1e6));
	json_object_set_new(o, "regret_pct", json_real(regret(t, row)));
	if (t->is_emulated) {
		json_object_set_new(o, "emulated_ms", json_real(row->emulated_ns / 1e6));
		json_object_set_new(o, "error_pct", json_real(error_pct(row)));
	}
	return o;
}

json_t *shard_json(const struct shard_task *tasks, uint32_t n, const struct config *c)
{
	json_t *list = json_array();
	char model[512];

	for (uint32_t i = 0; i < n; i++) {
		const struct shard_task *t = &tasks[i];
		json_t *rows = json_array(), *task;

		for (uint32_t k = 0; k < t->n; k++)
			json_array_append_new(rows, row_json(t, &t->rows[k]));
		task = json_pack("{s:s, s:i, s:i, s:f, s:o}", "tables", t->file, "n_tables",
				 (int)t->job.n_tables, "gpus", (int)t->job.n_gpus, "batch",
				 t->job.batch, "plans", rows);
		json_object_set_new(task, "picked",
				    t->best < t->n
					    ? json_string(sharder_names[t->rows[t->best].sharder])
					    : json_null());
		if (t->is_emulated && t->best < t->n) {
			json_object_set_new(
				task, "fastest",
				json_string(sharder_names[t->rows[t->pick.fastest].sharder]));
			json_object_set_new(task, "pick_error_pct",
					    json_real(100 * t->pick.excess));
			json_object_set_new(task, "pick_is_good", json_boolean(t->pick.is_success));
		}
		json_array_append_new(list, task);
	}
	return json_pack("{s:s, s:o}", "model", config_model(c, model, sizeof(model)), "tasks",
			 list);
}
