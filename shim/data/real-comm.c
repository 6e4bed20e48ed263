/* See real-comm.h. */
#include "shim/data/real-comm.h"

#include <errno.h>
#include <string.h>

#include "schedule/coll.h"
#include "shim/plugin/plugin.h"
#include "shim/progress/meet.h"
#include "shim/real/comm-id.h"
#include "shim/real/real.h"

#define NAMES_VERSION 22700 /* from here a config has a name, and profilers hear it */
#define CHANNELS_MOST 64    /* of NCCL */
#define FULL_VERSION 22300  /* from here NCCL has profilers, which are told what a message is of */

/* Does any data policy of @c ask for one? */
static bool is_wanted(const struct comm *c)
{
	for (uint32_t kind = 0; kind < COLL_KINDS; kind++)
		if (comm_data(c, kind) != DATA_NONE)
			return true;
	return false;
}

bool real_comm_is_together(const struct comm *c)
{
	return c->n_ranks && (c->is_full || (c->n_real > 1 && is_wanted(c)));
}

uint32_t real_comm_size(const struct comm *c)
{
	return c->is_full ? c->n_ranks : c->n_real;
}

int real_comm_check(struct comm *c, struct err *err)
{
	const struct real *real = real_get();
	int version = 0;

	if (!c->is_full)
		return 0;
	if (!real->path[0])
		return err_set(err, ELIBACC, "%s", real->err.text);
	if (!real->GetVersion || real->GetVersion(&version) != ncclSuccess ||
	    version < FULL_VERSION)
		return err_set(
			err, ENOTSUP,
			"the NCCL in use (%s) is %d.%d.%d: --nccl full needs 2.23 or later, whose "
			"profiler tells what a message is of; use --nccl gate, or set NBOX_NCCL to a newer one",
			real->path, version / 10000, version % 10000 / 100, version % 100);
	return 0;
}

static int make_id(struct comm *c, struct err *err)
{
	const struct real *real = real_get();
	ncclResult_t result;
	ncclUniqueId id;

	if (!real->path[0])
		return err_set(err, ELIBACC, "%s", real->err.text);
	if (!real->GetUniqueId)
		return err_set(err, ELIBACC, "the NCCL in use (%s) has no ncclGetUniqueId",
			       real->path);
	comm_id_hide();
	result = real->GetUniqueId(&id);
	comm_id_show();
	if (result != ncclSuccess)
		return err_set(err, EIO, "the real ncclGetUniqueId failed");
	memcpy(c->local_id, &id, sizeof(id));
	return 0;
}

int real_comm_offer_id(struct comm *c, struct err *err)
{
	bool is_ours = c->index == 0 && !c->is_full;
	int r = is_ours ? make_id(c, err) : 0;

	if (is_ours && !r && meet_send_id(c, c->local_id))
		return err_set(err, ENOMEM, "no memory");
	return r;
}

/* At least @n channels, which NCCL calls CTAs, unless the job says how many. NCCL refuses a least
 * number without a most one. */
static void set_channels(ncclConfig_t *config, uint32_t n)
{
	if (config->size < offsetof(ncclConfig_t, max_ctas) + sizeof(int) ||
	    config->min_ctas != NCCL_CONFIG_UNDEF_INT)
		return;
	if (config->max_ctas == NCCL_CONFIG_UNDEF_INT)
		config->max_ctas = CHANNELS_MOST;
	config->min_ctas = config->max_ctas < (int)n ? config->max_ctas : (int)n;
}

