package queue

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// Environ reads a job's environment as slurmctld stores it: the number of variables, and each with a NUL behind it.
func Environ(text []byte) ([]string, error) {
	const head = 4
	if len(text) < head {
		return nil, errors.New("its stored environment is cut off")
	}
	var out []string
	for entry := range bytes.SplitSeq(text[head:], []byte{0}) {
		if len(entry) > 0 {
			out = append(out, string(entry))
		}
	}
	if n := binary.LittleEndian.Uint32(text); uint64(n) != uint64(len(out)) || text[len(text)-1] != 0 && n > 0 {
		return nil, errors.New("its stored environment is not understood")
	}
	return out, nil
}
