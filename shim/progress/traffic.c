/* See traffic.h. */
#include "shim/progress/traffic.h"

#include <stdatomic.h>
#include <stddef.h>

#include "shim/progress/session.h"

static _Atomic(const struct traffic_events *) events;

void traffic_set_events(const struct traffic_events *ev)
{
	atomic_store_explicit(&events, ev, memory_order_release);
}

const struct traffic_events *traffic_get_events(void)
{
	/* acquire: pairs with traffic_set_events() */
	return atomic_load_explicit(&events, memory_order_acquire);
}

bool traffic_is_full(void)
{
	return session_welcome()->nccl == NCCL_FULL;
}
