//go:build cgo && linux

package pmix

// #cgo LDFLAGS: -ldl -rdynamic
// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime/cgo"
	"unsafe"

	"dev.muster/pmi"
)

// Built reports whether this program can load libpmix.
const Built = true

// libraries are the files that may be PMIx: the soname of versions 3 to 5, and what a build from source leaves.
var libraries = []string{"libpmix.so.2", "libpmix.so"}

// load loads the library.
func load() error {
	var why string
	for _, file := range libraries {
		name := C.CString(file)
		failed := C.shim_load(name)
		C.free(unsafe.Pointer(name))
		if failed == nil {
			return nil
		}
		if why == "" {
			why = C.GoString(failed)
		}
	}
	return fmt.Errorf("the PMIx library cannot be loaded (%s): install it on this node "+
		"(Debian and Ubuntu: apt install libpmix2), or use --mpi=pmi2", why)
}

// failure is the error of a status of the library.
func failure(doing string, status C.int) error {
	if status == statusSuccess || status == statusDone {
		return nil
	}
	version, why := C.GoString(C.shim_version()), C.GoString(C.shim_error(status))
	return fmt.Errorf("PMIx %s cannot %s: %s (%d)", version, doing, why, int(status))
}

// await calls the library and waits for the end of what that began.
func await(doing string, call func(id C.uintptr_t) C.int) error {
	ended := make(chan C.int, 1)
	id := cgo.NewHandle(ended)
	defer id.Delete()
	status := call(C.uintptr_t(id))
	if status == statusSuccess {
		status = <-ended
	}
	return failure(doing, status)
}

// start starts the library's server.
func start(list []info) error {
	in := newInfos(list) // the library keeps it
	return failure("start its server", C.shim_init(in, C.size_t(len(list))))
}

// register tells the library of the step and its local tasks.
func register(s *pmi.Setup, dir string) error {
	nodes, err := squeeze("name the nodes", nodeList(s), func(list *C.char, out **C.char) C.int {
		return C.shim_regex(list, out)
	})
	if err != nil {
		return err
	}
	procs, err := squeeze("name the tasks", procList(s), func(list *C.char, out **C.char) C.int {
		return C.shim_ppn(list, out)
	})
	if err != nil {
		return err
	}
	list := jobInfo(s, dir, nodes, procs)
	in := newInfos(list)
	defer freeInfos(in, len(list))
	nspace := C.CString(nspaceOf(s))
	defer C.free(unsafe.Pointer(nspace))
	err = await("take the step", func(id C.uintptr_t) C.int {
		return C.shim_register_nspace(nspace, C.int(len(s.Local())), in, C.size_t(len(list)), id)
	})
	for _, r := range s.Local() {
		if err != nil {
			return err
		}
		p := newProc(proc{nspaceOf(s), uint32(r)})
		err = await(fmt.Sprintf("take task %d", r), func(id C.uintptr_t) C.int {
			return C.shim_register_client(&p, C.uid_t(s.UID), C.gid_t(s.GID), id)
		})
	}
	return err
}

// squeeze has the library write a list in its own form, which is a text as long as it does not
// compress it (begin).
func squeeze(doing, list string, call func(list *C.char, out **C.char) C.int) (string, error) {
	in := C.CString(list)
	defer C.free(unsafe.Pointer(in))
	var out *C.char
	if err := failure(doing, call(in, &out)); err != nil {
		return "", err
	}
	defer C.free(unsafe.Pointer(out))
	return C.GoString(out), nil
}

// environ is what a task needs to find its server.
func environ(s *pmi.Setup, r int) (env []string, err error) {
	p := newProc(proc{nspaceOf(s), uint32(r)})
	var list **C.char
	if err := failure(fmt.Sprintf("prepare task %d", r), C.shim_setup_fork(&p, &list)); err != nil {
		return nil, err
	}
	for _, text := range texts(list) {
		env = append(env, C.GoString(text))
		C.free(unsafe.Pointer(text))
	}
	C.free(unsafe.Pointer(list))
	return env, nil
}

// request asks for what a local rank has to tell; it may take until the rank has said it.
func request(p proc, answer func(status int, data []byte)) {
	c := newProc(p)
	id := cgo.NewHandle(answer)
	if status := C.shim_request(&c, C.uintptr_t(id)); status != statusSuccess {
		id.Delete()
		answer(int(status), nil)
	}
}

// notifyDead tells local tasks that one of another node is gone.
func notifyDead(p proc) error {
	list := []info{{keyAffected, p}}
	in := newInfos(list)
	defer freeInfos(in, len(list))
	source := newProc(p)
	return await("tell of a lost task", func(id C.uintptr_t) C.int {
		return C.shim_notify(statusAborted, &source, rangeLocal, in, C.size_t(len(list)), id)
	})
}

