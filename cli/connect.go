package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"dev.muster/api"
)

// connectTime is how long an X server may take to answer.
const connectTime = 10 * time.Second

// Connect leads the socket that is this process's file 3 to HOST:PORT, for a front-end, which does without package net.
func Connect(words []string) int {
	file := os.NewFile(3, "tunnel")
	near, err := net.FileConn(file)
	file.Close()
	if err != nil {
		return 1
	}
	far, err := net.DialTimeout("tcp", words[0], connectTime)
	if err != nil {
		fmt.Fprintln(os.Stderr, "muster: the X server cannot be reached:", err)
		near.Close()
		return 1
	}
	api.Splice(context.Background(), near, far)
	return 0
}
