/* Graphs and their executable form.
 *
 * An executable graph is a copy of the nodes, cut into lanes: chains of nodes that run one after
 * another. Lane 0 runs in the stream of the launch, each other lane in a stream of the graph's
 * own, so that branches overlap as they did in the captured streams. A node with a predecessor on
 * another lane waits for that node's word. Launches of one executable graph run one after
 * another, whichever streams they are in. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "command.h"
#include "node-set.h"
#include "object.h"
#include "user-object.h"

/* Guards graphs under construction, and captures: both are made once and replayed often. */
extern pthread_mutex_t graph_lock;

struct node {
	struct object object;
	struct graph *graph; /* not owned; NULL once the graph is destroyed */
	unsigned id;
	enum cudaGraphNodeType type;
	bool is_direct; /* added by a call on the graph: no stream has to be joined for it */
	struct command command;
	struct node_set deps; /* smaller ids: nodes are kept in a topological order */
};

struct graph {
	struct object object;
	unsigned n, capacity;
	struct node **nodes; /* owned */
	struct user_list users;
};

/* Return: a graph with one reference and no handle, or NULL without memory. */
struct graph *graph_new(void);

/* Appends a node that runs @command, whose references it takes over, after @deps. Called with
 * graph_lock held. */
cudaError_t graph_add(struct graph *graph, const struct command *command,
		      const struct node_set *deps, struct node **ret_node);

/* What calls that add a node do, up to runtime_return(). Takes over the references in @command on
 * success. */
cudaError_t graph_add_node(cudaGraphNode_t *ret_node, cudaGraph_t handle,
			   const cudaGraphNode_t *dependencies, size_t n,
			   const struct command *command);

/* Looks up the nodes with these handles. Return: cudaErrorInvalidValue when one is not of @graph.
 * Called with graph_lock held. */
cudaError_t graph_find_nodes(const struct graph *graph, const cudaGraphNode_t *handles, size_t n,
			     struct node_set *ret_set);

/* Drops the caller's reference and the graph's handle, if it has one. */
void graph_abandon(struct graph *graph);

/* cudaGraphAddDependencies and cudaGraphNodeGetDependencies of both CUDA 12 and 13. */
cudaError_t graph_add_dependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
				   const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
				   size_t n);
cudaError_t graph_node_dependencies(cudaGraphNode_t node, cudaGraphNode_t *dependencies,
				    cudaGraphEdgeData *edges, size_t *n);

/* Sets in @ret_is_before[0..graph->n) who comes before, or is in, @set. */
void graph_mark_before(const struct graph *graph, const struct node_set *set, bool *ret_is_before);