/* @config, or @ret where the job has none, with @name and @n_channels (0: as NCCL has them). */
static void *with_own(ncclConfig_t *config, const char *name, uint32_t n_channels,
		      ncclConfig_t *ret)
{
	int version = 0;
	bool is_named = real_get()->GetVersion(&version) == ncclSuccess && version >= NAMES_VERSION;

	if (!is_named && !n_channels)
		return config;
	if (!config) {
		*ret = (ncclConfig_t){
			.size = sizeof(*ret),
			.magic = NCCL_CONFIG_MAGIC,
			.version = NAMES_VERSION,
			.blocking = 1,
			.cga_cluster_size = NCCL_CONFIG_UNDEF_INT,
			.min_ctas = NCCL_CONFIG_UNDEF_INT,
			.max_ctas = NCCL_CONFIG_UNDEF_INT,
			.split_share = NCCL_CONFIG_UNDEF_INT,
			.traffic_class = NCCL_CONFIG_UNDEF_INT,
			.collnet_enable = NCCL_CONFIG_UNDEF_INT,
			.cta_policy = NCCL_CONFIG_UNDEF_INT,
			.shrink_share = NCCL_CONFIG_UNDEF_INT,
			.nvls_ctas = NCCL_CONFIG_UNDEF_INT,
		};
		config = ret;
	}
	if (n_channels)
		set_channels(config, n_channels);
	if (is_named && config->size >= offsetof(ncclConfig_t, comm_name) + sizeof(char *))
		config->comm_name = name;
	return config;
}

int real_comm_make(struct comm *c, void *config, struct err *err)
{
	int n = (int)real_comm_size(c), rank = (int)(c->is_full ? c->rank : c->index), r = 0;
	const struct real *real = real_get();
	ncclComm_t *ret = &c->real_made;
	const char *name = NULL;
	uint32_t n_channels = 0;
	ncclConfig_t own;
	ncclResult_t result;
	ncclUniqueId id;

	memcpy(&id, c->local_id, sizeof(id));
	if (device_select(c->dev, c->device))
		return err_set(err, EIO, "cannot select device %d", c->device);
	if (c->is_full)
		r = plugin_channels(c, &n_channels, err);
	if (c->is_full && r == 0)
		r = plugin_bind(c, &name, err);
	if (r)
		return r;
	if (c->is_full)
		config = with_own(config, name, n_channels, &own);
	if (config && real->CommInitRankConfig)
		result = real->CommInitRankConfig(ret, n, id, rank, config);
	else if (real->CommInitRank)
		result = real->CommInitRank(ret, n, id, rank);
	else
		result = real_missing("ncclCommInitRank");
	if (result != ncclSuccess && result != ncclInProgress)
		err_set(err, EIO, "the real communicator of %d ranks: %s", n,
			real->GetLastError ? real->GetLastError(NULL) : "failed");
	return result == ncclInProgress ? 0 : (int)result;
}

/* Of a single real member. In a relaxed mode, since NCCL allocates memory. */
static int make_now(struct comm *c, struct err *err)
{
	int mode = DEVICE_CAPTURE_RELAXED, before = DEVICE_NONE, r = make_id(c, err);

	if (r)
		return r;
	c->dev->get(&before);
	c->dev->exchange_mode(&mode);
	comm_id_hide();
	r = real_comm_make(c, c->real_config, err);
	comm_id_show();
	c->dev->exchange_mode(&mode);
	device_select(c->dev, before);
	if (!r)
		c->real = c->real_made;
	return r;
}

int real_comm_get(struct comm *c, ncclComm_t *ret, struct err *err)
{
	int r = 0;

	if (!c->real && c->is_full)
		return err_set(err, ENOENT, "the real communicator is gone");
	if (!c->real && (c->n_real != 1 || !is_wanted(c)))
		return err_set(err, ENOENT, "there is no real communicator: data policy none");
	if (!c->real) {
		pthread_mutex_lock(&c->real_lock);
		if (!c->real)
			r = make_now(c, err);
		pthread_mutex_unlock(&c->real_lock);
	}
	if (!r)
		*ret = c->real;
	return r;
}

static ncclResult_t end(struct comm *c, ncclComm_t real, ncclResult_t (*how)(ncclComm_t))
{
	ncclResult_t result = real && how ? how(real) : ncclSuccess;

	if (c->is_full)
		plugin_unbind(c);
	return result;
}

ncclResult_t real_comm_destroy(struct comm *c, ncclComm_t real)
{
	return end(c, real, real_get()->CommDestroy);
}

ncclResult_t real_comm_abort(struct comm *c, ncclComm_t real)
{
	return end(c, real, real_get()->CommAbort);
}
