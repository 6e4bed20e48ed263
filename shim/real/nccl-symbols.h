/* Every public function of NCCL 2.20 to 2.32, once. Included with
 * NCCL_SYMBOL(how, ret, name, params, args) defined; makes the pointer table and
 * the look-ups (real.[ch]), the prototypes and forwarders (entry.h, forward.c)
 * and the test that compares with what libnbox.so exports. @name lacks the
 * prefix: both ncclX and pncclX exist of each.
 *
 *   how       what libnbox does
 *   OWN       has code of its own (init.c, collectives.c, group.c, ...)
 *   PLAIN     calls the real library
 *   PLAIN_VOID  the same without a result
 *   ON_REAL   a virtual communicator is replaced by the real one of its real
 *             members; refused when the data policy made none
 *   REFUSE    refused on a virtual communicator, with a sentence
 *
 * A function that the real library lacks gives ncclInvalidUsage with a sentence
 * in ncclGetLastError(). */

/* 2.20 */
NCCL_SYMBOL(PLAIN, ncclResult_t, MemAlloc, (void **ptr, size_t size), (ptr, size))
NCCL_SYMBOL(PLAIN, ncclResult_t, MemFree, (void *ptr), (ptr))
NCCL_SYMBOL(OWN, ncclResult_t, GetVersion, (int *version), (version))
NCCL_SYMBOL(OWN, ncclResult_t, GetUniqueId, (ncclUniqueId * id), (id))
NCCL_SYMBOL(OWN, ncclResult_t, CommInitRank,
	    (ncclComm_t * ret, int n_ranks, ncclUniqueId id, int rank), (ret, n_ranks, id, rank))
NCCL_SYMBOL(OWN, ncclResult_t, CommInitRankConfig,
	    (ncclComm_t * ret, int n_ranks, ncclUniqueId id, int rank, ncclConfig_t *config),
	    (ret, n_ranks, id, rank, config))
NCCL_SYMBOL(OWN, ncclResult_t, CommInitAll, (ncclComm_t * ret, int n_dev, const int *devs),
	    (ret, n_dev, devs))
NCCL_SYMBOL(OWN, ncclResult_t, CommFinalize, (ncclComm_t comm), (comm))
NCCL_SYMBOL(OWN, ncclResult_t, CommDestroy, (ncclComm_t comm), (comm))
NCCL_SYMBOL(OWN, ncclResult_t, CommAbort, (ncclComm_t comm), (comm))
NCCL_SYMBOL(OWN, ncclResult_t, CommSplit,
	    (ncclComm_t comm, int color, int key, ncclComm_t *ret, ncclConfig_t *config),
	    (comm, color, key, ret, config))
NCCL_SYMBOL(OWN, const char *, GetErrorString, (ncclResult_t result), (result))
NCCL_SYMBOL(OWN, const char *, GetLastError, (ncclComm_t comm), (comm))
NCCL_SYMBOL(OWN, ncclResult_t, CommGetAsyncError, (ncclComm_t comm, ncclResult_t *ret), (comm, ret))
NCCL_SYMBOL(OWN, ncclResult_t, CommCount, (ncclComm_t comm, int *ret), (comm, ret))
NCCL_SYMBOL(OWN, ncclResult_t, CommCuDevice, (ncclComm_t comm, int *ret), (comm, ret))
NCCL_SYMBOL(OWN, ncclResult_t, CommUserRank, (ncclComm_t comm, int *ret), (comm, ret))
NCCL_SYMBOL(OWN, ncclResult_t, CommRegister,
	    (ncclComm_t comm, void *buff, size_t size, void **handle), (comm, buff, size, handle))
NCCL_SYMBOL(OWN, ncclResult_t, CommDeregister, (ncclComm_t comm, void *handle), (comm, handle))
NCCL_SYMBOL(OWN, ncclResult_t, RedOpCreatePreMulSum,
	    (ncclRedOp_t * ret, void *scalar, ncclDataType_t dtype, ncclScalarResidence_t residence,
	     ncclComm_t comm),
	    (ret, scalar, dtype, residence, comm))
