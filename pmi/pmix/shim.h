// What Go calls of the library, and how it calls back what the library has left with it.
#ifndef MUSTER_PMIX_SHIM_H
#define MUSTER_PMIX_SHIM_H

#include "abi.h"

// shim_load loads the library; it returns NULL, or why it cannot be used.
const char *shim_load(const char *file);
const char *shim_version(void);
const char *shim_error(int status);

int shim_init(abi_info *info, size_t count);
int shim_regex(const char *list, char **out);
int shim_ppn(const char *list, char **out);
int shim_setup_fork(const abi_proc *proc, char ***env);

// These end by goOp or goBlob, which are given id, if they return success.
int shim_register_nspace(const char *nspace, int local, abi_info *info, size_t count, uintptr_t id);
int shim_register_client(const abi_proc *proc, uid_t uid, gid_t gid, uintptr_t id);
int shim_notify(int status, const abi_proc *source, uint8_t range, const abi_info *info, size_t count, uintptr_t id);
int shim_request(const abi_proc *proc, uintptr_t id);

void shim_op(abi_op done, int status, void *data);
// shim_modex gives blob, which was allocated with malloc, to the library until it has no more use for it.
void shim_modex(abi_modex done, int status, char *blob, size_t size, void *data);
void shim_lookup(abi_lookup done, int status, abi_pdata *found, size_t count, void *data);

#endif
