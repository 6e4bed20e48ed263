/* NCCL's records, as they go over its bootstrap: how large they are, and where in them the fields
 * stand that nbox reads or rewrites when it makes a virtual rank of a real one. One table for each
 * group of NCCL's versions that have the same (2.28.7.c, ...), to be read beside NCCL's headers;
 * README.md says how one is added. Sizes are on the wire, so a record of another size is refused.
 * All numbers are in the machine's order. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NCCL_CODE(major, minor, patch) ((major)*10000 + (minor)*100 + (patch)) /* since 2.9 */
#define NCCL_ADDRESS_BYTES 28 /* of a socket's address: sockaddr_in or sockaddr_in6 */
#define NCCL_ID_BYTES 128
#define NCCL_SOCKET_BOOTSTRAP 1 /* after the magic, each connection tells what it is for */

struct record_field {
	uint16_t at, bytes; /* bytes 0: these versions have no such field */
};

/* A rank's first message to the root: who it is, and where it listens. */
struct record_check_in {
	uint16_t bytes;
	struct record_field rank, n_ranks;
	struct record_field root, n_roots; /* which of several ids; before 2.23 there is one */
	struct record_field offset;        /* of a rank that joins by ncclCommGrow; 0 otherwise */
	struct record_field root_address;  /* where the root answers */
	struct record_field ring_address;  /* where the rank before it connects to */
};

/* What ranks tell each other of their sockets; before 2.23 three all-gathers, since then one. Of
 * the three a child of ncclCommSplit with splitShare has only the first. */
#define RECORD_CONTACTS_MAX 3
struct record_contact {
	uint16_t bytes;
	struct record_field peer_address; /* for messages from rank to rank */
};

/* A rank's GPU, process and host (ncclPeerInfo). */
struct record_peer {
	uint16_t bytes;
	struct record_field rank, host_hash, pid_hash, comm /* a pointer */;
	struct record_field cluster_uuid, clique; /* of the NVLink domain of several hosts */
	struct record_field version;
};

/* What a rank's search over its node found (allGatherInfo): graphs, then arrays of ranks. */
enum record_graph_of { RECORD_OF_TREE, RECORD_OF_RING };
enum record_array {
	RECORD_RING_RECV,
	RECORD_RING_SEND,
	RECORD_RING_PREV,
	RECORD_RING_NEXT,
	RECORD_TREE_PARENT,
	RECORD_TREE_CHILD0,
	RECORD_TREE_CHILD1,
	RECORD_NVLS_HEADS,
	RECORD_ARRAYS
};
struct record_graph {
	uint16_t bytes;
	uint16_t n_graphs,
		graph_bytes; /* graph i at i * graph_bytes; by algorithm: RECORD_OF_... */
	struct record_field pattern, n_channels, same_channels, bw_intra, bw_inter, type_intra,
		type_inter, cross_nic; /* inside a graph; the two bw_ are floats, GB/s */
	/* RECORD_ARRAYS arrays of n_channels_max ints, the first at arrays_at. Each int that is set
	 * is a rank of the sender's node, or -1: in the arrays of rings and trees the first
	 * min(n_channels of the ring, of the tree) are, of the NVLS heads nvls_head_count. NCCL
	 * neither writes nor reads the others; they are 0, whichever node rank 0 stands on. */
	uint16_t arrays_at, n_channels_max;
	struct record_field nvls_head_count, local_ranks;
};

/* A rank's vote in ncclCommSplit; before 2.23 two all-gathers: colors, then keys. */
struct record_split {
	uint8_t n_gathers; /* 1, or 2 of 4 bytes each */
	uint16_t bytes;
	struct record_field color, key; /* with two gathers: .at 0 in the first and in the second */
	int32_t tag; /* of the messages between the members of the child, of next_bytes */
};

/* An all-gather that comes after those above, told by its size. A virtual rank's record is a copy
 * of its template's where that is what it would say itself; @refused: why it is not, and what to
 * set. */
#define RECORD_LATER_MAX 8
struct record_later {
	uint16_t bytes;      /* 0 ends */
	const char *refused; /* NULL: it is copied */
};

struct nccl_records {
	const char *name;  /* "2.28.7", as the file's name */
	int first, last;   /* versions, as NCCL_CODE; those between are taken to be like both */
	const char *tried; /* the versions that ran against NCCL's own code, and when; NULL: none */
	bool is_both_ways; /* an all-gather goes round the ring in both directions at once */
	bool has_two_heads;  /* a message between ranks begins with two frames: rank, tag */
	uint16_t next_bytes; /* the root's answer: the address of the next rank, and what follows */
	uint16_t connect_bytes;      /* of one connection in a message that sets up a transport */
	struct record_field use_gdr; /* in it, behind the network's handle */
	struct record_field id_magic, id_address; /* in ncclUniqueId */
	struct record_field id_n_ranks; /* of the parent, by ncclCommGetUniqueId; 0 otherwise */
	struct record_check_in check_in;
	uint8_t n_contacts;
	struct record_contact contacts[RECORD_CONTACTS_MAX];
	struct record_peer peer;
	struct record_graph graph;
	struct record_split split;
	struct record_later later[RECORD_LATER_MAX];
	/* tags of barriers of all ranks; 0 ends */
	int32_t barrier_tags[4];
};

/* All tables, oldest first; *ret_n of them. */
const struct nccl_records *const *nccl_records_all(size_t *ret_n);
/**
 * nccl_records_find - the table of an NCCL
 * @version: as ncclGetVersion() tells it
 * @forced: also one that was never tried against NCCL's own code (programs call that --untried)
 * @sentence: of @size bytes; what is known, when there is none
 *
 * Return: the table; NULL with the sentence.
 */
const struct nccl_records *nccl_records_find(int version, bool forced, char *sentence, size_t size);
/* What is to be done with a later all-gather of @bytes. Return: NULL: its size is not known. */
const struct record_later *nccl_records_later(const struct nccl_records *r, size_t bytes);
/* Is @r consistent: every field there, inside its record, none over another? For tests and for who
 * adds one. Return: 0; -1 with the sentence. */
int nccl_records_check(const struct nccl_records *r, char *sentence, size_t size);
/* "2.28.7 to 2.28.9; untried: 2.21.5, 2.23.4 to 2.24.3, ..." for sentences. Return: @buf. */
char *nccl_records_known(char *buf, size_t size);
