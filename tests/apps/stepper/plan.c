/* See plan.h.
 *
 * ddp, as PyTorch's DistributedDataParallel: gradients fill buckets in the order of the backward
 * pass; a full bucket is all-reduced on a stream of its own while the backward pass goes on; the
 * update waits for all buckets. Only the last micro-batch communicates. A bucket may go as a group
 * of all-reduces, as with PyTorch's coalescing manager.
 *
 * fsdp, as PyTorch's fully_shard(), with all layers resharded after forward: parameters are
 * gathered on one stream, gradients are scattered on another, over one communicator. In forward a
 * gather waits until the compute stream has taken the layer before the last one; in backward the
 * gather of the next layer begins with the computation of this one. Before a layer's
 * reduce-scatter the compute stream waits for the one before it, whose input becomes free. hsdp
 * all-reduces the shard on a stream of its own. Each micro-batch gathers, the last one reduces.
 *
 * tp and moe, as Megatron: the compute stream waits at once.
 *
 * pp, as Megatron's schedule 1F1B without interleaving, and batched sends and receives: a stage
 * waits for what it sends, too.
 *
 * eager, as AlpaComm's eager 1F1B: a stage does as many forward passes ahead that a message has the
 * time of a forward and a backward pass. Each neighbour and direction has a communicator and a
 * stream of its own. A stage waits for what it receives alone, and receives one message ahead. */
#include "stepper/plan.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define NO_EVENT UINT32_MAX

struct builder {
	const struct job *job;
	const struct place *place;
	struct plan plan;
	size_t capacity;
	size_t first, n_layers; /* of this rank's stage */
	uint64_t bucket_bytes;  /* of the bucket that is being filled */
	uint32_t n_in_bucket;   /* gradients */
	size_t n_full;          /* buckets */
	uint32_t gathered;      /* event: the parameters that compute waits for next are there */
	uint32_t taken;         /* event: compute has taken those that it waited for last */
	int r;                  /* 0, or -ENOMEM: then nothing is added any more */
};

/* --- steps ----------------------------------------------------------------------------------- */

static void add(struct builder *b, const struct step *step)
{
	struct step *more;

	if (b->r == 0 && b->plan.n == b->capacity) {
		more = realloc(b->plan.steps, (2 * b->capacity + 64) * sizeof(*more));
		if (!more) {
			b->r = -ENOMEM;
			return;
		}
		b->plan.steps = more;
		b->capacity = 2 * b->capacity + 64;
	}
	if (b->r == 0)
		b->plan.steps[b->plan.n++] = *step;
}

static void compute(struct builder *b, double ns, int layer)
{
	add(b, &(struct step){
		       .kind = STEP_COMPUTE,
		       .stream = STREAM_COMPUTE,
		       .ns = ns,
		       .layer = layer,
	       });
}

static uint32_t record(struct builder *b, enum stream stream)
{
	add(b, &(struct step){
		       .kind = STEP_RECORD,
		       .stream = stream,
		       .event = b->plan.n_events,
	       });
	return b->plan.n_events++;
}

static void wait_for(struct builder *b, enum stream stream, uint32_t event)
{
	add(b, &(struct step){.kind = STEP_WAIT, .stream = stream, .event = event});
}

/* @stream goes on when @other has come so far. */
static void follow(struct builder *b, enum stream stream, enum stream other)
{
	wait_for(b, stream, record(b, other));
}

/* The compute stream waits for all events of @stream. */
static void join(struct builder *b, enum stream stream)
{
	size_t end = b->plan.n;
	struct step step;

	for (size_t i = 0; i < end && b->r == 0; i++) {
		step = b->plan.steps[i];
		if (step.kind == STEP_RECORD && step.stream == stream)
			wait_for(b, STREAM_COMPUTE, step.event);
	}
}

static void op(struct builder *b, enum step_kind kind, enum stream stream, enum group group,
	       uint64_t bytes)
{
	uint32_t parts = stream == STREAM_DATA ? b->job->group : 1;

	add(b, &(struct step){
		       .kind = kind,
		       .stream = stream,
		       .group = group,
		       .bytes = bytes,
		       .parts = parts,
	       });
	b->plan.n_ops += parts;
}