NCCL_SYMBOL(OWN, ncclResult_t, RedOpDestroy, (ncclRedOp_t op, ncclComm_t comm), (op, comm))
NCCL_SYMBOL(OWN, ncclResult_t, Reduce,
	    (const void *send, void *recv, size_t count, ncclDataType_t dtype, ncclRedOp_t op,
	     int root, ncclComm_t comm, cudaStream_t stream),
	    (send, recv, count, dtype, op, root, comm, stream))
NCCL_SYMBOL(OWN, ncclResult_t, Bcast,
	    (void *buff, size_t count, ncclDataType_t dtype, int root, ncclComm_t comm,
	     cudaStream_t stream),
	    (buff, count, dtype, root, comm, stream))
NCCL_SYMBOL(OWN, ncclResult_t, Broadcast,
	    (const void *send, void *recv, size_t count, ncclDataType_t dtype, int root,
	     ncclComm_t comm, cudaStream_t stream),
	    (send, recv, count, dtype, root, comm, stream))
NCCL_SYMBOL(OWN, ncclResult_t, AllReduce,
	    (const void *send, void *recv, size_t count, ncclDataType_t dtype, ncclRedOp_t op,
	     ncclComm_t comm, cudaStream_t stream),
	    (send, recv, count, dtype, op, comm, stream))
NCCL_SYMBOL(OWN, ncclResult_t, ReduceScatter,
	    (const void *send, void *recv, size_t count, ncclDataType_t dtype, ncclRedOp_t op,
	     ncclComm_t comm, cudaStream_t stream),
	    (send, recv, count, dtype, op, comm, stream))
NCCL_SYMBOL(OWN, ncclResult_t, AllGather,
	    (const void *send, void *recv, size_t count, ncclDataType_t dtype, ncclComm_t comm,
	     cudaStream_t stream),
	    (send, recv, count, dtype, comm, stream))
NCCL_SYMBOL(OWN, ncclResult_t, Send,
	    (const void *send, size_t count, ncclDataType_t dtype, int peer, ncclComm_t comm,
	     cudaStream_t stream),
	    (send, count, dtype, peer, comm, stream))
NCCL_SYMBOL(OWN, ncclResult_t, Recv,
	    (void *recv, size_t count, ncclDataType_t dtype, int peer, ncclComm_t comm,
	     cudaStream_t stream),
	    (recv, count, dtype, peer, comm, stream))
NCCL_SYMBOL(OWN, ncclResult_t, GroupStart, (void), ())
NCCL_SYMBOL(OWN, ncclResult_t, GroupEnd, (void), ())

/* 2.22, 2.23 */
NCCL_SYMBOL(OWN, ncclResult_t, GroupSimulateEnd, (void *info), (info))
NCCL_SYMBOL(OWN, ncclResult_t, CommInitRankScalable,
	    (ncclComm_t * ret, int n_ranks, int rank, int n_ids, ncclUniqueId *ids,
	     ncclConfig_t *config),
	    (ret, n_ranks, rank, n_ids, ids, config))

/* 2.27 */
NCCL_SYMBOL(OWN, ncclResult_t, CommShrink,
	    (ncclComm_t comm, int *excluded, int n_excluded, ncclComm_t *ret, ncclConfig_t *config,
	     int flags),
	    (comm, excluded, n_excluded, ret, config, flags))
NCCL_SYMBOL(OWN, ncclResult_t, CommWindowRegister,
	    (ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int flags),
	    (comm, buff, size, win, flags))
NCCL_SYMBOL(OWN, ncclResult_t, CommWindowDeregister, (ncclComm_t comm, ncclWindow_t win),
	    (comm, win))
NCCL_SYMBOL(PLAIN_VOID, void, ResetDebugInit, (void), ())

