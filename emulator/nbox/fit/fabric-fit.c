/* See fabric-fit.h. */
#include "nbox/fit/fabric-fit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/units.h"
#include "fabric/read/write.h"
#include "nbox/fit/worlds.h"

#define WORSE 0.005 /* of a median error: less is no difference */

/* @fabric: as it was given. */
static void print_errors(const struct links_fit *fit, const char *fabric, FILE *to)
{
	fprintf(to,
		"errors at the %zu points held out      before             after\n"
		"                              median   worst     median   worst\n",
		fit->after[LINKS_ALL].n);
	for (int i = 0; i < LINKS_BANDS; i++) {
		const struct links_error *a = &fit->before[i], *b = &fit->after[i];

		if (b->n)
			fprintf(to, "  %-16s %6zu  %8.1f %% %5.0f %%  %7.1f %% %5.0f %%\n",
				links_band_names[i], b->n, 100 * a->median, 100 * a->worst,
				100 * b->median, 100 * b->worst);
	}
	for (int i = 0; i < LINKS_ALL; i++)
		if (fit->after[i].median > fit->before[i].median + WORSE)
			fprintf(to,
				"warning: sizes %s are further off by the fit: %.1f %%, %.1f %% before; "
				"--fabric %s as it was says them better\n",
				links_band_names[i], 100 * fit->after[i].median,
				100 * fit->before[i].median, fabric);
}

static void print_time(enum link_number i, double was_ns, double is_ns, const struct links_fit *fit,
		       FILE *to)
{
	char was[32], is[32];

	fprintf(to, "  %-20s x %-6.3f %s -> %s\n", link_number_names[i], fit->factors[i],
		units_print_time(was_ns, was, sizeof(was)),
		units_print_time(is_ns, is, sizeof(is)));
}

/* What each number was and is; of the first class. */
static void print_numbers(const struct fabric *before, const struct fabric *f,
			  const struct links_fit *fit, FILE *to)
{
	const struct fabric_class *a = &before->classes[0], *b = &f->classes[0];

	print_time(LINK_NET_LATENCY, before->network.latency_ns, f->network.latency_ns, fit, to);
	print_time(LINK_HOP_LATENCY, before->network.hop_latency_ns, f->network.hop_latency_ns, fit,
		   to);
	fprintf(to, "  %-20s x %-6.3f %.4g -> %.4g GB/s of %.4g\n",
		link_number_names[LINK_NIC_BANDWIDTH], fit->factors[LINK_NIC_BANDWIDTH],
		a->nic_bytes_per_ns * fabric_nic_efficiency(a),
		b->nic_bytes_per_ns * fabric_nic_efficiency(b), b->nic_bytes_per_ns);
	fprintf(to, "  %-20s x %-6.3f %.4g -> %.4g GB/s of %.4g\n",
		link_number_names[LINK_GPU_BANDWIDTH], fit->factors[LINK_GPU_BANDWIDTH],
		a->gpu_bytes_per_ns * fabric_gpu_efficiency(a),
		b->gpu_bytes_per_ns * fabric_gpu_efficiency(b), b->gpu_bytes_per_ns);
	print_time(LINK_GPU_LATENCY, a->gpu_latency_ns, b->gpu_latency_ns, fit, to);
}

static void print_residuals(const struct residuals *r, FILE *to)
{
	double low = INFINITY, high = 0;

	for (size_t i = 0; i < r->n; i++) {
		low = fmin(low, r->list[i].factor);
		high = fmax(high, r->list[i].factor);
	}
	if (r->n)
		fprintf(to, "  %-20s x %.3f to %.3f, up to 64 MiB between nodes\n",
			"residuals by size", low, high);
}

static struct fabric_fit describe(const struct samples *s, const struct links_fit *fit)
{
	struct fabric_fit d = {.n_points = (uint32_t)fit->after[LINKS_ALL].n,
			       .error = fit->after[LINKS_ALL].median,
			       .min_ranks = UINT32_MAX,
			       .min_bytes = INFINITY};

	for (size_t i = 0; i < s->n; i++) {
		const struct sample *one = &s->list[i];

		d.min_ranks = one->n_ranks < d.min_ranks ? one->n_ranks : d.min_ranks;
		d.max_ranks = one->n_ranks > d.max_ranks ? one->n_ranks : d.max_ranks;
		d.min_bytes = fmin(d.min_bytes, one->bytes);
		d.max_bytes = fmax(d.max_bytes, one->bytes);
	}
	return d;
}

static int write_out(const struct fabric *f, const char *source, const char *path, struct err *err)
{
	FILE *to;
	int r = file_create(path, &to, err);

	if (r < 0)
		return r;
	fprintf(to, "# nbox fit --fabric: fitted to %s\n", source);
	fabric_write(f, to);
	return file_finish(to, path, err);
}

static void leave_out_tiny(struct samples *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		if (s->list[i].bytes >= s->list[i].n_ranks || s->list[i].kind == COLL_ALLREDUCE ||
		    s->list[i].kind == COLL_SENDRECV)
			s->list[n++] = s->list[i];
	s->n = n;
}

/* Says what came of it. @fabric: as it was given. */
static int write_fitted(struct worlds *w, const char *fabric, const struct samples *samples,
			const struct links_fit *fit, const char *source, const char *out,
			struct err *err)
{
	static const double ones[LINK_NUMBERS] = {1, 1, 1, 1, 1};
	static const struct residuals none = {.n = 0};
	struct fabric before, *f = worlds_fabric(w, ones, &none);
	int r;

	if (!f)
		return -ENOMEM;
	before = *f; /* its lists stay where they are */
	f = worlds_fabric(w, fit->factors, &fit->residuals);
	if (!f)
		return -ENOMEM;
	f->fit = describe(samples, fit);
	printf("%s, fitted to %zu times of up to %u ranks\n", f->name, samples->n,
	       f->fit.max_ranks);
	print_numbers(&before, f, fit, stdout);
	print_residuals(&fit->residuals, stdout);
	print_errors(fit, fabric, stdout);
	r = out ? write_out(f, source, out, err) : 0;
	if (r == 0 && out)
		printf("written: %s, for --fabric %s\n", out, out);
	return r;
}

int fabric_fit(const char *fabric, struct samples *samples, const char *source, const char *out,
	       struct err *err)
{
	double most[LINK_NUMBERS];
	struct worlds *w = NULL;
	struct links_fit fit;
	int r;

	leave_out_tiny(samples);
	r = worlds_open(fabric, samples, &w, err);
	if (r == 0) {
		worlds_most(w, most);
		r = links_fit(samples, most, worlds_predict, w, &fit, err);
	}
	if (r == 0) {
		r = write_fitted(w, fabric, samples, &fit, source, out, err);
		links_fit_deinit(&fit);
	}
	worlds_close(w);
	return r;
}
