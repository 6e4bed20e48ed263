/* One-sided stores of embedding vectors beside an all-to-all: volumes, calibrations, closed form
 * against simulation, curves, aggregator. */
#include "papers.h"

#include "onesided/onesided.h"

#define MIB 1048576.0
#define US 1e3
#define CURVE 1001

/* DLRM on V100s: 1M rows, vectors of 64 floats, a batch of 16384. */
static struct onesided dlrm(uint32_t n_ranks, uint64_t tables)
{
	return (struct onesided){.n_ranks = n_ranks,
				 .tables = tables,
				 .samples = 16384,
				 .vector_bytes = 256,
				 .message_bytes = 256,
				 .flush_ns = INFINITY,
				 .has_links_to_each = true};
}

/* @tables: of all, where they are as many as with one rank */
static void volumes(const char *name, const uint64_t *tables, const double *mib, const double *pair,
		    const double *total, const double *messages)
{
	char item[80];

	for (uint32_t n = 2; n <= 4; n++) {
		struct onesided o = dlrm(n, tables[n - 2]);
		double sum = 0;

		for (uint32_t rank = 0; rank < n; rank++)
			sum += (double)onesided_volume(&o, rank).sent;
		snprintf(item, sizeof(item), "T-G1 %s N=%u sent by all, bytes", name, n);
		papers_row(item, total[n - 2] * MIB, sum, 0);
		snprintf(item, sizeof(item), "T-G1 %s N=%u sent by one, MiB", name, n);
		papers_row(item, mib[n - 2], sum / n / MIB,
			   0.01); /* it is printed with two digits */
		snprintf(item, sizeof(item), "T-G1 %s N=%u to one peer, MiB", name, n);
		papers_row(item, pair[n - 2], sum / n / (n - 1) / MIB, 0.01);
		snprintf(item, sizeof(item), "T-G1 %s N=%u messages of the first rank", name, n);
		papers_row(item, messages[n - 2],
			   (double)onesided_volume(&o, 0).sent / o.message_bytes, 0);
	}
}

/* ... of the last one, which has a sample less of three ranks. */
static void uneven(void)
{
	struct onesided weak = dlrm(3, 64), strong = dlrm(3, 32);

	papers_row("T-G1 weak N=3 messages of the others", 699072, (double)onesided_messages(&weak),
		   0);
	papers_row("T-G1 strong N=3 messages of the others", 349536,
		   (double)onesided_messages(&strong), 0);
}

/* --- the paper's tables ------------------------------------------------------------- */

struct scaled {
	double collective, stores, wire, sync_unpack, speedup;
};

static struct scaled scale(const struct onesided *o)
{
	struct onesided_collective c = onesided_collective(o);
	struct onesided_stores s;

	if (onesided_play(o, NULL, &s))
		abort();
	return (struct scaled){c.end_ns, s.end_ns, c.wire_ns, c.sync_ns + c.unpack_ns,
			       c.end_ns / s.end_ns};
}

/* Times in units of C = 1 ms; the constants are fitted to the paper's own table. */
static struct scaled weak(uint32_t n)
{
	struct onesided o = dlrm(n, 64);

	o.compute_ns = 1e6;
	o.bandwidth = 256 * MIB / 1.574e6;
	o.unpack = 256 * MIB / 0.774e6;
	o.slowdown = 0.07;
	return scale(&o);
}

/* In units of the time of one GPU. */
static struct scaled strong(uint32_t n)
{
	struct onesided o = dlrm(n, 96 / n);

	o.compute_ns = 0.6e6;
	o.bandwidth = 384 * MIB / 2.4e6;
	o.sync_ns = 0.61e6;
	o.sync_peer_ns = 0.14e6;
	o.quiet_ns = 0.01e6;
	o.quiet_peer_ns = 0.03e6;
	return scale(&o);
}

static void table(const char *name, struct scaled (*of)(uint32_t n), const double *speedup,
		  double geomean, double tolerance_pct)
{
	double product = 1;
	char item[80];

	for (uint32_t n = 2; n <= 4; n++) {
		struct scaled s = of(n);

		snprintf(item, sizeof(item), "T-G2 %s speedup, %u GPUs (anchored)", name, n);
		papers_row(item, speedup[n - 2], s.speedup, tolerance_pct);
		product *= s.speedup;
	}
	snprintf(item, sizeof(item), "T-G2 %s speedup, geometric mean (anchored)", name);
	papers_row(item, geomean, cbrt(product), tolerance_pct);
}

static void trends(void)
{
	struct scaled s[] = {strong(2), strong(3), strong(4)}, w[] = {weak(2), weak(3), weak(4)};

	papers_row("T-G2 weak: one GPU / collective on 2", 0.46, 1e6 / w[0].collective, 1);
	papers_row("T-G2 strong: collective on 2 / one GPU", 1.8, s[0].collective / 1e6, 1.5);
	papers_holds("T-G6 strong: communication falls with N",
		     s[0].wire > s[1].wire && s[1].wire > s[2].wire);
	papers_holds("T-G6 weak: communication falls with N",
		     w[0].wire > w[1].wire && w[1].wire > w[2].wire);
	papers_holds("T-G6 strong: sync and unpack rise with N",
		     s[0].sync_unpack < s[1].sync_unpack && s[1].sync_unpack < s[2].sync_unpack);
	papers_holds("T-G6 weak: sync and unpack rise with N",
		     w[0].sync_unpack < w[1].sync_unpack && w[1].sync_unpack < w[2].sync_unpack);
	papers_holds("T-G6 strong: collective slower than one GPU",
		     s[0].collective > 1e6 && s[1].collective > 1e6 && s[2].collective > 1e6);
	papers_holds("T-G6 strong: stores faster than one GPU",
		     s[0].stores < 1e6 && s[1].stores < 1e6 && s[2].stores < 1e6);
	papers_holds("T-G6 strong: speedup falls with N",
		     s[0].speedup > s[1].speedup && s[1].speedup > s[2].speedup);
	papers_holds("T-G6 weak: speedup falls with N",
		     w[0].speedup > w[1].speedup && w[1].speedup > w[2].speedup);
}

