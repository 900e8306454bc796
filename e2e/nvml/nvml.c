// A stand-in for libnvidia-ml.so.1, written from NVML's public API (nvml.h as go-nvml ships it). It reads the file that
// STANDIN_NVML names on every call, so that a running test can break a GPU under the daemon. Lines:
//   init CODE                    what nvmlInit and nvmlDeviceGetCount return (nvmlReturn_t): 9 driver not loaded, 18 version mismatch
//   driver 550.54.15
//   hang MS                      every call about a device takes so long
//   gpu I KEY VALUE              keys: see keys[] below (energy in millijoules); name, uuid, bus, serial and fabric (UUID CLIQUE) are texts
//   link I LINK UP PEERBUS KIND  an NVLink: UP 0 or 1, KIND gpu or switch
//   mig I K GI CI MEMMB UUID PROFILE
//   proc I PID MEMMB SM
//   Slices have processes of their own: proc I/K PID MEMMB SM. What nvmlDeviceSet… sets is appended as a line of key and value,
//   unless the key denied is 1.
//   xid SEQ I CODE               an event, delivered once, in the order of SEQ, if it was not there when listening began
// Build: gcc -shared -fPIC -O2 -I DIR-OF-nvml.h -o libnvidia-ml.so.1 nvml.c
#define _GNU_SOURCE
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "nvml.h"

#define EXPORT __attribute__((visibility("default")))
#define MAX_GPUS 16
#define MAX_SLICES 7
#define MAX_LINKS 18
#define MAX_LIST 256

struct slice { int used; unsigned gi, ci; unsigned long long mem; char uuid[96], profile[40]; };
struct link { int used, up, is_switch; char peer[32]; };
struct gpu {
	char name[96], uuid[96], bus[32], fabric[64], serial[32];
	unsigned long long minor, numa, mem, mig, lost, ecc_unc, ecc_cor, remap_cor, remap_unc, remap_pending, remap_failed,
		retire_pending, throttle, temp, slowdown, power, util, nverr, cpu_lo, cpu_hi, clique, fabric_state, energy, compute_mode, persistence, power_limit, mem_clock, sm_clock, denied,
		link_in, link_out, bus_in, bus_out;
	struct link link[MAX_LINKS];
	struct slice slice[MAX_SLICES];
};
struct proc { unsigned gpu, slice, pid, sm; unsigned long long mem; }; // slice: its number plus one, 0: none
struct xid { unsigned long long seq, code; unsigned gpu; };

static __thread struct state { // each thread reads for itself
	int init, hang;
	char driver[40];
	unsigned n;
	struct gpu g[MAX_GPUS];
	struct proc p[MAX_LIST];
	struct xid x[MAX_LIST];
	int np, nx;
} S;
static unsigned long long cursor; // of the events

static const struct { const char *name; size_t at; } keys[] = {
#define KEY(k) {#k, offsetof(struct gpu, k)}
	KEY(minor), KEY(numa), KEY(mem), KEY(mig), KEY(lost), KEY(ecc_unc), KEY(ecc_cor), KEY(remap_cor), KEY(remap_unc),
	KEY(remap_pending), KEY(remap_failed), KEY(retire_pending), KEY(throttle), KEY(temp), KEY(slowdown), KEY(power), KEY(util),
	KEY(nverr), KEY(cpu_lo), KEY(cpu_hi), KEY(clique), KEY(fabric_state), KEY(energy), KEY(compute_mode), KEY(persistence), KEY(power_limit), KEY(mem_clock), KEY(sm_clock), KEY(denied),
	KEY(link_in), KEY(link_out), KEY(bus_in), KEY(bus_out),
};

