// Compiles only if abi.h says what the standard's headers say.
#include <pmix_server.h>

#include "../abi.h"

#define SAME(ours, theirs) _Static_assert((ours) == (theirs), #ours " is not " #theirs)
#define SIZE(name) SAME(sizeof(abi_##name), sizeof(pmix_##name##_t))
#define PLACE(name, member) SAME(offsetof(abi_##name, member), offsetof(pmix_##name##_t, member))

SIZE(proc);
PLACE(proc, rank);
SAME(sizeof(abi_bytes), sizeof(pmix_byte_object_t));
SAME(offsetof(abi_bytes, size), offsetof(pmix_byte_object_t, size));
SAME(sizeof(abi_array), sizeof(pmix_data_array_t));
SAME(offsetof(abi_array, size), offsetof(pmix_data_array_t, size));
SAME(offsetof(abi_array, array), offsetof(pmix_data_array_t, array));
SIZE(value);
PLACE(value, data);
SIZE(info);
PLACE(info, flags);
PLACE(info, value);
SIZE(pdata);
PLACE(pdata, key);
PLACE(pdata, value);

#define CALLBACK(name) SAME(offsetof(abi_module, name), offsetof(pmix_server_module_t, name))
CALLBACK(client_connected);
CALLBACK(client_finalized);
CALLBACK(abort);
CALLBACK(fence_nb);
CALLBACK(direct_modex);
CALLBACK(publish);
CALLBACK(lookup);
CALLBACK(unpublish);
CALLBACK(spawn);
CALLBACK(connect);
CALLBACK(disconnect);
CALLBACK(register_events);
CALLBACK(deregister_events);
CALLBACK(tool_connected);
_Static_assert(sizeof(abi_module) >= sizeof(pmix_server_module_t), "the library copies more than abi_module has");

SAME(ABI_ERR_NOT_SUPPORTED, PMIX_ERR_NOT_SUPPORTED);
SAME(ABI_OPERATION_SUCCEEDED, PMIX_OPERATION_SUCCEEDED);