/* 2.28 */
NCCL_SYMBOL(OWN, ncclResult_t, AlltoAll,
	    (const void *send, void *recv, size_t count, ncclDataType_t dtype, ncclComm_t comm,
	     cudaStream_t stream),
	    (send, recv, count, dtype, comm, stream))
NCCL_SYMBOL(OWN, ncclResult_t, Gather,
	    (const void *send, void *recv, size_t count, ncclDataType_t dtype, int root,
	     ncclComm_t comm, cudaStream_t stream),
	    (send, recv, count, dtype, root, comm, stream))
NCCL_SYMBOL(OWN, ncclResult_t, Scatter,
	    (const void *send, void *recv, size_t count, ncclDataType_t dtype, int root,
	     ncclComm_t comm, cudaStream_t stream),
	    (send, recv, count, dtype, root, comm, stream))
NCCL_SYMBOL(OWN, ncclResult_t, CommRevoke, (ncclComm_t comm, int flags), (comm, flags))
NCCL_SYMBOL(REFUSE, ncclResult_t, DevCommCreate, (ncclComm_t comm, const void *reqs, void *ret),
	    (comm, reqs, ret))
NCCL_SYMBOL(REFUSE, ncclResult_t, DevCommDestroy, (ncclComm_t comm, const void *dev), (comm, dev))
NCCL_SYMBOL(OWN, ncclTeam_t, TeamWorld, (ncclComm_t comm), (comm))
NCCL_SYMBOL(ON_REAL, ncclTeam_t, TeamLsa, (ncclComm_t comm), (comm))
NCCL_SYMBOL(ON_REAL, ncclTeam_t, TeamRail, (ncclComm_t comm), (comm))
NCCL_SYMBOL(ON_REAL, int, TeamRankToWorld, (ncclComm_t comm, ncclTeam_t team, int rank),
	    (comm, team, rank))
NCCL_SYMBOL(ON_REAL, int, TeamRankToLsa, (ncclComm_t comm, ncclTeam_t team, int rank),
	    (comm, team, rank))
NCCL_SYMBOL(PLAIN, ncclResult_t, LsaBarrierCreateRequirement,
	    (ncclTeam_t team, int n, void *handle, void *req), (team, n, handle, req))
NCCL_SYMBOL(REFUSE, ncclResult_t, GinBarrierCreateRequirement,
	    (ncclComm_t comm, ncclTeam_t team, int n, void *handle, void *req),
	    (comm, team, n, handle, req))
NCCL_SYMBOL(PLAIN, int, LLA2ACalcSlots, (int max_elts, int max_elt_size), (max_elts, max_elt_size))
NCCL_SYMBOL(PLAIN, ncclResult_t, LLA2ACreateRequirement,
	    (int n_blocks, int n_slots, void *handle, void *req), (n_blocks, n_slots, handle, req))

/* 2.29 */
NCCL_SYMBOL(REFUSE, ncclResult_t, CommGetUniqueId, (ncclComm_t comm, ncclUniqueId *id), (comm, id))
NCCL_SYMBOL(REFUSE, ncclResult_t, CommGrow,
	    (ncclComm_t comm, int n_ranks, const ncclUniqueId *id, int rank, ncclComm_t *ret,
	     ncclConfig_t *config),
	    (comm, n_ranks, id, rank, ret, config))
NCCL_SYMBOL(ON_REAL, ncclResult_t, CommSuspend, (ncclComm_t comm, int flags), (comm, flags))
NCCL_SYMBOL(ON_REAL, ncclResult_t, CommResume, (ncclComm_t comm), (comm))
NCCL_SYMBOL(ON_REAL, ncclResult_t, CommMemStats, (ncclComm_t comm, int stat, uint64_t *ret),
	    (comm, stat, ret))