static void set(unsigned i, const char *key, const char *value) {
	struct gpu *g = &S.g[i];
	if (i + 1 > S.n) S.n = i + 1;
	if (!strcmp(key, "name")) snprintf(g->name, sizeof g->name, "%.95s", value);
	else if (!strcmp(key, "uuid")) snprintf(g->uuid, sizeof g->uuid, "%.95s", value);
	else if (!strcmp(key, "bus")) snprintf(g->bus, sizeof g->bus, "%.31s", value);
	else if (!strcmp(key, "serial")) snprintf(g->serial, sizeof g->serial, "%.31s", value);
	else if (!strcmp(key, "fabric")) { sscanf(value, "%63s %llu", g->fabric, &g->clique); g->fabric_state = NVML_GPU_FABRIC_STATE_COMPLETED; }
	for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
		if (!strcmp(key, keys[k].name)) *(unsigned long long *)((char *)g + keys[k].at) = strtoull(value, 0, 0);
}

static void load(void) {
	const char *path = getenv("STANDIN_NVML");
	FILE *f = path ? fopen(path, "r") : 0;
	char line[512], a[128], b[256];
	unsigned i, k, u, v;
	unsigned long long q, r;
	memset(&S, 0, sizeof S);
	snprintf(S.driver, sizeof S.driver, "550.54.15");
	if (!f) { S.init = NVML_ERROR_DRIVER_NOT_LOADED; return; }
	while (fgets(line, sizeof line, f)) {
		if (sscanf(line, "init %d", &S.init) == 1 || sscanf(line, "driver %39s", S.driver) == 1 || sscanf(line, "hang %d", &S.hang) == 1) continue;
		if (sscanf(line, "gpu %u %127s %255[^\n]", &i, a, b) == 3 && i < MAX_GPUS) set(i, a, b);
		else if (sscanf(line, "link %u %u %u %127s %255s", &i, &k, &u, a, b) == 5 && i < MAX_GPUS && k < MAX_LINKS) {
			S.g[i].link[k] = (struct link){.used = 1, .up = u, .is_switch = !strcmp(b, "switch")};
			snprintf(S.g[i].link[k].peer, sizeof S.g[i].link[k].peer, "%.31s", a);
		} else if (sscanf(line, "mig %u %u %u %u %llu %127s %255s", &i, &k, &u, &v, &q, a, b) == 7 && i < MAX_GPUS && k < MAX_SLICES) {
			struct slice *m = &S.g[i].slice[k];
			*m = (struct slice){.used = 1, .gi = u, .ci = v, .mem = q << 20};
			snprintf(m->uuid, sizeof m->uuid, "%.95s", a);
			snprintf(m->profile, sizeof m->profile, "%.39s", b);
		} else if (sscanf(line, "proc %u/%u %u %llu %u", &i, &v, &k, &q, &u) == 5 && S.np < MAX_LIST) S.p[S.np++] = (struct proc){i, v + 1, k, u, q << 20};
		else if (sscanf(line, "proc %u %u %llu %u", &i, &k, &q, &u) == 4 && S.np < MAX_LIST) S.p[S.np++] = (struct proc){i, 0, k, u, q << 20};
		else if (sscanf(line, "xid %llu %u %llu", &q, &i, &r) == 3 && S.nx < MAX_LIST) S.x[S.nx++] = (struct xid){q, r, i};
	}
	fclose(f);
}

// A handle is the index plus one, that of a slice has its number plus one in the next byte.
static nvmlDevice_t handle(unsigned gpu, unsigned slice) { return (nvmlDevice_t){(void *)(size_t)((gpu + 1) | slice << 8)}; }

static nvmlReturn_t find(nvmlDevice_t d, struct gpu **g, struct slice **m) {
	size_t h = (size_t)d.handle;
	load();
	if (S.hang) usleep(1000 * S.hang);
	if (!(h & 0xff) || (h & 0xff) > S.n) return NVML_ERROR_INVALID_ARGUMENT;
	*g = &S.g[(h & 0xff) - 1];
	*m = h >> 8 ? &(*g)->slice[(h >> 8) - 1] : 0;
	return (*g)->lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}
#define FIND(d) \
	struct gpu *g; struct slice *m; nvmlReturn_t found = find(d, &g, &m); \
	if (found != NVML_SUCCESS) return found; \
	(void)m
#define NUMBER(fn, type, expr) EXPORT nvmlReturn_t fn(nvmlDevice_t d, type *out) { FIND(d); *out = (type)(expr); return NVML_SUCCESS; }