/* An op that the compute stream waits for at once. */
static void op_in_line(struct builder *b, enum step_kind kind, enum stream stream, enum group group,
		       uint64_t bytes)
{
	if (!bytes || !b->place->groups[group].is_used)
		return;
	follow(b, stream, STREAM_COMPUTE);
	op(b, kind, stream, group, bytes);
	follow(b, STREAM_COMPUTE, stream);
}

/* --- ddp ------------------------------------------------------------------------------------- */

static bool is_full(const struct builder *b, size_t i)
{
	if (b->job->buckets)
		return b->n_in_bucket && b->n_in_bucket == b->job->buckets[b->n_full];
	return b->bucket_bytes && (b->bucket_bytes >= b->job->bucket_bytes || i == b->first);
}

static void fill_bucket(struct builder *b, size_t i)
{
	b->bucket_bytes += b->job->layers[i].params_bytes;
	b->n_in_bucket += b->job->layers[i].params_bytes > 0;
	if (!is_full(b, i))
		return;
	follow(b, STREAM_DATA, STREAM_COMPUTE);
	op(b, STEP_ALL_REDUCE, STREAM_DATA, GROUP_DATA, b->bucket_bytes);
	record(b, STREAM_DATA);
	b->bucket_bytes = 0;
	b->n_in_bucket = 0;
	b->n_full++;
}

/* --- fsdp and hsdp --------------------------------------------------------------------------- */

static bool is_sharded(const struct builder *b, size_t i)
{
	return b->place->groups[GROUP_SHARD].is_used && b->job->layers[i].params_bytes;
}

static void gather(struct builder *b, size_t i)
{
	op(b, STEP_ALL_GATHER, STREAM_GATHER, GROUP_SHARD, b->job->layers[i].params_bytes);
	b->gathered = record(b, STREAM_GATHER);
}

/* The compute stream takes the parameters out of the gather's buffer. */
static void take(struct builder *b)
{
	wait_for(b, STREAM_COMPUTE, b->gathered);
	b->taken = record(b, STREAM_COMPUTE);
}

static void gather_forward(struct builder *b, size_t i)
{
	uint32_t taken = b->taken;

	gather(b, i);
	if (taken != NO_EVENT)
		wait_for(b, STREAM_GATHER, taken);
	take(b);
}

static void gather_backward(struct builder *b, size_t i)
{
	if (b->gathered == NO_EVENT) /* else it was the next one of the layer above */
		gather(b, i);
	take(b);
	wait_for(b, STREAM_GATHER, b->taken);
	b->gathered = NO_EVENT;
	while (i > b->first && !is_sharded(b, i - 1))
		i--;
	if (i > b->first)
		gather(b, i - 1);
}

/* @ret_scattered: in: the event of the layer above or NO_EVENT; out: of this one. */
static void scatter(struct builder *b, size_t i, uint32_t *ret_scattered)
{
	uint64_t bytes = b->job->layers[i].params_bytes;
	uint32_t n = b->place->groups[GROUP_SHARD].n;

	if (*ret_scattered != NO_EVENT)
		wait_for(b, STREAM_COMPUTE, *ret_scattered);
	follow(b, STREAM_SCATTER, STREAM_COMPUTE);
	op(b, STEP_REDUCE_SCATTER, STREAM_SCATTER, GROUP_SHARD, bytes);
	*ret_scattered = record(b, STREAM_SCATTER);
	if (!b->place->groups[GROUP_REPLICA].is_used)
		return;
	wait_for(b, STREAM_REPLICA, *ret_scattered);
	op(b, STEP_ALL_REDUCE, STREAM_REPLICA, GROUP_REPLICA, (bytes + n - 1) / n);
	record(b, STREAM_REPLICA);
}

/* --- a micro-batch --------------------------------------------------------------------------- */

static void compute_layer(struct builder *b, double ns, size_t i)
{
	const struct job_layer *layer = &b->job->layers[i];

	op_in_line(b, STEP_ALL_TO_ALL, STREAM_EXPERT, GROUP_EXPERT, layer->moe_bytes);
	compute(b, ns, (int)i);
	op_in_line(b, STEP_ALL_TO_ALL, STREAM_EXPERT, GROUP_EXPERT, layer->moe_bytes);
	op_in_line(b, STEP_ALL_REDUCE, STREAM_TENSOR, GROUP_TENSOR, layer->tp_bytes);
}