NCCL_SYMBOL(REFUSE, ncclResult_t, CommQueryProperties, (ncclComm_t comm, void *ret), (comm, ret))
NCCL_SYMBOL(OWN, ncclResult_t, PutSignal,
	    (const void *local, size_t count, ncclDataType_t dtype, int peer, ncclWindow_t win,
	     size_t offset, int sig, int ctx, unsigned int flags, ncclComm_t comm,
	     cudaStream_t stream),
	    (local, count, dtype, peer, win, offset, sig, ctx, flags, comm, stream))
NCCL_SYMBOL(OWN, ncclResult_t, Signal,
	    (int peer, int sig, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t stream),
	    (peer, sig, ctx, flags, comm, stream))
NCCL_SYMBOL(OWN, ncclResult_t, WaitSignal,
	    (int n, ncclWaitSignalDesc_t *descs, ncclComm_t comm, cudaStream_t stream),
	    (n, descs, comm, stream))
NCCL_SYMBOL(OWN, ncclResult_t, WinGetUserPtr, (ncclComm_t comm, ncclWindow_t win, void **ret),
	    (comm, win, ret))
NCCL_SYMBOL(PLAIN, ncclResult_t, GetLsaMultimemDevicePointer,
	    (ncclWindow_t win, size_t offset, void **ret), (win, offset, ret))
NCCL_SYMBOL(PLAIN, ncclResult_t, GetMultimemDevicePointer,
	    (ncclWindow_t win, size_t offset, ncclMultimemHandle_t multimem, void **ret),
	    (win, offset, multimem, ret))
NCCL_SYMBOL(PLAIN, ncclResult_t, GetLsaDevicePointer,
	    (ncclWindow_t win, size_t offset, int rank, void **ret), (win, offset, rank, ret))
NCCL_SYMBOL(PLAIN, ncclResult_t, GetPeerDevicePointer,
	    (ncclWindow_t win, size_t offset, int peer, void **ret), (win, offset, peer, ret))

/* 2.30 */
NCCL_SYMBOL(PLAIN, ncclResult_t, ParamBind, (void **ret, const char *key), (ret, key))
NCCL_SYMBOL(PLAIN, ncclResult_t, ParamGetI8, (void *param, int8_t *ret), (param, ret))
NCCL_SYMBOL(PLAIN, ncclResult_t, ParamGetI16, (void *param, int16_t *ret), (param, ret))
NCCL_SYMBOL(PLAIN, ncclResult_t, ParamGetI32, (void *param, int32_t *ret), (param, ret))
NCCL_SYMBOL(PLAIN, ncclResult_t, ParamGetI64, (void *param, int64_t *ret), (param, ret))
NCCL_SYMBOL(PLAIN, ncclResult_t, ParamGetU8, (void *param, uint8_t *ret), (param, ret))
NCCL_SYMBOL(PLAIN, ncclResult_t, ParamGetU16, (void *param, uint16_t *ret), (param, ret))
NCCL_SYMBOL(PLAIN, ncclResult_t, ParamGetU32, (void *param, uint32_t *ret), (param, ret))
NCCL_SYMBOL(PLAIN, ncclResult_t, ParamGetU64, (void *param, uint64_t *ret), (param, ret))
NCCL_SYMBOL(PLAIN, ncclResult_t, ParamGetStr, (void *param, const char **ret), (param, ret))
NCCL_SYMBOL(PLAIN, ncclResult_t, ParamGet, (void *param, void *ret, int max, int *len),
	    (param, ret, max, len))
NCCL_SYMBOL(PLAIN, ncclResult_t, ParamGetParameter, (const char *key, const char **ret, int *len),
	    (key, ret, len))
NCCL_SYMBOL(PLAIN, ncclResult_t, ParamGetAllParameterKeys, (const char ***ret, int *len),
	    (ret, len))
NCCL_SYMBOL(PLAIN_VOID, void, ParamDumpAll, (void), ())
NCCL_SYMBOL(PLAIN, ncclResult_t, GinOutboxCreateRequirement,
	    (int n_blocks, int size_log2, void *handle, void *req),
	    (n_blocks, size_log2, handle, req))
