package pmix

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// Types of values (PMIx standard, pmix_data_type_t) that are told or published.
const (
	typeBool       = 1
	typeString     = 3
	typeInt        = 6
	typeUint16     = 13
	typeUint32     = 14
	typeStatus     = 20
	typeProc       = 22
	typeInfo       = 24
	typeByteObject = 27
	typePersist    = 30
	typeRange      = 33
	typeArray      = 39
	typeRank       = 40
)

// form is how a value lies in memory.
type form int

const (
	formNone  form = iota // it cannot leave its process: pointers and what has some inside
	formPlain             // in place
	formText              // a C string
	formBytes             // an address and a length
)

// formOf is the form of a type's values. Types up to 20 are numbers and times, but for strings.
func formOf(kind uint16) form {
	switch {
	case kind == typeString:
		return formText
	case kind == typeByteObject:
		return formBytes
	case kind >= typeBool && kind <= typeStatus, kind == typePersist, kind == typeRange, kind == typeRank:
		return formPlain
	}
	return formNone
}

// item is a published value: who published it, and what its type says its bytes are.
type item struct {
	rank uint32
	kind uint16
	data []byte
}

// encode is an item as the hub keeps it.
func (i item) encode() string {
	b := binary.AppendUvarint(nil, uint64(i.rank))
	b = binary.AppendUvarint(b, uint64(i.kind))
	return string(append(b, i.data...))
}

var errItem = errors.New("a published value cannot be read")

func decodeItem(b []byte) (item, error) {
	rank, n := binary.Uvarint(b)
	if n <= 0 {
		return item{}, errItem
	}
	kind, k := binary.Uvarint(b[n:])
	if k <= 0 || formOf(uint16(kind)) == formNone {
		return item{}, errItem
	}
	return item{uint32(rank), uint16(kind), b[n+k:]}, nil
}

// Ranges within which a name is known, and when it goes by itself (pmix_data_range_t, pmix_persistence_t).
const (
	rangeLocal     = 2
	rangeNspace    = 3
	rangeSession   = 4
	rangeProcLocal = 7

	persistFirstRead = 1
)

// scoped is a name within a range. The tasks of a step are one namespace and have the hub for
// themselves, so that wider ranges are all one.
func scoped(within uint8, node int, rank uint32, key string) string {
	switch within {
	case rangeLocal:
		return fmt.Sprintf("pmix node %d %s", node, key)
	case rangeProcLocal:
		return fmt.Sprintf("pmix rank %d %s", rank, key)
	}
	return "pmix " + key
}

// directive reports whether a key is for the server, and not published. Keys that users publish have other names.
func directive(key string) bool { return strings.HasPrefix(key, "pmix.") }

// owners remembers what each local rank has published, for who unpublishes all of it.
type owners struct {
	mu    sync.Mutex
	names map[uint32]map[string]bool
}

func (o *owners) add(rank uint32, name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.names == nil {
		o.names = map[uint32]map[string]bool{}
	}
	if o.names[rank] == nil {
		o.names[rank] = map[string]bool{}
	}
	o.names[rank][name] = true
}

// drop forgets one name of a rank, or all, and returns what is forgotten.
func (o *owners) drop(rank uint32, names ...string) (dropped []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(names) == 0 {
		for name := range o.names[rank] {
			dropped = append(dropped, name)
		}
		delete(o.names, rank)
		return dropped
	}
	for _, name := range names {
		delete(o.names[rank], name)
	}
	return names
}
