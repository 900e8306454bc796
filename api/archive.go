package api

import (
	"dev.muster/cluster"
	"dev.muster/wire"
)

// ArchiveFormat is the version of files of archived history: this head in a line, and a cluster.Archived in each
// further one.
const ArchiveFormat = 1

// HistoryArchive is the head of a file of archived history.
type HistoryArchive struct {
	Format  int                `json:"muster_archive"`
	Cluster string             `json:"cluster"`
	Kind    cluster.RecordKind `json:"kind"`
}

// AppendArchiveHead appends the head's line, without its end.
func AppendArchiveHead(b []byte, name string, kind cluster.RecordKind) []byte {
	b, err := wire.Append(b, &HistoryArchive{ArchiveFormat, name, kind})
	if err != nil { // it has a number and texts alone
		panic(err)
	}
	return b
}
