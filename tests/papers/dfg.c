/* The replayer of dPRO: the example that its rule plays out of order. */
#include "papers.h"

#include "dfg/dfg.h"

/* X (10) on A feeds Y (5) on C; P (1) on B feeds Z (5) on C. Return: when all is over. */
static double play(enum dfg_policy policy, const uint32_t *place_of_abc)
{
	struct dfg *g = dfg_new();
	uint32_t op;
	double end;

	for (int i = 0; i < 3; i++)
		if (dfg_add_device(g, &op))
			abort();
	if (dfg_add_op(g, place_of_abc[0], 10, 0, &op) ||
	    dfg_add_op(g, place_of_abc[2], 5, 0, &op) ||
	    dfg_add_op(g, place_of_abc[1], 1, 0, &op) ||
	    dfg_add_op(g, place_of_abc[2], 5, 0, &op) || dfg_add_edge(g, 0, 1, 0) ||
	    dfg_add_edge(g, 2, 3, 0) || dfg_play(g, policy, &op))
		abort();
	end = dfg_end(g, NULL);
	dfg_free(g);
	return end;
}

int main(void)
{
	const uint32_t a_c_b[] = {0, 2, 1}, a_b_c[] = {0, 1, 2};

	papers_open("003 dPRO");
	papers_row("BD2 causal", 15, play(DFG_EVENT, a_c_b), 0);
	papers_row("BD2 the paper's rule, A before C before B", 20, play(DFG_DPRO, a_c_b), 0);
	papers_row("BD2 the paper's rule, A before B before C", 15, play(DFG_DPRO, a_b_c), 0);
	return papers_close();
}
