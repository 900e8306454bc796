package cli

import "dev.muster/slurm/lua"

// BurstHere calls a function of the script for burst buffers: the server that leads starts it.
func BurstHere(words []string) int { return lua.BurstMain(words) }