// newProc is a process as C has it.
func newProc(p proc) (c C.abi_proc) {
	for i := range min(len(p.nspace), len(c.nspace)-1) {
		c.nspace[i] = C.char(p.nspace[i])
	}
	c.rank = C.uint32_t(p.rank)
	return c
}

func procOf(c *C.abi_proc) proc { return proc{C.GoString(&c.nspace[0]), uint32(c.rank)} }

func procsOf(c *C.abi_proc, count C.size_t) (list []proc) {
	procs := unsafe.Slice(c, count)
	for i := range procs {
		list = append(list, procOf(&procs[i]))
	}
	return list
}

// texts are the members of a list that ends with NULL.
func texts(list **C.char) (all []*C.char) {
	if list == nil {
		return nil
	}
	for at := unsafe.Pointer(list); *(**C.char)(at) != nil; at = unsafe.Add(at, unsafe.Sizeof(list)) {
		all = append(all, *(**C.char)(at))
	}
	return all
}

// newInfos is a list in memory of C; freeInfos frees it.
func newInfos(list []info) *C.abi_info {
	first := (*C.abi_info)(C.calloc(C.size_t(max(len(list), 1)), C.sizeof_abi_info))
	for i, c := range unsafe.Slice(first, len(list)) {
		c = C.abi_info{}
		setKey(c.key[:], list[i].key)
		setValue(&c.value, list[i].value)
		unsafe.Slice(first, len(list))[i] = c
	}
	return first
}

// setKey writes a text into an array that holds zeros.
func setKey(to []C.char, key string) {
	for i := range min(len(key), len(to)-1) {
		to[i] = C.char(key[i])
	}
}

func setValue(to *C.abi_value, value any) {
	at := unsafe.Pointer(&to.data)
	switch v := value.(type) {
	case string:
		to._type, *(**C.char)(at) = typeString, C.CString(v)
	case bool:
		to._type, *(*bool)(at) = typeBool, v
	case uint16:
		to._type, *(*uint16)(at) = typeUint16, v
	case uint32:
		to._type, *(*uint32)(at) = typeUint32, v
	case rank:
		to._type, *(*uint32)(at) = typeRank, uint32(v)
	case proc:
		c := (*C.abi_proc)(C.calloc(1, C.sizeof_abi_proc))
		*c = newProc(v)
		to._type, *(*unsafe.Pointer)(at) = typeProc, unsafe.Pointer(c)
	case []info:
		c := (*C.abi_array)(C.calloc(1, C.sizeof_abi_array))
		c._type, c.size, c.array = typeInfo, C.size_t(len(v)), unsafe.Pointer(newInfos(v))
		to._type, *(*unsafe.Pointer)(at) = typeArray, unsafe.Pointer(c)
	default:
		panic(fmt.Sprintf("a value of type %T has no form in PMIx", value))
	}
}

func freeInfos(first *C.abi_info, count int) {
	for i := range unsafe.Slice(first, count) {
		value := &unsafe.Slice(first, count)[i].value
		inside := *(*unsafe.Pointer)(unsafe.Pointer(&value.data))
		switch value._type {
		case typeArray:
			array := (*C.abi_array)(inside)
			freeInfos((*C.abi_info)(array.array), int(array.size))
			C.free(inside)
		case typeString, typeProc:
			C.free(inside)
		}
	}
	C.free(unsafe.Pointer(first))
}

// errForm is the error of a value that only its own process can read.
var errForm = errors.New("a value of this type cannot be published")

// bytesOf are the bytes of a value, which its type says how to read.
func bytesOf(v *C.abi_value) ([]byte, error) {
	at := unsafe.Pointer(&v.data)
	switch formOf(uint16(v._type)) {
	case formPlain:
		return C.GoBytes(at, C.int(len(v.data))), nil
	case formText:
		return []byte(C.GoString(*(**C.char)(at))), nil
	case formBytes:
		b := (*C.abi_bytes)(at)
		return C.GoBytes(unsafe.Pointer(b.bytes), C.int(b.size)), nil
	}
	return nil, fmt.Errorf("%w: type %d", errForm, int(v._type))
}

// setBytes makes a value of bytes; what it allocates, freeValue frees.
func setBytes(v *C.abi_value, it item) {
	at := unsafe.Pointer(&v.data)
	v._type = C.uint16_t(it.kind)
	switch formOf(it.kind) {
	case formPlain:
		copy(unsafe.Slice((*byte)(at), len(v.data)), it.data)
	case formText:
		*(**C.char)(at) = C.CString(string(it.data))
	case formBytes:
		b := (*C.abi_bytes)(at)
		b.bytes, b.size = (*C.char)(C.CBytes(it.data)), C.size_t(len(it.data))
	}
}

func freeValue(v *C.abi_value) {
	if f := formOf(uint16(v._type)); f == formText || f == formBytes {
		C.free(*(*unsafe.Pointer)(unsafe.Pointer(&v.data)))
	}
}