NCCL_SYMBOL(PLAIN, ncclResult_t, GinInboxA2ACreateRequirement,
	    (ncclTeam_t peers, int n_blocks, int size_log2, void *handle, void *req),
	    (peers, n_blocks, size_log2, handle, req))

/* 2.32 */
NCCL_SYMBOL(REFUSE, ncclResult_t, AllReduceConfig,
	    (const void *send, void *recv, size_t count, ncclDataType_t dtype, ncclRedOp_t op,
	     ncclComm_t comm, cudaStream_t stream, const void *config),
	    (send, recv, count, dtype, op, comm, stream, config))
NCCL_SYMBOL(REFUSE, ncclResult_t, BroadcastConfig,
	    (const void *send, void *recv, size_t count, ncclDataType_t dtype, int root,
	     ncclComm_t comm, cudaStream_t stream, const void *config),
	    (send, recv, count, dtype, root, comm, stream, config))
NCCL_SYMBOL(REFUSE, ncclResult_t, ReduceConfig,
	    (const void *send, void *recv, size_t count, ncclDataType_t dtype, ncclRedOp_t op,
	     int root, ncclComm_t comm, cudaStream_t stream, const void *config),
	    (send, recv, count, dtype, op, root, comm, stream, config))
NCCL_SYMBOL(REFUSE, ncclResult_t, AllGatherConfig,
	    (const void *send, void *recv, size_t count, ncclDataType_t dtype, ncclComm_t comm,
	     cudaStream_t stream, const void *config),
	    (send, recv, count, dtype, comm, stream, config))
NCCL_SYMBOL(REFUSE, ncclResult_t, ReduceScatterConfig,
	    (const void *send, void *recv, size_t count, ncclDataType_t dtype, ncclRedOp_t op,
	     ncclComm_t comm, cudaStream_t stream, const void *config),
	    (send, recv, count, dtype, op, comm, stream, config))
NCCL_SYMBOL(REFUSE, ncclResult_t, AlltoAllConfig,
	    (const void *send, void *recv, size_t count, ncclDataType_t dtype, ncclComm_t comm,
	     cudaStream_t stream, const void *config),
	    (send, recv, count, dtype, comm, stream, config))
NCCL_SYMBOL(REFUSE, ncclResult_t, GatherConfig,
	    (const void *send, void *recv, size_t count, ncclDataType_t dtype, int root,
	     ncclComm_t comm, cudaStream_t stream, const void *config),
	    (send, recv, count, dtype, root, comm, stream, config))
NCCL_SYMBOL(REFUSE, ncclResult_t, ScatterConfig,
	    (const void *send, void *recv, size_t count, ncclDataType_t dtype, int root,
	     ncclComm_t comm, cudaStream_t stream, const void *config),
	    (send, recv, count, dtype, root, comm, stream, config))
NCCL_SYMBOL(PLAIN, ncclResult_t, SetEncryption, (const void *config), (config))
NCCL_SYMBOL(REFUSE, ncclTeam_t, TeamCft, (ncclComm_t comm, int mode), (comm, mode))
NCCL_SYMBOL(REFUSE, ncclTeam_t, TeamCftMultimem, (ncclComm_t comm), (comm))
NCCL_SYMBOL(PLAIN, ncclResult_t, GetMultimemDeviceLeInfo,
	    (ncclWindow_t win, size_t offset, void *le, size_t *ret), (win, offset, le, ret))
NCCL_SYMBOL(PLAIN, ncclResult_t, GetCftDeviceLeInfo,
	    (ncclWindow_t win, size_t offset, int peer, ncclTeam_t team, void *le, size_t *ret),
	    (win, offset, peer, team, le, ret))
NCCL_SYMBOL(PLAIN, ncclResult_t, GetPeerDeviceLeInfo,
	    (ncclWindow_t win, size_t offset, int peer, void *le, size_t *ret),
	    (win, offset, peer, le, ret))
