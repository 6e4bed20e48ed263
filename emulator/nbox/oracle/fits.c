/* See fits.h. */
#include "nbox/oracle/fits.h"

#include "patches/rewrite.h"

bool graph_record_fits(const struct record_graph *r, const uint8_t *record,
		       const struct nccl_log *log)
{
	for (uint32_t i = 0; i < r->n_graphs; i++) {
		const uint8_t *graph = record + (size_t)i * r->graph_bytes;
		int32_t pattern = record_int(graph, r->pattern);
		int32_t n_channels = record_int(graph, r->n_channels);
		uint32_t k = 0;

		while (k < log->n_graphs && (log->graphs[k].pattern != pattern ||
					     log->graphs[k].n_channels != n_channels))
			k++;
		/* graphs that were not looked for are not logged */
		if (k == log->n_graphs && n_channels != 0)
			return false;
	}
	return true;
}
