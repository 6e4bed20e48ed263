/* See real-comm.h. */
#include "shim/data/real-comm.h"

#include <errno.h>
#include <string.h>

#include "schedule/coll.h"
#include "shim/progress/meet.h"
#include "shim/real/comm-id.h"
#include "shim/real/real.h"

bool real_comm_is_wanted(const struct comm *c)
{
	for (uint32_t kind = 0; kind < COLL_KINDS; kind++)
		if (comm_data(c, kind) != DATA_NONE)
			return true;
	return false;
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
	int r = c->index == 0 ? make_id(c, err) : 0;

	if (c->index == 0 && !r && meet_send_id(c, c->local_id))
		return err_set(err, ENOMEM, "no memory");
	return r;
}

int real_comm_make(struct comm *c, void *config, struct err *err)
{
	const struct real *real = real_get();
	ncclComm_t *ret = &c->real_made;
	ncclResult_t result;
	ncclUniqueId id;

	memcpy(&id, c->local_id, sizeof(id));
	if (device_select(c->dev, c->device))
		return err_set(err, EIO, "cannot select device %d", c->device);
	if (config && real->CommInitRankConfig)
		result = real->CommInitRankConfig(ret, (int)c->n_real, id, (int)c->index, config);
	else if (real->CommInitRank)
		result = real->CommInitRank(ret, (int)c->n_real, id, (int)c->index);
	else
		result = real_missing("ncclCommInitRank");
	if (result != ncclSuccess && result != ncclInProgress)
		err_set(err, EIO, "the real communicator of %u ranks: %s", c->n_real,
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

	if (!c->real && (c->n_real != 1 || !real_comm_is_wanted(c)))
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
