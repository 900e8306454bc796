//go:build cgo && linux

#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "_cgo_export.h"

static struct {
	int (*init)(abi_module *, abi_info *, size_t);
	int (*regex)(const char *, char **);
	int (*ppn)(const char *, char **);
	int (*setup_fork)(const abi_proc *, char ***);
	int (*register_nspace)(const char *, int, abi_info *, size_t, abi_op, void *);
	int (*register_client)(const abi_proc *, uid_t, gid_t, void *, abi_op, void *);
	int (*request)(const abi_proc *, abi_blob, void *);
	int (*notify)(int, const abi_proc *, uint8_t, const abi_info *, size_t, abi_op, void *);
	const char *(*error)(int);
	const char *(*version)(void);
} lib;

static const struct {
	const char *name;
	void *target;
} symbols[] = {
	{"PMIx_server_init", &lib.init},
	{"PMIx_generate_regex", &lib.regex},
	{"PMIx_generate_ppn", &lib.ppn},
	{"PMIx_server_setup_fork", &lib.setup_fork},
	{"PMIx_server_register_nspace", &lib.register_nspace},
	{"PMIx_server_register_client", &lib.register_client},
	{"PMIx_server_dmodex_request", &lib.request},
	{"PMIx_Notify_event", &lib.notify},
	{"PMIx_Error_string", &lib.error},
	{"PMIx_Get_version", &lib.version},
};

const char *shim_load(const char *file)
{
	void *handle = dlopen(file, RTLD_NOW | RTLD_GLOBAL); // its own plug-ins want its symbols
	if (!handle)
		return dlerror();
	for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
		void *found = dlsym(handle, symbols[i].name);
		if (!found)
			return dlerror();
		*(void **)symbols[i].target = found;
	}
	return NULL;
}

// accept is what the library calls for the C library's, since the program exports it: connections of other users are none.
int accept(int listener, struct sockaddr *from, socklen_t *size)
{
	int fd = accept4(listener, from, size, 0);
	if (fd < 0 || goAdmits(fd))
		return fd;
	close(fd);
	errno = ECONNABORTED;
	return -1;
}

const char *shim_version(void) { return lib.version(); }
const char *shim_error(int status) { return lib.error(status); }

// The library calls these on its only thread: what Go does in them must not wait.

static int connected(const abi_proc *proc, void *object, abi_op done, void *data) { return ABI_OPERATION_SUCCEEDED; }

static int finalized(const abi_proc *proc, void *object, abi_op done, void *data) { return ABI_OPERATION_SUCCEEDED; }

static int aborted(const abi_proc *proc, void *object, int status, const char *text, abi_proc *procs, size_t count, abi_op done, void *data)
{
	return goAbort((abi_proc *)proc, status, (char *)text);
}

static int fence(const abi_proc *procs, size_t count, const abi_info *info, size_t infos, char *blob, size_t size, abi_modex done, void *data)
{
	return goFence((abi_proc *)procs, count, blob, size, done, data);
}

static int modex(const abi_proc *proc, const abi_info *info, size_t infos, abi_modex done, void *data)
{
	return goModex((abi_proc *)proc, done, data);
}

static int publish(const abi_proc *proc, const abi_info *info, size_t infos, abi_op done, void *data)
{
	return goPublish((abi_proc *)proc, (abi_info *)info, infos, done, data);
}

static int lookup(const abi_proc *proc, char **keys, const abi_info *info, size_t infos, abi_lookup done, void *data)
{
	return goLookup((abi_proc *)proc, keys, (abi_info *)info, infos, done, data);
}

static int unpublish(const abi_proc *proc, char **keys, const abi_info *info, size_t infos, abi_op done, void *data)
{
	return goUnpublish((abi_proc *)proc, keys, (abi_info *)info, infos, done, data);
}

static int spawn(const abi_proc *proc, const abi_info *info, size_t infos, const void *apps, size_t count, void *done, void *data)
{
	goSpawn();
	return ABI_ERR_NOT_SUPPORTED;
}

static int joined(const abi_proc *procs, size_t count, const abi_info *info, size_t infos, abi_op done, void *data)
{
	return goConnect((abi_proc *)procs, count, 1, done, data);
}

static int parted(const abi_proc *procs, size_t count, const abi_info *info, size_t infos, abi_op done, void *data)
{
	return goConnect((abi_proc *)procs, count, 0, done, data);
}

// Tasks may wait for any event: the library keeps who waits for what, and lost nodes are told.
static int listening(int *codes, size_t count, const abi_info *info, size_t infos, abi_op done, void *data) { return ABI_OPERATION_SUCCEEDED; }

static int deaf(int *codes, size_t count, abi_op done, void *data) { return ABI_OPERATION_SUCCEEDED; }

// Tools get no answer: tool_connected is empty.
static abi_module module = {
	.client_connected = connected,
	.client_finalized = finalized,
	.abort = aborted,
	.fence_nb = fence,
	.direct_modex = modex,
	.publish = publish,
	.lookup = lookup,
	.unpublish = unpublish,
	.spawn = spawn,
	.connect = joined,
	.disconnect = parted,
	.register_events = listening,
	.deregister_events = deaf,
};

int shim_init(abi_info *info, size_t count) { return lib.init(&module, info, count); }
int shim_regex(const char *list, char **out) { return lib.regex(list, out); }
int shim_ppn(const char *list, char **out) { return lib.ppn(list, out); }
int shim_setup_fork(const abi_proc *proc, char ***env) { return lib.setup_fork(proc, env); }

static void op_done(int status, void *data) { goOp(status, (uintptr_t)data); }
static void blob_done(int status, char *blob, size_t size, void *data) { goBlob(status, blob, size, (uintptr_t)data); }

int shim_register_nspace(const char *nspace, int local, abi_info *info, size_t count, uintptr_t id)
{
	return lib.register_nspace(nspace, local, info, count, op_done, (void *)id);
}

int shim_register_client(const abi_proc *proc, uid_t uid, gid_t gid, uintptr_t id)
{
	return lib.register_client(proc, uid, gid, NULL, op_done, (void *)id);
}

int shim_notify(int status, const abi_proc *source, uint8_t range, const abi_info *info, size_t count, uintptr_t id)
{
	return lib.notify(status, source, range, info, count, op_done, (void *)id);
}

int shim_request(const abi_proc *proc, uintptr_t id) { return lib.request(proc, blob_done, (void *)id); }

void shim_op(abi_op done, int status, void *data)
{
	if (done)
		done(status, data);
}

void shim_modex(abi_modex done, int status, char *blob, size_t size, void *data)
{
	if (done)
		done(status, blob, size, data, free, blob);
	else
		free(blob);
}

void shim_lookup(abi_lookup done, int status, abi_pdata *found, size_t count, void *data)
{
	if (done)
		done(status, found, count, data);
}