static void forward(struct builder *b)
{
	b->taken = NO_EVENT;
	if (b->place->groups[GROUP_SHARD].is_used) /* after the update */
		follow(b, STREAM_GATHER, STREAM_COMPUTE);
	for (size_t i = b->first; i < b->first + b->n_layers; i++) {
		if (is_sharded(b, i))
			gather_forward(b, i);
		compute_layer(b, b->job->layers[i].forward_ns, i);
	}
	if (b->taken != NO_EVENT)
		wait_for(b, STREAM_GATHER, b->taken);
}

enum gradients { GRADIENTS_KEPT, GRADIENTS_SENT };

static void backward(struct builder *b, enum gradients gradients)
{
	uint32_t scattered = NO_EVENT;

	b->gathered = NO_EVENT;
	for (size_t i = b->first + b->n_layers; i-- > b->first;) {
		if (is_sharded(b, i))
			gather_backward(b, i);
		compute_layer(b, b->job->layers[i].backward_ns, i);
		if (gradients == GRADIENTS_KEPT)
			continue;
		if (is_sharded(b, i))
			scatter(b, i, &scattered);
		if (b->place->groups[GROUP_DATA].is_used)
			fill_bucket(b, i);
	}
}

/* --- the pipeline ---------------------------------------------------------------------------- */

enum { SEND = 1, RECEIVE = 2 };

/* With the stage after (+1) or before (-1) this one, where there is one. */
static void pass(struct builder *b, int direction, unsigned what)
{
	int stage = (int)b->place->stage, peer = stage + direction;
	struct step step = {.kind = STEP_PASS, .stream = STREAM_PIPE, .group = GROUP_PIPE};
	size_t last = b->first + (direction > 0 ? b->n_layers : 0) - 1;

	if (peer < 0 || peer == (int)b->job->pp)
		return;
	step.bytes = b->job->layers[last].send_bytes;
	step.send_to = what & SEND ? peer : NOBODY;
	step.recv_from = what & RECEIVE ? peer : NOBODY;
	follow(b, STREAM_PIPE, STREAM_COMPUTE);
	add(b, &step);
	b->plan.n_ops++;
	follow(b, STREAM_COMPUTE, STREAM_PIPE);
}

/* Without a pipeline: forward and backward of each micro-batch in turn. */
static void micro_batches(struct builder *b)
{
	uint32_t micro = b->job->micro, ahead = b->job->pp - b->place->stage - 1;
	uint32_t warm = ahead < micro ? ahead : micro, steady = micro - warm;

	for (uint32_t i = 0; i < warm; i++) {
		pass(b, -1, RECEIVE);
		forward(b);
		pass(b, +1, SEND);
	}
	if (steady)
		pass(b, -1, RECEIVE);
	for (uint32_t i = 1; i <= steady; i++) {
		forward(b);
		pass(b, +1, SEND | RECEIVE);
		backward(b, warm == 0 && i == steady ? GRADIENTS_SENT : GRADIENTS_KEPT);
		pass(b, -1, i < steady ? SEND | RECEIVE : SEND);
	}
	for (uint32_t i = 1; i <= warm; i++) {
		pass(b, +1, RECEIVE);
		backward(b, i == warm ? GRADIENTS_SENT : GRADIENTS_KEPT);
		pass(b, -1, SEND);
	}
}

/* --- the same, eager ------------------------------------------------------------------------- */

/* What comes from one neighbour, one message ahead. */
struct inbox {
	enum stream stream;
	int from; /* NOBODY: nothing comes */
	uint64_t bytes;
	uint32_t n_left; /* messages that are not asked for yet */
	uint32_t got;    /* event: the next one is there */
};

static enum group group_of(enum stream stream)
{
	return (enum group)((int)GROUP_PIPE + (int)stream - (int)STREAM_PIPE);
}

/* The stream of messages over the border behind @stage, in one direction. */
static enum stream stream_of(enum stream first, int stage)
{
	return (enum stream)((int)first + stage % 2);
}

