package x11

import (
	"encoding/binary"
	"strconv"
)

// A file of cookies is a row of entries: whose display, its number, the kind of proof, the proof. A program that
// reaches a display by localhost looks for one of its own machine; in a container that has another name, for any.
const (
	familyLocal = 256
	familyWild  = 65535
	cookieKind  = "MIT-MAGIC-COOKIE-1"
)

func entries(host string, number int, cookie []byte) []byte {
	own := entry(familyLocal, host, number, cookie)
	return append(own, entry(familyWild, "", number, cookie)...)
}

func entry(family uint16, host string, number int, cookie []byte) []byte {
	out := binary.BigEndian.AppendUint16(nil, family)
	for _, part := range [][]byte{[]byte(host), []byte(strconv.Itoa(number)), []byte(cookieKind), cookie} {
		out = binary.BigEndian.AppendUint16(out, uint16(len(part)))
		out = append(out, part...)
	}
	return out
}
