// What is used of the PMIx standard's C interface, versions 3 to 5, written down so that no header of it is needed to build.
// Names differ from the standard's so that a test can compare the two (testdata/abi.c).
#ifndef MUSTER_PMIX_ABI_H
#define MUSTER_PMIX_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	ABI_ERR_NOT_SUPPORTED = -47,
	ABI_OPERATION_SUCCEEDED = -157,
};

typedef struct {
	char nspace[256];
	uint32_t rank;
} abi_proc;

typedef struct {
	char *bytes;
	size_t size;
} abi_bytes;

typedef struct {
	uint16_t type;
	size_t size;
	void *array;
} abi_array;

// abi_data is a union of the same size and alignment as the standard's, whose largest member is an environment variable.
typedef union {
	char *string;
	void *pointer;
	abi_bytes bytes;
	char raw[24];
} abi_data;

typedef struct {
	uint16_t type;
	abi_data data;
} abi_value;

typedef struct {
	char key[512];
	uint32_t flags;
	abi_value value;
} abi_info;

typedef struct {
	abi_proc proc;
	char key[512];
	abi_value value;
} abi_pdata;

typedef void (*abi_op)(int status, void *data);
typedef void (*abi_release)(void *data);
typedef void (*abi_modex)(int status, const char *blob, size_t size, void *data, abi_release release, void *released);
typedef void (*abi_lookup)(int status, abi_pdata found[], size_t count, void *data);
typedef void (*abi_blob)(int status, char *blob, size_t size, void *data);

// abi_module is what a server offers to the library. Later versions know more at its end, which is left empty: the library
// copies as much as it knows.
typedef struct {
	int (*client_connected)(const abi_proc *, void *, abi_op, void *);
	int (*client_finalized)(const abi_proc *, void *, abi_op, void *);
	int (*abort)(const abi_proc *, void *, int, const char *, abi_proc *, size_t, abi_op, void *);
	int (*fence_nb)(const abi_proc *, size_t, const abi_info *, size_t, char *, size_t, abi_modex, void *);
	int (*direct_modex)(const abi_proc *, const abi_info *, size_t, abi_modex, void *);
	int (*publish)(const abi_proc *, const abi_info *, size_t, abi_op, void *);
	int (*lookup)(const abi_proc *, char **, const abi_info *, size_t, abi_lookup, void *);
	int (*unpublish)(const abi_proc *, char **, const abi_info *, size_t, abi_op, void *);
	int (*spawn)(const abi_proc *, const abi_info *, size_t, const void *, size_t, void *, void *);
	int (*connect)(const abi_proc *, size_t, const abi_info *, size_t, abi_op, void *);
	int (*disconnect)(const abi_proc *, size_t, const abi_info *, size_t, abi_op, void *);
	int (*register_events)(int *, size_t, const abi_info *, size_t, abi_op, void *);
	int (*deregister_events)(int *, size_t, abi_op, void *);
	void *listener;
	void *notify_event;
	void *query;
	void *tool_connected;
	void *more[47];
} abi_module;

#endif