EXPORT nvmlReturn_t nvmlInit_v2(void) { load(); return S.init; }
EXPORT nvmlReturn_t nvmlShutdown(void) { return NVML_SUCCESS; }
EXPORT const char *nvmlErrorString(nvmlReturn_t r) {
	static char text[32];
	switch (r) {
	case NVML_SUCCESS: return "Success";
	case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
	case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
	case NVML_ERROR_NO_PERMISSION: return "Insufficient Permissions";
	case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
	default: snprintf(text, sizeof text, "error %d", r); return text;
	}
}
EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *out, unsigned n) { load(); snprintf(out, n, "%s", S.driver); return NVML_SUCCESS; }
EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *n) { load(); *n = S.n; return S.init; }
EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned i, nvmlDevice_t *d) {
	load();
	if (i >= S.n) return NVML_ERROR_INVALID_ARGUMENT;
	*d = handle(i, 0);
	return S.g[i].lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *out, unsigned n) {
	FIND(d);
	if (m) snprintf(out, n, "%s MIG %s", g->name, m->profile);
	else snprintf(out, n, "%s", g->name);
	return NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *out, unsigned n) { FIND(d); snprintf(out, n, "%s", m ? m->uuid : g->uuid); return NVML_SUCCESS; }
EXPORT nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t d, char *out, unsigned n) { FIND(d); snprintf(out, n, "%s", g->serial); return *g->serial ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED; }
NUMBER(nvmlDeviceGetMinorNumber, unsigned, g->minor)
NUMBER(nvmlDeviceGetNumaNodeId, unsigned, g->numa)
NUMBER(nvmlDeviceGetMaxMigDeviceCount, unsigned, g->mig ? MAX_SLICES : 0)
NUMBER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, g->throttle)
NUMBER(nvmlDeviceGetPowerUsage, unsigned, g->power * 1000)
NUMBER(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, g->energy) // millijoules

