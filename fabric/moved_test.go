package fabric

import (
	"testing"
	"testing/fstest"
)

// TestMoved: the counters of all ports count together, in words of four bytes; a machine without any moves nothing.
func TestMoved(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	sysfs := fstest.MapFS{
		"class/infiniband/mlx5_0/ports/1/counters/port_rcv_data":  file("1000\n"),
		"class/infiniband/mlx5_0/ports/1/counters/port_xmit_data": file("2000\n"),
		"class/infiniband/mlx5_1/ports/1/counters/port_rcv_data":  file("5\n"),
	}
	if in, out, ok := Moved(sysfs); in != 4020 || out != 8000 || !ok {
		t.Error(in, out, ok)
	}
	if in, out, ok := Moved(fstest.MapFS{}); in+out != 0 || ok {
		t.Error("a machine without ports:", in, out, ok)
	}
}