/* Of what goes over the border behind @stage. */
static uint64_t bytes_behind(const struct builder *b, int stage)
{
	return b->job->layers[(size_t)(stage + 1) * b->n_layers - 1].send_bytes;
}

static void transfer(struct builder *b, enum stream stream, uint64_t bytes, int send_to,
		     int recv_from)
{
	add(b, &(struct step){
		       .kind = STEP_PASS,
		       .stream = stream,
		       .group = group_of(stream),
		       .bytes = bytes,
		       .send_to = send_to,
		       .recv_from = recv_from,
	       });
	b->plan.n_ops++;
}

/* Asks for the next message, once the computation so far is over. */
static void ask(struct builder *b, struct inbox *in)
{
	if (in->from == NOBODY || in->n_left == 0)
		return;
	in->n_left--;
	follow(b, in->stream, STREAM_COMPUTE);
	transfer(b, in->stream, in->bytes, NOBODY, in->from);
	in->got = record(b, in->stream);
}

static void take_message(struct builder *b, struct inbox *in)
{
	if (in->from == NOBODY)
		return;
	wait_for(b, STREAM_COMPUTE, in->got);
	ask(b, in);
}

/* @ret_sent: event */
static void send(struct builder *b, enum stream first, int border, int to, uint32_t *ret_sent)
{
	enum stream stream = stream_of(first, border);

	follow(b, stream, STREAM_COMPUTE);
	transfer(b, stream, bytes_behind(b, border), to, NOBODY);
	*ret_sent = record(b, stream);
}

static void eager(struct builder *b)
{
	int stage = (int)b->place->stage, last = (int)b->job->pp - 1;
	uint32_t micro = b->job->micro, ahead = 2 * (uint32_t)(last - stage) + 1;
	uint32_t warm = ahead < micro ? ahead : micro, sent = NO_EVENT, sent_back = NO_EVENT;
	struct inbox next = {stream_of(STREAM_PIPE, stage + 1), NOBODY, 0, micro, NO_EVENT};
	struct inbox back = {stream_of(STREAM_BACK, stage), NOBODY, 0, micro, NO_EVENT};

	if (stage > 0) { /* the border before: of the other parity than the one behind */
		next.from = stage - 1;
		next.bytes = bytes_behind(b, stage - 1);
	}
	if (stage < last) {
		back.from = stage + 1;
		back.bytes = bytes_behind(b, stage);
	}
	ask(b, &next);
	for (uint32_t f = 0, done = 0; done < micro;) {
		if (f < warm + done && f < micro) {
			if (f + 1 == warm)
				ask(b, &back);
			take_message(b, &next);
			forward(b);
			f++;
			if (stage < last)
				send(b, STREAM_PIPE, stage, stage + 1, &sent);
			continue;
		}
		take_message(b, &back);
		done++;
		backward(b, done == micro ? GRADIENTS_SENT : GRADIENTS_KEPT);
		if (stage > 0)
			send(b, STREAM_BACK, stage - 1, stage - 1, &sent_back);
	}
	if (sent != NO_EVENT)
		wait_for(b, STREAM_COMPUTE, sent);
	if (sent_back != NO_EVENT)
		wait_for(b, STREAM_COMPUTE, sent_back);
}

/* --- an iteration ---------------------------------------------------------------------------- */

int plan_make(const struct job *job, const struct place *place, struct plan *ret)
{
	struct builder b = {.job = job, .place = place, .n_layers = job->n_layers / job->pp};

	b.first = place->stage * b.n_layers;
	if (job->schedule == JOB_EAGER)
		eager(&b);
	else
		micro_batches(&b);
	join(&b, STREAM_DATA);
	join(&b, place->groups[GROUP_REPLICA].is_used ? STREAM_REPLICA : STREAM_SCATTER);
	if (job->update_ns > 0)
		compute(&b, job->update_ns, LAYER_NONE);
	if (b.r < 0) {
		plan_deinit(&b.plan);
		return b.r;
	}
	*ret = b.plan;
	return 0;
}

void plan_deinit(struct plan *plan)
{
	free(plan->steps);
	plan->steps = NULL;
}