// Counters: of NVLinks in KiB, of the bus in bytes.
EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t d, int n, nvmlFieldValue_t *v) {
	FIND(d);
	for (int i = 0; i < n; i++) {
		v[i].nvmlReturn = NVML_SUCCESS, v[i].valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
		switch (v[i].fieldId) {
		case NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX: v[i].value.ullVal = g->link_in; break;
		case NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX: v[i].value.ullVal = g->link_out; break;
		case NVML_FI_DEV_PCIE_COUNT_RX_BYTES: v[i].value.ullVal = g->bus_in; break;
		case NVML_FI_DEV_PCIE_COUNT_TX_BYTES: v[i].value.ullVal = g->bus_out; break;
		default: v[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
		}
	}
	return NVML_SUCCESS;
}

// on reports whether a process is on a GPU, or in a slice of it.
static int on(struct proc *p, struct gpu *g, struct slice *m) { return &S.g[p->gpu] == g && (!m || p->slice == m - g->slice + 1); }

static unsigned long long used(struct gpu *g, struct slice *m) {
	unsigned long long sum = 0;
	for (int i = 0; i < S.np; i++) if (on(&S.p[i], g, m)) sum += S.p[i].mem;
	return sum;
}

// Settings. A change is told by a line at the end of the file, which is what counts.
static nvmlReturn_t change(struct gpu *g, const char *key, unsigned long long value) {
	if (g->denied) return NVML_ERROR_NO_PERMISSION;
	FILE *f = fopen(getenv("STANDIN_NVML"), "a");
	if (!f) return NVML_ERROR_UNKNOWN;
	fprintf(f, "gpu %d %s %llu\n", (int)(g - S.g), key, value);
	return fclose(f) ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *d) {
	load();
	for (unsigned i = 0; i < S.n; i++) if (!strcmp(S.g[i].uuid, uuid)) { *d = handle(i, 0); return NVML_SUCCESS; }
	return NVML_ERROR_NOT_FOUND;
}
NUMBER(nvmlDeviceGetComputeMode, nvmlComputeMode_t, g->compute_mode)
NUMBER(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, g->persistence)
NUMBER(nvmlDeviceGetPowerManagementLimit, unsigned, g->power_limit * 1000)
EXPORT nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t d, nvmlComputeMode_t v) { FIND(d); return change(g, "compute_mode", v); }
EXPORT nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t d, nvmlEnableState_t v) { FIND(d); return change(g, "persistence", v); }
EXPORT nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t d, unsigned mw) { FIND(d); return change(g, "power_limit", mw / 1000); }
EXPORT nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t d, nvmlClockType_t t, unsigned *mhz) { FIND(d); *mhz = t == NVML_CLOCK_MEM ? g->mem_clock : g->sm_clock; return NVML_SUCCESS; }
EXPORT nvmlReturn_t nvmlDeviceSetApplicationsClocks(nvmlDevice_t d, unsigned mem, unsigned sm) {
	FIND(d);
	nvmlReturn_t r = change(g, "mem_clock", mem);
	return r == NVML_SUCCESS ? change(g, "sm_clock", sm) : r;
}
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *out) {
	FIND(d);
	out->total = m ? m->mem : g->mem << 20;
	out->used = used(g, m);
	out->free = out->total - out->used;
	return NVML_SUCCESS;
}
static void bus(const char *text, nvmlPciInfo_t *out) {
	unsigned a = 0, b = 0, c = 0;
	memset(out, 0, sizeof *out);
	sscanf(text, "%x:%x:%x", &a, &b, &c);
	snprintf(out->busId, sizeof out->busId, "%s", text);
	out->domain = a, out->bus = b, out->device = c;
}
EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *out) { FIND(d); bus(g->bus, out); return NVML_SUCCESS; }
EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t d, unsigned n, unsigned long *out) {
	FIND(d);
	memset(out, 0, n * sizeof *out);
	if (!g->cpu_hi) return NVML_ERROR_NOT_SUPPORTED;
	for (unsigned long long c = g->cpu_lo; c <= g->cpu_hi && c / 64 < n; c++) out[c / 64] |= 1ul << c % 64;
	return NVML_SUCCESS;
}

// NVLinks and the fabric.
#define LINK(d, l) FIND(d); if (l >= MAX_LINKS || !g->link[l].used) return NVML_ERROR_INVALID_ARGUMENT
EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t d, unsigned l, nvmlEnableState_t *out) { LINK(d, l); *out = g->link[l].up; return NVML_SUCCESS; }
EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t d, unsigned l, nvmlPciInfo_t *out) { LINK(d, l); bus(g->link[l].peer, out); return NVML_SUCCESS; }
EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t d, unsigned l, nvmlIntNvLinkDeviceType_t *out) {
	LINK(d, l);
	*out = g->link[l].is_switch ? NVML_NVLINK_DEVICE_TYPE_SWITCH : NVML_NVLINK_DEVICE_TYPE_GPU;
	return NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t d, unsigned l, nvmlNvLinkErrorCounter_t c, unsigned long long *out) {
	LINK(d, l);
	*out = c == NVML_NVLINK_ERROR_DL_REPLAY && l == 0 ? g->nverr : 0;
	return NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t d, nvmlGpuFabricInfo_t *out) {
	FIND(d);
	memset(out, 0, sizeof *out);
	out->state = g->fabric_state;
	out->cliqueId = g->clique;
	int n = 0;
	for (const char *p = g->fabric; *p && n < 16; p++) {
		unsigned x;
		if (*p != '-' && sscanf(p, "%2x", &x) == 1) ((unsigned char *)out->clusterUuid)[n++] = x, p++;
	}
	return NVML_SUCCESS;
}

// Health.
EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t d, nvmlMemoryErrorType_t t, nvmlEccCounterType_t c, unsigned long long *out) {
	FIND(d);
	*out = c != NVML_VOLATILE_ECC ? 0 : t == NVML_MEMORY_ERROR_TYPE_UNCORRECTED ? g->ecc_unc : g->ecc_cor;
	return NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t d, unsigned *cor, unsigned *unc, unsigned *pending, unsigned *failed) {
	FIND(d);
	*cor = g->remap_cor, *unc = g->remap_unc, *pending = g->remap_pending, *failed = g->remap_failed;
	return NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t d, nvmlEnableState_t *out) { FIND(d); *out = g->retire_pending; return NVML_SUCCESS; }
EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, nvmlTemperatureSensors_t s, unsigned *out) { (void)s; FIND(d); *out = g->temp; return NVML_SUCCESS; }
EXPORT nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t d, nvmlTemperatureThresholds_t t, unsigned *out) {
	(void)t;
	FIND(d);
	*out = g->slowdown;
	return g->slowdown ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

// What runs.
EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t d, nvmlUtilization_t *out) { FIND(d); if (g->mig) return NVML_ERROR_NOT_SUPPORTED; out->gpu = g->util, out->memory = g->util / 2; return NVML_SUCCESS; }
EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t d, unsigned *n, nvmlProcessInfo_t *out) {
	FIND(d);
	unsigned k = 0, room = *n;
	for (int i = 0; i < S.np; i++) {
		if (!on(&S.p[i], g, m)) continue;
		if (k < room) out[k] = (nvmlProcessInfo_t){.pid = S.p[i].pid, .usedGpuMemory = S.p[i].mem, .gpuInstanceId = ~0u, .computeInstanceId = ~0u};
		k++;
	}
	*n = k;
	return k > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t d, nvmlProcessUtilizationSample_t *out, unsigned *n, unsigned long long since) {
	FIND(d);
	unsigned k = 0, room = *n;
	for (int i = 0; i < S.np; i++) {
		if (!on(&S.p[i], g, m)) continue;
		if (out && k < room) out[k] = (nvmlProcessUtilizationSample_t){.pid = S.p[i].pid, .smUtil = S.p[i].sm, .timeStamp = since + 1};
		k++;
	}
	*n = k;
	return !out || k > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

// Slices.
EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned *now, unsigned *later) { FIND(d); *now = *later = g->mig; return NVML_SUCCESS; }
EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t d, unsigned k, nvmlDevice_t *out) {
	FIND(d);
	if (k >= MAX_SLICES || !g->slice[k].used) return NVML_ERROR_NOT_FOUND;
	*out = handle(g - S.g, k + 1);
	return NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t d, unsigned *out) { FIND(d); if (!m) return NVML_ERROR_NOT_SUPPORTED; *out = m->gi; return NVML_SUCCESS; }
EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t d, unsigned *out) { FIND(d); if (!m) return NVML_ERROR_NOT_SUPPORTED; *out = m->ci; return NVML_SUCCESS; }

// Events.
EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *s) {
	s->handle = (void *)1;
	load();
	for (int i = 0; i < S.nx; i++) if (S.x[i].seq > cursor) cursor = S.x[i].seq;
	return NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t s) { (void)s; return NVML_SUCCESS; }
EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t d, unsigned long long types, nvmlEventSet_t s) { (void)types, (void)s; FIND(d); return NVML_SUCCESS; }
EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t s, nvmlEventData_t *e, unsigned ms) {
	(void)s;
	for (unsigned waited = 0;; waited += 20) {
		FILE *f = getenv("STANDIN_NVML") ? fopen(getenv("STANDIN_NVML"), "r") : 0;
		char line[512];
		unsigned long long seq, code, best = 0;
		unsigned gpu;
		while (f && fgets(line, sizeof line, f))
			if (sscanf(line, "xid %llu %u %llu", &seq, &gpu, &code) == 3 && seq > cursor && (!best || seq < best)) {
				best = seq;
				memset(e, 0, sizeof *e);
				e->device = handle(gpu, 0);
				e->eventType = nvmlEventTypeXidCriticalError, e->eventData = code;
				e->gpuInstanceId = e->computeInstanceId = ~0u;
			}
		if (f) fclose(f);
		if (best) { cursor = best; return NVML_SUCCESS; }
		if (waited >= ms) return NVML_ERROR_TIMEOUT;
		usleep(20000);
	}
}
