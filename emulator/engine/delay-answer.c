/* See delay-answer.h. */
#include "engine/delay-answer.h"

#include <errno.h>
#include <math.h>

int delay_failed(const struct delay_instance *in, const char *what)
{
	struct err *err = &in->chain->err;

	if (!err->text[0])
		err_set(err, EINVAL, "gave an error for %s without a reason", what);
	/* until it is made, the caller says where it stands */
	err_prefix(err, 0, "%s%s", in->is_made ? "delay model " : "", in->plugin.table.name);
	return -1;
}

int delay_check_return(const struct delay_instance *in, int r, const char *what)
{
	if (r == 0 || r == 1)
		return r;
	if (r == -1)
		return delay_failed(in, what);
	err_set(&in->chain->err, EINVAL, "%s returned %d, which is none of 0, 1 and -1", what, r);
	return delay_failed(in, what);
}

int delay_check_time(const struct delay_instance *in, double ns, bool may_shorten, const char *what)
{
	if (fabs(ns) <= DELAY_MAX_NS && (may_shorten || ns >= 0))
		return 0;
	err_set(&in->chain->err, EINVAL, "%s answered %s (%g ns)", what,
		isnan(ns)                 ? "not a number"
		: isinf(ns)               ? "an infinite time"
		: fabs(ns) > DELAY_MAX_NS ? "more than 31 years"
					  : "a negative time",
		ns);
	return delay_failed(in, what);
}

int delay_answer(const struct delay_chain *d, int r, struct err *err)
{
	return r >= 0 ? r : err_set(err, EINVAL, "%s", d->err.text);
}
