//go:build cgo && linux

package pmix

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"runtime/cgo"
	"sync"
	"time"
	"unsafe"
)

// serving is the server of this process. It is set before the library's server starts.
var serving *server

//export goAdmits
func goAdmits(fd C.int) C.int {
	if admits(int(fd)) {
		return 1
	}
	return 0
}

//export goOp
func goOp(status C.int, id C.uintptr_t) { cgo.Handle(id).Value().(chan C.int) <- status }

//export goBlob
func goBlob(status C.int, blob *C.char, size C.size_t, id C.uintptr_t) {
	h := cgo.Handle(id)
	answer := h.Value().(func(int, []byte))
	h.Delete()
	go answer(int(status), C.GoBytes(unsafe.Pointer(blob), C.int(size)))
}

//export goAbort
func goAbort(p *C.abi_proc, code C.int, text *C.char) C.int {
	why := ""
	if text != nil {
		why = C.GoString(text)
	}
	return C.int(serving.abort(procOf(p), int(code), why))
}

//export goFence
func goFence(procs *C.abi_proc, count C.size_t, blob *C.char, size C.size_t, done C.abi_modex,
	data unsafe.Pointer) C.int {
	part := C.GoBytes(unsafe.Pointer(blob), C.int(size))
	return C.int(serving.fence(procsOf(procs, count), part, func(status int, all []byte) {
		giveModex(done, status, all, data)
	}))
}

//export goModex
func goModex(p *C.abi_proc, done C.abi_modex, data unsafe.Pointer) C.int {
	return C.int(serving.modex(procOf(p), func(status int, blob []byte) { giveModex(done, status, blob, data) }))
}

// giveModex ends a fence or a request. The library frees the bytes when it has no more use for them.
func giveModex(done C.abi_modex, status int, blob []byte, data unsafe.Pointer) {
	var bytes *C.char
	if len(blob) > 0 {
		bytes = (*C.char)(C.CBytes(blob))
	}
	C.shim_modex(done, C.int(status), bytes, C.size_t(len(blob)), data)
}

//export goConnect
func goConnect(procs *C.abi_proc, count C.size_t, join C.int, done C.abi_op, data unsafe.Pointer) C.int {
	return C.int(serving.connect(procsOf(procs, count), join != 0, func(status int) {
		C.shim_op(done, C.int(status), data)
	}))
}

// refusing says once why tasks start no others.
var refusing sync.Once

//export goSpawn
func goSpawn() {
	refusing.Do(func() {
		serving.say("tasks cannot start further tasks (MPI_Comm_spawn): " +
			"ask for as many as are needed with srun --ntasks")
	})
}

//export goPublish
func goPublish(p *C.abi_proc, list *C.abi_info, count C.size_t, done C.abi_op, data unsafe.Pointer) C.int {
	from, items := procOf(p), map[string]item{}
	d := directives{within: rangeSession}
	infos := unsafe.Slice(list, count)
	for i := range infos {
		key := C.GoString(&infos[i].key[0])
		if directive(key) {
			d.read(key, &infos[i].value)
			continue
		}
		b, err := bytesOf(&infos[i].value)
		if err != nil {
			serving.say("task %d publishes %q: %v", from.rank, key, err)
			return statusNotSupported
		}
		items[key] = item{from.rank, uint16(infos[i].value._type), b}
	}
	return C.int(serving.publish(from, d, items, func(status int) { C.shim_op(done, C.int(status), data) }))
}

//export goLookup
func goLookup(p *C.abi_proc, keys **C.char, list *C.abi_info, count C.size_t, done C.abi_lookup,
	data unsafe.Pointer) C.int {
	d := directivesOf(list, count)
	return C.int(serving.lookup(procOf(p), d, keysOf(keys), func(status int, found map[string]item) {
		giveFound(done, status, found, data)
	}))
}

// giveFound ends a lookup. The library copies what it is given.
func giveFound(done C.abi_lookup, status int, found map[string]item, data unsafe.Pointer) {
	first := (*C.abi_pdata)(C.calloc(C.size_t(max(len(found), 1)), C.sizeof_abi_pdata))
	list := unsafe.Slice(first, len(found))
	i := 0
	for key, it := range found {
		list[i].proc = newProc(proc{serving.nspace, it.rank})
		setKey(list[i].key[:], key)
		setBytes(&list[i].value, it)
		i++
	}
	C.shim_lookup(done, C.int(status), first, C.size_t(len(found)), data)
	for i := range list {
		freeValue(&list[i].value)
	}
	C.free(unsafe.Pointer(first))
}

//export goUnpublish
func goUnpublish(p *C.abi_proc, keys **C.char, list *C.abi_info, count C.size_t, done C.abi_op,
	data unsafe.Pointer) C.int {
	return C.int(serving.unpublish(procOf(p), directivesOf(list, count), keysOf(keys), func(status int) {
		C.shim_op(done, C.int(status), data)
	}))
}

func keysOf(list **C.char) (keys []string) {
	for _, text := range texts(list) {
		keys = append(keys, C.GoString(text))
	}
	return keys
}

func directivesOf(list *C.abi_info, count C.size_t) directives {
	d := directives{within: rangeSession}
	infos := unsafe.Slice(list, count)
	for i := range infos {
		d.read(C.GoString(&infos[i].key[0]), &infos[i].value)
	}
	return d
}

// read takes one directive; those that are not known are wishes that need not be met.
func (d *directives) read(key string, v *C.abi_value) {
	at := unsafe.Pointer(&v.data)
	switch {
	case key == keyRange && v._type == typeRange:
		d.within = *(*uint8)(at)
	case key == keyPersistence && v._type == typePersist:
		d.persist = *(*uint8)(at)
	case key == keyTimeout && v._type == typeInt:
		d.timeout = time.Duration(*(*int32)(at)) * time.Second
	case key == keyWait:
		d.wait = true
	}
}