/* --- closed form, curves, aggregator --------------------------------------------------- */

/* So many messages of 256 bytes from one rank to another, over 1 ms. */
static struct onesided pair(uint64_t n_messages, double bandwidth)
{
	return (struct onesided){.n_ranks = 2,
				 .tables = 1,
				 .samples = 2 * n_messages,
				 .vector_bytes = 256,
				 .message_bytes = 256,
				 .header_bytes = 16,
				 .compute_ns = 1000 * US,
				 .bandwidth = bandwidth,
				 .alpha_ns = 1 * US,
				 .sync_ns = 20 * US,
				 .flush_ns = INFINITY};
}

static void closed_form(const char *name, uint64_t n_messages, double bandwidth, double stores_us,
			double collective_us)
{
	struct onesided o = pair(n_messages, bandwidth);
	struct scaled s = scale(&o);
	char item[80];

	snprintf(item, sizeof(item), "T-G3 %s stores, simulated, us", name);
	papers_row(item, stores_us, s.stores / US, 1e-5);
	snprintf(item, sizeof(item), "T-G3 %s closed form / simulation", name);
	papers_row(item, 1, onesided_closed(&o) / s.stores, 1e-7);
	snprintf(item, sizeof(item), "T-G3 %s collective, us", name);
	papers_row(item, collective_us, s.collective / US, 1e-5);
}

static double steepest(const double *y)
{
	double most = 0;

	for (int i = 1; i < CURVE; i++)
		most = fmax(most, y[i] - y[i - 1]);
	return most;
}

static void curves(void)
{
	struct onesided o = pair(50000, 25);
	double stores[CURVE], collective[CURVE], bytes = 50000 * 256.;

	if (onesided_curve(&o, 2000 * US, CURVE, stores))
		abort();
	onesided_collective_curve(&o, 2000 * US, CURVE, collective);
	papers_row("T-G4 sent at the kernel's end, collective, %", 0, collective[500], 0);
	papers_holds("T-G4 sent at the kernel's end, stores, is 90 % or more",
		     stores[500] >= 0.9 * bytes);
	papers_row("T-G4 bytes of the collective", bytes, collective[CURVE - 1], 0);
	papers_row("T-G4 bytes of the stores", bytes, stores[CURVE - 1], 0);
	papers_row("T-G4 peak rate, collective / stores: C / wire time",
		   o.compute_ns / (bytes / o.bandwidth), steepest(collective) / steepest(stores),
		   0.5);
}

static void aggregator(uint64_t flush_bytes, double us, double packets)
{
	struct onesided o = pair(90000, 25);
	struct onesided_stores s;
	char item[80];

	o.header_bytes = 64;
	o.alpha_ns = 3 * US;
	o.flush_bytes = flush_bytes;
	if (onesided_play(&o, NULL, &s))
		abort();
	snprintf(item, sizeof(item), "T-G5 aggregator of %llu bytes, us",
		 (unsigned long long)flush_bytes);
	papers_row(item, us, s.end_ns / US, 1e-4);
	snprintf(item, sizeof(item), "T-G5 aggregator of %llu bytes, packets",
		 (unsigned long long)flush_bytes);
	papers_row(item, packets, (double)s.packets, 0);
}

int main(void)
{
	papers_open("004 PGAS");
	volumes("weak", (const uint64_t[]){64, 64, 64}, (const double[]){128, 170.67, 192},
		(const double[]){128, 85.33, 64}, (const double[]){256, 512, 768},
		(const double[]){524288, 699008, 786432});
	volumes("strong", (const uint64_t[]){48, 32, 24}, (const double[]){96, 85.33, 72},
		(const double[]){96, 42.67, 24}, (const double[]){192, 256, 288},
		(const double[]){393216, 349504, 294912});
	uneven();
	table("weak", weak, (const double[]){2.10, 1.95, 1.87}, 1.97, 1);
	table("strong", strong, (const double[]){2.95, 2.55, 2.44}, 2.63, 1.5);
	trends();
	closed_form("1000 messages at 25 GB/s,", 1000, 25, 1001.0109, 1031.24);
	closed_form("100000 messages at 25 GB/s,", 100000, 25, 1089.0100, 2045);
	closed_form("200000 messages at 50 GB/s,", 200000, 50, 1089.0050, 2045);
	curves();
	aggregator(256, 1155.011, 90000);
	aggregator(4096, 1003.166, 5625);
	aggregator(65536, 1005.501, 352);
	aggregator(1 << 20, 1043.799, 22);
	return papers_close();
}
